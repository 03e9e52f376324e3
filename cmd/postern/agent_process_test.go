package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/gateway/gatewaytest"
	"github.com/postern-mail/postern/vault"
	"github.com/postern-mail/postern/vault/agentmail"
)

// TestABoundProcessIsOneAgent binds an identity by the environment.
func TestABoundProcessIsOneAgent(t *testing.T) {
	t.Parallel()
	free := processDoor(t)
	env := agentIdentityVar + "=p:b"
	bound := *free
	bound.run = processDoorAt(t, filepath.Join(filepath.Dir(free.file("probe", "")), "new", "mail.db"), env).run
	foreign := free.send("p:a", "p:c", "foreign")
	mine, everyone := free.send("p:a", "p:b", "mine"), free.send("p:a", "*", "all")
	bound.fails(6, "send", "--from", "p:a", "--to", "p:b", "--subject", "x")
	bound.fails(6, "read", "p:c")
	bound.fails(6, "read", "p:c", "--wait", "1s")
	bound.fails(6, "read", "p:c", "--thread", foreign.id())
	bound.fails(6, "ack", "p:c", foreign.id())
	bound.fails(5, "ack", "p:b", foreign.id())
	bound.fails(5, "read", "p:b", "--thread", foreign.id())
	bound.ok(nil, "ack", "p:b", mine.id())
	bound.ok(nil, "ack", "p:b", everyone.id())
	bound.send("p:b", "p:a", "hello")
	bound.reads("mine all", "p:b")
	broken := processDoorAt(t, filepath.Join(t.TempDir(), "m.db"), agentIdentityVar+"=nobody")
	broken.fails(3, "send", "--from", "p:a", "--to", "p:b", "--subject", "x")
}

// TestAServerMayBeBoundToAnIdentity gives serve --identity, which wins over the
// environment, and refuses to start with one that is none.
func TestAServerMayBeBoundToAnIdentity(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	env := append(v.environment(false), agentIdentityVar+"=p:other")
	for _, c := range []struct {
		env    []string
		args   []string
		status int
		says   string
	}{
		{env, []string{"--identity", "nobody"}, 2, "nobody"},
		{env, []string{"--identity", "p:b\n"}, 2, "project:name"},
		{env, []string{"--identity", "*"}, 2, "project:name"},
		{env, []string{"--identity="}, 2, "project:name"},
		{append(env, agentIdentityVar+"=nobody"), nil, 3, agentIdentityVar},
		{env, []string{"-h"}, 0, "-identity PROJECT:NAME"},
	} {
		status, stdout, stderr := inThisProcess(t, c.env, append([]string{"serve"}, c.args...))
		if status != c.status || len(stdout) > 0 || !strings.Contains(string(stderr), c.says) {
			t.Errorf("serve %q: status %d, %q", c.args, status, stderr)
		}
	}
	serve := func(args ...string) (said map[int]string) {
		c := gatewaytest.Start(t, program(t, env, append([]string{"serve"}, args...)...))
		said = map[int]string{}
		for _, command := range []string{"agent send --from p:other --to p:b --subject x", "agent send --from p:b --to p:other --subject x", "agent read p:other --peek", "agent read p:b --peek"} {
			m := c.Call(command)
			said[*m.ID] = m.Text()
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		return said
	}
	for _, c := range []struct {
		args    []string
		allowed map[int]bool
	}{{nil, map[int]bool{1: true, 3: true}}, {[]string{"--identity", "p:b"}, map[int]bool{2: true, 4: true}}} {
		said := serve(c.args...)
		for id := 1; id <= 4; id++ {
			ok, refused := strings.HasPrefix(said[id], `{"success":true`), strings.Contains(said[id], `"PERMISSION_DENIED"`)
			if ok != c.allowed[id] || refused == c.allowed[id] {
				t.Errorf("serve %q, call %d: %s", c.args, id, said[id])
			}
		}
	}
}

// processDoorAt is the bare process on a vault that another door made.
func processDoorAt(t testing.TB, path string, env ...string) *door {
	return processDoor(t, append(env, agentDBVar+"="+path)...)
}

// TestAWaitingReadHoldsUpNobody sends a waiting read over MCP and then, on the same
// connection, what it waits for.
func TestAWaitingReadHoldsUpNobody(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	c := serving(t, v)
	const waiting = 70 // more than may be at work at once
	for i := range waiting {
		c.Begin(fmt.Sprintf("agent read p:r%d --wait 200s", i))
	}
	sent, status := c.Begin("agent send --from p:a --to p:b --subject direct"), c.Begin("agent status")
	for _, want := range []int{sent, status} {
		if m := c.Next(); *m.ID != want {
			t.Fatalf("answer %d comes before %d: %s", *m.ID, want, m.Line)
		}
	}
	all := c.Begin("agent send --from p:a --to '*' --subject all")
	for id := range waiting {
		if text := c.Answer(id + 1).Text(); !strings.Contains(text, `"subject":"all"`) {
			t.Errorf("waiting read %d: %s", id+1, text)
		}
	}
	if m := c.Answer(all); m.IsError() {
		t.Errorf("%s", m.Line)
	}
	// An answer that was written counts as read.
	if m := c.Call("agent read p:r0"); !strings.Contains(m.Text(), `"data":[]`) {
		t.Errorf("%s", m.Line)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	later := v.opened(t, 2*agentmail.Lease)
	for i := range waiting {
		q := agentmail.Query{Agent: fmt.Sprintf("p:r%d", i)}
		if list, err := agentmail.New(later).Read(t.Context(), q); err != nil || len(list.Messages) != 0 {
			t.Errorf("%s: %d are unread again, %v", q.Agent, len(list.Messages), err)
		}
	}
}

// TestAnAnswerThatNobodyTookIsUnread has the process write to a pipe without a reader.
func TestAnAnswerThatNobodyTookIsUnread(t *testing.T) {
	t.Parallel()
	d := processDoor(t)
	d.send("p:a", "p:b", "x")
	path := filepath.Join(filepath.Dir(d.file("probe", "")), "new", "mail.db")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := program(t, []string{agentDBVar + "=" + path}, "agent", "read", "p:b")
	c.Stdout = w
	if err := errors.Join(r.Close(), c.Run(), w.Close()); err != nil {
		t.Logf("it ends with %v", err)
	}
	d.reads("", "p:b") // somebody holds it
	later := d.open(func() time.Time { return time.Now().Add(2 * agentmail.Lease) })
	if in, err := agentmail.New(later).Read(t.Context(), agentmail.Query{Agent: "p:b"}); err != nil || len(in.Messages) != 1 {
		t.Errorf("it was lost: %+v, %v", in, err)
	}
}

// TestFirstUsesAtOnceMakeOneMailbox starts the first processes together.
func TestFirstUsesAtOnceMakeOneMailbox(t *testing.T) {
	t.Parallel()
	d := doorOf(t, asProcess)
	processes := 8
	if testing.Short() {
		processes = 4
	}
	ended := make(chan bool, processes)
	for i := range processes {
		go func() {
			_, failure, status := d.run("send", "--from", "p:a", "--to", "p:b", "--subject", fmt.Sprint(i))
			if status != 0 {
				t.Errorf("process %d: %s", i, failure)
			}
			ended <- true
		}()
	}
	for range processes {
		<-ended
	}
	if n := len(d.read("p:b")); n != processes {
		t.Errorf("%d messages", n)
	}
}

// Without a vault and without AGENT_MAIL_DB the process makes a mailbox in the home
// directory; where a vault is, or is named, it is that one that is meant.
func TestNFR4WithoutAVaultTheMailboxIsInTheHomeDirectory(t *testing.T) {
	home := t.TempDir()
	env := []string{agentDBVar + "=", "POSTERN_DB=", "POSTERN_KEY=", "POSTERN_ADMIN_KEY="}
	for _, name := range []string{"HOME", "USERPROFILE", "XDG_CONFIG_HOME", "AppData"} { // of every system
		t.Setenv(name, home)
		env = append(env, name+"="+home)
	}
	mailbox := filepath.Join(home, ".agent-mail", "mail.db")
	if status, _, stderr := asProcess(t, env, []string{"agent", "describe"}); status != 0 {
		t.Fatalf("describe: %s", stderr)
	}
	if _, err := os.Stat(filepath.Dir(mailbox)); !os.IsNotExist(err) {
		t.Errorf("describe made the mailbox: %v", err)
	}
	if status, _, stderr := asProcess(t, env, []string{"agent", "send", "--from", "p:a", "--to", "p:b", "--subject", "left"}); status != 0 {
		t.Fatalf("send: %s", stderr)
	}
	if status, out, stderr := asProcess(t, env, []string{"agent", "read", "p:b"}); status != 0 || !strings.Contains(string(out), `"subject": "left"`) {
		t.Errorf("read: %s%s", out, stderr)
	}
	for _, file := range []string{mailbox, mailbox + house.MailboxKey} {
		if _, err := os.Stat(file); err != nil {
			t.Error(err)
		}
	}
	named := append(env, "POSTERN_DB="+filepath.Join(home, "named.db"))
	if status, _, stderr := asProcess(t, named, []string{"agent", "read", "p:b"}); status != 3 || !strings.Contains(string(stderr), "There is no vault yet") {
		t.Errorf("with a vault named: %d, %s", status, stderr)
	}
	path, err := vault.DefaultPath(func(string) string { return "" })
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, "not a vault")
	if status, _, stderr := asProcess(t, env, []string{"agent", "read", "p:b"}); status == 0 {
		t.Errorf("beside a vault it read something else: %s", stderr)
	}
}
