package conformance

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Target is a server to judge. Each Open reaches a fresh one, or a fresh session
// with it. Its methods are called by one goroutine.
type Target interface {
	// Transport is "stdio" or "http".
	Transport() string

	// Open starts or reaches the server. An error means that there is no server,
	// not a bad one.
	Open(ctx context.Context) (Conn, error)
}

// A Conn carries JSON-RPC messages, each one JSON text without a line feed. Send and
// Receive may be called side by side.
type Conn interface {
	Send(ctx context.Context, message []byte) error

	// Receive returns the next message: io.EOF after the last,
	// ErrTooLarge when it is larger than MaxMessage.
	Receive(ctx context.Context) ([]byte, error)

	// Protocol tells the MCP version that was agreed upon.
	Protocol(version string)

	// Close ends the session, and the server where Open started it, by force if
	// necessary. It returns within a few seconds.
	Close()
}

// MaxMessage is the largest message, in bytes, that is read from a server.
const MaxMessage = 8 << 20

// ErrTooLarge is a message of more than MaxMessage bytes.
var ErrTooLarge = fmt.Errorf("a message of more than %d bytes", MaxMessage)

// ErrNotStarted is matched by an error of Run without a server to judge.
var ErrNotStarted = errors.New("the server cannot be started or reached")

// clientTransport is an optional interface of a Target that an MCP client library
// reaches in a way of its own, which is then judged too. stop ends what it started.
type clientTransport interface {
	clientTransport() (t mcp.Transport, stop func(), err error)
}

// client has an MCP client library speak over a Conn.
type client struct{ conn Conn }

// Connect implements mcp.Transport.
func (c client) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// Read implements mcp.Connection.
func (c client) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		b, err := c.conn.Receive(ctx)
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(b)) > 0 {
			return jsonrpc.DecodeMessage(b)
		}
	}
}

// Write implements mcp.Connection.
func (c client) Write(ctx context.Context, m jsonrpc.Message) error {
	b, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	return c.conn.Send(ctx, b)
}

// Close implements mcp.Connection.
func (c client) Close() error {
	c.conn.Close()
	return nil
}

// SessionID implements mcp.Connection.
func (client) SessionID() string { return "" }

// inbox holds the messages of a server that were not received yet: at most a few,
// to bound the memory.
type inbox struct {
	lines chan line
	done  chan struct{} // closed when there is no receiver any more
	once  sync.Once     // of Close
}

type line struct {
	text []byte
	err  error
}

// push returns false when there is no receiver any more.
func (b *inbox) push(l line) bool {
	select {
	case b.lines <- l:
		return true
	case <-b.done:
		return false
	}
}

// Receive implements Conn.
func (b *inbox) Receive(ctx context.Context) ([]byte, error) {
	select {
	case l, ok := <-b.lines:
		if !ok {
			return nil, io.EOF
		}
		return l.text, l.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// lineConn speaks over a pair of streams, one message per line.
type lineConn struct {
	inbox
	in  io.WriteCloser
	end func() // what Close does besides
}

// newLineConn reads out in a goroutine of its own, which ends with the stream or
// after Close, when the end of out comes.
func newLineConn(in io.WriteCloser, out io.Reader, end func()) *lineConn {
	c := &lineConn{inbox: inbox{lines: make(chan line, 4), done: make(chan struct{})}, in: in, end: end}
	go func() {
		defer close(c.lines)
		s := newScanner(out)
		for s.Scan() {
			if !c.push(line{text: bytes.Clone(s.Bytes())}) {
				return
			}
		}
		if s.Err() == bufio.ErrTooLong { // the rest of the stream has lost its beginning
			c.push(line{err: ErrTooLarge})
		}
	}()
	return c
}

// newScanner reads lines of at most MaxMessage bytes.
func newScanner(r io.Reader) *bufio.Scanner {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 64<<10), MaxMessage+2) // with the line's end
	return s
}

// Send implements Conn. A server that does not read blocks it until ctx ends, and
// then the connection is unusable.
func (c *lineConn) Send(ctx context.Context, message []byte) error {
	sent := make(chan error, 1)
	go func() {
		_, err := c.in.Write(append(message[:len(message):len(message)], '\n'))
		sent <- err
	}()
	select {
	case err := <-sent:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Protocol implements Conn.
func (c *lineConn) Protocol(string) {}

// Close implements Conn.
func (c *lineConn) Close() {
	c.once.Do(func() {
		close(c.done)
		_ = c.in.Close()
		c.end()
	})
}

// Pipe is a server inside this process: a function that serves one client over a
// pair of streams and returns when in ends.
type Pipe struct {
	Serve func(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error
	Grace time.Duration // how long it may go on after in has ended; 0 means 2 s
}

var _ Target = (*Pipe)(nil)

// Transport implements Target.
func (p *Pipe) Transport() string { return "stdio" }

// Open implements Target.
func (p *Pipe) Open(context.Context) (Conn, error) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = p.Serve(ctx, inR, outW) // what it did is seen on the wire
		_ = outW.Close()
		_ = inR.Close()
	}()
	grace := cmp.Or(p.Grace, defaultGrace)
	return newLineConn(inW, outR, func() {
		defer cancel()
		_ = outR.Close() // whatever it still writes
		select {
		case <-done:
			return
		case <-time.After(grace / 4):
		}
		cancel()
		select {
		case <-done:
		case <-time.After(grace):
		}
	}), nil
}
