package smtp_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	gosmtp "github.com/emersion/go-smtp"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail/internal/smtp"
	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

var must = testmain.Must

const password = "correct-horse"

func TestMain(m *testing.M) {
	os.Exit(testmain.Run(m.Run))
}

// fakeBackend is a go-smtp server, which shares no code with the client. It knows one password
// and keeps the last message.
type fakeBackend struct {
	mu   sync.Mutex
	from string
	to   []string
	got  []byte
	o    gosmtp.MailOptions
}

var _ gosmtp.AuthSession = (*fakeBackend)(nil)

func (s *fakeBackend) NewSession(*gosmtp.Conn) (gosmtp.Session, error) { return s, nil }
func (s *fakeBackend) AuthMechanisms() []string                        { return []string{sasl.Plain} }
func (s *fakeBackend) Reset()                                          {}
func (s *fakeBackend) Logout() error                                   { return nil }

func (s *fakeBackend) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, _, given string) error {
		if given != password {
			return &gosmtp.SMTPError{Code: 535, EnhancedCode: gosmtp.EnhancedCode{5, 7, 8}, Message: "no such login, not with " + given}
		}
		return nil
	}), nil
}

func (s *fakeBackend) Mail(from string, o *gosmtp.MailOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.from, s.to, s.o = from, nil, *o
	return nil
}

func (s *fakeBackend) Rcpt(to string, _ *gosmtp.RcptOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to = append(s.to, to)
	return nil
}

func (s *fakeBackend) Data(r io.Reader) error {
	b, err := io.ReadAll(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = b
	return err
}

// serve starts a fakeBackend, with TLS if leaf is not nil; implicit means TLS from the first byte.
func (s *fakeBackend) serve(t *testing.T, leaf *tls.Certificate, implicit bool) uint16 {
	t.Helper()
	sv := gosmtp.NewServer(s)
	sv.ErrorLog = log.New(io.Discard, "", 0)
	sv.AllowInsecureAuth, sv.EnableSMTPUTF8 = leaf == nil, true
	l := listen(t)
	if leaf != nil {
		sv.TLSConfig = &tls.Config{Certificates: []tls.Certificate{*leaf}}
		if implicit {
			l = tls.NewListener(l, sv.TLSConfig)
		}
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = sv.Serve(l) }()
	t.Cleanup(func() { _ = sv.Close(); <-done })
	return port(l)
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func port(l net.Listener) uint16 { return uint16(l.Addr().(*net.TCPAddr).Port) }

// script starts a fake server that runs talk for every connection.
func script(t *testing.T, talk func(conn net.Conn, lines *bufio.Reader)) uint16 {
	t.Helper()
	return scripted.Serve(t, func(c *scripted.Conn) {
		// A small buffer here makes the client's output wait in the client.
		_ = c.Conn.(*net.TCPConn).SetReadBuffer(64 << 10)
		talk(c.Conn, c.Lines)
	}).Port
}

func config(p uint16, security wire.Security, ca *servertest.CA) wire.Target {
	c := wire.Target{Host: "localhost", Port: p, Security: security, Login: scripted.WithPassword(password)}
	if ca != nil {
		c.RootCAs = ca.Pool()
	}
	return c
}

// Every byte of a message arrives over each kind of connection. A wrong password is refused,
// and the error does not repeat it.
func TestMessagesArriveAsTheyAre(t *testing.T) {
	t.Parallel()
	ca := scripted.Authority(t)
	leaf := scripted.Leaf(t, ca, time.Time{})
	st := new(fakeBackend)
	messages := map[string]string{
		"dots":             letter,
		"only dots":        ".\r\n..\r\n...\r\n",
		"an end inside":    "a\r\n.\r\nb\r\n\r\n.\r\n\r\n",
		"an empty line":    "\r\n",
		"long lines":       strings.Repeat(strings.Repeat("x", 998)+"\r\n", 50),
		"dots and blocks":  strings.Repeat("."+strings.Repeat("y", 30)+"\r\n", 5000),
		"8-bit":            "Subject: x\r\n\r\n.Grüße \xff\xfe\r\n",
		"some megabytes":   string(lines(1 << 20)),
		"no line too many": strings.Repeat("\r\n", 40000),
	}
	for _, c := range []wire.Target{
		config(st.serve(t, &leaf, true), wire.TLS, ca), config(st.serve(t, &leaf, false), wire.StartTLS, ca), config(st.serve(t, nil, false), wire.Plaintext, nil),
	} {
		s, err := smtp.Dial(t.Context(), c)
		if err != nil || len(s.Extensions()) == 0 {
			t.Fatalf("%s: %v", c.Security, err)
		}
		for name, message := range messages {
			r, err := s.Send(t.Context(), to("a@example.org", `"quoted.name"@example.org`, "jörg@example.org"), []byte(message))
			if err != nil || r.Reply != 250 {
				t.Errorf("%s, %s: %v, %v", c.Security, name, r, err)
				continue
			}
			st.mu.Lock()
			if string(st.got) != message {
				t.Errorf("%s, %s: %d bytes of %d arrived, or others", c.Security, name, len(st.got), len(message))
			}
			if st.from != "ann@example.org" || len(st.to) != 3 || !st.o.UTF8 || (st.o.Body == gosmtp.Body8BitMIME) != (name == "8-bit") {
				t.Errorf("%s, %s: envelope %s %q, %+v", c.Security, name, st.from, st.to, st.o)
			}
			st.mu.Unlock()
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: close: %v", c.Security, err)
		}
		c.Login = scripted.WithPassword("wrong-canary")
		_, err = smtp.Dial(t.Context(), c)
		var e *wire.Error
		if !errors.As(err, &e) || e.Kind != wire.KindAuth || e.Reply != 535 || strings.Contains(e.Error()+e.Text, "wrong-canary") {
			t.Errorf("%s: wrong password: %v", c.Security, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	ca, other := scripted.Authority(t), scripted.Authority(t)
	leaf := scripted.Leaf(t, ca, time.Time{})
	elsewhere := scripted.Leaf(t, ca, time.Time{}, "other.example.org")
	ehlo := func(conn net.Conn, lines *bufio.Reader, answer string) {
		_, _ = io.WriteString(conn, "220 hello\r\n")
		_, _ = lines.ReadString('\n')
		_, _ = io.WriteString(conn, answer)
		_, _ = lines.ReadString('\n')
	}
	nonLoopback := config(25, wire.Plaintext, nil)
	nonLoopback.Host = "mail.example.org"
	closed := listen(t)
	silent := config(script(t, func(_ net.Conn, lines *bufio.Reader) { _, _ = lines.ReadString('\n') }), wire.Plaintext, nil)
	silent.Greeting = 50 * time.Millisecond
	for name, c := range map[string]struct {
		config wire.Target
		kind   wire.Kind
	}{
		"unknown CA":           {config(new(fakeBackend).serve(t, &leaf, true), wire.TLS, other), wire.KindCertificate},
		"other host":           {config(new(fakeBackend).serve(t, &elsewhere, true), wire.TLS, ca), wire.KindCertificate},
		"unknown CA, starttls": {config(new(fakeBackend).serve(t, &leaf, false), wire.StartTLS, other), wire.KindCertificate},
		"no starttls":          {config(new(fakeBackend).serve(t, nil, false), wire.StartTLS, ca), wire.KindProtocol},
		"plaintext to afar":    {nonLoopback, wire.KindInvalid},
		"nothing listens":      {config(port(closed), wire.Plaintext, nil), wire.KindConnection},
		"silent":               {silent, wire.KindTimeout},
		"no way to log in":     {config(script(t, func(c net.Conn, l *bufio.Reader) { ehlo(c, l, "250 hello\r\n") }), wire.Plaintext, nil), wire.KindAuth},
		"refuses the greeting": {config(script(t, func(c net.Conn, _ *bufio.Reader) { _, _ = io.WriteString(c, "554 go away\r\n") }), wire.Plaintext, nil), wire.KindRefused},
		"answers without end":  {config(script(t, func(c net.Conn, l *bufio.Reader) { ehlo(c, l, strings.Repeat("250-more\r\n", 1<<20)) }), wire.Plaintext, nil), wire.KindLimit},
		"a line without end":   {config(script(t, func(c net.Conn, l *bufio.Reader) { ehlo(c, l, "250-"+strings.Repeat("x", 1<<20)) }), wire.Plaintext, nil), wire.KindLimit},
		"is no SMTP server":    {config(script(t, func(c net.Conn, _ *bufio.Reader) { _, _ = io.WriteString(c, "* OK IMAP4rev1\r\n") }), wire.Plaintext, nil), wire.KindProtocol},
		"answers ahead":        {config(script(t, func(c net.Conn, _ *bufio.Reader) { _, _ = io.WriteString(c, "220 hello\r\n250 hello\r\n") }), wire.Plaintext, nil), wire.KindProtocol},
		"closes in a line": {config(script(t, func(c net.Conn, l *bufio.Reader) {
			_, _ = io.WriteString(c, "220 hello\r\n")
			_, _ = l.ReadString('\n')
			_, _ = io.WriteString(c, "250 he")
		}), wire.Plaintext, nil), wire.KindClosed},
		"closes after the EHLO": {config(script(t, func(c net.Conn, _ *bufio.Reader) { _, _ = io.WriteString(c, "220 hello\r\n") }), wire.Plaintext, nil), wire.KindClosed},
	} {
		if name == "nothing listens" {
			_ = closed.Close() // not before the other servers have their ports
		}
		_, err := smtp.Dial(t.Context(), c.config)
		var e *wire.Error
		if !errors.As(err, &e) || e.Kind != c.kind {
			t.Errorf("%s: %v (%+v), want %s", name, err, e, c.kind)
		}
	}
}

func TestAnErrorOfTheCredentialIsReturned(t *testing.T) {
	t.Parallel()
	c := config(new(fakeBackend).serve(t, nil, false), wire.Plaintext, nil)
	gone := errors.New("gone")
	c.Login.Credential = func(context.Context) (wire.Credential, error) { return wire.Credential{}, gone }
	if _, err := smtp.Dial(t.Context(), c); !errors.Is(err, gone) {
		t.Errorf("%v", err)
	}
}
