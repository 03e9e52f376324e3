package mcpserve

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
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

	life  context.Context
	end   context.CancelFunc // of every call
	conns connections

	mu         sync.Mutex
	callers    map[string]*callerState // by ID; only those that have something
	requests   map[string]*httpRequest // not answered yet, or with calls at work
	sessions   map[string]*httpSession // by ID
	count      uint64                  // of requests, ever
	stopping   bool
	unanswered sync.WaitGroup // one for each of requests; none is added once it is stopping
	refusals   int
	refusedAt  time.Time
}

var _ transport = (*httpHandler)(nil)

// callerState is what one caller has of what is bounded.
type callerState struct {
	open, sessions int
	bodies         int64         // bytes of the bodies of the open requests
	places         chan struct{} // one for each call at work
}

// httpRequest is one request from its admission until nothing of it is at work.
type httpRequest struct {
	handler *httpHandler
	number  string // its key in handler.requests
	from    Caller
	state   *callerState
	size    int64 // of its body, at most

	// Under handler.mu:
	uses     int // itself, and each call in it that is at work
	calls    int // that were begun
	session  *httpSession
	reserved bool // it may begin a session
	receipts []func()
	paused   map[*httpCall]func() // how to end the pause
}

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
		s = &callerState{places: make(chan struct{}, h.o.MaxCalls)}
		h.callers[c.ID] = s
	}
	if s.open >= h.share || s.bodies+length > maxBodies {
		return nil, http.StatusTooManyRequests
	}
	s.open++
	s.bodies += length
	h.count++
	r = &httpRequest{handler: h, number: strconv.FormatUint(h.count, 10), from: c, state: s, size: length, uses: 1, paused: map[*httpCall]func(){}}
	h.requests[r.number] = r
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
	delete(h.requests, r.number)
	r.state.open--
	r.state.bodies -= r.size
	if r.session != nil {
		r.session.open--
	}
	if r.reserved {
		r.state.sessions--
	}
	h.sweep(r.from.ID)
	h.unanswered.Done()
}

// sweep forgets a caller that has nothing any more.
func (h *httpHandler) sweep(id string) {
	if s := h.callers[id]; s != nil && s.open == 0 && s.sessions == 0 {
		delete(h.callers, id)
	}
}

// begin counts a call as one at work. It is not ok when its request has ended or has too
// many calls, or when the server is about to stop.
func (r *httpRequest) begin() (ok bool) {
	h := r.handler
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopping || r.uses == 0 || r.uses > maxTogether {
		return false
	}
	r.uses++
	return true
}

// confirm tells the calls that their answers have left, once all of them have.
func (r *httpRequest) confirm(w *httpWriter) {
	r.handler.mu.Lock()
	receipts, calls := r.receipts, r.calls
	r.handler.mu.Unlock()
	if len(receipts) > 0 && w.delivered() >= calls {
		for _, done := range receipts {
			done()
		}
	}
}

// httpCall is a tools/call of a request.
type httpCall struct {
	*httpRequest
	held bool // it has a place; only the call's own goroutine looks at it
}

var _ call = (*httpCall)(nil)

func (c *httpCall) principal() gateway.Principal { return c.from.Principal }
func (c *httpCall) caller() string               { return c.from.ID }

// ticket implements call. Requests stand in no line: each has one of its own.
func (*httpCall) ticket() *gateway.Ticket { return new(gateway.Order).Ticket() }

// delivered implements call.
func (c *httpCall) delivered(done func()) {
	c.handler.mu.Lock()
	defer c.handler.mu.Unlock()
	c.receipts = append(c.receipts, done)
}

// enter takes a place among the caller's calls at work. It is not ok when ctx ends.
func (c *httpCall) enter(ctx context.Context) (ok bool) {
	select {
	case c.state.places <- struct{}{}:
		c.held = true
	case <-ctx.Done():
	}
	return c.held
}

func (c *httpCall) leave() {
	if c.held {
		<-c.state.places
		c.held = false
	}
}

// pause implements call.
func (c *httpCall) pause(giveUp func()) (resume func(context.Context) bool) {
	c.leave()
	h := c.handler
	h.mu.Lock()
	defer h.mu.Unlock()
	c.paused[c] = giveUp
	if h.stopping {
		giveUp()
	}
	return func(ctx context.Context) bool {
		h.mu.Lock()
		delete(c.paused, c)
		h.mu.Unlock()
		return c.enter(ctx)
	}
}

func busy(message string) *jsonrpc.Error { return &jsonrpc.Error{Code: -32000, Message: message} }

// carry implements transport.
func (h *httpHandler) carry(ctx context.Context, method string, req mcp.Request, next func(context.Context, call) (mcp.Result, error)) (mcp.Result, error) {
	r := requestOf(req)
	switch {
	case r == nil: // nothing comes here but through serve
		return nil, errInternal
	case strings.HasPrefix(method, "notifications/"):
		return next(ctx, nil)
	case !r.begin():
		return nil, busy("the server is about to stop, or the request has ended or too many calls")
	}
	defer r.done()
	switch method {
	case "initialize":
		if s, ok := req.GetSession().(*mcp.ServerSession); ok && s.ID() != "" {
			h.keep(r, s)
		}
	case "tools/call":
		return h.carryCall(ctx, r, next)
	}
	return next(ctx, nil)
}

func (h *httpHandler) carryCall(ctx context.Context, r *httpRequest, next func(context.Context, call) (mcp.Result, error)) (mcp.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.lifeOf(r), cancel)()
	waiting, stop := context.WithTimeout(ctx, turnTime)
	defer stop()
	c := &httpCall{httpRequest: r}
	h.mu.Lock()
	r.calls++
	h.mu.Unlock()
	if !c.enter(waiting) {
		return nil, busy("too many calls are at work; try again")
	}
	defer c.leave()
	return next(ctx, c)
}

// requestOf finds the request that the library's one came in.
func requestOf(req mcp.Request) *httpRequest {
	extra := req.GetExtra()
	if extra == nil || extra.TokenInfo == nil {
		return nil
	}
	r, _ := extra.TokenInfo.Extra[requestExtra].(*httpRequest)
	return r
}

// stop refuses what comes, waits for what is at work, cancels it, and closes the
// sessions.
func (h *httpHandler) stop(grace time.Duration) {
	h.mu.Lock()
	h.stopping = true
	for _, r := range h.requests {
		for _, giveUp := range r.paused {
			giveUp()
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
