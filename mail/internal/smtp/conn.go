package smtp

import (
	"bufio"
	"errors"
	"net"
	"os"
	"time"

	"github.com/postern-mail/postern/mail/internal/wire"
)

// Bounds of a server's replies.
const (
	maxAnswers = 1 << 20 // bytes on one connection, between its TLS and us
	maxLine    = 4 << 10 // bytes of one line; RFC 5321 section 4.5.3.1.5 allows 512
	maxLines   = 100     // of one reply
)

var (
	errTooMuch = wire.Cause(wire.KindLimit, "server sent more than is allowed")
	errNotSMTP = wire.Cause(wire.KindProtocol, "server answer is not SMTP")
	errEarly   = wire.Cause(wire.KindProtocol, "server answered what it was not asked")
	errClosed  = wire.Cause(wire.KindClosed, "connection is closed")
)

// conn is the connection as the dialogue sees it: input is bounded, and output has left, as
// far as this side can ensure, when a write returns. No output is buffered.
type conn struct {
	*wire.Bounded
	br *bufio.Reader
}

func newConn(c net.Conn) *conn {
	n := &conn{Bounded: wire.Bound(c, maxAnswers, errTooMuch)}
	n.br = bufio.NewReaderSize(n, maxLine)
	return n
}

// write is Send where an error ends the connection.
func (c *conn) write(p []byte, within time.Duration) error {
	if err := c.Send(p, within); err != nil {
		return c.End(err)
	}
	return nil
}

// reply waits for a reply, within the time given.
func (c *conn) reply(within time.Duration) (reply, error) {
	c.Deadline(time.Now().Add(within))
	r, err := readReply(c.br)
	if err != nil {
		return reply{}, c.End(err)
	}
	return r, nil
}

// quiet reports whether the server has sent no unsolicited reply, as far as read.
func (c *conn) quiet() bool { return c.br.Buffered() == 0 }

// hear begins to wait for the server's next bytes, without a time limit; the channel is
// closed when they are there, or the connection has ended. Until then reply may not be
// called.
func (c *conn) hear() <-chan struct{} {
	spoke := make(chan struct{})
	if !c.quiet() {
		close(spoke)
		return spoke
	}
	c.Deadline(time.Time{})
	go func() {
		defer close(spoke)
		_, _ = c.br.Peek(1)
	}()
	return spoke
}

// heard ends what hear began. It reports whether the server has spoken, or the connection
// has ended. It reads once more itself: bytes that are there are found even where the
// goroutine of hear has had no turn since they came. A read past its deadline fails without
// a look at the bytes, so only a read that began before it counts.
func (c *conn) heard(spoke <-chan struct{}) bool {
	c.Deadline(time.Now())
	<-spoke
	for {
		until := time.Now().Add(listening)
		c.Deadline(until)
		late := !time.Now().Before(until)
		if _, err := c.br.Peek(1); !errors.Is(err, os.ErrDeadlineExceeded) {
			return true
		} else if !late {
			return false
		}
	}
}
