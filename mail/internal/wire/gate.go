package wire

import (
	"context"
	"net"
	"sync"
)

// Gate limits how many connections are open at once. One counts from before it is dialled
// until either side closes it, so that a new one does not begin before the old one is gone.
// It is safe for concurrent use.
type Gate struct{ places chan struct{} }

// NewGate makes a Gate for n connections, at least one.
func NewGate(n int) *Gate { return &Gate{make(chan struct{}, max(n, 1))} }

// enter waits for a place; the first call of leave gives it back. A nil Gate has no limit.
func (g *Gate) enter(ctx context.Context) (leave func(), err error) {
	if g == nil {
		return func() {}, nil
	}
	select {
	case g.places <- struct{}{}:
		return sync.OnceFunc(func() { <-g.places }), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// gated is a connection that gives its place back when it is closed.
type gated struct {
	net.Conn
	leave func()
}

// Close implements net.Conn. The place is free once the connection is closed.
func (c *gated) Close() error {
	err := c.Conn.Close()
	c.leave()
	return err
}
