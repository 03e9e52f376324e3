package mcpserve

import (
	"container/list"
	"context"
	"encoding/json"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/postern-mail/postern/gateway"
)

// A stdioRequest is a request from its arrival until its answer is written.
type stdioRequest struct {
	conn      *stdioConn
	wireID    json.RawMessage // the client's id
	key       string          // of wireID
	lane      *lane
	queued    *list.Element    // in lane while it waits, nil once it is at work
	message   *jsonrpc.Request // nil once it is at work
	size      int
	cancelled bool

	// Of a tools/call alone:
	place  *gateway.Ticket // in the order of arrival
	giveUp func()          // while it is paused
	done   func()          // when its answer is written; nil for nobody
}

// A lane is a queue with a bound on how many of its requests are at work.
type lane struct {
	waiting list.List // of *stdioRequest
	running int
	limit   int
}

// dequeue takes a request out of its lane.
func (r *stdioRequest) dequeue() {
	r.lane.waiting.Remove(r.queued)
	r.queued = nil
	r.conn.frames--
	r.conn.bytes -= r.size
	r.conn.space.Broadcast()
}

// forget lets go of a request that has ended or will never start.
func (r *stdioRequest) forget() {
	delete(r.conn.byKey, r.key)
	r.place.Finish()
}

// carry implements request.
func (r *stdioRequest) carry(ctx context.Context, _ mcp.Request, _ string, next func(context.Context) (mcp.Result, error)) (mcp.Result, error) {
	defer r.place.Finish()
	return next(ctx)
}

func (r *stdioRequest) principal() gateway.Principal { return r.conn.server.Principal }
func (r *stdioRequest) ticket() *gateway.Ticket      { return r.place }
func (r *stdioRequest) questions() *atomic.Int32     { return &r.conn.asking }

// pause implements request.
func (r *stdioRequest) pause(giveUp func()) (resume func(context.Context) bool) {
	c := r.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	r.giveUp = giveUp
	r.lane.running--
	c.paused++
	if c.ended {
		giveUp()
	}
	c.work.Broadcast()
	return func(context.Context) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		r.giveUp = nil
		r.lane.running++ // perhaps beyond the limit: it waits for nothing but those at work
		c.paused--
		return true
	}
}

// delivered implements request.
func (r *stdioRequest) delivered(done func()) {
	r.conn.mu.Lock()
	defer r.conn.mu.Unlock()
	r.done = done
}

// giveUp ends the pauses: no answer can come any more.
func (c *stdioConn) giveUp() {
	for _, r := range c.byKey {
		if r.giveUp != nil {
			r.giveUp()
		}
	}
}
