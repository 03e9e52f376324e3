package mcpserve

import (
	"container/list"
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/postern-mail/postern/gateway"
)

// A stdioCall is a request from its arrival until its answer is written.
type stdioCall struct {
	conn      *stdioConn
	id        int64           // ours, under which the library knows it
	wireID    json.RawMessage // the client's
	key       string          // of wireID
	lane      *lane
	queued    *list.Element // in lane while it waits, nil once it is at work
	request   *jsonrpc.Request
	size      int
	cancelled bool

	// A tools/call alone has them: its place in the order of its arrival, and what
	// the library hands to the middleware unchanged, by which the call is found.
	place  *gateway.Ticket
	extra  *mcp.RequestExtra
	giveUp func() // while it is paused
	done   func() // when its answer is written; nil for nobody
}

// A lane is a queue with a bound on how many of its calls are at work.
type lane struct {
	waiting list.List // of *stdioCall, or of *jsonrpc.Request for a notification
	running int
	limit   int
}

// start takes the next message out of a lane, or nil when it has none that may go.
func (c *stdioConn) start(l *lane) jsonrpc.Message {
	e := l.waiting.Front()
	if e == nil {
		return nil
	}
	call, ok := e.Value.(*stdioCall)
	if !ok {
		return l.waiting.Remove(e).(*jsonrpc.Request)
	}
	if l.running >= l.limit {
		return nil
	}
	c.dequeue(call)
	l.running++
	m := call.request
	call.request = &jsonrpc.Request{Method: m.Method} // the params are the library's now
	return m
}

func (c *stdioConn) dequeue(call *stdioCall) {
	call.lane.waiting.Remove(call.queued)
	call.queued = nil
	c.frames--
	c.bytes -= call.size
	c.space.Broadcast()
}

// forget lets go of a call that has ended or will never start.
func (c *stdioConn) forget(call *stdioCall) {
	delete(c.byKey, call.key)
	delete(c.byID, call.id)
	delete(c.byExtra, call.extra)
	call.place.Finish()
}

// carry implements transport.
func (c *stdioConn) carry(ctx context.Context, method string, req mcp.Request, next func(context.Context, call) (mcp.Result, error)) (mcp.Result, error) {
	if method != "tools/call" {
		return next(ctx, nil)
	}
	c.mu.Lock()
	found := c.byExtra[req.GetExtra()]
	c.mu.Unlock()
	if found == nil {
		return next(ctx, nil)
	}
	defer found.place.Finish()
	return next(ctx, found)
}

func (call *stdioCall) principal() gateway.Principal { return call.conn.who }
func (call *stdioCall) caller() string               { return "" } // there is one
func (call *stdioCall) ticket() *gateway.Ticket      { return call.place }

// pause implements call.
func (call *stdioCall) pause(giveUp func()) (resume func(context.Context) bool) {
	c := call.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	call.giveUp = giveUp
	call.lane.running--
	c.paused++
	if c.ended {
		giveUp()
	}
	c.work.Broadcast()
	return func(context.Context) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		call.giveUp = nil
		call.lane.running++ // perhaps beyond the limit: it waits for nothing but those at work
		c.paused--
		return true
	}
}

// delivered implements call.
func (call *stdioCall) delivered(done func()) {
	call.conn.mu.Lock()
	defer call.conn.mu.Unlock()
	call.done = done
}

// giveUp ends the pauses: no answer can come any more.
func (c *stdioConn) giveUp() {
	for _, call := range c.byExtra {
		if call.giveUp != nil {
			call.giveUp()
		}
	}
}
