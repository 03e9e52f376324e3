package mcpserve

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Clients of protocols with sessions seldom end one: they go away, and come again with
// a new one. So a caller that has as many as it may have gets another one in place of
// the one that it has not used for the longest time; that client is told that its
// session is gone, upon which it begins a new one.

// httpSession is a session of the library, and the caller it belongs to.
type httpSession struct {
	owner   string // the ID of the caller
	session *mcp.ServerSession
	open    int    // requests that are not answered yet
	used    uint64 // when the last of them came, counted in requests

	// The library ends a session when its calls have ended, and cancels none: they
	// live as long as this.
	life context.Context
	end  context.CancelFunc
}

// reserve makes room for the session that a request may begin. It is not ok where
// every session of the caller is in use.
func (h *httpHandler) reserve(r *httpRequest) (ok bool) {
	h.mu.Lock()
	var ended *mcp.ServerSession
	if r.state.sessions >= h.o.MaxSessions {
		ended = h.oldest(r.from.ID)
	}
	if r.reserved = r.state.sessions < h.o.MaxSessions; r.reserved {
		r.state.sessions++
	}
	ok = r.reserved
	h.mu.Unlock()
	if ended != nil {
		_ = ended.Close() // nobody is left to tell
	}
	return ok
}

// oldest takes the session of a caller that nobody uses out of the sessions, the one
// that was not used for the longest time, or returns nil.
func (h *httpHandler) oldest(owner string) *mcp.ServerSession {
	var id string
	for at, s := range h.sessions {
		if s.owner == owner && s.open == 0 && (id == "" || s.used < h.sessions[id].used) {
			id = at
		}
	}
	if id == "" {
		return nil
	}
	s := h.sessions[id].session
	h.forget(id)
	return s
}

// keep notes the session that a request begins as its caller's, until it ends.
func (h *httpHandler) keep(r *httpRequest, session *mcp.ServerSession) {
	id := session.ID()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !r.reserved { // the library refuses to begin one twice
		return
	}
	r.reserved = false
	s := &httpSession{owner: r.from.ID, session: session, open: 1, used: h.count}
	s.life, s.end = context.WithCancel(h.life)
	h.sessions[id], r.session = s, s
	go func() {
		_ = session.Wait() // however it ended
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.sessions[id] == s {
			h.forget(id)
		}
	}()
}

// forget lets go of a session.
func (h *httpHandler) forget(id string) {
	h.sessions[id].end()
	owner := h.sessions[id].owner
	delete(h.sessions, id)
	if state := h.callers[owner]; state != nil {
		state.sessions--
	}
	h.sweep(owner)
}

// lifeOf is how long the calls of a request may go on.
func (h *httpHandler) lifeOf(r *httpRequest) context.Context {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.session != nil {
		return r.session.life
	}
	return h.life
}

// use finds the session that a request is for, which may be to end it. It is not ok
// where its caller has none of that ID.
func (h *httpHandler) use(r *httpRequest, id string, end bool) (ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sessions[id]
	if s == nil || s.owner != r.from.ID {
		return false
	}
	s.open++
	s.used = h.count
	r.session = s
	if end {
		s.end()
	}
	return true
}
