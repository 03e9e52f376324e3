//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/postern-mail/postern/gateway/gatewaytest"
	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail/servertest"
)

// ran is what a command of the program left behind.
type ran struct {
	answer
	args   []string
	status int
	stderr string
}

// alone runs a command as a process of its own.
func alone(t testing.TB, env []string, args ...string) ran { return ranBy(t, asProcess, env, args) }

// here runs a command whose whole environment is env in this process.
func here(t testing.TB, env []string, args ...string) ran { return ranBy(t, inThisProcess, env, args) }

func ranBy(t testing.TB, start func(t testing.TB, env, args []string) (int, []byte, []byte), env, args []string) ran {
	t.Helper()
	status, stdout, stderr := start(t, env, args)
	return ran{answerOf(t, string(stderr), stdout), args, status, string(stderr)}
}

// works wants a command to have succeeded.
func works(t testing.TB, r ran) ran {
	t.Helper()
	if !r.Success || r.status != 0 {
		t.Fatalf("%v: status %d: %s%s", r.args, r.status, r.raw, r.stderr)
	}
	return r
}

// refused wants a command to have failed this way.
func refused(t testing.TB, r ran, code string, status int, says string) ran {
	t.Helper()
	if r.Success || string(r.Error.Code) != code || r.status != status || !strings.Contains(r.Error.Message+" "+r.Error.Hint, says) {
		t.Errorf("%v: status %d: %s%s; want %s with %q", r.args, r.status, r.raw, r.stderr, code, says)
	}
	return r
}

func script(t testing.TB, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "helper")
	syscall.ForkLock.RLock() // no child may inherit the file while it is written
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// onServer are the options of an account add for a user of the server.
func onServer(t testing.TB, s *servertest.DovecotServer, user string) []string {
	t.Helper()
	ca := writeFile(t, filepath.Join(t.TempDir(), "ca.pem"), string(s.CAPEM))
	return []string{"account", "add", "work", "--email", user + "@example.org", "--username", user, "--imap-host", s.Host,
		"--imap-port", fmt.Sprint(s.IMAPSPort), "--ca-file", ca}
}

// alive reports whether a process runs; one that is dead but not waited for does
// not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !bytes.Contains(stat, []byte(") Z "))
}

// TestAServerRunsAHelperOnce talks to a server for a while.
func TestAServerRunsAHelperOnce(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	count := filepath.Join(t.TempDir(), "count")
	works(t, alone(t, v.environment(true), append(onServer(t, servertest.SharedDovecot(t), servertest.User("ann")), "--auth", "helper", "--helper", script(t, fmt.Sprintf("echo x >>%s; echo %s", count, servertest.Password)))...))
	c := serving(t, v)
	commands := []string{"mail list", "mail folders", "mail verify", "mail verify", "doctor"}
	for _, line := range commands {
		c.Begin(line)
	}
	for range commands {
		if m := c.Next(); m.IsError() {
			t.Fatalf("%s", m.Line)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if got := read(t, count); got != "x\n" {
		t.Errorf("%q", got)
	}
}

// homeless is the environment of a process that has no vault, and whose files go
// where a test can look at them.
type homeless struct{ config, temporary string }

func newHomeless(t testing.TB) homeless { return homeless{t.TempDir(), t.TempDir()} }

func (h homeless) environment(more ...string) []string {
	return append([]string{"HOME=" + h.config, "XDG_CONFIG_HOME=" + h.config, "TMPDIR=" + h.temporary, "POSTERN_DB=", "POSTERN_KEY=", "POSTERN_ADMIN_KEY="}, more...)
}

func accountVariables(s *servertest.DovecotServer, name, user string) []string {
	p := "MAIL_IMAP_" + name
	return []string{p + "_HOST=" + s.Host, p + "_PORT=" + fmt.Sprint(s.IMAPPort), p + "_SECURE=false", p + "_USER=" + user, p + "_PASS=" + servertest.Password}
}

// TestAccountsOfTheEnvironmentNeedNoVault runs commands with nothing but variables.
func TestAccountsOfTheEnvironmentNeedNoVault(t *testing.T) {
	t.Parallel()
	s, ann, bob := servertest.SharedDovecot(t), servertest.User("ann"), servertest.User("bob")
	s.Deliver(t, ann, "INBOX", realMessages(t)[:3]...)
	s.Deliver(t, bob, "INBOX", []byte("From: ann@example.org\r\nSubject: file\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\nContent-Disposition: attachment; filename=a.txt\r\n\r\nattached\r\n--b--\r\n"))
	home := newHomeless(t)
	env := home.environment(append(accountVariables(s, "DEFAULT", ann), accountVariables(s, "BOB_2", bob)...)...)
	emptied := func(dir string) {
		t.Helper()
		if files := left(t, dir); len(files) > 0 {
			t.Errorf("left behind: %v", files)
		}
	}

	r := works(t, alone(t, env, "mail", "accounts", "--full"))
	for _, want := range []string{`"account_id":"bob_2"`, `"account_id":"default"`, `"mode":"RO"`, `"secure":false`} {
		if !bytes.Contains(r.raw, []byte(want)) {
			t.Errorf("%s is not in %s", want, r.raw)
		}
	}
	if r := works(t, alone(t, env, "exec", "mail list --full")); bytes.Count(r.raw, []byte(`"message_id"`)) != 3 {
		t.Errorf("the default account: %s", r.raw)
	}
	const flag = `mail flags --folder INBOX --uid 1 --add '\Flagged'`
	works(t, alone(t, append(env, "MAIL_IMAP_WRITE_ENABLED=true"), "exec", flag))
	refused(t, alone(t, append(env, "MAIL_IMAP_WRITE_ENABLED=true", "MAIL_IMAP_DEFAULT_USER=ann@example.org"), "exec", "mail send --account default --to a@example.org --subject x --body y"), "PERMISSION_DENIED", 6, "one that does with 'account add'")
	foreign := append(env, "MAIL_IMAP_C_HOST="+s.Host, "MAIL_IMAP_C_PORT="+fmt.Sprint(s.IMAPSPort), "MAIL_IMAP_C_USER=c", "MAIL_IMAP_C_PASS=c")
	refused(t, alone(t, foreign, "exec", "mail list --account c"), "CONNECTION_FAILED", 8, "SSL_CERT_FILE")
	works(t, alone(t, env, "exec", "agent describe"))
	for _, c := range testmain.Table[struct {
		Line, Code string
		Status     int
		Says       string
	}](t, "testdata/cases/without_vault.txt") {
		refused(t, alone(t, env, "exec", c.Line), c.Code, c.Status, c.Says)
	}
	emptied(home.temporary)
	emptied(home.config)

	// What is saved is not part of the vault that dies.
	r = works(t, alone(t, env, "mail", "attachment", "--account", "bob_2", "--folder", "INBOX", "--uid", "1", "--part", "1", "--save", "a.txt"))
	if got := read(t, filepath.Join(home.config, "postern", "attachments", "a.txt")); strings.TrimSpace(got) != "attached" {
		t.Errorf("%q: %s", got, r.raw)
	}
	emptied(home.temporary)
}

// TestATemporaryVaultEndsWithTheServer ends a server at the end of its input and by
// each signal that asks it to.
func TestATemporaryVaultEndsWithTheServer(t *testing.T) {
	t.Parallel()
	s := servertest.SharedDovecot(t)
	for name, signal := range map[string]os.Signal{"end of input": nil, "SIGTERM": syscall.SIGTERM, "SIGINT": syscall.SIGINT} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := newHomeless(t)
			c := gatewaytest.Start(t, program(t, home.environment(accountVariables(s, "DEFAULT", servertest.User("ann"))...), "serve"))
			for line, says := range map[string]string{"mail list": `"success":true`, "account list": "PERMISSION_DENIED"} { // which is the administrator's
				if m := c.Call(line); !strings.Contains(m.Text(), says) {
					t.Errorf("%s: %s", line, m.Line)
				}
			}
			if len(left(t, home.temporary)) == 0 {
				t.Error("the vault is somewhere else")
			}
			end := c.Close
			if signal != nil {
				if err := c.Process.Process.Signal(signal); err != nil {
					t.Fatal(err)
				}
				end = c.Process.Wait
			}
			if err := end(); err != nil {
				t.Errorf("%v", err)
			}
			if files := left(t, home.temporary); len(files) > 0 {
				t.Errorf("left behind: %v", files)
			}
		})
	}
}

// TestAccountsOfVaultAndEnvironmentTogether has both, and one name in both.
func TestAccountsOfVaultAndEnvironmentTogether(t *testing.T) {
	t.Parallel()
	s, bob := servertest.SharedDovecot(t), servertest.User("bob")
	s.Deliver(t, bob, "INBOX", realMessages(t)[:2]...)
	v := newVault(t)
	v.add(t, dovecotAccount(s, servertest.User("ann")), servertest.Password)
	env := append(v.environment(true), accountVariables(s, "BOB", bob)...)
	r := works(t, here(t, env, "mail", "accounts"))
	if b, w := bytes.Index(r.raw, []byte(`"bob"`)), bytes.Index(r.raw, []byte(`"work"`)); b < 0 || w < b {
		t.Errorf("%s", r.raw)
	}
	if r := works(t, here(t, env, "mail", "list", "--full", "--account", "bob")); bytes.Count(r.raw, []byte(`"message_id"`)) != 2 {
		t.Errorf("%s", r.raw)
	}
	for _, line := range []string{"mail list --account work", "account show bob", "config set default_account bob"} {
		works(t, here(t, env, "exec", line))
	}
	for _, line := range []string{"account edit bob --mode RW", "account remove bob", "allow in add ann@example.org --account bob", "allow out remove x@example.org --account bob"} {
		refused(t, here(t, env, "exec", line), "CONFIG_ERROR", 3, "MAIL_IMAP_BOB_HOST")
	}
	refused(t, here(t, append(env, "PW=x"), "account", "add", "bob", "--email", "b@example.org", "--imap-host", "imap.example.org", "--password-from", "env:PW"), "CONFLICT", 9, "of that name")

	// Neither of two accounts of one name is used.
	env = append(v.environment(true), accountVariables(s, "WORK", bob)...)
	for _, line := range []string{"mail accounts", "mail list --account work", "account show work", "account edit work --mode RW", "account remove work"} {
		refused(t, here(t, env, "exec", line), "CONFIG_ERROR", 3, "MAIL_IMAP_WORK_HOST")
	}
	if a := works(t, here(t, v.environment(true), "account", "show", "work")); !bytes.Contains(a.raw, []byte(`"mode":"RO"`)) {
		t.Errorf("%s", a.raw)
	}

	// What is wrong in the environment does not keep the administrator out.
	env = append(v.environment(true), "MAIL_IMAP_WORK_PORT=993")
	refused(t, here(t, env, "mail", "list", "--account", "work"), "CONFIG_ERROR", 3, "MAIL_IMAP_WORK_HOST is not set")
	works(t, here(t, env, "config", "list"))
}
