package pop3

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/postern-mail/postern/mail/internal/wire"
)

// Kind says what kind of failure an Error is.
type Kind string

// The kinds.
const (
	KindAuth        Kind = "auth"        // the login was not accepted
	KindConnection  Kind = "connection"  // no connection, or it broke
	KindCertificate Kind = "certificate" // the server's certificate was not accepted
	KindTimeout     Kind = "timeout"     // a deadline passed, the server kept silent or the context ended
	KindRefused     Kind = "refused"     // the server answered -ERR
	KindProtocol    Kind = "protocol"    // what it said is not POP3
	KindLimit       Kind = "limit"       // it sent more than is allowed
)

// Error is a failure of the wire. It holds no secret and nothing of a message.
type Error struct {
	Stage string // connect, tls, greeting, auth, or the command in lower case
	Kind  Kind
	Code  string // response code of an -ERR without its brackets (RFC 2449 section 8), upper case
	Text  string // the server's own words, cleaned and bounded; empty after a login
	Err   error  // the cause; may be nil
}

// Error says what happened in one line.
func (e *Error) Error() string {
	switch {
	case e.Kind == KindRefused || e.Kind == KindAuth && e.Err == nil:
		return fmt.Sprintf("pop3 %s: server refused: %s %s", e.Stage, e.Code, e.Text)
	case e.Err == nil:
		return fmt.Sprintf("pop3 %s: %s", e.Stage, e.Kind)
	}
	return fmt.Sprintf("pop3 %s: %v", e.Stage, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

var (
	errLine    = errors.New("a line of the server is too long")
	errBudget  = errors.New("the server sent more than is allowed")
	errAnswers = errors.New("the server listed more messages than are read")
	errSilent  = errors.New("the server kept silent")
	errNotPOP3 = errors.New("the server does not speak POP3 as it should")
)

// guarded bounds what a server may send and how long it may keep silent. The end
// of a context closes it from another goroutine.
type guarded struct {
	net.Conn
	silence time.Duration

	mu     sync.Mutex
	left   int64     // bytes that may still come
	by     time.Time // when the next bytes must be there at the latest; zero leaves it to silence
	broken error     // the first bound that was passed
}

func (c *guarded) Read(p []byte) (int, error) {
	c.mu.Lock()
	left, by := c.left, c.by
	c.mu.Unlock()
	if left <= 0 {
		return 0, c.fail(errBudget)
	}
	if by.IsZero() {
		by = time.Now().Add(c.silence)
	}
	_ = c.SetReadDeadline(by)
	n, err := c.Conn.Read(p[:min(int64(len(p)), left)])
	c.mu.Lock()
	c.left -= int64(n)
	c.mu.Unlock()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errSilent
	}
	if err != nil {
		err = c.fail(err)
	}
	return n, err
}

func (c *guarded) Write(p []byte) (int, error) {
	_ = c.SetWriteDeadline(time.Now().Add(c.silence))
	n, err := c.Conn.Write(p)
	if err != nil {
		err = c.fail(err)
	}
	return n, err
}

// fail keeps the first reason.
func (c *guarded) fail(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken == nil {
		c.broken = err
	}
	return err
}

// within sets what may come, and when at the latest it must begin to; the zero
// time leaves that to the bound on silence.
func (c *guarded) within(bytes int64, by time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.by = bytes, by
}

// explain gives a failure its form and its reason: the end of the context, else
// the first bound that was passed, else itself.
func (c *guarded) explain(ctx context.Context, stage string, err error) error {
	var e *Error
	if err == nil || errors.As(err, &e) && e.Err == nil {
		return err
	}
	c.mu.Lock()
	cause := c.broken
	c.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		cause = ctx.Err()
	case cause == nil:
		cause = err
	}
	return &Error{Stage: stage, Kind: kindOf(ctx, cause), Err: cause}
}

func kindOf(ctx context.Context, err error) Kind {
	var netErr net.Error
	switch {
	case errors.Is(err, errBudget), errors.Is(err, errLine), errors.Is(err, errAnswers):
		return KindLimit
	case errors.Is(err, errNotPOP3):
		return KindProtocol
	case wire.BadCertificate(err):
		return KindCertificate
	case ctx.Err() != nil, errors.Is(err, errSilent), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout():
		return KindTimeout
	}
	return KindConnection
}
