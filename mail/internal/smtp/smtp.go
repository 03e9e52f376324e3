// Package smtp is the submission wire (RFC 5321, RFC 6409): it connects, logs in,
// and hands over one message after the other, on a connection that is verified,
// bounded and ended by its context. Of each message it says whether the server took
// it, did not take it, or may have.
//
// The dialogue is its own. It is a dozen lines to send, and a general client does not
// guarantee the points that matter: that a write had left before the next one began, that
// the end of a message goes out alone and last, that no reply came in early, and how much a
// server may send.
//
// It knows nothing of accounts or policy; only package mail can import it.
package smtp

import (
	"context"
	"strings"
	"time"

	"github.com/postern-mail/postern/mail/internal/wire"
)

// How long the server has for an answer, and a write to leave, where no context
// ends sooner (RFC 5321 section 4.5.3.2).
const (
	commandTime = 5 * time.Minute // also for a login, MAIL and RCPT
	dataTime    = 2 * time.Minute
	blockTime   = 3 * time.Minute // for each write
	endTime     = 10 * time.Minute
	goodbye     = 2 * time.Second // for QUIT, which does not matter
)

// Session is a connection that is logged in. It is not safe for concurrent use.
type Session struct {
	conn  *conn
	offer map[string]string // the server's extensions: keywords in upper case, and their parameters
	begun bool              // a transaction is open that was not carried out
	stop  func()

	target *wire.Target
}

// Dial connects, upgrades where configured and logs in, a second time on a new
// connection where the first login is refused and Login.Refused says that it is
// worth it. The end of ctx closes the connection at any time until Close. Errors
// are *wire.Error, or what Login.Credential returned.
func Dial(ctx context.Context, target wire.Target) (*Session, error) {
	target = target.WithDefaults()
	s, err := dial(ctx, target)
	if wire.WorthRetry(err) {
		s, err = dial(ctx, target)
	}
	return s, err
}

func dial(ctx context.Context, target wire.Target) (*Session, error) {
	c, err := wire.Connect(ctx, target)
	if err != nil {
		return nil, err
	}
	s := &Session{conn: newConn(c), target: &target}
	s.stop = s.conn.Until(ctx)
	if err := s.open(ctx, target); err != nil {
		s.stop()
		_ = s.conn.End(errClosed)
		return nil, err
	}
	return s, nil
}

// open brings a connection to the state where mail can be sent.
func (s *Session) open(ctx context.Context, target wire.Target) error {
	within := time.Now().Add(target.Greeting)
	r, err := s.conn.reply(time.Until(within))
	switch {
	case err != nil:
		return wire.Broken(wire.StageGreeting, err)
	case !r.positive():
		return denied(wire.StageGreeting, r)
	}
	if err := s.hello(wire.StageGreeting, time.Until(within)); err != nil {
		return err
	}
	if target.Security == wire.StartTLS {
		if err := s.startTLS(ctx, target); err != nil {
			return err
		}
	}
	c, err := target.Login.Credential(ctx)
	if err != nil {
		return err
	}
	if err := s.login(target.Login.Username, c); err != nil {
		if err.Kind == wire.KindAuth && err.Reply != 0 {
			err.Newer = target.Login.Newer(ctx, c)
		}
		return err
	}
	return nil
}

// denied is the failure of a reply other than the expected one.
func denied(stage string, r reply) *wire.Error {
	if r.refused() {
		return refusal(stage, r)
	}
	return wire.Broken(stage, errNotSMTP)
}

// command sends one line and waits for the answer.
func (s *Session) command(stage, line string, within time.Duration) (reply, *wire.Error) {
	if !s.conn.quiet() {
		return reply{}, wire.Broken(stage, s.conn.End(errEarly))
	}
	if err := s.write(line); err != nil {
		return reply{}, wire.Broken(stage, err)
	}
	r, err := s.conn.reply(within)
	if err != nil {
		return reply{}, wire.Broken(stage, err)
	}
	return r, nil
}

// write sends lines at once, unless the target says that nothing may begin.
func (s *Session) write(lines ...string) error {
	if err := s.target.Begin(context.Background()); err != nil {
		return s.conn.End(err)
	}
	return s.conn.write([]byte(strings.Join(lines, "\r\n")+"\r\n"), blockTime)
}

// hello asks for the server's extensions. HELO does not help: a server without EHLO has no
// login either.
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

// startTLS protects the connection. The server's extensions from the clear are forgotten,
// and replies that it sent ahead end the connection (RFC 3207 section 6).
func (s *Session) startTLS(ctx context.Context, target wire.Target) error {
	if !s.offers("STARTTLS") {
		return wire.Broken(wire.StageTLS, wire.ErrNoStartTLS)
	}
	r, failed := s.command(wire.StageTLS, "STARTTLS", target.Greeting)
	if failed != nil {
		return failed
	}
	if r.code != 220 {
		return denied(wire.StageTLS, r)
	}
	if !s.conn.quiet() {
		return wire.Broken(wire.StageTLS, s.conn.End(errEarly))
	}
	if err := s.conn.StartTLS(ctx, target); err != nil {
		return err
	}
	return s.hello(wire.StageTLS, target.Greeting)
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
	if err := s.conn.Cause(); err != nil {
		failed = wire.Broken("quit", err)
	} else if _, err := s.command("quit", "QUIT", goodbye); err != nil {
		failed = err
	}
	s.stop()
	_ = s.conn.End(errClosed)
	return failed
}
