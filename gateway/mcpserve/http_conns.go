package mcpserve

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// connections are the open ones of a server.
type connections struct {
	most int // of fresh ones

	mu      sync.Mutex
	open    map[net.Conn]uint64 // of a fresh one, on which no whole request has come, its number; 0 after
	number  uint64
	closing bool
}

type connKey struct{}

// told is for http.Server.ConnContext, so that came knows the connection of a request.
func (c *connections) told(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// came notes that a request has come, whose context this is.
func (c *connections) came(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn, ok := ctx.Value(connKey{}).(net.Conn); ok && c.open[conn] != 0 {
		c.open[conn] = 0
	}
}

// many reports whether there are more than n.
func (c *connections) many(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open) > n
}

// note is for http.Server.ConnState. A new connection beyond most fresh ones takes the place
// of the oldest of them: who opens many and sends no request keeps nobody out.
func (c *connections) note(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case state == http.StateClosed || state == http.StateHijacked:
		delete(c.open, conn)
	case state != http.StateNew:
	case c.closing:
		_ = conn.Close()
	default:
		c.number++
		c.open[conn] = c.number
		fresh, oldest := 0, conn
		for other, n := range c.open {
			if n != 0 {
				if fresh++; n < c.open[oldest] {
					oldest = other
				}
			}
		}
		if fresh > c.most {
			_ = oldest.Close()
			delete(c.open, oldest)
		}
	}
}

// closeFresh closes the fresh connections, and those to come. Clients open some to have
// them ready, and http.Server.Shutdown would wait for those.
func (c *connections) closeFresh() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = true
	for conn, n := range c.open {
		if n != 0 {
			_ = conn.Close() // as a client sees it that comes a moment later
		}
	}
}
