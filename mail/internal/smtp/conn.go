package smtp

import (
	"bufio"
	"net"
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

// conn is the connection as the dialogue sees it: what comes in is bounded, what
// goes out has left, as far as this side can see to it, when a write returns.
// Nothing is held back to be written later.
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

// quiet reports whether the server has said nothing yet that was not asked for, as
// far as it was read.
func (c *conn) quiet() bool { return c.br.Buffered() == 0 }

// hear begins to wait for what the server says next, without a bound of its own; the
// channel is closed when there is something, or the connection has ended. Until
// then nobody may ask for a reply.
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
