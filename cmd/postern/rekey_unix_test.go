//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault"
	"github.com/postern-mail/postern/vault/agentmail"
	"github.com/postern-mail/postern/vault/vaulttest"
)

// keyFiles puts a vault's keys into files, and returns those and the variables that name
// them.
func (v testVault) keyFiles(t testing.TB) (admin, agent string, env []string) {
	t.Helper()
	dir := t.TempDir()
	admin, agent = filepath.Join(dir, "admin.key"), filepath.Join(dir, "agent.key")
	writeFile(t, admin, v.text[0]+"\n")
	writeFile(t, agent, v.text[1]+"\n")
	return admin, agent, []string{"POSTERN_DB=" + v.path, "POSTERN_KEY_FILE=" + agent}
}

// TestRekeyUnderManyProcesses gives a vault new keys again and again while many
// processes write and read, and kills most of those that do so. Each time exactly one of
// the keys before and after opens the vault, and in the end nothing is lost that a process
// was told is kept.
func TestRekeyUnderManyProcesses(t *testing.T) {
	t.Parallel()
	writers, rounds := testmain.Rounds(6, 20), testmain.Rounds(8, 12)
	if testing.Short() || vaulttest.InDatabase() {
		writers, rounds = 2, 4
	}
	v := newVault(t)
	v.add(t, mail.Account{Name: "work", Email: "me@example.org", Protocol: mail.IMAP, Username: "me", Auth: mail.AuthPassword, Mode: mail.Approve,
		IMAP: mail.Endpoint{Host: "127.0.0.1", Port: 1, Security: mail.TLS}, SMTP: mail.Endpoint{Host: "127.0.0.1", Port: 1, Security: mail.TLS},
		AllowOut: mail.AllowList{Enabled: true, Entries: []string{"*"}}}, "secret")
	admin, agent, env := v.keyFiles(t)
	adminEnv := append([]string{"POSTERN_ADMIN_KEY_FILE=" + admin}, env...)
	for _, line := range []string{"config set sends_per_hour 10000", "config set commands_per_minute 100000"} {
		works(t, alone(t, adminEnv, "exec", line))
	}

	// A writer sends agent mail or puts a message into the outbox, from one process that lives
	// on or from a new one for each.
	ctx, stop := context.WithCancel(t.Context())
	var kept sync.Map // texts of acknowledged writes
	var count atomic.Int64
	var all sync.WaitGroup
	defer all.Wait() // a writer that went on would panic over the reason why the test ended
	defer stop()
	for w := range writers {
		line := func(i int) (line, text string) {
			text = fmt.Sprintf("note-%d-%d.", w, i)
			if w%10 == 3 && i < 100 { // the outbox has bounds
				return fmt.Sprintf("mail send --to ann@example.org --subject %s --body hello", text), text
			}
			return fmt.Sprintf("agent send --to p:reader --from p:w%d --subject %s --body hello", w, text), text
		}
		acknowledge := func(answer []byte, text string) {
			var a struct {
				Success bool
				Error   struct{ Code string }
			}
			if err := json.Unmarshal(answer, &a); err != nil || !a.Success && a.Error.Code != "APPROVAL_REQUIRED" {
				t.Errorf("writer %d: %s, %v", w, answer, err)
				stop()
				return
			}
			kept.Store(text, w)
			count.Add(1)
		}
		if w%2 == 0 {
			all.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					line, text := line(i)
					out, _ := program(t, env, "exec", line).Output()
					acknowledge(out, text)
				}
			})
			continue
		}
		c := program(t, env, "repl")
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			defer func() { _ = in.Close(); _ = c.Wait() }()
			answers := bufio.NewScanner(out)
			for i := 0; ctx.Err() == nil; i++ {
				line, text := line(i)
				if _, err := fmt.Fprintln(in, line); err != nil || !answers.Scan() {
					t.Errorf("writer %d ended: %v, %v", w, err, answers.Err())
					return
				}
				acknowledge(answers.Bytes(), text)
			}
		})
	}

	read := func(file string) string {
		b, err := os.ReadFile(file)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(b))
	}
	// present returns the keys that open the vault, of those before and those in the files.
	present := func(before vault.Keys) (k vault.Keys) {
		for i, file := range []string{admin, agent} {
			key := []*mail.Secret{&k.Admin, &k.Agent}[i]
			candidates := map[string]bool{[]mail.Secret{before.Admin, before.Agent}[i].Reveal(): true, read(file): true, read(file + ".new"): true}
			delete(candidates, "")
			for text := range candidates {
				one := vault.Keys{Agent: mail.NewSecret([]byte(text))}
				if i == 0 {
					one = vault.Keys{Admin: one.Agent}
				}
				if _, err := vault.Open(t.Context(), v.path, one, nil); err == nil {
					if !key.IsZero() {
						t.Errorf("two keys open the vault")
					}
					*key = mail.NewSecret([]byte(text))
				}
			}
			if key.IsZero() {
				t.Fatalf("no key opens the vault: %d candidates for %s", len(candidates), file)
			}
		}
		return k
	}
	keys, took, changed, killed := v.keys, 0*time.Millisecond, 0, 0
	for round := 0; round < rounds && ctx.Err() == nil; round++ {
		c := program(t, adminEnv, "exec", []string{"vault rekey", "vault rekey --agent", "vault rekey --admin"}[round%3])
		var said bytes.Buffer
		c.Stdout, c.Stderr = &said, &said
		began := time.Now()
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		if round%4 == 0 {
			if err := c.Wait(); err != nil {
				t.Fatalf("round %d: %v: %s", round, err, said.String())
			}
			took = max(took, time.Since(began))
		} else {
			time.Sleep(rand.N(took))
			_ = c.Process.Kill()
			if c.Wait() != nil {
				killed++
			}
			vaulttest.EndLeases(t, v.path)
		}
		now := present(keys)
		if before, after := keys, now; round%3 == 0 && before.Admin.Equal(after.Admin) != before.Agent.Equal(after.Agent) {
			t.Errorf("round %d: one key was replaced, and the other was not", round)
		} else if !before.Admin.Equal(after.Admin) || !before.Agent.Equal(after.Agent) {
			changed++
		} else if round%4 == 0 {
			t.Errorf("round %d changed nothing: %s", round, said.String())
		}
		keys = now
		opened, err := vault.Open(t.Context(), v.path, keys, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := opened.VerifyAudit(t.Context()); err != nil || !r.OK {
			t.Fatalf("round %d: the audit log: %+v, %v", round, r, err)
		}
	}
	stop()
	all.Wait()
	works(t, alone(t, adminEnv, "exec", "vault check")) // with what the last round left
	works(t, alone(t, adminEnv, "exec", "vault rekey"))
	for _, file := range []string{admin, agent, v.path} {
		if _, err := os.Lstat(file + ".new"); !os.IsNotExist(err) {
			t.Errorf("%s.new is left: %v", file, err)
		}
	}
	t.Logf("%d writes, %d changes of keys, %d killed", count.Load(), changed, killed)

	opened, err := vault.Open(t.Context(), v.path, present(keys), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := opened.Check(t.Context()); err != nil {
		t.Error(err)
	}
	found := map[string]bool{}
	in, err := agentmail.New(opened).Read(t.Context(), agentmail.Query{Agent: "p:reader", All: true, Limit: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range in.Messages {
		found[m.Subject] = true
	}
	q := mail.OutboxQuery{Limit: mail.MaxOutboxLimit}
	for more := true; more; {
		var list []mail.Outgoing
		if list, more, err = opened.ListOutgoing(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		for _, o := range list {
			found[o.Subject], q.Before = true, o.ID
		}
	}
	entries := 0
	for before := uint64(0); ; {
		list, err := opened.Audit(t.Context(), vault.AuditQuery{Before: before, Limit: 501})
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 0 {
			break
		}
		for _, e := range list {
			if before = e.Seq; e.Parsed == "agent send" || e.Parsed == "mail send" {
				entries++
			}
		}
	}
	if entries < int(count.Load()) {
		t.Errorf("%d entries in the audit log for %d writes", entries, count.Load())
	}
	kept.Range(func(text, _ any) bool {
		if !found[text.(string)] {
			t.Errorf("%s is lost", text)
		}
		return true
	})
	if count.Load() < int64(writers) {
		t.Errorf("only %d writes", count.Load())
	}
}

// A process with its key in a variable stops once the vault has new keys, and says why.
func TestAProcessWithAFormerKeyStops(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	c := program(t, v.environment(false), "repl")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close(); _ = c.Wait() }()
	answers := bufio.NewScanner(out)
	ask := func() string {
		if _, err := fmt.Fprintln(in, "mail accounts"); err != nil || !answers.Scan() {
			t.Fatal(err, answers.Err())
		}
		return answers.Text()
	}
	if got := ask(); !strings.Contains(got, `"success":true`) {
		t.Fatal(got)
	}
	dir := t.TempDir()
	works(t, here(t, v.environment(true), "exec", "vault rekey --admin-out "+filepath.Join(dir, "admin")+" --agent-out "+filepath.Join(dir, "agent")))
	if got := ask(); !strings.Contains(got, `"CONFIG_ERROR"`) || !strings.Contains(got, "given new keys") || !strings.Contains(got, "Start it again") {
		t.Errorf("with the former key: %s", got)
	}
}

// A vault and its keys stay those of their user when root gives the vault new keys: the
// processes of that user open it afterwards, and can do the same.
func TestRekeyByRootKeepsTheOwner(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can give files away")
	}
	v := newVault(t)
	admin, agent, env := v.keyFiles(t)
	const owner = 65534
	for _, file := range []string{admin, agent, v.path} {
		if err := os.Chown(file, owner, owner); err != nil {
			t.Fatal(err)
		}
	}
	env = append([]string{"POSTERN_ADMIN_KEY_FILE=" + admin}, env...)
	works(t, alone(t, env, "exec", "vault rekey"))
	for _, file := range []string{admin, agent, v.path, v.path + ".rekey.lock"} {
		var s syscall.Stat_t
		if err := syscall.Stat(file, &s); err != nil || s.Uid != owner || s.Gid != owner {
			t.Errorf("%s belongs to %d:%d, %v", filepath.Base(file), s.Uid, s.Gid, err)
		}
	}
	out, _ := program(t, env, "exec", "vault rekey --admin --admin-out "+agent+".new").Output()
	if !bytes.Contains(out, []byte("CONFIG_ERROR")) {
		t.Errorf("a key is kept where a later change removes it: %s", out)
	}
}
