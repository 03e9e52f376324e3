//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/gateway/gatewaytest"
	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail/servertest"
)

// Test004_5_HelpersThatFail has the helper misbehave in every way, through the
// program as a process: each command is answered, the helper is run once, nothing
// it printed is shown or logged, and the mail server hears of a login at most once.
func Test004_5_HelpersThatFail(t *testing.T) {
	t.Parallel()
	s := servertest.SharedDovecot(t)
	const canary = "c4n4ry-p4ssw0rd"
	for _, test := range testmain.Table[struct {
		Name   string
		Body   string
		Code   string
		Says   string
		Logins int
	}](t, "testdata/cases/helpers.txt") {
		t.Run(test.Name, func(t *testing.T) {
			t.Parallel()
			count := filepath.Join(t.TempDir(), "count")
			proxy := servertest.NewProxy(t, s.IMAPSAddr(), servertest.ProxyOptions{})
			p := &recorder{port: proxy.Port}
			o := p.options(t, s, "imap", servertest.User("ann"))
			o.Helper = script(t, fmt.Sprintf("echo $$ >>%s; %s", count, test.Body))
			if test.Body == "" {
				if err := os.Remove(o.Helper); err != nil {
					t.Fatal(err)
				}
			}
			session, log := carrying(t, o)
			for _, line := range []string{"mail list", "mail list", "mail folders", "mail get --folder INBOX --uid 1", "mail mark-read --folder INBOX --uid 1", "mail thread --folder INBOX --uid 1"} {
				if test.Code == "TIMEOUT" {
					line += " --timeout 1"
				}
				a := envelope(t, session, line)
				if a.Success || string(a.Error.Code) != test.Code || !strings.Contains(a.Error.Message, test.Says) || a.Error.Hint == "" {
					t.Errorf("%s: %s", line, a.raw)
				}
				if test.Code != "TIMEOUT" && !strings.Contains(strings.ToLower(a.Error.Hint), "restart this server") {
					t.Errorf("%s does not say to start again: %s", line, a.raw)
				}
				for _, v := range finds("the answer to "+line, a.raw, canary) {
					t.Error(v)
				}
				if test.Code == "TIMEOUT" && line != "mail list --timeout 1" {
					break // once is enough: it waits
				}
			}
			if test.Logins > 0 {
				if a := envelope(t, session, "mail list"); !strings.Contains(a.Error.Message, "No other is tried for the next ") {
					t.Errorf("no seconds: %s", a.raw)
				}
			}
			for _, line := range []string{"help", "version", "mail accounts"} {
				if a := envelope(t, session, line); !a.Success {
					t.Errorf("%s: %s", line, a.raw)
				}
			}
			ended(t, session)
			if n := proxy.Stats().Connections; n > test.Logins {
				t.Errorf("%d connections to the mail server", n)
			}
			for _, v := range finds("the log", []byte(log.String()), canary) {
				t.Error(v)
			}
			if test.Code != "TIMEOUT" && test.Logins == 0 && strings.Count(log.String(), "\n") != 1 {
				t.Errorf("the person is told %q", log)
			}
			b, err := os.ReadFile(count)
			if runs := strings.Fields(string(b)); len(runs) > 1 || test.Body != "" && len(runs) != 1 {
				t.Errorf("the helper ran as %v, %v", runs, err)
			} else if len(runs) == 1 {
				var pid int
				_, _ = fmt.Sscan(runs[0], &pid)
				for deadline := time.Now().Add(patience); alive(pid); time.Sleep(time.Millisecond) {
					if time.Now().After(deadline) {
						t.Fatalf("the helper lives on as %d", pid)
					}
				}
			}
		})
	}
}

// Test004_3_AccountsOfTheVault serves an account of the vault: its own helper or one
// that is named, its rules as they are now, and no other account.
func Test004_3_AccountsOfTheVault(t *testing.T) {
	t.Parallel()
	s, user := servertest.SharedDovecot(t), servertest.User("ann")
	s.Deliver(t, user, "INBOX", realMessages(t)[:2]...)
	v := newVault(t)
	sealed := dovecotAccount(s, user)
	sealed.Name = "sealed"
	v.add(t, sealed, "c4n4ry-s34l3d")
	works(t, here(t, v.environment(true), append(onServer(t, s, user), "--auth", "helper", "--helper", "echo "+servertest.Password)...))
	env := v.environment(false)

	for _, test := range testmain.Table[struct {
		Name   string
		Status int
		Says   string
		Args   []string
	}](t, "testdata/cases/transport_flags.txt") {
		c := program(t, env, append([]string{"serve", "--profile", house.TransportProfile}, test.Args...)...)
		var log written
		c.Stderr = &log
		_ = c.Run()
		if c.ProcessState.ExitCode() != test.Status || !strings.Contains(log.String(), test.Says) {
			t.Errorf("%s: status %d: %s", test.Name, c.ProcessState.ExitCode(), &log)
		}
	}

	for _, o := range []*house.TransportOptions{{Account: "work"}, {Account: "sealed", Helper: "echo " + servertest.Password}} {
		session, log := carrying(t, o, env...)
		var page listData
		a := envelope(t, session, "mail list --full")
		if !a.Success || strings.Count(string(a.raw), `"message_id"`) != 2 {
			t.Fatalf("%s%s", a.raw, log)
		}
		if a := envelope(t, session, "mail accounts --full"); strings.Count(string(a.raw), `"account_id"`) != 1 {
			t.Errorf("%s", a.raw)
		}
		other := map[string]string{"work": "sealed", "sealed": "work"}[o.Account]
		if a := envelope(t, session, "mail list --account "+other); a.Error.Code != "NOT_FOUND" {
			t.Errorf("another account: %s %+v", a.raw, page)
		}
		// Its rules hold, and what the administrator changes holds at once.
		if a := envelope(t, session, "mail mark-read --folder INBOX --uid 1"); a.Error.Code != "PERMISSION_DENIED" {
			t.Errorf("read-only: %s", a.raw)
		}
		works(t, here(t, v.environment(true), "account", "edit", o.Account, "--mode", "RW"))
		if a := envelope(t, session, "mail mark-read --folder INBOX --uid 1"); !a.Success {
			t.Errorf("changed: %s", a.raw)
		}
		// Not so where it is and as whom it logs in: that was settled at the start.
		works(t, here(t, v.environment(true), "account", "edit", o.Account, "--username", "somebody"))
		if a := envelope(t, session, "mail list"); a.Error.Code != "CONFIG_ERROR" || !strings.Contains(strings.ToLower(a.Error.Hint), "restart this server") {
			t.Errorf("another user: %s", a.raw)
		}
		ended(t, session)
		if log.String() != "" {
			t.Errorf("it says %s", log)
		}
	}
	r := works(t, here(t, v.environment(true), "audit", "list", "--full", "--limit", "500"))
	for _, want := range []string{"mail list", "mail mark-read", `"account":"work"`, `"account":"sealed"`} {
		if !strings.Contains(string(r.raw), want) {
			t.Errorf("the audit log has no %s", want)
		}
	}
	for _, f := range append(finds("the audit log", r.raw, servertest.Password+"\n"), finds("the audit log", r.raw, "c4n4ry-s34l3d")...) {
		t.Error(f)
	}
}

// Test004_5_ReadOnly leaves out the one command that changes something.
func Test004_5_ReadOnly(t *testing.T) {
	t.Parallel()
	o := &house.TransportOptions{Host: "127.0.0.1", Port: uint(closedPort(t)), Security: "none", Username: "ann", Helper: "echo {name}-{username}"}
	c := gatewaytest.Start(t, program(t, nil, append(argumentsOf(o), "--read-only")...))
	c.Send(`{"jsonrpc":"2.0","id":100,"method":"tools/list"}`)
	if m := c.Answer(100); !strings.Contains(m.Line, `"readOnlyHint":true`) {
		t.Errorf("%s", m.Line)
	}
	if m := c.Call("mail mark-read --folder INBOX --uid 1"); !strings.Contains(m.Text(), "COMMAND_NOT_FOUND") {
		t.Errorf("%s", m.Line)
	}
	ended(t, c)
}

// Test004_INV_GLOBAL_07_ASignalEndsTheProcess ends the program by each signal that
// asks it to, with a helper that is still asking somebody.
func Test004_INV_GLOBAL_07_ASignalEndsTheProcess(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		file := filepath.Join(t.TempDir(), "pid")
		o := &house.TransportOptions{Host: "127.0.0.1", Port: uint(closedPort(t)), Security: "none", Username: "ann"}
		o.Helper = script(t, fmt.Sprintf("echo $$ >%s.part; mv %[1]s.part %[1]s; sleep 1000", file))
		session, _ := carrying(t, o)
		envelope(t, session, "help")
		var pid int
		for deadline := time.Now().Add(patience); pid == 0; time.Sleep(time.Millisecond) {
			if b, err := os.ReadFile(file); err == nil {
				_, _ = fmt.Sscan(string(b), &pid)
			} else if time.Now().After(deadline) {
				t.Fatal("the helper does not start")
			}
		}
		if err := session.Process.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if err := session.Process.Wait(); err != nil {
			t.Errorf("%s: %v", signal, err)
		}
		for deadline := time.Now().Add(patience); alive(pid); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: the helper lives on", signal)
			}
		}
	}
}
