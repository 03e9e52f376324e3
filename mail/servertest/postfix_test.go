package servertest

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// submission is a Postfix and the Dovecot behind it.
func submission(t *testing.T, config PostfixConfig) *PostfixServer {
	t.Helper()
	if config.Dovecot == nil {
		config.Dovecot = Dovecot(t, Config{Submission: true})
	}
	return Postfix(t, config)
}

// submit connects over TLS and logs in by this mechanism, unless it is nil.
func submit(t testing.TB, s *PostfixServer, mechanism sasl.Client) *smtp.Client {
	t.Helper()
	c, err := smtp.DialTLS(s.SubmissionsAddr(), s.ClientTLS())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if mechanism != nil {
		if err := c.Auth(mechanism); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func plain() sasl.Client { return sasl.NewPlainClient("", "sender@example.org", Password) }

func messageID() string { return fmt.Sprintf("<%d.test@example.org>", users.Add(1)) }

func letter(id, rest string) []byte {
	return []byte("Message-ID: " + id + "\r\nFrom: sender@example.org\r\nTo: everybody:;\r\n" + rest)
}

func wantCode(t *testing.T, err error, code int) {
	t.Helper()
	var refused *smtp.SMTPError
	if !errors.As(err, &refused) || refused.Code != code {
		t.Errorf("got %v, want %d", err, code)
	}
}

func TestPostfixDeliversWhatWasSentToTheMailbox(t *testing.T) {
	t.Parallel()
	for _, utf8 := range []bool{false, true} {
		t.Run(fmt.Sprintf("SMTPUTF8 %v", utf8), func(t *testing.T) {
			t.Parallel()
			d := Dovecot(t, Config{Submission: true})
			p := submission(t, PostfixConfig{Dovecot: d, SMTPUTF8: utf8})
			users := []string{someone(), strings.ToUpper(someone()), "ann@a-domain.example"}
			// What a careless server would change: a Bcc, dots, 8-bit octets, a From at
			// the start of a line, no Date.
			id, tail := messageID(), "Bcc: hidden@example.org\r\n\r\n.\r\n..\r\nFrom here caf\xc3\xa9 \xff\r\n"
			raw := letter(id, tail)
			if err := submit(t, p, plain()).SendMail("sender@example.org", users, bytes.NewReader(raw)); err != nil {
				t.Fatal(err)
			}
			for _, user := range users {
				got := bytes.ReplaceAll(bytes.ReplaceAll(d.WaitDelivered(t, user, id), []byte("\r\n"), []byte("\n")), []byte("\n"), []byte("\r\n"))
				if !bytes.HasSuffix(got, raw) {
					t.Errorf("%s got %q, want %q at its end", user, got, raw)
				}
				if !bytes.HasPrefix(got, []byte("Return-Path: <sender@example.org>\r\n")) {
					t.Errorf("%s got %q without the return path", user, got)
				}
				// The same by IMAP.
				c := login(t, d, user)
				if _, err := c.Select("INBOX", &imap.SelectOptions{ReadOnly: true}).Wait(); err != nil {
					t.Fatal(err)
				}
				section := &imap.FetchItemBodySection{Peek: true}
				all, err := c.Fetch(imap.SeqSetNum(1), &imap.FetchOptions{BodySection: []*imap.FetchItemBodySection{section}}).Collect()
				if err != nil || len(all) != 1 || !bytes.Equal(all[0].FindBodySection(section), got) {
					t.Errorf("by IMAP %s got %v, %v", user, all, err)
				}
			}
			p.WaitQueueEmpty(t)
			for _, user := range users {
				if n := len(d.Copies(t, user, id)); n != 1 {
					t.Errorf("%s has it %d times", user, n)
				}
			}
			if log := p.LogTail(); strings.Contains(log, "warning:") || strings.Contains(log, "fatal:") {
				t.Errorf("the log has warnings:\n%s", log)
			}
		})
	}
}

func TestPostfixLogsInAsDovecotDoes(t *testing.T) {
	t.Parallel()
	p := submission(t, PostfixConfig{})
	good, old := OAuthToken("u@example.org", time.Now().Add(time.Hour)), OAuthToken("u@example.org", time.Now().Add(-time.Hour))
	bearer := func(token string) sasl.Client {
		return sasl.NewOAuthBearerClient(&sasl.OAuthBearerOptions{Username: "u@example.org", Token: token})
	}
	for name, test := range map[string]struct {
		mechanism sasl.Client
		ok        bool
	}{
		"PLAIN":                          {sasl.NewPlainClient("", "u", Password), true},
		"PLAIN, wrong password":          {sasl.NewPlainClient("", "u", "wrong"), false},
		"LOGIN":                          {sasl.NewLoginClient("u", Password), true},
		"LOGIN, wrong password":          {sasl.NewLoginClient("u", "wrong"), false},
		"XOAUTH2":                        {xoauth2{"u@example.org", good}, true},
		"XOAUTH2, expired token":         {xoauth2{"u@example.org", old}, false},
		"XOAUTH2, another's token":       {xoauth2{"v@example.org", good}, false},
		"OAUTHBEARER":                    {bearer(good), true},
		"OAUTHBEARER, expired token":     {bearer(old), false},
		"PLAIN, a token for a password":  {sasl.NewPlainClient("", "u@example.org", good), false},
		"XOAUTH2, a password as a token": {xoauth2{"u", Password}, false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, dialed := range []func() (*smtp.Client, error){
				func() (*smtp.Client, error) { return smtp.DialTLS(p.SubmissionsAddr(), p.ClientTLS()) },
				func() (*smtp.Client, error) { return smtp.DialStartTLS(p.SubmissionAddr(), p.ClientTLS()) },
			} {
				c, err := dialed()
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				if err := c.Auth(test.mechanism); (err == nil) != test.ok {
					t.Fatalf("got %v, want success %v", err, test.ok)
				}
				err = c.Mail("u@example.org", nil)
				if err == nil {
					err = c.Rcpt("v@example.org", nil)
				}
				if (err == nil) != test.ok {
					t.Errorf("afterwards: %v, want success %v", err, test.ok)
				}
			}
		})
	}
}

func TestPostfixTakesNothingWithoutTLSOrLogin(t *testing.T) {
	t.Parallel()
	p := submission(t, PostfixConfig{})
	c, err := smtp.Dial(p.SubmissionAddr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if ok, _ := c.Extension("AUTH"); ok {
		t.Error("a login is offered in the clear")
	}
	wantCode(t, c.Mail("u@example.org", nil), 530)
	c = submit(t, p, nil)
	if ok, mechanisms := c.Extension("AUTH"); !ok || !slices.Equal(slices.Sorted(slices.Values(strings.Fields(mechanisms))), []string{"LOGIN", "OAUTHBEARER", "PLAIN", "XOAUTH2"}) {
		t.Errorf("the login offers %q", mechanisms)
	}
	if err := c.Mail("u@example.org", nil); err != nil {
		t.Fatal(err)
	}
	wantCode(t, c.Rcpt("v@example.org", nil), 554)
}

func TestPostfixRefusesSomeRecipients(t *testing.T) {
	t.Parallel()
	d := Dovecot(t, Config{Submission: true})
	p := submission(t, PostfixConfig{Dovecot: d, Refuse: map[string]string{
		"gone@example.org": "550 5.1.1 no such user", "busy@example.org": "451 4.3.0 try later", "closed.example": "554 5.7.1 no mail",
	}})
	c := submit(t, p, plain())
	if err := c.Mail("sender@example.org", nil); err != nil {
		t.Fatal(err)
	}
	wantCode(t, c.Rcpt("Gone@example.org", nil), 550)
	wantCode(t, c.Rcpt("busy@example.org", nil), 451)
	wantCode(t, c.Rcpt("any@closed.example", nil), 554)
	user := someone()
	if err := c.Rcpt(user, nil); err != nil {
		t.Fatal(err)
	}
	w, err := c.Data()
	if err != nil {
		t.Fatal(err)
	}
	id := messageID()
	if _, err := w.Write(letter(id, "\r\nx\r\n")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	d.WaitDelivered(t, user, id)
	p.WaitQueueEmpty(t)
	for _, other := range []string{"gone@example.org", "busy@example.org", "any@closed.example"} {
		if n := len(d.Copies(t, other, id)); n != 0 {
			t.Errorf("%s has it %d times", other, n)
		}
	}
}

func TestPostfixRefusesTooLargeAMessage(t *testing.T) {
	t.Parallel()
	p := submission(t, PostfixConfig{MessageSizeLimit: 20_000})
	c := submit(t, p, plain())
	if size, ok := c.MaxMessageSize(); !ok || size != 20_000 {
		t.Errorf("announces %d, %v", size, ok)
	}
	wantCode(t, c.Mail("sender@example.org", &smtp.MailOptions{Size: 20_001}), 552)
	large := letter(messageID(), "\r\n"+strings.Repeat(strings.Repeat("x", 78)+"\r\n", 300))
	wantCode(t, submit(t, p, plain()).SendMail("sender@example.org", []string{someone()}, bytes.NewReader(large)), 552)
	p.WaitQueueEmpty(t)
}

func TestPostfixSMTPUTF8(t *testing.T) {
	t.Parallel()
	d := Dovecot(t, Config{Submission: true})
	without := submission(t, PostfixConfig{Dovecot: d})
	if ok, _ := submit(t, without, plain()).Extension("SMTPUTF8"); ok {
		t.Error("announced where it is off")
	}
	with := submission(t, PostfixConfig{Dovecot: d, SMTPUTF8: true})
	c := submit(t, with, plain())
	id, user := messageID(), "zoë@exämple.org"
	if err := c.Mail("sénder@example.org", &smtp.MailOptions{UTF8: true}); err != nil {
		t.Fatal(err)
	}
	if err := c.Rcpt(user, nil); err != nil {
		t.Fatal(err)
	}
	w, err := c.Data()
	if err != nil {
		t.Fatal(err)
	}
	raw := letter(id, "Subject: Größe\r\n\r\nx\r\n")
	if _, err := w.Write(raw); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got := d.WaitDelivered(t, user, id); !bytes.HasSuffix(got, raw) {
		t.Errorf("got %q", got)
	}
	if got, err := login(t, d, user).Select("INBOX", nil).Wait(); err != nil || got.NumMessages != 1 {
		t.Errorf("by IMAP %v, %v", got, err)
	}
	with.WaitQueueEmpty(t)
}

// What Postfix cannot deliver comes back to the sender, in the same Dovecot.
func TestPostfixReturnsWhatItCannotDeliver(t *testing.T) {
	t.Parallel()
	d := Dovecot(t, Config{Submission: true})
	p := submission(t, PostfixConfig{Dovecot: d, SMTPUTF8: true})
	sender, id := someone(), messageID()
	if err := submit(t, p, plain()).SendMail(sender, []string{`"no/way"@example.org`}, bytes.NewReader(letter(id, "\r\nx\r\n"))); err != nil {
		t.Fatal(err)
	}
	p.WaitQueueEmpty(t)
	paths, err := filepath.Glob(filepath.Join(d.Home, sender, "Maildir", "*", "*.test*"))
	if err != nil || len(paths) != 1 {
		t.Fatalf("the sender has %v, %v, want one message", paths, err)
	}
	raw, err := os.ReadFile(paths[0])
	if err != nil || !bytes.Contains(raw, []byte("report-type=delivery-status")) || !bytes.Contains(raw, []byte(id)) {
		t.Errorf("got %q, %v", raw, err)
	}
}

func TestPostfixHoldsWhatDovecotDoesNotTake(t *testing.T) {
	t.Parallel()
	d := Dovecot(t, Config{Submission: true})
	p := submission(t, PostfixConfig{Dovecot: d})
	c := submit(t, p, plain())
	if err := d.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := c.SendMail("sender@example.org", []string{someone()}, bytes.NewReader(letter(messageID(), "\r\nx\r\n"))); err != nil {
		t.Fatal(err)
	}
	if err := awaitChange([]string{p.dir}, startTimeout, func() (bool, error) {
		return strings.Contains(p.LogTail(), "status=deferred"), nil
	}); err != nil {
		t.Fatal(err)
	}
	if queue := p.Queue(t); len(queue) != 1 || !strings.Contains(queue[0], `"queue_name": "deferred"`) {
		t.Errorf("the queue holds %q", queue)
	}
}

func TestPostfixTriesOtherPortsWhenOneIsTaken(t *testing.T) {
	t.Parallel()
	d := Dovecot(t, Config{Submission: true})
	for i := range 2 {
		other, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		starts := 0
		submission(t, PostfixConfig{Dovecot: d, ports: func(host string, n int) ([]uint16, error) {
			starts++
			ports, err := freePorts(host, n)
			if err == nil && starts == 1 {
				ports[i] = uint16(other.Addr().(*net.TCPAddr).Port)
			}
			return ports, err
		}})
		if starts != 2 {
			t.Errorf("port %d: %d starts, want 2", i, starts)
		}
	}
}

func TestPostfixLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	d := Dovecot(t, Config{Submission: true})
	s, err := StartPostfix(PostfixConfig{Dovecot: d})
	Check(t, err)
	id, user := messageID(), someone()
	c := submit(t, s, plain())
	if err := c.SendMail("sender@example.org", []string{user}, bytes.NewReader(letter(id, "\r\nx\r\n"))); err != nil {
		t.Fatal(err)
	}
	d.WaitDelivered(t, user, id)
	if running, err := session(s.cmd.Process.Pid); err != nil || len(running) < 4 {
		t.Errorf("of the server run %q, %v, which cannot be all", running, err)
	}
	for range 2 {
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := session(s.cmd.Process.Pid); err != nil || len(left) != 0 {
		t.Errorf("left are %q, %v", left, err)
	}
	if err := c.Noop(); err == nil {
		t.Error("a connection outlived the server")
	}
	if _, err := net.Dial("tcp", s.SubmissionAddr()); err == nil {
		t.Error("the port still answers")
	}
	if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
}

// A test binary whose time is over, or that crashed, cleans up nothing; its
// servers end all the same.
func TestPostfixEndsWithItsTest(t *testing.T) {
	const pids = "POSTERN_TEST_PIDS"
	if file := os.Getenv(pids); file != "" {
		d := Dovecot(t, Config{Submission: true})
		p := Postfix(t, PostfixConfig{Dovecot: d})
		ids := fmt.Sprint(shared.cmd.Process.Pid, " ", d.cmd.Process.Pid, " ", p.cmd.Process.Pid)
		if err := os.WriteFile(file, []byte(ids), 0o600); err != nil {
			t.Fatal(err)
		}
		os.Exit(3)
	}
	_, err := findPostfix()
	Check(t, err)
	// Not t.TempDir, whose name is too long for sockets.
	dir, err := os.MkdirTemp("", "killed-")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "pids")
	cmd := exec.Command(os.Args[0], "-test.run=^TestPostfixEndsWithItsTest$")
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, pids+"="+file)
	var exit *exec.ExitError
	if out, err := cmd.CombinedOutput(); !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Fatalf("got %v: %s", err, out)
	}
	ids, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(ids))
	if len(fields) != 3 {
		t.Fatalf("got %q", ids)
	}
	deadline := time.Now().Add(startTimeout)
	for _, field := range fields {
		id, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		for {
			running, err := session(id)
			if err != nil {
				t.Fatal(err)
			}
			if len(running) == 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Errorf("still running: %q", running)
				break
			}
			time.Sleep(pollInterval)
		}
	}
}

func TestManyPostfixesAtOnce(t *testing.T) {
	t.Parallel()
	d := Dovecot(t, Config{Submission: true})
	Postfix(t, PostfixConfig{Dovecot: d})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			s, err := StartPostfix(PostfixConfig{Dovecot: d})
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestPostfixRejectsBadConfig(t *testing.T) {
	t.Parallel()
	_, err := findPostfix()
	Check(t, err)
	d := Dovecot(t, Config{Submission: true})
	for name, config := range map[string]PostfixConfig{
		"no Dovecot":         {},
		"Dovecot without it": {Dovecot: server(t)},
		"no code":            {Dovecot: d, Refuse: map[string]string{"a@b.example": "no"}},
		"success":            {Dovecot: d, Refuse: map[string]string{"a@b.example": "250 OK"}},
		"two lines":          {Dovecot: d, Refuse: map[string]string{"a@b.example": "550 a\nc@d.example 550 b"}},
		"no recipient":       {Dovecot: d, Refuse: map[string]string{"": "550 no"}},
	} {
		if s, err := StartPostfix(config); err == nil {
			t.Errorf("%s: accepted", name)
			_ = s.Stop()
		}
	}
}

func BenchmarkPostfixStart(b *testing.B) {
	d := Dovecot(b, Config{Submission: true})
	Postfix(b, PostfixConfig{Dovecot: d})
	for b.Loop() {
		s, err := StartPostfix(PostfixConfig{Dovecot: d})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Stop(); err != nil {
			b.Fatal(err)
		}
	}
}
