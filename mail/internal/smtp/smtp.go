// Package smtp is the submission wire (RFC 5321, RFC 6409): it connects, logs in,
// and hands over one message after the other, on a connection that is verified,
// bounded and ended by its context. Of each message it says whether the server took
// it, did not take it, or may have.
//
// The dialogue is its own. It is a dozen lines to send, and what has to be certain
// about them is what a general client does not tell: that a write had left before
// the next one began, that the end of a message goes out alone and last, that
// nothing came in before it was asked for, and how much a server may say.
//
// It knows nothing of accounts or policy; only package mail can import it.
package smtp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"
	"time"

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

// Login says how to log in, and Credential with what.
type (
	Login      = wire.Login
	Credential = wire.Credential
)

// Config says where the submission server is and how to log in. It is copied on
// entry.
type Config struct {
	Host     string
	Port     uint16
	Security Security
	RootCAs  *x509.CertPool // nil means the system's
	Login    Login

	Connect  time.Duration // TCP and TLS; 0 means DefaultConnect
	Greeting time.Duration // the server's first lines, up to what it offers; 0 means DefaultGreeting
}

// The defaults of Config.
const (
	DefaultConnect  = 30 * time.Second
	DefaultGreeting = 15 * time.Second
)

// How long the server has for an answer, and a write to leave, where no context
// ends sooner (RFC 5321 section 4.5.3.2).
const (
	commandTime = 5 * time.Minute // also for a login, MAIL and RCPT
	dataTime    = 2 * time.Minute
	blockTime   = 3 * time.Minute // for each write
	endTime     = 10 * time.Minute
	goodbye     = 2 * time.Second // for QUIT, of which nothing depends
)

// Session is a connection that is logged in. It is not safe for concurrent use.
type Session struct {
	conn  *conn
	offer map[string]string // what the server offers: keywords in upper case, and their parameters
	begun bool              // a transaction is open that was not carried out
	stop  func()
}

// Dial connects, upgrades where configured and logs in, a second time on a new
// connection where the first login is refused and Login.Refused says that it is
// worth it. The end of ctx closes the connection at any time until Close. Errors
// are *Error, or what Login.Credential returned.
func Dial(ctx context.Context, cfg Config) (*Session, error) {
	if cfg.Connect <= 0 {
		cfg.Connect = DefaultConnect
	}
	if cfg.Greeting <= 0 {
		cfg.Greeting = DefaultGreeting
	}
	if err := cfg.Login.Check(); err != nil {
		return nil, &Error{Stage: StageConnect, Kind: KindInvalid, Err: err}
	}
	s, refused, err := dial(ctx, &cfg)
	if refused != nil && cfg.Login.Again(ctx, *refused) {
		if s, refused, err = dial(ctx, &cfg); refused != nil {
			_ = cfg.Login.Again(ctx, *refused) // it is told, and there is no third time
		}
	}
	return s, err
}

// dial also returns the credential that the server did not accept, if that is why
// there is no session.
func dial(ctx context.Context, cfg *Config) (*Session, *Credential, error) {
	connecting, cancel := context.WithTimeout(ctx, cfg.Connect)
	defer cancel()
	c, conf, reached, err := wire.Connect(connecting, wire.Target{Host: cfg.Host, Port: cfg.Port, Security: cfg.Security, RootCAs: cfg.RootCAs})
	if err != nil {
		e := failure(string(reached), err)
		if connecting.Err() != nil {
			e.Kind = KindTimeout
		}
		return nil, nil, e
	}
	s := &Session{conn: newConn(c)}
	s.stop = s.conn.until(ctx)
	refused, err := s.open(ctx, connecting, cfg, conf)
	if err != nil {
		s.stop()
		_ = s.conn.end(errClosed)
		return nil, refused, err
	}
	return s, nil, nil
}

// open takes a connection to where mail can be sent.
func (s *Session) open(ctx, connecting context.Context, cfg *Config, conf *tls.Config) (refused *Credential, err error) {
	within := time.Now().Add(cfg.Greeting)
	r, err := s.conn.reply(time.Until(within))
	switch {
	case err != nil:
		return nil, failure(StageGreeting, err)
	case !r.positive():
		return nil, denied(StageGreeting, r)
	}
	if err := s.hello(StageGreeting, time.Until(within)); err != nil {
		return nil, err
	}
	if cfg.Security == StartTLS {
		if err := s.startTLS(connecting, conf, cfg.Greeting); err != nil {
			return nil, err
		}
	}
	c, err := cfg.Login.Credential(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.login(cfg.Login.Username, c); err != nil {
		if err.Kind == KindAuth && err.Code != 0 {
			refused = &c
		}
		return refused, err
	}
	return nil, nil
}

// denied is an answer that is not the one that was needed.
func denied(stage string, r reply) *Error {
	if r.refused() {
		return refusal(stage, r)
	}
	return failure(stage, errNotSMTP)
}

// command sends one line and waits for the answer.
func (s *Session) command(stage, line string, within time.Duration) (reply, *Error) {
	if !s.conn.quiet() {
		return reply{}, failure(stage, s.conn.end(errEarly))
	}
	if err := s.conn.write([]byte(line+"\r\n"), blockTime); err != nil {
		return reply{}, failure(stage, err)
	}
	r, err := s.conn.reply(within)
	if err != nil {
		return reply{}, failure(stage, err)
	}
	return r, nil
}

// hello asks what the server offers. HELO is no way out: a server without EHLO
// has no login either.
func (s *Session) hello(stage string, within time.Duration) error {
	r, failed := s.command(stage, "EHLO localhost", within)
	if failed != nil {
		return failed
	}
	if !r.positive() {
		return denied(stage, r)
	}
	s.offer = make(map[string]string)
	for _, line := range r.lines[1:] {
		keyword, parameters, _ := strings.Cut(line, " ")
		s.offer[strings.ToUpper(keyword)] = parameters
	}
	return nil
}

// startTLS protects the connection. What the server said of itself in the clear is
// forgotten, and what it said ahead ends the connection (RFC 3207 section 6).
func (s *Session) startTLS(ctx context.Context, conf *tls.Config, within time.Duration) error {
	if !s.offers("STARTTLS") {
		return failure(StageTLS, errors.New("server does not offer STARTTLS, and logging in without TLS is refused"))
	}
	r, failed := s.command(StageTLS, "STARTTLS", within)
	if failed != nil {
		return failed
	}
	if r.code != 220 {
		return denied(StageTLS, r)
	}
	if !s.conn.quiet() {
		return failure(StageTLS, s.conn.end(errEarly))
	}
	t := tls.Client(s.conn.raw, conf)
	if err := wire.Handshake(ctx, t); err != nil {
		return failure(StageTLS, s.conn.end(err))
	}
	s.conn.over(t)
	return s.hello(StageTLS, within)
}

func (s *Session) offers(keyword string) bool {
	_, ok := s.offer[keyword]
	return ok
}

// Extensions lists what the server offers of the extensions that matter to a
// sender.
func (s *Session) Extensions() []string {
	var out []string
	for _, name := range []string{"8BITMIME", "CHUNKING", "DSN", "ENHANCEDSTATUSCODES", "PIPELINING", "REQUIRETLS", "SIZE", "SMTPUTF8"} {
		if s.offers(name) {
			out = append(out, name)
		}
	}
	return out
}

// Close says QUIT and closes the connection, whatever the server answers; it does
// not wait long for that. It reports a connection that had ended before.
func (s *Session) Close() error {
	var failed error
	if err := s.conn.why(); err != nil {
		failed = failure("quit", err)
	} else if _, err := s.command("quit", "QUIT", goodbye); err != nil {
		failed = err
	}
	s.stop()
	_ = s.conn.end(errClosed)
	return failed
}
