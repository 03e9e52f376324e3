package gateway

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// heldConns are the connections that callers keep between requests, each the last
// caller's who was let in on it. There are only so many connections, so what one caller
// may keep of them is bounded like the requests it may have open.
type heldConns struct {
	mu sync.Mutex
	of map[net.Conn]string // the ID of the caller
	n  map[string]int      // by ID
}

type connKey struct{}

// carry is for http.Server.ConnContext.
func (*heldConns) carry(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// hold notes that a request of a caller came on a connection. It is not ok where the
// caller has that many others, and the connection should be let go.
func (h *heldConns) hold(ctx context.Context, id string, most int) (ok bool) {
	c, _ := ctx.Value(connKey{}).(net.Conn)
	if c == nil {
		return true // no server of ours, which bounds it
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop(c)
	if h.n[id] >= most {
		return false
	}
	if h.of == nil {
		h.of, h.n = map[net.Conn]string{}, map[string]int{}
	}
	h.of[c] = id
	h.n[id]++
	return true
}

// note is for http.Server.ConnState.
func (h *heldConns) note(c net.Conn, state http.ConnState) {
	if state != http.StateClosed && state != http.StateHijacked {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop(c)
}

func (h *heldConns) drop(c net.Conn) {
	id, ok := h.of[c]
	if !ok {
		return
	}
	delete(h.of, c)
	if h.n[id]--; h.n[id] == 0 {
		delete(h.n, id)
	}
}
