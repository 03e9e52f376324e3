package mcpserve

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// readyPath is where a load balancer asks whether to send requests here. It needs no
// token, and like everything else a host that the server is known by.
const readyPath = "/ready"

// readyFor is how long an answer of HTTPOptions.Ready holds, whoever asks and how often.
const readyFor = time.Second

// readiness is what HTTPOptions.Ready answered last.
type readiness struct {
	place chan struct{} // one: held while it is asked, and the others get the same answer
	until time.Time
	err   error
}

// ready answers whether requests are to be sent here, in one word: no stranger learns more.
func (h *httpHandler) ready(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed, "ask with GET")
		return
	}
	status, word := http.StatusOK, "ready"
	if !h.usable() {
		status, word = http.StatusServiceUnavailable, "unavailable"
	}
	h.mu.Lock() // looked at last, so that nothing says ready once it stops
	if h.stopping {
		status, word = http.StatusServiceUnavailable, "stopping"
	}
	h.mu.Unlock()
	refuse(w, status, word)
}

// usable reports whether HTTPOptions.Ready found the server usable within the last second.
func (h *httpHandler) usable() bool {
	if h.o.Ready == nil {
		return true
	}
	s := &h.readiness
	s.place <- struct{}{}
	defer func() { <-s.place }()
	if time.Now().Before(s.until) {
		return s.err == nil
	}
	// Not the context of who happens to ask: the answer is everybody's.
	ctx, cancel := context.WithTimeout(h.life, admitTime)
	defer cancel()
	before := s.err
	s.err = h.o.Ready(ctx)
	s.until = time.Now().Add(readyFor)
	if (before == nil) != (s.err == nil) {
		h.log.Warn("readiness has changed", "ready", s.err == nil, "error_type", fmt.Sprintf("%T", s.err))
	}
	return s.err == nil
}
