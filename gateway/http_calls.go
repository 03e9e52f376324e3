package gateway

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// httpHandler is a server over HTTP.
type httpHandler struct {
	o                     HTTPOptions
	loopback              bool // it listens there
	server                *mcp.Server
	sessionful, stateless http.Handler

	places chan struct{} // one for each call at work
	life   context.Context
	end    context.CancelFunc // of every call
	conns  heldConns

	mu        sync.Mutex
	callers   map[string]*callerState // by ID; only those that have something
	calls     map[*httpCall]struct{}  // not answered yet
	sessions  map[string]*httpSession // by ID
	reserved  int                     // of the sessions there may be, for requests that begin one
	requests  uint64                  // of sessions, ever
	stopping  bool
	empty     chan struct{} // closed when it is stopping and there are no calls
	refusals  int
	refusedAt time.Time
}

// callerState is what one caller has of what is bounded.
type callerState struct {
	open, sessions int
	places         chan struct{}
}

// httpCall is one request from its admission until nothing of it is at work. It is the
// connection of the calls in it, as far as they can tell.
type httpCall struct {
	handler *httpHandler
	caller  Caller
	state   *callerState

	// Under handler.mu:
	uses     int // its request, and each call in it that is at work
	begun    int // calls
	session  *httpSession
	reserved bool // it may begin a session
	receipts []func()
	giveUps  map[int]func()
	lastID   int
}

var (
	_ ticketSource  = (*httpCall)(nil)
	_ receiptSource = (*httpCall)(nil)
)

type httpCallKey struct{}

// httpCallExtra is where a request's token holds the httpCall.
const httpCallExtra = "postern call"

// open begins a request of a caller. status is 0, or that of the refusal.
func (h *httpHandler) open(c Caller) (call *httpCall, status int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopping || len(h.calls) >= h.o.MaxOpen {
		return nil, http.StatusServiceUnavailable
	}
	s := h.callers[c.ID]
	if s == nil {
		s = &callerState{places: make(chan struct{}, h.o.MaxInFlightEach)}
		h.callers[c.ID] = s
	}
	if s.open >= h.o.MaxOpenEach {
		return nil, http.StatusTooManyRequests
	}
	s.open++
	call = &httpCall{handler: h, caller: c, state: s, uses: 1, giveUps: map[int]func(){}}
	h.calls[call] = struct{}{}
	return call, 0
}

// done ends one use of a call.
func (c *httpCall) done() {
	h := c.handler
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.uses--; c.uses > 0 {
		return
	}
	delete(h.calls, c)
	c.state.open--
	if c.session != nil {
		c.session.open--
	}
	h.release(c)
	h.sweep(c.caller.ID)
	if h.stopping && len(h.calls) == 0 {
		h.closeEmpty()
	}
}

// sweep forgets a caller that has nothing any more.
func (h *httpHandler) sweep(id string) {
	if s := h.callers[id]; s != nil && s.open == 0 && s.sessions == 0 {
		delete(h.callers, id)
	}
}

func (h *httpHandler) closeEmpty() {
	select {
	case <-h.empty:
	default:
		close(h.empty)
	}
}

// begin counts a call as one at work. It is not ok where its client has gone, where
// its request has too many, or where the server is about to stop.
func (c *httpCall) begin() (ok bool) {
	h := c.handler
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopping || c.uses == 0 || c.uses > maxTogether {
		return false
	}
	c.uses++
	c.begun++
	return true
}

func (c *httpCall) started() int {
	c.handler.mu.Lock()
	defer c.handler.mu.Unlock()
	return c.begun
}

// ticketOf implements ticketSource. Requests stand in no line: each has one of its own.
func (c *httpCall) ticketOf(*mcp.RequestExtra) *Ticket { return new(Order).Ticket() }

// delivered implements receiptSource.
func (c *httpCall) delivered(_ *mcp.RequestExtra, done func()) {
	c.handler.mu.Lock()
	defer c.handler.mu.Unlock()
	c.receipts = append(c.receipts, done)
}

func (c *httpCall) hasReceipts() bool {
	if c == nil {
		return false
	}
	c.handler.mu.Lock()
	defer c.handler.mu.Unlock()
	return len(c.receipts) > 0
}

// confirm tells the calls that their answers have left.
func (c *httpCall) confirm() {
	c.handler.mu.Lock()
	receipts := c.receipts
	c.receipts = nil
	c.handler.mu.Unlock()
	for _, done := range receipts {
		done()
	}
}

// place takes a place among the calls at work, of the caller first, so that nobody
// waits for places that another one's calls hold back. It is not ok when ctx ends.
func (c *httpCall) place(ctx context.Context) (ok bool) {
	select {
	case c.state.places <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	select {
	case c.handler.places <- struct{}{}:
		return true
	case <-ctx.Done():
		<-c.state.places
		return false
	}
}

func (c *httpCall) leave() {
	<-c.handler.places
	<-c.state.places
}

// placeOf is the place of a call: whether it holds one. Only the call's own goroutine
// looks at it.
type placeOf struct{ held bool }

// pause implements ticketSource.
func (c *httpCall) pause(_ *mcp.RequestExtra, giveUp func()) (resume func(context.Context) bool) {
	h := c.handler
	h.mu.Lock()
	defer h.mu.Unlock()
	c.lastID++
	id := c.lastID
	c.giveUps[id] = giveUp
	if h.stopping {
		giveUp()
	}
	return func(context.Context) bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(c.giveUps, id)
		return true
	}
}

// pausing is the call's own view of its httpCall: it also gives up its place meanwhile.
type pausing struct {
	*httpCall
	place *placeOf
}

func (p pausing) pause(extra *mcp.RequestExtra, giveUp func()) (resume func(context.Context) bool) {
	if p.place.held {
		p.leave()
		p.place.held = false
	}
	back := p.httpCall.pause(extra, giveUp)
	return func(ctx context.Context) bool {
		back(ctx)
		p.place.held = p.httpCall.place(ctx)
		return p.place.held
	}
}

type callerKey struct{}

// CallerOf returns who a call over HTTP comes from. It is not ok for any other call.
func CallerOf(ctx context.Context) (c Caller, ok bool) {
	c, ok = ctx.Value(callerKey{}).(Caller)
	return c, ok
}

// MCPByCaller returns the function that answers the calls of ServeHTTP, each as the
// principal that it comes from.
func (g *Gateway) MCPByCaller() CallFunc {
	return func(ctx context.Context, call MCPCall) MCPResult {
		c, ok := CallerOf(ctx)
		if !ok {
			c.Principal = Principal{Name: "nobody", Scope: &Scope{}}
		}
		return g.MCP(c.Principal)(ctx, call)
	}
}

func busy(message string) *jsonrpc.Error { return &jsonrpc.Error{Code: -32000, Message: message} }

// middleware stands before that of the server itself.
func (h *httpHandler) middleware(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		call := callOf(req)
		if call == nil {
			// Nothing comes here but through serve.
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
		}
		if strings.HasPrefix(method, "notifications/") {
			return next(ctx, method, req)
		}
		if !call.begin() {
			return nil, busy("the server is about to stop, or the request has ended or too many calls")
		}
		defer call.done()
		switch method {
		case "initialize":
			if s, ok := req.GetSession().(*mcp.ServerSession); ok && s.ID() != "" {
				h.keep(call, s)
			}
		case "tools/call":
			return h.toolCall(ctx, next, req, call)
		}
		return next(ctx, method, req)
	}
}

func (h *httpHandler) toolCall(ctx context.Context, next mcp.MethodHandler, req mcp.Request, call *httpCall) (mcp.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.lifeOf(call), cancel)()
	waiting, stop := context.WithTimeout(ctx, turnTime)
	defer stop()
	place := &placeOf{}
	if place.held = call.place(waiting); !place.held {
		return nil, busy("too many calls are at work; try again")
	}
	defer func() {
		if place.held {
			call.leave()
		}
	}()
	ctx = context.WithValue(ctx, callerKey{}, call.caller)
	return next(context.WithValue(ctx, ticketSourceKey{}, ticketSource(pausing{call, place})), "tools/call", req)
}

// callOf finds the request that the library's one came in.
func callOf(req mcp.Request) *httpCall {
	extra := req.GetExtra()
	if extra == nil || extra.TokenInfo == nil {
		return nil
	}
	c, _ := extra.TokenInfo.Extra[httpCallExtra].(*httpCall)
	return c
}

// stop refuses what comes, waits for what is at work, cancels it, and closes the
// sessions.
func (h *httpHandler) stop(grace time.Duration) {
	h.mu.Lock()
	h.stopping = true
	for c := range h.calls {
		for _, giveUp := range c.giveUps {
			giveUp()
		}
	}
	if len(h.calls) == 0 {
		h.closeEmpty()
	}
	h.mu.Unlock()
	_, _ = wait(h.empty, grace)
	h.end()
	_, _ = wait(h.empty, unwindTime)
	var closing sync.WaitGroup
	closed := make(chan struct{})
	for s := range h.server.Sessions() {
		closing.Go(func() { _ = s.Close() })
	}
	go func() {
		defer close(closed)
		closing.Wait()
	}()
	_, _ = wait(closed, unwindTime)
}
