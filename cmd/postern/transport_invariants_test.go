//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/gateway/gatewaytest"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/login"
	"github.com/postern-mail/postern/mail/servertest"
)

// on makes a mailbox of three messages and a process of the profile that reads it with IMAP.
func on(t testing.TB, alter func(*house.Transport)) (c *carrier, s *servertest.DovecotServer, user string) {
	t.Helper()
	s, user = servertest.SharedDovecot(t), servertest.User("ann")
	for i := range 3 {
		s.Deliver(t, user, "INBOX", fmt.Appendf(nil, "From: bob@example.org\r\nTo: ann@example.org\r\nSubject: letter %d\r\nMessage-ID: <%d@example.org>\r\nDate: Mon, %02d Feb 2026 10:00:00 +0000\r\n\r\n%s\r\n",
			i+1, i, i+1, bodyCanary))
	}
	s.Deliver(t, user, "Archive", []byte("From: bob@example.org\r\nSubject: old\r\n\r\nold\r\n"))
	p := newRecorder(t, s, "imap")
	return carry(t, p, p.options(t, s, "imap", user), alter), s, user
}

const bodyCanary = "c4n4ry-b0dy-0f-4-l3tt3r"

// report fails a test for each finding.
func report(t testing.TB, findings []string) {
	t.Helper()
	for _, f := range findings {
		t.Error(f)
	}
}

func Test004_INV_GLOBAL_04_TheCredentialStaysInMemory(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "TMPDIR"} {
		t.Setenv(name, home)
	}
	const canary = "c4n4ry-p4ssw0rd"
	s := servertest.Dovecot(t, servertest.Config{})
	p := newRecorder(t, s, "imap")
	for _, right := range []bool{true, false} {
		o := p.options(t, s, "imap", "ann")
		secret := servertest.Password
		if !right {
			secret = canary
			o.Helper = "printf %s%s " + canary[:6] + " " + canary[6:] // so that its own words do not hold it
		}
		c := carry(t, p, o, nil)
		for _, line := range []string{"mail accounts", "mail verify", "mail list", "mail folders --counts", "mail get --folder INBOX --uid 1", "mail list --fields nope", "help", "schema", "mail verify"} {
			if a := c.run(line); !right { // the other password is a word like any other
				report(t, finds("the answer to "+line, a.raw, secret))
			}
		}
		if !right {
			report(t, finds("the log", []byte(c.log.String()), secret))
			report(t, finds("what the account prints as", fmt.Appendf(nil, "%v %+v %#v", c.made.Credentials, c.made.Helper, c.made.Store.Served), secret))
		}
		if _, err := c.made.Store.Secret(t.Context(), "default"); err == nil {
			t.Errorf("the account's directory gives out a secret")
		}
		c.Close()
	}
	report(t, findsOnDisk(t, canary, home))
}

// flags are those of each message of the inbox, by its number in the order of
// delivery.
func flags(t testing.TB, s *servertest.DovecotServer, user string) (out []string) {
	t.Helper()
	for _, f := range s.Files(t, user) {
		if f.Folder == "INBOX" {
			out = append(out, f.Flags)
		}
	}
	return out
}

// Test004_INV_GLOBAL_07_TheEndClearsTheCredential ends a server in each way that a
// process can notice. A helper that still runs ends with it.
func Test004_INV_GLOBAL_07_TheEndClearsTheCredential(t *testing.T) {
	t.Parallel()
	s := servertest.SharedDovecot(t)
	p := newRecorder(t, s, "imap")
	for _, end := range []string{"end of input", "signal", "error"} {
		var copies lent
		process := newProcess(t, os.Environ()...)
		made, err := process.system().NewTransport(t.Context(), p.options(t, s, "imap", servertest.User("ann")), false)
		if err != nil {
			t.Fatal(err)
		}
		copies.Credentials, made.Credentials = made.Credentials, &copies
		in, client, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		process.stdin = in
		answers, out := io.Pipe()
		process.stdout = out
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- process.serveTransport(ctx, made, false)
			_ = out.Close()
		}()
		session := gatewaytest.New(t, client, answers)
		if m := session.Call("mail verify"); !strings.Contains(m.Text(), `"ok":true`) {
			t.Fatalf("%s", m.Line)
		}
		if !made.Helper.Holds() {
			t.Fatal("there is nothing to clear")
		}
		switch end {
		case "end of input":
			_ = client.Close()
		case "signal":
			cancel() // what main makes of SIGTERM, SIGHUP and SIGINT
		case "error":
			_ = answers.Close() // nobody reads on
			session.Begin("mail accounts")
		}
		go func() { _, _ = io.Copy(io.Discard, answers) }()
		select {
		case <-done:
		case <-time.After(patience):
			t.Fatalf("%s: the server goes on", end)
		}
		cancel()
		_ = client.Close()
		if made.Helper.Holds() {
			t.Errorf("after the %s the credential is still there", end)
		}
		if n := copies.left(); n > 0 || len(copies.given) == 0 {
			t.Errorf("of %d copies that were given for logins %d are still there", len(copies.given), n)
		}
		_ = made.Helper.Close()
	}
}

// lent notes the secrets that were given out.
type lent struct {
	login.Credentials
	mu    sync.Mutex
	given []mail.Secret
}

func (l *lent) Credential(ctx context.Context, a *mail.Account) (login.Credential, error) {
	c, err := l.Credentials.Credential(ctx, a)
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.given = append(l.given, c.Secret)
	}
	return c, err
}

// left is how many of them have not been overwritten.
func (l *lent) left() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.given {
		if strings.Trim(s.Reveal(), "\x00") != "" {
			n++
		}
	}
	return n
}

func Test004_INV_GLOBAL_08_ThereIsOneConnection(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"imap", "pop3"} {
		t.Run(protocol, func(t *testing.T) {
			s, user := servertest.SharedDovecot(t), servertest.User("ann")
			s.Deliver(t, user, "INBOX", realMessages(t)[:3]...)
			p := newRecorder(t, s, protocol)
			c := carry(t, p, p.options(t, s, protocol, user), nil)
			for range 2 {
				// One after the other, and all at once.
				c.run("mail list")
				c.run("mail verify")
				var wg sync.WaitGroup
				for _, line := range []string{"mail list", "mail verify", "mail folders --counts", "mail verify", "mail list --oldest-first", "mail list --since 2000-01-01", "mail folders", "mail verify"} {
					wg.Go(func() {
						if a := c.h(line); !strings.Contains(a, `"success":true`) || strings.Contains(a, `"ok":false`) {
							t.Errorf("%s: %s", line, a)
						}
					})
				}
				wg.Wait()
				p.sever() // and after the server hung up
			}
			report(t, p.several())
		})
	}
}

// h runs a command from any goroutine.
func (c *carrier) h(line string) string {
	return string(c.Gateway.Do(context.Background(), gateway.Request{Principal: c.Principal, Line: line}).JSON)
}
