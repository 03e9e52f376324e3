package servertest

import (
	"io"
	"math"
	"net"
	"sync"
	"testing"
	"time"
)

// ProxyOptions says how a proxy treats traffic. The zero value passes all bytes on at once.
type ProxyOptions struct {
	// Latency is the round-trip time the proxy adds: each direction is late by
	// half of it, without a limit on what is under way. Establishing the
	// connection is not delayed.
	Latency time.Duration
	// Lifetime is asked once for each connection, one call at a time, and says after how
	// many bytes, in both directions together, the connection is cut as Cut does: the byte
	// it names still passes. nil means never.
	Lifetime func() int64
	// Stalls makes the end of a lifetime a silence: the connection stays open, and no byte of
	// the server passes any more.
	Stalls bool
}

// ProxyStats counts a proxy's traffic since it started or was reset.
type ProxyStats struct {
	Connections int   // accepted
	ToServer    int64 // bytes the clients sent
	ToClient    int64 // bytes passed on to the clients
	// Flights counts the times a client sent after its connection was made or after bytes
	// of the server were passed on to it: its bytes may then answer the server's, so each
	// is a round trip. Bytes that follow without an answer in between belong to the same
	// flight. With TLS the handshake is part of the count.
	Flights int
}

// Proxy stands between clients and one server and counts. Its methods are safe
// for concurrent use.
type Proxy struct {
	Host string // localhost
	Port uint16

	target   string
	latency  time.Duration
	lifetime func() int64
	stalls   bool
	listener net.Listener
	wg       sync.WaitGroup

	mu     sync.Mutex
	stats  ProxyStats
	conns  map[*proxied]struct{}
	closed bool
}

// NewProxy starts a proxy to the server at target, host:port, that ends with
// the test.
func NewProxy(t testing.TB, target string, options ProxyOptions) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{
		Host:     "localhost",
		Port:     uint16(listener.Addr().(*net.TCPAddr).Port),
		target:   target,
		latency:  options.Latency,
		lifetime: options.Lifetime,
		stalls:   options.Stalls,
		listener: listener,
		conns:    map[*proxied]struct{}{},
	}
	p.wg.Go(p.serve)
	t.Cleanup(p.close)
	return p
}

// Addr returns host:port of the proxy.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Stats returns the counts so far. They include every byte a client has received.
func (p *Proxy) Stats() ProxyStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats
}

// Reset sets the counts to zero and returns the old ones. Open connections stay; the next
// bytes of a client that has been answered begin a flight.
func (p *Proxy) Reset() ProxyStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.stats
	p.stats = ProxyStats{}
	return old
}

// Cut breaks every open connection as a lost network does: bytes in transit are lost. New
// connections are still accepted.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.sever()
	}
}

func (p *Proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.Cut()
	p.wg.Wait()
}

func (p *Proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { p.connect(client) })
	}
}

func (p *Proxy) connect(client net.Conn) {
	p.mu.Lock()
	p.stats.Connections++
	p.mu.Unlock()
	server, err := net.DialTimeout("tcp", p.target, 10*time.Second)
	if err != nil {
		_ = client.Close()
		return
	}
	c := &proxied{client: client.(*net.TCPConn), server: server.(*net.TCPConn), gone: make(chan struct{}), answered: true, left: math.MaxInt64}
	p.mu.Lock()
	if p.lifetime != nil {
		c.left = p.lifetime()
	}
	if p.closed {
		c.sever()
	}
	p.conns[c] = struct{}{}
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() {
		p.pass(c, c.server, c.client, func(n int) {
			p.stats.ToServer += int64(n)
			if c.answered {
				c.answered = false
				p.stats.Flights++
			}
		}, nil)
	})
	both.Go(func() {
		p.pass(c, c.client, c.server, nil, func(n int) {
			p.stats.ToClient += int64(n)
			c.answered = true
		})
	})
	both.Wait()
	c.sever()
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
}

// proxied is one connection through a proxy.
type proxied struct {
	client, server *net.TCPConn
	gone           chan struct{}
	once           sync.Once
	answered       bool  // guarded by Proxy.mu
	left           int64 // bytes until it is cut; guarded by Proxy.mu
}

func (c *proxied) sever() {
	c.once.Do(func() {
		close(c.gone)
		_ = c.client.Close()
		_ = c.server.Close()
	})
}

type chunk struct {
	due  time.Time
	data []byte
}

// pass carries one direction until its end or the connection's. With the proxy's lock held
// it counts the bytes it has read by received, and by sent those it will write: before the
// write, so that the receiver finds them counted.
func (p *Proxy) pass(c *proxied, to, from *net.TCPConn, received, sent func(n int)) {
	queue := make(chan chunk, 4096)
	var reader sync.WaitGroup
	defer reader.Wait()
	reader.Go(func() {
		defer close(queue)
		for {
			buf := make([]byte, 32<<10)
			n, err := from.Read(buf)
			if n > 0 {
				p.count(received, n)
				select {
				case queue <- chunk{time.Now().Add(p.latency / 2), buf[:n]}:
				case <-c.gone:
					return
				}
			}
			if err != nil {
				if err != io.EOF {
					c.sever()
				}
				return
			}
		}
	})
	for ch := range queue {
		if wait := time.Until(ch.due); p.latency > 0 && wait > 0 {
			select {
			case <-time.After(wait):
			case <-c.gone:
				return
			}
		}
		n, last := p.spend(c, len(ch.data))
		p.count(sent, n)
		_, err := to.Write(ch.data[:n])
		if last && p.stalls {
			<-c.gone // nothing passes in this direction any more
			return
		}
		if err != nil || last {
			c.sever()
			return
		}
	}
	_ = to.CloseWrite()
}

// spend returns how many of n bytes may pass, and whether they are the last.
func (p *Proxy) spend(c *proxied, n int) (int, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n = int(min(int64(n), c.left))
	c.left -= int64(n)
	return n, c.left <= 0
}

func (p *Proxy) count(f func(int), n int) {
	if f == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	f(n)
}
