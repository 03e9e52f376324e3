package smtp

import (
	"bufio"
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"

	"github.com/postern-mail/postern/mail/internal/wire"
)

// What a server may send.
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
	raw net.Conn // closing it ends everything at once, also in the middle of TLS
	br  *bufio.Reader

	mu    sync.Mutex
	conn  net.Conn // raw, or TLS over it
	left  int64    // bytes the server may still send
	cause error    // the first reason the connection ended; nil while it lives
}

func newConn(c net.Conn) *conn {
	n := &conn{raw: c, conn: c, left: maxAnswers}
	if t, ok := c.(*tls.Conn); ok {
		n.raw = t.NetConn()
	}
	n.br = bufio.NewReaderSize(n, maxLine)
	return n
}

// over puts TLS over the connection. What was read before is forgotten.
func (c *conn) over(t *tls.Conn) {
	c.mu.Lock()
	c.conn = t
	c.mu.Unlock()
	c.br.Reset(c)
}

// Read implements io.Reader for the reader of replies.
func (c *conn) Read(p []byte) (int, error) {
	c.mu.Lock()
	if c.cause != nil {
		defer c.mu.Unlock()
		return 0, c.cause
	}
	if c.left <= 0 {
		c.mu.Unlock()
		return 0, errTooMuch
	}
	conn := c.conn
	p = p[:min(int64(len(p)), c.left)]
	c.mu.Unlock()
	n, err := conn.Read(p)
	c.mu.Lock()
	c.left -= int64(n)
	c.mu.Unlock()
	return n, err
}

// write is send where an error ends the connection.
func (c *conn) write(p []byte, within time.Duration) error {
	if err := c.send(p, within); err != nil {
		return c.end(err)
	}
	return nil
}

// send writes p at once, within the time given. An error says nothing of how much
// of it has left.
func (c *conn) send(p []byte, within time.Duration) error {
	c.mu.Lock()
	if c.cause != nil {
		defer c.mu.Unlock()
		return c.cause
	}
	conn := c.conn
	_ = conn.SetWriteDeadline(time.Now().Add(within))
	c.mu.Unlock()
	_, err := conn.Write(p)
	return err
}

// reply waits for a reply, within the time given.
func (c *conn) reply(within time.Duration) (reply, error) {
	c.deadline(time.Now().Add(within))
	r, err := readReply(c.br)
	if err != nil {
		return reply{}, c.end(err)
	}
	return r, nil
}

func (c *conn) deadline(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.conn.SetReadDeadline(t)
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
	c.deadline(time.Time{})
	go func() {
		defer close(spoke)
		_, _ = c.br.Peek(1)
	}()
	return spoke
}

// until ends the connection with ctx; call stop when ctx no longer counts.
func (c *conn) until(ctx context.Context) (stop func()) {
	off := context.AfterFunc(ctx, func() { _ = c.end(ctx.Err()) })
	return func() {
		if !off() {
			_ = c.end(ctx.Err()) // it is being done, or has been
		}
	}
}

// end closes the connection for a reason, and returns the first that there was.
func (c *conn) end(cause error) error {
	c.mu.Lock()
	if c.cause == nil {
		c.cause = cause
	}
	cause = c.cause
	c.mu.Unlock()
	_ = c.raw.Close()
	return cause
}

// why returns the reason the connection ended, nil while it lives.
func (c *conn) why() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}
