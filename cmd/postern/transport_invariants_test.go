//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/gateway/gatewaytest"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/login"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/outbox"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

// Each clause of 004 section 4 has a check that returns what breaks it. It is run
// twice: on what was built, where it has to find nothing, and on a build that breaks
// the clause on purpose, where it has to find something.

// on starts a server with a mailbox of three messages and a process of the profile
// that reads it with IMAP.
func on(t testing.TB, alter func(*house.Transport)) (*carrier, *servertest.DovecotServer) {
	t.Helper()
	s := servertest.Dovecot(t, servertest.Config{})
	for i := range 3 {
		s.Deliver(t, "ann", "INBOX", fmt.Appendf(nil, "From: bob@example.org\r\nTo: ann@example.org\r\nSubject: letter %d\r\nMessage-ID: <%d@example.org>\r\nDate: Mon, %02d Feb 2026 10:00:00 +0000\r\n\r\n%s\r\n",
			i+1, i, i+1, bodyCanary))
	}
	s.Deliver(t, "ann", "Archive", []byte("From: bob@example.org\r\nSubject: old\r\n\r\nold\r\n"))
	p := newTap(t, s, s.IMAPSAddr())
	if alter != nil {
		p.hurry()
	}
	return carry(t, p, p.options(t, s, "imap", "ann"), alter), s
}

const bodyCanary = "c4n4ry-b0dy-0f-4-l3tt3r"

// wrong is a list of findings.
func wrong(found []string, format string, v ...any) []string {
	return append(found, fmt.Sprintf(format, v...))
}

// attack runs every form of every command that is not the profile's, and what people
// would try besides; whatever is not answered as a command that does not exist is
// found.
func attack(c *carrier, also ...string) (found []string) {
	lines := also
	for _, command := range everything() {
		if !slices.Contains(house.TransportCommands, command.Path) {
			lines = append(lines, forms(command, "imap:default:INBOX:1:2", "2")...)
		}
	}
	for _, line := range lines {
		if a := c.run(line); a.Error.Code != "COMMAND_NOT_FOUND" && a.Error.Code != "PARSE_ERROR" {
			found = wrong(found, "%s: %.200s", line, a.raw)
		}
	}
	return found
}

// offering breaks a build by more commands.
func offering(paths ...string) func(*house.Transport) {
	return func(t *house.Transport) { t.Offers = append(t.Offers, paths...) }
}

// reading breaks a build by what stands before the mailboxes.
func reading(wrap func(commands.Mailboxes) commands.Mailboxes) func(*house.Transport) {
	return func(t *house.Transport) {
		t.Adapt = func(d *commands.Deps) { d.Mailboxes = wrap(d.Mailboxes) }
	}
}

func Test004_INV_GLOBAL_01_NothingIsDeleted(t *testing.T) {
	t.Parallel()
	holds(t, func(t testing.TB, alter func(*house.Transport)) (found []string) {
		c, s := on(t, alter)
		c.do(t, "mail list", &listData{})
		before := len(s.Files(t, "ann"))
		found = attack(c, "mail delete --folder INBOX --uid 1,2 --confirm", "mail flags --folder INBOX --uid 3 --add '\\Deleted'", "mail expunge", "delete 1")
		found = append(found, imapViolations(c.tap.reset(), false)...)
		if after := len(s.Files(t, "ann")); after != before {
			found = wrong(found, "there were %d messages and are %d", before, after)
		}
		return found
	}, offering("mail delete"))
}

// posting is an outbox that sends at once, as no process of the profile may.
type posting struct {
	commands.Outbox
	address string
}

func (o posting) Send(ctx context.Context, account string, _ outbox.Request) (*mail.Outgoing, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", o.address)
	if err != nil {
		return nil, err
	}
	_, err = io.WriteString(conn, "HELO example.org\r\n")
	_ = conn.Close()
	return &mail.Outgoing{Account: account, ID: "x"}, err
}

func Test004_INV_GLOBAL_02_NothingIsSent(t *testing.T) {
	t.Parallel()
	submission := scripted.Serve(t, func(*scripted.Conn) {})
	holds(t, func(t testing.TB, alter func(*house.Transport)) (found []string) {
		before := submission.Accepted()
		c, _ := on(t, func(tr *house.Transport) {
			// A way out is there: only the commands are not.
			tr.Store.Served.SMTP = mail.Endpoint{Host: "127.0.0.1", Port: submission.Port, Security: mail.Plaintext}
			tr.Store.Served.AllowOut = mail.AllowList{Enabled: true, Entries: []string{"*"}}
			if alter != nil {
				alter(tr)
			}
		})
		found = attack(c, "mail send --to bob@example.org --subject s --body b", "mail draft --to bob@example.org --subject s --body b",
			"mail reply", "mail forward imap:default:INBOX:1:1", "agent send --from a:b --to c:d --subject s", "outbox approve x --code y")
		found = append(found, imapViolations(c.tap.reset(), false)...)
		if n := submission.Accepted() - before; n > 0 {
			found = wrong(found, "the submission server was called %d times", n)
		}
		return found
	}, func(tr *house.Transport) {
		tr.Offers = append(tr.Offers, "mail send")
		tr.Adapt = func(d *commands.Deps) { d.Outbox = posting{address: fmt.Sprintf("127.0.0.1:%d", submission.Port)} }
	})
}

func Test004_INV_GLOBAL_03_NothingIsMoved(t *testing.T) {
	t.Parallel()
	holds(t, func(t testing.TB, alter func(*house.Transport)) (found []string) {
		c, s := on(t, alter)
		where := func() (names []string) {
			for _, f := range s.Files(t, "ann") {
				names = append(names, f.Folder+"/"+f.Name)
			}
			return names
		}
		c.do(t, "mail list", &listData{})
		before := where()
		found = attack(c, "mail move --folder INBOX --uid 1,2 --to Archive", "mail copy --folder INBOX --uid 3 --to Archive", "mail archive 1")
		found = append(found, imapViolations(c.tap.reset(), false)...)
		if after := where(); !slices.Equal(before, after) {
			found = wrong(found, "there were %q and are %q", before, after)
		}
		return found
	}, offering("mail move", "mail copy"))
}

// keeping are credentials that end up in a file.
type keeping struct {
	*login.HelperOnce
	file string
}

func (k keeping) Credential(ctx context.Context, a *mail.Account) (login.Credential, error) {
	c, err := k.HelperOnce.Credential(ctx, a)
	if err == nil {
		err = os.WriteFile(k.file, []byte(c.Secret.Reveal()), 0o600)
	}
	return c, err
}

func Test004_INV_GLOBAL_04_TheCredentialStaysInMemory(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "TMPDIR"} {
		t.Setenv(name, home)
	}
	const canary = "c4n4ry-p4ssw0rd"
	holds(t, func(t testing.TB, alter func(*house.Transport)) (found []string) {
		s := servertest.Dovecot(t, servertest.Config{})
		p := newTap(t, s, s.IMAPSAddr())
		for _, right := range []bool{true, false} {
			o := p.options(t, s, "imap", "ann")
			secret := servertest.Password
			if !right {
				secret = canary
				o.Helper = "printf %s%s " + canary[:6] + " " + canary[6:] // so that its own words do not hold it
			}
			c := carry(t, p, o, alter)
			for _, line := range []string{"mail accounts", "mail verify", "mail list", "mail folders --counts", "mail get --folder INBOX --uid 1", "mail list --fields nope", "help", "schema", "mail verify"} {
				if a := c.run(line); !right { // the other password is a word like any other
					found = append(found, finds("the answer to "+line, a.raw, secret)...)
				}
			}
			if !right {
				found = append(found, finds("the log", []byte(c.log.String()), secret)...)
				found = append(found, finds("what the account prints as", fmt.Appendf(nil, "%v %+v %#v", c.made.Credentials, c.made.Helper, c.made.Store.Served), secret)...)
			}
			if _, err := c.made.Store.Secret(t.Context(), "default"); err == nil {
				found = wrong(found, "the account's directory gives out a secret")
			}
			c.Close()
		}
		return append(found, findsOnDisk(t, canary, home)...)
	}, func(tr *house.Transport) {
		// A login whose password is wrong is what brings the canary here.
		tr.Credentials = keeping{tr.Helper, filepath.Join(home, "kept")}
	})
}

// telling are mailboxes that log what they read.
type telling struct {
	commands.Mailboxes
	log *slog.Logger
}

func (m telling) GetEach(ctx context.Context, account string, refs []mail.Ref, q mailbox.GetQuery) (*mailbox.Messages, error) {
	got, err := m.Mailboxes.GetEach(ctx, account, refs, q)
	if err == nil {
		m.log.Info("read", "text", got.Messages[0].BodyText)
	}
	return got, err
}

func Test004_INV_GLOBAL_05_NoBodyIsLogged(t *testing.T) {
	t.Parallel()
	var log *written
	holds(t, func(t testing.TB, alter func(*house.Transport)) (found []string) {
		log = &written{}
		c, s := on(t, alter)
		const attached = "c4n4ry-4tt4chm3nt"
		s.Deliver(t, "ann", "INBOX", []byte("From: bob@example.org\r\nSubject: file\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\n"+
			bodyCanary+"\r\n--b\r\nContent-Type: text/plain\r\nContent-Disposition: attachment; filename=a.txt\r\n\r\n"+attached+"\r\n--b--\r\n"))
		shown := 0
		for _, command := range everything() {
			if slices.Contains(house.TransportCommands, command.Path) {
				for _, line := range forms(command, "imap:default:INBOX:1:2", "4") {
					if a := c.run(line); strings.Contains(string(a.raw), bodyCanary) {
						shown++
					}
				}
			}
		}
		c.tap.dead(true) // what fails is logged most
		c.run("mail list")
		c.run("mail get --folder INBOX --uid 4 --attachment-text")
		if shown == 0 {
			found = wrong(found, "no text was ever read, so nothing is known")
		}
		if !strings.Contains(c.log.String(), "operation failed") {
			found = wrong(found, "nothing was ever logged, so nothing is known: %s", c.log)
		}
		for _, text := range []string{bodyCanary, attached} {
			found = append(found, finds("the log", []byte(c.log.String()+log.String()), text)...)
		}
		return found
	}, reading(func(m commands.Mailboxes) commands.Mailboxes {
		return telling{m, slog.New(slog.NewTextHandler(log, nil))}
	}))
}

// marking are mailboxes that mark what they list.
type marking struct {
	commands.Mailboxes
	more uint32 // a UID that is marked with whatever is to be marked; 0 for none
}

func (m marking) List(ctx context.Context, account string, q mailbox.ListQuery) (*mailbox.Page, error) {
	page, err := m.Mailboxes.List(ctx, account, q)
	if err == nil && m.more == 0 && len(page.Messages) > 0 {
		_, err = m.Mailboxes.MarkRead(ctx, account, []mail.Ref{page.Messages[0].Ref})
	}
	return page, err
}

func (m marking) MarkRead(ctx context.Context, account string, refs []mail.Ref) (*mailbox.Changed, error) {
	if m.more != 0 {
		other := refs[0]
		other.UID = m.more
		refs = append(slices.Clone(refs), other)
	}
	return m.Mailboxes.MarkRead(ctx, account, refs)
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

func Test004_INV_GLOBAL_06_FetchingChangesNothing(t *testing.T) {
	t.Parallel()
	holds(t, func(t testing.TB, alter func(*house.Transport)) (found []string) {
		c, s := on(t, alter)
		c.run("mail folders --counts") // the first session renames files that were delivered
		before := s.Files(t, "ann")
		for _, command := range everything() {
			if slices.Contains(house.TransportCommands, command.Path) && command.Path != "mail mark-read" {
				for _, line := range forms(command, "imap:default:INBOX:1:2", "2") {
					c.run(line)
				}
			}
		}
		if after := s.Files(t, "ann"); !slices.Equal(before, after) {
			found = wrong(found, "the mailbox was\n%v\nand is\n%v", before, after)
		}
		found = append(found, imapViolations(c.tap.reset(), false)...)
		// What is asked for in so many words does change.
		if a := c.run("mail mark-read --folder INBOX --uid 2"); !a.Success {
			found = wrong(found, "mark-read: %s", a.raw)
		}
		if got := flags(t, s, "ann"); !slices.Equal(got, []string{"", "S", ""}) {
			found = wrong(found, "after mark-read the flags are %q", got)
		}
		return found
	}, reading(func(m commands.Mailboxes) commands.Mailboxes { return marking{Mailboxes: m} }))
}

// Test004_INV_GLOBAL_07_TheEndClearsTheCredential ends a server in each way that a
// process can notice. A helper that still runs ends with it.
func Test004_INV_GLOBAL_07_TheEndClearsTheCredential(t *testing.T) {
	t.Parallel()
	holds(t, func(t testing.TB, alter func(*house.Transport)) (found []string) {
		s := servertest.Dovecot(t, servertest.Config{})
		p := newTap(t, s, s.IMAPSAddr())
		for _, end := range []string{"end of input", "signal", "error"} {
			var copies lent
			process := newProcess(t, os.Environ()...)
			made, err := process.system().NewTransport(t.Context(), p.options(t, s, "imap", "ann"), false)
			if err != nil {
				t.Fatal(err)
			}
			copies.Credentials, made.Credentials = made.Credentials, &copies
			if alter != nil {
				alter(made)
			}
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
				found = wrong(found, "after the %s the credential is still there", end)
			}
			if n := copies.left(); n > 0 || len(copies.given) == 0 {
				found = wrong(found, "of %d copies that were given for logins %d are still there", len(copies.given), n)
			}
			_ = made.Helper.Close()
		}
		return found
	}, func(tr *house.Transport) { tr.Forget = func() error { return nil } })
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
			check := func(t testing.TB, alter func(*house.Transport)) []string {
				s := servertest.Dovecot(t, servertest.Config{})
				s.Deliver(t, "ann", "INBOX", realMessages(t)[:3]...)
				target := s.IMAPSAddr()
				if protocol == "pop3" {
					target = s.POP3SAddr()
				}
				p := newTap(t, s, target)
				if alter != nil {
					p.hurry()
				}
				c := carry(t, p, p.options(t, s, protocol, "ann"), alter)
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
				return p.several()
			}
			if protocol == "imap" {
				holds(t, check, func(tr *house.Transport) { tr.OneConnection = false })
				return
			}
			for _, v := range check(t, nil) {
				t.Error(v)
			}
		})
	}
}

// h runs a command from any goroutine.
func (c *carrier) h(line string) string {
	return string(c.Gateway.Do(context.Background(), gateway.Request{Principal: c.Principal, Line: line}).JSON)
}
