package wire

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"
)

// Bounded is a connection on which the server may send only so many bytes, and which ends
// for one reason: the first. It is safe for concurrent use; one goroutine may read at a
// time.
type Bounded struct {
	raw net.Conn // closing it ends everything at once, also in the middle of TLS

	mu    sync.Mutex
	conn  net.Conn // raw, or TLS over it
	left  int64    // bytes the server may still send
	over  error    // the reason to end the connection if it sends more
	cause error    // the first reason the connection ended; nil while it lives
}

// Bound limits a connection to most bytes; over is the reason it ends for if the server
// sends more.
func Bound(c net.Conn, most int64, over error) *Bounded {
	b := &Bounded{raw: c, conn: c, left: most, over: over}
	if t, ok := c.(*tls.Conn); ok {
		b.raw = t.NetConn()
	}
	return b
}

// Allow says how many bytes the server may send from here on.
func (b *Bounded) Allow(most int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = most
}

// StartTLS is Protect for this connection.
func (b *Bounded) StartTLS(ctx context.Context, t Target) error {
	conn, err := Protect(ctx, t, b.raw)
	if err == nil {
		b.mu.Lock()
		b.conn = conn
		b.mu.Unlock()
	}
	return err
}

// Read implements io.Reader.
func (b *Bounded) Read(p []byte) (int, error) {
	b.mu.Lock()
	conn, left, cause := b.conn, b.left, b.cause
	b.mu.Unlock()
	switch {
	case cause != nil:
		return 0, cause
	case left <= 0:
		return 0, b.End(b.over)
	}
	n, err := conn.Read(p[:min(int64(len(p)), left)])
	b.mu.Lock()
	b.left -= int64(n)
	b.mu.Unlock()
	return n, err
}

// Send writes p at once, within the time given. After an error, any part of p may have
// left.
func (b *Bounded) Send(p []byte, within time.Duration) error {
	b.mu.Lock()
	conn, cause := b.conn, b.cause
	b.mu.Unlock()
	if cause != nil {
		return cause
	}
	_ = conn.SetWriteDeadline(time.Now().Add(within))
	_, err := conn.Write(p)
	return err
}

// Deadline is when a Read gives up; the zero time means never.
func (b *Bounded) Deadline(t time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_ = b.conn.SetReadDeadline(t)
}

// Until ends the connection with ctx; call stop when ctx no longer counts.
func (b *Bounded) Until(ctx context.Context) (stop func()) {
	off := context.AfterFunc(ctx, func() { _ = b.End(ctx.Err()) })
	return func() {
		if !off() && ctx.Err() != nil {
			_ = b.End(ctx.Err()) // it is closing or closed
		}
	}
}

// End closes the connection for a reason, and returns the first reason given.
func (b *Bounded) End(cause error) error {
	b.mu.Lock()
	if b.cause == nil {
		b.cause = cause
	}
	cause = b.cause
	b.mu.Unlock()
	_ = b.raw.Close()
	return cause
}

// Cause returns the reason the connection ended, nil while it lives.
func (b *Bounded) Cause() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cause
}
