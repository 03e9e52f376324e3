// Package smtp is the submission wire (RFC 5321, RFC 6409): a go-smtp client on a
// connection that is verified, bounded and ended by its context.
//
// It knows nothing of accounts or policy; only package mail can import it.
package smtp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/emersion/go-sasl"
	gosmtp "github.com/emersion/go-smtp"

	"github.com/postern-mail/postern/mail/internal/wire"
)

// Security is how the connection is protected.
type Security = wire.Security

// The ways to protect a connection.
const (
	TLS       = wire.TLS
	StartTLS  = wire.StartTLS
	Plaintext = wire.Plaintext
)

// Config says where the submission server is and how to log in.
type Config struct {
	Host     string
	Port     uint16
	Security Security
	RootCAs  *x509.CertPool // nil means the system's
	Username string
	Password func(ctx context.Context) (string, error) // called once per login

	Connect  time.Duration // TCP and TLS; 0 means 30 s
	Greeting time.Duration // the server's first line; 0 means 15 s
}

// The defaults and bounds.
const (
	DefaultConnect  = 30 * time.Second
	DefaultGreeting = 15 * time.Second
	maxAnswers      = 1 << 20 // bytes a server may send on one connection
)

// Kind says what kind of failure an Error is.
type Kind string

// The kinds.
const (
	KindAuth        Kind = "auth"
	KindConnection  Kind = "connection"
	KindCertificate Kind = "certificate"
	KindTimeout     Kind = "timeout"
	KindRefused     Kind = "refused"
	KindLimit       Kind = "limit"
)

// Error is a failure of the wire. It holds no secret.
type Error struct {
	Stage string // connect, tls, greeting, auth
	Kind  Kind
	Code  int    // the server's reply code, 0 without one
	Text  string // the server's own words, cleaned and bounded
	Err   error
}

// Error says what happened in one line.
func (e *Error) Error() string {
	if e.Code != 0 {
		return fmt.Sprintf("smtp %s: server refused: %d %s", e.Stage, e.Code, e.Text)
	}
	return fmt.Sprintf("smtp %s: %v", e.Stage, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

var errTooMuch = errors.New("server sent more than is allowed")

// Session is a connection that is logged in. It is not safe for concurrent use.
type Session struct {
	client *gosmtp.Client
	conn   *boundedConn
	stop   func() bool
}

// Extensions lists what the server offers of the extensions that matter to a
// sender.
func (s *Session) Extensions() []string {
	var out []string
	for _, name := range []string{"8BITMIME", "CHUNKING", "DSN", "ENHANCEDSTATUSCODES", "PIPELINING", "REQUIRETLS", "SIZE", "SMTPUTF8"} {
		if ok, _ := s.client.Extension(name); ok {
			out = append(out, name)
		}
	}
	return out
}

// Close says QUIT and closes the connection, whatever the server answers. The
// context of Dial bounds the wait for that.
func (s *Session) Close() error {
	err := s.client.Quit()
	s.stop()
	_ = s.conn.Close() // closed already, unless the server kept silent
	return err
}

// Dial connects, upgrades where configured and logs in. The end of ctx closes the
// connection at any time until Close. Errors are *Error, or what Password
// returned.
func Dial(ctx context.Context, cfg Config) (*Session, error) {
	if cfg.Connect <= 0 {
		cfg.Connect = DefaultConnect
	}
	if cfg.Greeting <= 0 {
		cfg.Greeting = DefaultGreeting
	}
	conn, conf, err := connect(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	bounded := &boundedConn{Conn: conn, left: maxAnswers, deadline: time.Now().Add(cfg.Greeting)}
	s := &Session{conn: bounded, stop: context.AfterFunc(ctx, func() { _ = bounded.Close() })}
	if err := s.login(ctx, &cfg, conf); err != nil {
		s.stop()
		_ = bounded.Close()
		return nil, bounded.explain(ctx, err)
	}
	return s, nil
}

func connect(ctx context.Context, cfg *Config) (net.Conn, *tls.Config, error) {
	ctx, cancel := context.WithTimeout(ctx, cfg.Connect)
	defer cancel()
	conn, conf, stage, err := wire.Connect(ctx, wire.Target{Host: cfg.Host, Port: cfg.Port, Security: cfg.Security, RootCAs: cfg.RootCAs})
	if err != nil {
		return nil, nil, &Error{Stage: string(stage), Kind: kindOf(ctx, err), Err: err}
	}
	return conn, conf, nil
}

func (s *Session) login(ctx context.Context, cfg *Config, conf *tls.Config) error {
	if cfg.Security == StartTLS {
		// What the server said before its TLS is dropped with the old reader,
		// so nothing can be injected in front of it.
		client, err := gosmtp.NewClientStartTLS(s.conn, conf)
		if err != nil {
			return stage("tls", err)
		}
		s.client = client
	} else {
		s.client = gosmtp.NewClient(s.conn)
	}
	// After STARTTLS the handshake happens with this command, too.
	if err := s.client.Hello("localhost"); err != nil {
		return stage("greeting", err)
	}
	s.conn.waitUntil(time.Time{})
	password, err := cfg.Password(ctx)
	if err != nil {
		return err
	}
	var auth sasl.Client
	switch {
	case s.client.SupportsAuth(sasl.Plain):
		auth = sasl.NewPlainClient("", cfg.Username, password)
	case s.client.SupportsAuth(sasl.Login):
		auth = sasl.NewLoginClient(cfg.Username, password)
	default:
		return &Error{Stage: "auth", Kind: KindAuth, Err: errors.New("server offers no way to log in with a password")}
	}
	if err := s.client.Auth(auth); err != nil {
		e := stage("auth", err)
		if e.Code >= 500 {
			e.Kind = KindAuth
		}
		e.Text = "" // it has just been sent a password, and can say it again in any form
		return e
	}
	return nil
}

// stage wraps an error of the library; the server's own words are kept apart from
// it, cleaned.
func stage(name string, err error) *Error {
	var refused *gosmtp.SMTPError
	if errors.As(err, &refused) {
		return &Error{Stage: name, Kind: KindRefused, Code: refused.Code, Text: wire.Clean(refused.Message)}
	}
	return &Error{Stage: name, Kind: KindConnection, Err: err}
}

func kindOf(ctx context.Context, err error) Kind {
	var netErr net.Error
	switch {
	case errors.Is(err, errTooMuch):
		return KindLimit
	case wire.BadCertificate(err):
		return KindCertificate
	case ctx.Err() != nil, errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout():
		return KindTimeout
	}
	return KindConnection
}

// boundedConn bounds what a server may send and ignores the library's own
// deadlines, which know nothing of the caller's.
type boundedConn struct {
	net.Conn

	mu       sync.Mutex
	left     int64
	deadline time.Time
	err      error // the first bound broken
}

func (c *boundedConn) Read(p []byte) (int, error) {
	c.mu.Lock()
	left, deadline := c.left, c.deadline
	c.mu.Unlock()
	if left <= 0 {
		return 0, c.broken(errTooMuch)
	}
	_ = c.Conn.SetReadDeadline(deadline)
	n, err := c.Conn.Read(p[:min(int64(len(p)), left)])
	c.mu.Lock()
	c.left -= int64(n)
	c.mu.Unlock()
	if err != nil {
		err = c.broken(err)
	}
	return n, err
}

func (c *boundedConn) broken(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
	return err
}

// waitUntil bounds the wait for the next bytes; the zero time leaves that to the
// context.
func (c *boundedConn) waitUntil(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
}

// SetDeadline does nothing: the context ends the connection.
func (c *boundedConn) SetDeadline(time.Time) error { return nil }

// explain replaces what the library made of a broken bound or an ended context by
// the reason.
func (c *boundedConn) explain(ctx context.Context, err error) error {
	var e *Error
	if !errors.As(err, &e) || e.Code != 0 || e.Kind == KindAuth {
		return err
	}
	c.mu.Lock()
	cause := c.err
	c.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		cause = ctx.Err()
	case cause == nil:
		cause = e.Err
	}
	return &Error{Stage: e.Stage, Kind: kindOf(ctx, cause), Err: cause}
}
