package gateway

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Clients of protocols with sessions seldom end one: they go away, and come again with
// a new one. So a caller that has as many as it may have gets another one in place of
// the one that it has not used for the longest time; that client is told that its
// session is gone, upon which it begins a new one.

// httpSession is a session of the library and whose it is.
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
// every session of the caller is in use, or others have all there are.
func (h *httpHandler) reserve(call *httpCall) (ok bool) {
	h.mu.Lock()
	var ended *mcp.ServerSession
	if call.state.sessions >= h.o.MaxSessionsEach || len(h.sessions)+h.reserved >= h.o.MaxSessions {
		ended = h.oldest(call.caller.ID)
	}
	ok = call.state.sessions < h.o.MaxSessionsEach && len(h.sessions)+h.reserved < h.o.MaxSessions
	if ok {
		call.reserved = true
		call.state.sessions++
		h.reserved++
	}
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

// release gives back what was reserved for a session that did not begin.
func (h *httpHandler) release(call *httpCall) {
	if call.reserved {
		call.reserved = false
		call.state.sessions--
		h.reserved--
	}
}

// keep notes the session that a request begins as its caller's, until it ends.
func (h *httpHandler) keep(call *httpCall, session *mcp.ServerSession) {
	id := session.ID()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !call.reserved { // the library refuses to begin one twice
		return
	}
	call.reserved = false
	h.reserved--
	h.requests++
	s := &httpSession{owner: call.caller.ID, session: session, open: 1, used: h.requests}
	s.life, s.end = context.WithCancel(h.life)
	h.sessions[id], call.session = s, s
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
func (h *httpHandler) lifeOf(call *httpCall) context.Context {
	h.mu.Lock()
	defer h.mu.Unlock()
	if call.session != nil {
		return call.session.life
	}
	return h.life
}

// use finds the session that a request is for, which may be to end it. It is not ok
// where its caller has none of that ID.
func (h *httpHandler) use(call *httpCall, id string, end bool) (ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sessions[id]
	if s == nil || s.owner != call.caller.ID {
		return false
	}
	h.requests++
	s.open++
	s.used = h.requests
	call.session = s
	if end {
		s.end()
	}
	return true
}
