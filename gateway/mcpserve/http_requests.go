package mcpserve

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/postern-mail/postern/gateway"
)

// httpHandler is a server over HTTP.
type httpHandler struct {
	o                     HTTPOptions
	times                 httpTimes
	share                 int  // of the connections that one caller may have
	loopback              bool // it listens there
	log                   *slog.Logger
	library               *mcp.Server
	sessionful, stateless http.Handler

	life      context.Context
	end       context.CancelFunc // of every call
	conns     connections
	readiness readiness

	mu         sync.Mutex
	callers    map[string]*callerState   // by ID; only those that have something
	requests   map[*httpRequest]struct{} // not answered yet, or with a call at work
	stopping   bool
	unanswered sync.WaitGroup // one for each of requests; none is added once it is stopping
	refusals   int
	refusedAt  time.Time
}

// callerState is one caller's use of the bounded things.
type callerState struct {
	id             string
	open, reserved int                     // requests, and sessions that they may begin
	sessions       map[string]*httpSession // by their IDs
	bodies         int64                   // bytes of the bodies of the open requests
	places         chan struct{}           // one for each call at work
	asking         atomic.Int32
}

// httpRequest is one request from its admission until nothing of it is at work. It has
// one call at most.
type httpRequest struct {
	handler *httpHandler
	from    Caller
	state   *callerState
	size    int64 // of its body, at most
	held    bool  // the call has a place; only the call's own goroutine looks at it

	// Under handler.mu:
	uses     int // itself, and its call
	session  *httpSession
	reserved bool   // it may begin a session
	receipt  func() // runs when the call's answer has left
	giveUp   func() // while the call is paused
}

var _ request = (*httpRequest)(nil)

// open begins a request of a caller, whose body has length bytes; -1 if unknown. status
// is 0, or that of the refusal.
func (h *httpHandler) open(c Caller, length int64) (r *httpRequest, status int) {
	if length < 0 || length > maxBody {
		length = maxBody // more of it is not read
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopping {
		return nil, http.StatusServiceUnavailable
	}
	s := h.callers[c.ID]
	if s == nil {
		s = &callerState{id: c.ID, sessions: map[string]*httpSession{}, places: make(chan struct{}, h.o.MaxCalls)}
		h.callers[c.ID] = s
	}
	if s.open >= h.share || s.bodies+length > maxBodies {
		return nil, http.StatusTooManyRequests
	}
	s.open++
	s.bodies += length
	r = &httpRequest{handler: h, from: c, state: s, size: length, uses: 1}
	h.requests[r] = struct{}{}
	h.unanswered.Add(1)
	return r, 0
}

// done ends one use of a request.
func (r *httpRequest) done() {
	h := r.handler
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.uses--; r.uses > 0 {
		return
	}
	delete(h.requests, r)
	r.state.open--
	r.state.bodies -= r.size
	if r.session != nil {
		r.session.open--
	}
	if r.reserved {
		r.state.reserved--
	}
	h.sweep(r.state)
	h.unanswered.Done()
}

// sweep forgets a caller that uses nothing any more.
func (h *httpHandler) sweep(s *callerState) {
	if s.open == 0 && len(s.sessions) == 0 {
		delete(h.callers, s.id)
	}
}

// begin counts a call as one at work. It is not ok when its request has ended or the
// server is about to stop.
func (r *httpRequest) begin() (ok bool) {
	h := r.handler
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopping || r.uses == 0 {
		return false
	}
	r.uses++
	return true
}

// confirm tells the call that its answer has left, once it has.
func (r *httpRequest) confirm(w *httpWriter) {
	r.handler.mu.Lock()
	receipt := r.receipt
	r.handler.mu.Unlock()
	if receipt != nil && w.delivered() {
		receipt()
	}
}

func (r *httpRequest) principal() gateway.Principal { return r.from.Principal }
func (r *httpRequest) questions() *atomic.Int32     { return &r.state.asking }

// ticket implements request. Requests stand in no line: each has one of its own.
func (*httpRequest) ticket() *gateway.Ticket { return new(gateway.Order).Ticket() }

// delivered implements request.
func (r *httpRequest) delivered(done func()) {
	r.handler.mu.Lock()
	defer r.handler.mu.Unlock()
	r.receipt = done
}

// enter takes a place among the caller's calls at work. It is not ok when ctx ends.
func (r *httpRequest) enter(ctx context.Context) (ok bool) {
	select {
	case r.state.places <- struct{}{}:
		r.held = true
	case <-ctx.Done():
	}
	return r.held
}

func (r *httpRequest) leave() {
	if r.held {
		<-r.state.places
		r.held = false
	}
}

// pause implements request.
func (r *httpRequest) pause(giveUp func()) (resume func(context.Context) bool) {
	r.leave()
	h := r.handler
	h.mu.Lock()
	defer h.mu.Unlock()
	r.giveUp = giveUp
	if h.stopping {
		giveUp()
	}
	return func(ctx context.Context) bool {
		h.mu.Lock()
		r.giveUp = nil
		h.mu.Unlock()
		return r.enter(ctx)
	}
}

func busy(message string) *jsonrpc.Error { return &jsonrpc.Error{Code: -32000, Message: message} }

// carry implements request.
func (r *httpRequest) carry(ctx context.Context, req mcp.Request, method string, next func(context.Context) (mcp.Result, error)) (mcp.Result, error) {
	if !r.begin() {
		return nil, busy("the request has ended, or the server is about to stop")
	}
	defer r.done()
	switch method {
	case "initialize":
		if s, ok := req.GetSession().(*mcp.ServerSession); ok && s.ID() != "" {
			r.keep(s)
		}
	case "tools/call":
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(r.life(), cancel)()
		waiting, stop := context.WithTimeout(ctx, turnTime)
		defer stop()
		if !r.enter(waiting) {
			return nil, busy("too many calls are at work; try again")
		}
		defer r.leave()
	}
	return next(ctx)
}

// stop refuses new requests, waits for calls at work, cancels them, and closes the
// sessions.
func (h *httpHandler) stop(grace time.Duration) {
	h.mu.Lock()
	h.stopping = true
	for r := range h.requests {
		if r.giveUp != nil {
			r.giveUp()
		}
	}
	h.mu.Unlock()
	empty := make(chan struct{})
	go func() {
		h.unanswered.Wait()
		close(empty)
	}()
	_, _ = wait(empty, grace)
	h.end()
	_, _ = wait(empty, unwindTime)
	var closing sync.WaitGroup
	closed := make(chan struct{})
	for s := range h.library.Sessions() {
		closing.Go(func() { _ = s.Close() })
	}
	go func() {
		defer close(closed)
		closing.Wait()
	}()
	_, _ = wait(closed, unwindTime)
}
