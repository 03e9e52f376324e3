package postgres

import (
	"bufio"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
)

// cut is where a connection breaks.
type cut string

const (
	before cut = "before it is forwarded"
	within cut = "in the middle of what is forwarded"
	after  cut = "when it was forwarded"
	silent cut = "when it is answered, without the answer"
	middle cut = "in the middle of the answer"
	last   cut = "before the end of the answer"

	// Those that keep the connection.
	stopped cut = "in the middle of what is forwarded, with nothing after it"
	full    cut = "in the answer, of which nothing more is taken"
)

var cuts = []cut{before, within, after, silent, middle, last}

// request is what a client sends before it waits for an answer.
type request struct {
	sql   string // the statements; "start" for the first of a connection
	bytes []byte
}

func (r request) has(sql string) bool { return strings.Contains(r.sql, sql) }

// proxy stands between engines and a server, and knows where a request begins and ends.
type proxy struct {
	listener net.Listener
	target   string
	wg       sync.WaitGroup
	ended    chan struct{}

	mu       sync.Mutex
	plan     func(request) cut // "" forwards it
	deaf     bool              // notifications are dropped
	blocked  bool              // new connections end at once
	conns    map[*proxied]bool
	most     int // connections at a time
	requests []request
	told     int           // notifications
	reached  chan struct{} // has a value after the plan once has cut
}

// newProxy stands before a server's address and returns the URL that leads through it.
func newProxy(t *testing.T, url string) (*proxy, string) {
	t.Helper()
	_, rest, _ := strings.Cut(url, "@")
	target, _, _ := strings.Cut(rest, "/")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := &proxy{listener: listener, target: target, ended: make(chan struct{}), conns: map[*proxied]bool{}, reached: make(chan struct{}, 1)}
	p.wg.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.connect(c) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		close(p.ended)
		p.block(true)
		p.wg.Wait()
	})
	return p, strings.Replace(url, target, listener.Addr().String(), 1)
}

func (p *proxy) set(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

// block cuts all connections, and new ones, or lets them through again.
func (p *proxy) block(blocked bool) {
	p.set(func() {
		p.blocked = blocked
		for c := range p.conns {
			if blocked {
				c.cut()
			}
		}
	})
}

// always is a plan that cuts each request of a kind.
func always(kind string, c cut) func(request) cut {
	return func(r request) cut {
		if r.kind() == kind {
			return c
		}
		return ""
	}
}

// once is a plan that cuts the next request of a kind.
func (p *proxy) once(kind string, c cut) func(request) cut {
	return func(r request) cut {
		if r.kind() != kind {
			return ""
		}
		p.plan = nil
		p.reached <- struct{}{}
		return c
	}
}

// kinds returns those of the requests since the last call of reset.
func (p *proxy) kinds() (list []string) {
	for _, r := range p.sent() {
		list = append(list, r.kind())
	}
	return list
}

// sent returns the requests since the last call of reset.
func (p *proxy) sent() (list []request) {
	p.set(func() { list = slices.Clone(p.requests) })
	return list
}

func (p *proxy) reset() { p.set(func() { p.requests = nil }) }

// proxied is a connection through a proxy.
type proxied struct {
	client, server net.Conn
	once           sync.Once

	mu     sync.Mutex
	answer cut // what the next answer meets
}

func (c *proxied) cut() {
	c.once.Do(func() {
		_ = c.client.Close()
		_ = c.server.Close()
	})
}

func (p *proxy) connect(client net.Conn) {
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		_ = client.Close()
		return
	}
	c := &proxied{client: client, server: server}
	p.set(func() {
		p.conns[c] = true
		p.most = max(p.most, len(p.conns))
		if p.blocked {
			c.cut()
		}
	})
	var both sync.WaitGroup
	both.Go(func() { p.forward(c); c.cut() })
	both.Go(func() { p.back(c); c.cut() })
	both.Wait()
	p.set(func() { delete(p.conns, c) })
}

// message reads one; the first of a client has no type.
func message(r *bufio.Reader, first bool) (b []byte, err error) {
	n := 1
	if first {
		n = 0
	}
	b = make([]byte, n+4)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, err
	}
	b = append(b, make([]byte, binary.BigEndian.Uint32(b[n:])-4)...)
	_, err = io.ReadFull(r, b[n+4:])
	return b, err
}

func (p *proxy) forward(c *proxied) {
	in := bufio.NewReader(c.client)
	for first := true; ; first = false {
		request := request{sql: "start"}
		for done := false; !done; {
			b, err := message(in, first)
			if err != nil {
				return
			}
			request.bytes = append(request.bytes, b...)
			switch {
			case first:
				done = true
			case b[0] == 'Q':
				request.sql, done = string(b[5:len(b)-1]), true
			case b[0] == 'P': // a statement, after a name that is empty
				sql, _, _ := strings.Cut(string(b[6:]), "\x00")
				request.sql = strings.TrimPrefix(request.sql+"; "+sql, "start; ")
			case b[0] == 'B' && request.sql == "start": // of a statement sent before
				request.sql = "large value"
			case b[0] == 'S', b[0] == 'X':
				done = true
			}
		}
		var planned cut
		p.set(func() {
			if p.plan != nil && request.bytes[0] != 'X' {
				planned = p.plan(request)
			}
			p.requests = append(p.requests, request)
		})
		n := len(request.bytes)
		switch planned {
		case before:
			return
		case within:
			n /= 2
		case stopped:
			n = rand.IntN(n)
		case silent, middle, last, full:
			c.mu.Lock()
			c.answer = planned
			c.mu.Unlock()
		}
		if _, err := c.server.Write(request.bytes[:n]); err != nil || planned == within || planned == after {
			return
		}
		if planned == stopped {
			_, _ = io.Copy(io.Discard, in) // until one of the two closes it
			return
		}
	}
}

func (p *proxy) back(c *proxied) {
	in := bufio.NewReader(c.server)
	for {
		b, err := message(in, false)
		if err != nil {
			return
		}
		drop := false
		if b[0] == 'A' {
			p.set(func() { p.told, drop = p.told+1, p.deaf })
		}
		c.mu.Lock()
		answer := c.answer
		c.mu.Unlock()
		switch {
		case answer == silent, answer == last && b[0] == 'Z':
			return
		case answer == middle:
			_, _ = c.client.Write(b[:len(b)/2])
			return
		case answer == full:
			<-p.ended
			return
		case drop:
			continue
		}
		if _, err := c.client.Write(b); err != nil {
			return
		}
	}
}
