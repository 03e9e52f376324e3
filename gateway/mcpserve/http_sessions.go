package mcpserve

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Clients of protocols with sessions seldom end one: they go away, and come again with
// a new one. So a caller that has as many as it may have gets another one in place of
// the one that it has not used for the longest time; that client is told that its
// session is gone, upon which it begins a new one.

// httpSession is a session of the library.
type httpSession struct {
	session *mcp.ServerSession
	open    int       // requests that are not answered yet
	used    time.Time // when the last of them came

	// The library ends a session when its calls have ended, and cancels none: they
	// live as long as this.
	life context.Context
	end  context.CancelFunc
}

// reserve makes room for the session that a request may begin. It is not ok where
// every session of the caller is in use.
func (r *httpRequest) reserve() (ok bool) {
	h, s := r.handler, r.state
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(s.sessions)+s.reserved >= h.o.MaxSessions {
		var oldest string
		for id, one := range s.sessions {
			if one.open == 0 && (oldest == "" || one.used.Before(s.sessions[oldest].used)) {
				oldest = id
			}
		}
		if oldest == "" {
			return false
		}
		ended := s.sessions[oldest].session
		h.forget(s, oldest)
		defer func() { go ended.Close() }() // nobody is left to tell
	}
	s.reserved++
	r.reserved = true
	return true
}

// keep notes the session that a request begins as its caller's, until it ends.
func (r *httpRequest) keep(session *mcp.ServerSession) {
	h, id := r.handler, session.ID()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !r.reserved { // the library refuses to begin one twice
		return
	}
	r.reserved = false
	r.state.reserved--
	s := &httpSession{session: session, open: 1, used: time.Now()}
	s.life, s.end = context.WithCancel(h.life)
	r.state.sessions[id], r.session = s, s
	go func() {
		_ = session.Wait() // however it ended
		h.mu.Lock()
		defer h.mu.Unlock()
		if r.state.sessions[id] == s {
			h.forget(r.state, id)
		}
	}()
}

// forget lets go of a session.
func (h *httpHandler) forget(s *callerState, id string) {
	s.sessions[id].end()
	delete(s.sessions, id)
	h.sweep(s)
}

// life is how long the call of a request may go on.
func (r *httpRequest) life() context.Context {
	r.handler.mu.Lock()
	defer r.handler.mu.Unlock()
	if r.session != nil {
		return r.session.life
	}
	return r.handler.life
}

// use finds the session that a request is for, which may be to end it. It is not ok if its
// caller has no session of that ID.
func (r *httpRequest) use(id string, end bool) (ok bool) {
	r.handler.mu.Lock()
	defer r.handler.mu.Unlock()
	s := r.state.sessions[id]
	if s == nil {
		return false
	}
	s.open++
	s.used = time.Now()
	r.session = s
	if end {
		s.end()
	}
	return true
}
