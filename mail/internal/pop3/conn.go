package pop3

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/postern-mail/postern/mail/internal/wire"
)

var (
	errLine    = wire.Cause(wire.KindLimit, "a line of the server is too long")
	errBudget  = wire.Cause(wire.KindLimit, "the server sent more than is allowed")
	errAnswers = wire.Cause(wire.KindLimit, "the server listed more messages than are read")
	errSilent  = wire.Cause(wire.KindTimeout, "the server kept silent")
	errNotPOP3 = wire.Cause(wire.KindProtocol, "the server does not speak POP3 as it should")
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
	var e *wire.Error
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
	return &wire.Error{Stage: stage, Kind: wire.KindOf(cause), OutOfStep: true, Err: cause}
}
