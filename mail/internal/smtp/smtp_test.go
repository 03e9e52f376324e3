package smtp_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	gosmtp "github.com/emersion/go-smtp"

	"github.com/postern-mail/postern/mail/internal/smtp"
	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

const password = "correct-horse"

// backend is a submission server that knows one password and takes no mail.
type backend struct{}

func (backend) NewSession(*gosmtp.Conn) (gosmtp.Session, error) { return session{}, nil }

type session struct{}

func (session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, _, given string) error {
		if given != password {
			return &gosmtp.SMTPError{Code: 535, EnhancedCode: gosmtp.EnhancedCode{5, 7, 8}, Message: "no such login, not with " + given}
		}
		return nil
	}), nil
}

func (session) Mail(string, *gosmtp.MailOptions) error { return errors.New("mail was sent") }
func (session) Rcpt(string, *gosmtp.RcptOptions) error { return errors.New("mail was sent") }
func (session) Data(io.Reader) error                   { return errors.New("mail was sent") }
func (session) Reset()                                 {}
func (session) Logout() error                          { return nil }

// serve starts a real server; implicit says TLS from the first byte.
func serve(t *testing.T, leaf *tls.Certificate, implicit bool) uint16 {
	t.Helper()
	s := gosmtp.NewServer(backend{})
	s.ErrorLog = log.New(io.Discard, "", 0)
	s.AllowInsecureAuth = leaf == nil
	l := listen(t)
	if leaf != nil {
		s.TLSConfig = &tls.Config{Certificates: []tls.Certificate{*leaf}}
		if implicit {
			l = tls.NewListener(l, s.TLSConfig)
		}
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close(); <-done })
	return port(l)
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func port(l net.Listener) uint16 { return uint16(l.Addr().(*net.TCPAddr).Port) }

// script answers every connection with what talk writes.
func script(t *testing.T, talk func(conn net.Conn, lines *bufio.Reader)) uint16 {
	t.Helper()
	return scripted.Serve(t, func(c *scripted.Conn) {
		// What is sent waits at the sender until it is read.
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

func TestLogin(t *testing.T) {
	ca := scripted.Authority(t)
	leaf := scripted.Leaf(t, ca, time.Time{})
	for name, c := range map[string]wire.Target{
		"tls":       config(serve(t, &leaf, true), wire.TLS, ca),
		"starttls":  config(serve(t, &leaf, false), wire.StartTLS, ca),
		"plaintext": config(serve(t, nil, false), wire.Plaintext, nil),
	} {
		s, err := smtp.Dial(t.Context(), c)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(s.Extensions()) == 0 {
			t.Errorf("%s: no extensions", name)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: close: %v", name, err)
		}
		c.Login = scripted.WithPassword("wrong-canary")
		_, err = smtp.Dial(t.Context(), c)
		var e *wire.Error
		if !errors.As(err, &e) || e.Kind != wire.KindAuth || e.Reply != 535 {
			t.Errorf("%s: wrong password: %v", name, err)
		} else if strings.Contains(e.Error()+e.Text, "wrong-canary") {
			t.Errorf("%s: the password is in %q", name, e)
		}
	}
}

func TestRefusals(t *testing.T) {
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
	_ = closed.Close()
	silent := config(script(t, func(_ net.Conn, lines *bufio.Reader) { _, _ = lines.ReadString('\n') }), wire.Plaintext, nil)
	silent.Greeting = 50 * time.Millisecond
	for name, c := range map[string]struct {
		config wire.Target
		kind   wire.Kind
	}{
		"unknown CA":           {config(serve(t, &leaf, true), wire.TLS, other), wire.KindCertificate},
		"other host":           {config(serve(t, &elsewhere, true), wire.TLS, ca), wire.KindCertificate},
		"unknown CA, starttls": {config(serve(t, &leaf, false), wire.StartTLS, other), wire.KindCertificate},
		"no starttls":          {config(serve(t, nil, false), wire.StartTLS, ca), wire.KindConnection},
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
		_, err := smtp.Dial(t.Context(), c.config)
		var e *wire.Error
		if !errors.As(err, &e) || e.Kind != c.kind {
			t.Errorf("%s: %v (%+v), want %s", name, err, e, c.kind)
		}
	}
}

func TestTheContextEndsIt(t *testing.T) {
	greeted := make(chan struct{})
	p := script(t, func(conn net.Conn, lines *bufio.Reader) {
		_, _ = io.WriteString(conn, "220 hello\r\n")
		_, _ = lines.ReadString('\n')
		close(greeted)
		_, _ = lines.ReadString('\n')
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-greeted; cancel() }()
	_, err := smtp.Dial(ctx, config(p, wire.Plaintext, nil))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestAPasswordThatCannotBeHadIsReportedAsItIs(t *testing.T) {
	c := config(serve(t, nil, false), wire.Plaintext, nil)
	gone := errors.New("gone")
	c.Login.Credential = func(context.Context) (wire.Credential, error) { return wire.Credential{}, gone }
	if _, err := smtp.Dial(t.Context(), c); !errors.Is(err, gone) {
		t.Errorf("%v", err)
	}
}
