package mcpserve

import (
	"net"
	"net/http"
	"sync"
)

// connections are the open ones of a server: the fresh ones, on which no request has come
// yet, and those that callers keep between requests. A kept connection counts for the
// caller admitted on it last, and is known by the client's address, which is all that
// http.Server tells of it with a request.
type connections struct {
	mu      sync.Mutex
	fresh   map[net.Conn]struct{}
	keepers map[string]string // the ID of the caller, by the address
	kept    map[string]int    // by the ID
	closing bool
}

// hold notes that a request of a caller came from an address. It is not ok where the
// caller keeps that many other connections, and this one should be let go.
func (c *connections) hold(addr, id string, most int) (ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(addr)
	if c.kept[id] >= most {
		return false
	}
	if c.kept == nil {
		c.keepers, c.kept = map[string]string{}, map[string]int{}
	}
	c.keepers[addr] = id
	c.kept[id]++
	return true
}

func (c *connections) drop(addr string) {
	id, ok := c.keepers[addr]
	if !ok {
		return
	}
	delete(c.keepers, addr)
	if c.kept[id]--; c.kept[id] == 0 {
		delete(c.kept, id)
	}
}

// note is for http.Server.ConnState.
func (c *connections) note(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case state == http.StateNew && c.closing:
		_ = conn.Close()
	case state == http.StateNew:
		if c.fresh == nil {
			c.fresh = map[net.Conn]struct{}{}
		}
		c.fresh[conn] = struct{}{}
	default:
		delete(c.fresh, conn)
	}
	if state == http.StateClosed || state == http.StateHijacked {
		c.drop(conn.RemoteAddr().String())
	}
}

// closeFresh closes the fresh connections, and those to come. Clients open some to have
// them ready, and http.Server.Shutdown would wait for those.
func (c *connections) closeFresh() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = true
	for conn := range c.fresh {
		_ = conn.Close() // as a client sees it that comes a moment later
	}
}
