package mcpserve

import (
	"net"
	"net/http"
	"sync"
)

// connections are the open ones of a server.
type connections struct {
	mu      sync.Mutex
	fresh   map[net.Conn]bool // true until a request has come
	closing bool
}

// many reports whether there are more than n.
func (c *connections) many(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.fresh) > n
}

// note is for http.Server.ConnState.
func (c *connections) note(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case state == http.StateClosed || state == http.StateHijacked:
		delete(c.fresh, conn)
	case state == http.StateNew && c.closing:
		_ = conn.Close()
	default:
		c.fresh[conn] = state == http.StateNew
	}
}

// closeFresh closes the fresh connections, and those to come. Clients open some to have
// them ready, and http.Server.Shutdown would wait for those.
func (c *connections) closeFresh() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = true
	for conn, fresh := range c.fresh {
		if fresh {
			_ = conn.Close() // as a client sees it that comes a moment later
		}
	}
}
