package gateway

import (
	"container/list"
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A stdioCall is a request from its arrival until its answer is written.
type stdioCall struct {
	id        int64           // ours, under which the library knows it
	wireID    json.RawMessage // the client's
	key       string          // of wireID
	lane      *lane
	queued    *list.Element // in lane while it waits, nil once it is at work
	request   *jsonrpc.Request
	size      int
	cancelled bool

	// A tools/call alone has them: its place in the order of its arrival, and what
	// the library hands to the handler unchanged, by which the ticket is found.
	ticket *Ticket
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
	call.ticket.Finish()
}

// ticketOf implements ticketSource.
func (c *stdioConn) ticketOf(extra *mcp.RequestExtra) *Ticket {
	c.mu.Lock()
	defer c.mu.Unlock()
	if call := c.byExtra[extra]; call != nil {
		return call.ticket
	}
	return nil
}

// pause implements ticketSource.
func (c *stdioConn) pause(extra *mcp.RequestExtra, giveUp func()) (resume func(context.Context) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	call := c.byExtra[extra]
	if call == nil {
		giveUp()
		return func(context.Context) bool { return true }
	}
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

// delivered implements receiptSource.
func (c *stdioConn) delivered(extra *mcp.RequestExtra, done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if call := c.byExtra[extra]; call != nil {
		call.done = done
	}
}

// giveUp ends the pauses: no answer can come any more.
func (c *stdioConn) giveUp() {
	for _, call := range c.byExtra {
		if call.giveUp != nil {
			call.giveUp()
		}
	}
}
