package mcpserve

import (
	"bufio"
	"bytes"
	"cmp"
	"container/list"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/internal/plain"
)

// Bounds of a session over stdio, where the Server does not say otherwise.
const (
	defaultInFlight  = 64
	defaultQueued    = 4096
	defaultGrace     = 5 * time.Second
	maxQueuedBytes   = 16 << 20
	maxControl       = 16              // requests other than tools/call at work at once
	unwindTime       = 2 * time.Second // for calls that were cancelled at the end of a session
	frameOverhead    = 512             // bytes that a queued frame costs beside its line
	readBufferLength = 64 << 10
)

// Stdio serves one client that writes a JSON-RPC message per line to in and
// reads one per line from out, and returns when the session is over:
//
//   - at the end of in, once every call received has been answered: nil, or the error
//     that was the end;
//   - when ctx ends: nothing more is read, calls still waiting are dropped, those at
//     work have Grace to finish and are then cancelled: the error of ctx;
//   - when out breaks: what is at work is cancelled: that error.
//
// Calls run concurrently, at most MaxInFlight at once, and are answered as they
// finish; a gateway.Gateway lets each take effect in the order of its arrival
// (gateway.Order), and a call that waits for its turn counts as one at work. The rest
// wait, and while MaxQueued wait nothing is read. Requests of other methods and
// notifications overtake waiting calls. A call cancelled by the client gets no answer;
// one that was still waiting never runs. A line that is not a message is answered with a
// JSON-RPC error, and the session goes on.
//
// Both ends are closed at return, unless a close takes longer than 2 s. Nothing but the
// protocol may be written to out: a program that serves on its standard output keeps the
// file for this call and sets os.Stdout to os.Stderr. It also ignores SIGPIPE, or else a
// client that goes away ends the process before this function can return.
//
// A call that ignores its context, or a read from an end that Close does not
// interrupt, is left behind in its goroutine.
func (s *Server) Stdio(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	if err := s.check(); err != nil {
		return err
	}
	c := newStdioConn(in, out, s)
	defer func() {
		_ = c.Close()
		_, _ = wait(c.released, unwindTime)
	}()
	session, err := s.library().Connect(ctx, c, nil)
	if err != nil {
		return fmt.Errorf("starting the session: %w", err)
	}
	go c.readLines()
	done := make(chan error, 1)
	go func() { done <- session.Wait() }()

	select {
	case <-ctx.Done():
		c.stop()
		if ended, _ := wait(done, cmp.Or(s.Grace, defaultGrace)); ended {
			return ctx.Err()
		}
		_ = c.Close()
	case <-c.over:
	}
	_, err = wait(done, unwindTime)
	c.mu.Lock()
	defer c.mu.Unlock()
	return cmp.Or(c.err, ctx.Err(), err)
}

// wait receives from done if that is possible within d.
func wait[T any](done <-chan T, d time.Duration) (ended bool, v T) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case v = <-done:
		return true, v
	case <-t.C:
		return false, v
	}
}

// stdioConn is the connection between a client's two pipes and the library. The
// library starts whatever it can read and cancels whatever runs when there is no
// more to read; so Read gives it no more than may run, and no end before all is
// answered. The library knows a request by its frame's key, because its own numbers lose
// what does not fit a float64.
type stdioConn struct {
	in     io.ReadCloser
	out    io.WriteCloser
	server *Server
	// The queue takes no more when it holds so many frames or bytes.
	fullFrames, fullBytes int

	writing chan struct{} // holds one token while a line is written; never together with mu
	over    chan struct{} // closed with the connection

	released chan struct{} // closed once in and out are

	mu      sync.Mutex
	work    sync.Cond // Read may have something to return
	space   sync.Cond // the queue has shrunk, or input is over
	direct  list.List // of jsonrpc.Message, which wait for nothing
	control lane      // initialize, ping, lists: overtakes calls
	calls   lane      // tools/call
	byKey   map[string]*stdioRequest
	order   gateway.Order
	frames  int // waiting in both lanes
	bytes   int // of those
	paused  int // calls that wait for the client
	asking  atomic.Int32
	ended   bool // no more input is taken
	closed  bool
	err     error // of in or out, the first
}

var (
	_ mcp.Transport  = (*stdioConn)(nil)
	_ mcp.Connection = (*stdioConn)(nil)
	_ request        = (*stdioRequest)(nil)
)

func newStdioConn(in io.ReadCloser, out io.WriteCloser, s *Server) *stdioConn {
	c := &stdioConn{in: in, out: out, server: s, byKey: map[string]*stdioRequest{},
		fullFrames: cmp.Or(max(0, s.MaxQueued), defaultQueued), fullBytes: maxQueuedBytes,
		writing: make(chan struct{}, 1), over: make(chan struct{}), released: make(chan struct{})}
	c.work.L, c.space.L = &c.mu, &c.mu
	c.control.limit, c.calls.limit = maxControl, cmp.Or(max(0, s.MaxInFlight), defaultInFlight)
	return c
}

// Connect implements mcp.Transport.
func (c *stdioConn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// SessionID implements mcp.Connection. A session over pipes has none.
func (c *stdioConn) SessionID() string { return "" }

// readLines takes messages until input is over. It waits while the queue is full,
// and while an answer to a malformed line cannot be written.
func (c *stdioConn) readLines() {
	r := bufio.NewReaderSize(c.in, readBufferLength)
	for {
		line, long, err := readLine(r)
		if err != nil {
			c.endInput(err)
			return
		}
		var fault *frameFault
		switch {
		case long:
			fault = newFault(nil, jsonrpc.CodeInvalidRequest, fmt.Sprintf("the line is longer than %d bytes", maxLine))
		case len(bytes.TrimSpace(line)) > 0:
			fault = c.take(line)
		}
		if fault != nil {
			c.server.logger().Warn("message refused", "code", fault.Code, "reason", fault.Message)
			_ = c.writeLine(context.Background(), fault.encode()) // a failure ends the session by itself
		}
	}
}

// endInput lets the session finish what it has.
func (c *stdioConn) endInput(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil && !c.ended && !errors.Is(err, io.EOF) {
		c.err = fmt.Errorf("reading from the client: %w", err)
	}
	c.ended = true
	c.giveUp()
	c.work.Broadcast()
}

// take puts a message where Read finds it. It waits while the queue is full.
func (c *stdioConn) take(line []byte) *frameFault {
	f, fault := parseFrame(line)
	switch {
	case fault != nil:
		return fault
	case f.response != nil:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.pass(f.response)
	case f.id == nil:
		if f.method == "notifications/cancelled" {
			c.cancel(f.params)
		} // no other means anything to a server that has tools alone, nor to the library
	case !served(f.method):
		return &frameFault{f.id, *errMethodNotFound}
	default:
		return c.enqueue(f, len(line)+frameOverhead)
	}
	return nil
}

// pass hands a message to the library at once.
func (c *stdioConn) pass(m jsonrpc.Message) {
	c.direct.PushBack(m)
	c.work.Broadcast()
}

func (c *stdioConn) enqueue(f *frame, size int) *frameFault {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.ended && c.frames > 0 && (c.frames >= c.fullFrames || c.bytes+size > c.fullBytes) {
		c.space.Wait()
	}
	if c.ended {
		return nil
	}
	if c.byKey[f.key] != nil {
		return newFault(nil, jsonrpc.CodeInvalidRequest, "a request with this id is not answered yet")
	}
	id, err := jsonrpc.MakeID(f.key)
	if err != nil {
		return newFault(f.id, jsonrpc.CodeInternalError, "internal error")
	}
	r := &stdioRequest{conn: c, wireID: f.id, key: f.key, lane: &c.control, size: size}
	if f.method == "tools/call" {
		r.lane, r.place = &c.calls, c.order.Ticket()
	}
	r.message = &jsonrpc.Request{ID: id, Method: f.method, Params: f.params, Extra: &mcp.RequestExtra{TokenInfo: tokenOf(r, "")}}
	r.queued = r.lane.waiting.PushBack(r)
	c.byKey[f.key] = r
	c.frames++
	c.bytes += size
	c.work.Broadcast()
	return nil
}

// cancel ends a call (notifications/cancelled): one that waits is forgotten, one at
// work has its context cancelled and its answer dropped. Other requests are answered all
// the same: initialize cannot be cancelled, and the others take no time. An unknown id is
// one that has been answered.
func (c *stdioConn) cancel(params json.RawMessage) {
	var p map[string]json.RawMessage
	if json.Unmarshal(params, &p) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.byKey[idKey(p["requestId"])]
	switch {
	case r == nil || r.cancelled || r.lane != &c.calls:
	case r.queued != nil:
		r.dequeue()
		r.forget()
		c.work.Broadcast()
	default:
		r.cancelled = true
		id, _ := plain.JSON(r.key) // a string always has a JSON form
		c.pass(&jsonrpc.Request{Method: "notifications/cancelled", Params: fmt.Appendf(nil, `{"requestId":%s}`, id)})
	}
}

// Read implements mcp.Connection: it waits for the next message that may be worked
// on. Its end is io.EOF, once every call is answered.
func (c *stdioConn) Read(context.Context) (jsonrpc.Message, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if c.closed {
			return nil, io.EOF
		}
		if e := c.direct.Front(); e != nil {
			return c.direct.Remove(e).(jsonrpc.Message), nil
		}
		for _, l := range []*lane{&c.control, &c.calls} {
			if e := l.waiting.Front(); e != nil && l.running < l.limit {
				r := e.Value.(*stdioRequest)
				m := r.message
				r.dequeue()
				r.message = nil // its params are the library's now
				l.running++
				return m, nil
			}
		}
		if c.ended && c.frames == 0 && c.control.running+c.calls.running+c.paused == 0 {
			return nil, io.EOF
		}
		c.work.Wait()
	}
}

// Write implements mcp.Connection. The answer to a cancelled call goes nowhere.
func (c *stdioConn) Write(ctx context.Context, m jsonrpc.Message) error {
	r, ok := m.(*jsonrpc.Response)
	if !ok {
		line, err := jsonrpc.EncodeMessage(m)
		if err != nil {
			return err
		}
		return c.writeLine(ctx, line)
	}
	key, _ := r.ID.Raw().(string)
	c.mu.Lock()
	q := c.byKey[key]
	if q == nil {
		c.mu.Unlock()
		c.server.logger().Error("answer without a request")
		return nil
	}
	q.forget()
	cancelled := q.cancelled
	c.mu.Unlock()

	var err error
	if !cancelled {
		err = c.writeLine(ctx, encodeResponse(q.wireID, r))
		if err == nil && q.done != nil {
			q.done()
		}
	}
	// Only now is its place free: answers that nobody reads must not pile up.
	c.mu.Lock()
	q.lane.running--
	c.work.Broadcast()
	c.mu.Unlock()
	return err
}

// writeLine writes one message. The first failure ends the session; a ctx that ends
// while others write does not.
func (c *stdioConn) writeLine(ctx context.Context, line []byte) error {
	select {
	case c.writing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-c.over:
		return io.ErrClosedPipe
	}
	_, err := c.out.Write(append(line, '\n'))
	<-c.writing
	if err == nil {
		return nil
	}
	err = fmt.Errorf("writing to the client: %w", err)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.err = cmp.Or(c.err, err)
	}
	c.end(true)
	return err
}

// stop takes no more input and drops what waits; what is at work goes on.
func (c *stdioConn) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end(false)
}

// end is stop, or Close, under mu.
func (c *stdioConn) end(closed bool) {
	c.ended = true
	c.giveUp()
	if closed && !c.closed {
		c.closed = true
		close(c.over)
		// Some systems let a close wait for a read that nothing ends. The errors are
		// of no use: everything is written, or cannot be.
		go func() {
			defer close(c.released)
			_ = c.out.Close()
			_ = c.in.Close()
		}()
	}
	for _, l := range []*lane{&c.control, &c.calls} {
		for e := l.waiting.Front(); e != nil; e = l.waiting.Front() {
			r := e.Value.(*stdioRequest)
			r.dequeue()
			r.forget()
		}
	}
	c.work.Broadcast()
	c.space.Broadcast()
}

// Close implements mcp.Connection: Read returns io.EOF at once, upon which the
// library cancels what is at work.
func (c *stdioConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end(true)
	return nil
}
