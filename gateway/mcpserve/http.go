package mcpserve

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/net/netutil"

	"github.com/postern-mail/postern/gateway"
)

// Bounds of a server over HTTP, where HTTPOptions do not say otherwise.
//
// Three can be set, and the others follow from them. A connection carries one request
// at a time, so MaxConnections also bounds the requests that are read, answered or
// refused. While half of it are open each ends with its answer, so that nobody who keeps
// connections keeps others out. A quarter of it is the share of one caller of the
// requests that are not answered yet, some of which outlive their connection. Of those
// MaxCalls are at work, and the others wait. Callers are those that the administrator let
// in, so their number times a caller's bound is bounded too, for calls as for sessions.
//
// A body is read only once its caller is admitted and has room for it among the bodies
// of its requests, so a hostile caller costs at most maxBodies of memory, and a stranger
// none.
const (
	defaultConnections = 1024
	defaultCalls       = 64
	defaultSessions    = 64
	shares             = 4 // of MaxConnections

	maxBody   = 5 << 18  // bytes, 1.25 MiB: also a command string that is far too long is answered in words
	maxBodies = 64 << 20 // bytes of the bodies of one caller's requests together
	maxHeader = 16 << 10 // bytes
	admitTime = 5 * time.Second
	turnTime  = 30 * time.Second // that a call waits for a place among those at work
)

// httpTimes are how long things may take.
type httpTimes struct {
	head    time.Duration // to send the head of a request
	body    time.Duration // to send its body
	write   time.Duration // to take a part of an answer
	idle    time.Duration // between requests of a connection
	session time.Duration // of a session without a request
}

var defaultTimes = httpTimes{head: 10 * time.Second, body: 30 * time.Second, write: 30 * time.Second, idle: 2 * time.Minute, session: 10 * time.Minute}

// ErrNotAdmitted is returned by HTTPOptions.Admit for a token that opens nothing.
var ErrNotAdmitted = errors.New("the token opens nothing")

// Caller is the sender of a request.
type Caller struct {
	Principal gateway.Principal

	// ID tells callers apart: they share neither sessions nor limits. Never empty. A token
	// that replaces another one has another ID, even where the Principal is of the same name.
	ID string
}

// HTTPOptions configure Server.HTTP. Only Admit is required; a bound of zero is its
// default.
type HTTPOptions struct {
	// Admit returns the caller that has a token, which is empty where a request brings none.
	// The error matches ErrNotAdmitted for a token that admits nobody; any other is a failure
	// of the server. It is called for every request, concurrently, and should take the same
	// time whatever the token. Its ctx ends after 5 s.
	Admit func(ctx context.Context, token string) (Caller, error)

	Path string // of the endpoint; empty means "/mcp"

	// Ready returns why requests could not be answered now, or nil; nil stands for a function
	// that returns nil. GET /ready, which needs no token, answers 200 for nil and 503 for an
	// error or a server that stops. It is called once a second at most, and its ctx ends after
	// 5 s.
	Ready func(ctx context.Context) error

	// TLS, without which only a loopback address is served. Its Certificates or
	// GetCertificate are the caller's; HTTP/2 is not offered.
	TLS *tls.Config

	// Host reports whether a name is one of the server's, which is lower-case and
	// without port or brackets. It always is by the names of the loopback interface
	// where it listens there. nil knows no other.
	Host func(name string) bool

	// Origins are those of web pages that may use the server from a browser, such as
	// "https://desk.example.org", beside the server's own.
	Origins []string

	MaxConnections int // 0 means 1024; further ones wait to be accepted; from half of them on each ends with its answer, and of those that have sent no whole request the oldest are closed
	MaxCalls       int // of one caller at work at once; 0 means 64, and further ones wait for 30 s
	MaxSessions    int // of one caller, in protocols that have them; 0 means 64, and a new one takes the place of the one longest unused
}

// HTTP serves MCP over streamable HTTP on a listener, until ctx ends or the
// listener breaks, and returns the error that was the end. It closes the listener.
//
// Clients of protocol 2026-07-28 are served request by request; those of the ones
// before have sessions, which belong to the caller that began them. Nothing is ordered
// between requests: a client that needs one after another waits for the answer. A call
// ends when its client hangs up (2026-07-28) or cancels it (the ones before).
//
// Every request has to name a host that the server is known by, and to come from no
// web page but an allowed one, so that a page in somebody's browser cannot reach a
// server on their machine by a name of its own (DNS rebinding). Then its bearer token has
// to be admitted (RFC 6750), which tells the caller.
//
// When ctx ends, /ready and every request are answered with 503, calls at work have s.Grace
// to finish and are then cancelled, and last the sessions, the connections and the listener
// are closed.
func (s *Server) HTTP(ctx context.Context, l net.Listener, o HTTPOptions) error {
	return s.serveHTTP(ctx, l, o, defaultTimes)
}

func (s *Server) serveHTTP(ctx context.Context, l net.Listener, o HTTPOptions, times httpTimes) error {
	defer func() { _ = l.Close() }()
	address, ok := l.Addr().(*net.TCPAddr)
	loopback := ok && address.IP.IsLoopback()
	switch err := s.check(); {
	case err != nil:
		return err
	case o.Admit == nil:
		return errors.New("mcpserve: HTTPOptions.Admit, which admits callers, is missing")
	case o.TLS == nil && !loopback:
		return fmt.Errorf("mcpserve: %s is not a loopback address, and is served with TLS only", l.Addr())
	}
	o.Path = cmp.Or(o.Path, "/mcp")
	for n, usual := range map[*int]int{&o.MaxConnections: defaultConnections, &o.MaxCalls: defaultCalls, &o.MaxSessions: defaultSessions} {
		*n = cmp.Or(max(0, *n), usual)
	}
	h := s.newHTTPHandler(o, times, loopback)
	l = netutil.LimitListener(l, o.MaxConnections)
	if o.TLS != nil {
		c := o.TLS.Clone()
		c.MinVersion = max(c.MinVersion, tls.VersionTLS12)
		c.NextProtos = []string{"http/1.1"}
		l = tls.NewListener(l, c)
	}
	web := &http.Server{Handler: h, ReadHeaderTimeout: times.head, IdleTimeout: times.idle, MaxHeaderBytes: maxHeader, ConnState: h.conns.note, ConnContext: h.conns.told,
		// What a stranger sends is not worth a line of somebody's log each.
		ErrorLog: log.New(io.Discard, "", 0)}
	served := make(chan error, 1)
	go func() { served <- web.Serve(l) }()
	select {
	case err := <-served:
		h.stop(0)
		_ = web.Close()
		return err
	case <-ctx.Done():
		h.stop(cmp.Or(s.Grace, defaultGrace))
		ending, cancel := context.WithTimeout(context.Background(), unwindTime)
		defer cancel()
		h.conns.closeFresh()
		_ = web.Shutdown(ending) // connections that do not end by themselves are cut off
		_ = web.Close()
		return ctx.Err()
	}
}

// newHTTPHandler joins the two ways in which the library serves HTTP: it has sessions,
// and can ask a person meanwhile, or it speaks the protocol that has none.
func (s *Server) newHTTPHandler(o HTTPOptions, times httpTimes, loopback bool) *httpHandler {
	h := &httpHandler{o: o, times: times, loopback: loopback, log: s.logger(), library: s.library(), share: max(1, o.MaxConnections/shares), readiness: readiness{place: make(chan struct{}, 1)},
		conns: connections{most: max(2, o.MaxConnections/2), open: map[net.Conn]uint64{}}, callers: map[string]*callerState{}, requests: map[*httpRequest]struct{}{}}
	h.life, h.end = context.WithCancel(context.Background())
	serve := func(stateless bool) http.Handler {
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return h.library }, &mcp.StreamableHTTPOptions{
			Stateless: stateless, SessionTimeout: times.session, PropagateRequestCancellation: true, MaxRequestBodyBytes: maxBody,
			DisableLocalhostProtection: true, // ours is stricter, and its own knows no other names
		})
	}
	h.sessionful, h.stateless = serve(false), serve(true)
	return h
}
