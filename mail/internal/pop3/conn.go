package pop3

import (
	"context"
	"errors"
	"os"
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

// conn bounds the data that a server may send, how long it may keep silent, and when the
// next bytes must be there at the latest.
type conn struct {
	*wire.Bounded
	silence time.Duration
	by      time.Time // zero leaves it to silence
}

func (c *conn) Read(p []byte) (int, error) {
	by := c.by
	if by.IsZero() {
		by = time.Now().Add(c.silence)
	}
	c.Deadline(by)
	n, err := c.Bounded.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errSilent
	}
	if err != nil {
		err = c.End(err)
	}
	return n, err
}

// within sets how many bytes may come, and when the first must be there at the latest; the
// zero time leaves that to the bound on silence.
func (c *conn) within(bytes int64, by time.Time) {
	c.Allow(bytes)
	c.by = by
}

// explain makes a failure a *wire.Error with its reason: the end of the context, else the
// first bound that was passed, else the failure itself.
func (c *conn) explain(ctx context.Context, stage string, err error) error {
	var e *wire.Error
	if err == nil || errors.As(err, &e) && e.Err == nil {
		return err
	}
	cause := c.Cause()
	switch {
	case ctx.Err() != nil:
		cause = ctx.Err()
	case cause == nil:
		cause = err
	}
	return wire.Broken(stage, cause)
}
