package gateway

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/net/netutil"
)

// Bounds of a server over HTTP, where HTTPOptions do not say otherwise.
const (
	defaultConnections    = 1024
	defaultOpen           = 1024
	defaultOpenEach       = 256
	defaultHTTPInFlight   = 128
	defaultInFlightEach   = 64
	defaultSessions       = 1024
	defaultSessionsEach   = 64
	defaultSessionTimeout = 10 * time.Minute
	defaultHeaderTime     = 10 * time.Second
	defaultBodyTime       = 30 * time.Second
	defaultWriteTime      = 30 * time.Second
	defaultIdleTime       = 2 * time.Minute
	defaultBodyBytes      = 256 << 10 // the longest command string, every character written as two escapes, is half of it
	defaultHeaderBytes    = 16 << 10
	admitTime             = 5 * time.Second
	turnTime              = 30 * time.Second // that a call waits for a place among those at work
	maxTogether           = 32               // calls of one request, which are several in protocol 2025-03-26
)

// ErrNotAdmitted is what HTTPOptions.Admit returns for a token that opens nothing.
var ErrNotAdmitted = errors.New("the token opens nothing")

// Caller is who a request comes from.
type Caller struct {
	Principal Principal

	// ID tells callers apart: what one of them has, such as a session or a share of a
	// limit, another one has not. Never empty. A token that takes the place of another
	// one has another ID, even where the Principal is of the same name.
	ID string
}

// HTTPOptions configure ServeHTTP. Only Admit is required; a bound of zero is its
// default.
type HTTPOptions struct {
	// Admit says who has a token, which is empty where a request brings none. The error
	// matches ErrNotAdmitted where that is nobody; any other is the server's own
	// trouble. It is called for every request, concurrently, and should take the same
	// time whatever the token. Its ctx ends after 5 s.
	Admit func(ctx context.Context, token string) (Caller, error)

	Path string // of the endpoint; empty means "/mcp"

	// TLS, without which only a loopback address is served. Its Certificates or
	// GetCertificate are the caller's; HTTP/2 is not offered.
	TLS *tls.Config

	// Host reports whether the server is known by a name, which is lower-case and
	// without port or brackets. It always is by the names of the loopback interface
	// where it listens there. nil knows no other.
	Host func(name string) bool

	// Origins are those of web pages that may use the server from a browser, such as
	// "https://desk.example.org", beside the server's own.
	Origins []string

	MaxConnections     int           // 0 means 1024; further ones wait to be accepted
	MaxOpen            int           // requests that are not answered yet; 0 means 1024
	MaxOpenEach        int           // of those of one caller, and of the connections that it keeps; 0 means 256
	MaxInFlight        int           // calls at work at once; 0 means 128, and the others wait
	MaxInFlightEach    int           // of those of one caller; 0 means 64
	MaxSessions        int           // of protocols that have them; 0 means 1024
	MaxSessionsEach    int           // of those of one caller; 0 means 64, and a new one takes the place of the one longest unused
	SessionTimeout     time.Duration // without a request; 0 means 10 min
	HeaderTime         time.Duration // to send the head of a request; 0 means 10 s
	BodyTime           time.Duration // to send its body; 0 means 30 s
	WriteTime          time.Duration // to take a part of an answer; 0 means 30 s
	IdleTime           time.Duration // between requests of a connection; 0 means 2 min
	MaxBody, MaxHeader int           // bytes; 0 means 256 KiB and 16 KiB
	Grace              time.Duration // for calls at work when told to stop; 0 means 5 s

	Logger *slog.Logger // nil discards; never given a token or a command's text
}

func (o HTTPOptions) withDefaults() HTTPOptions {
	o.Path = cmp.Or(o.Path, "/mcp")
	for n, def := range map[*int]int{&o.MaxConnections: defaultConnections, &o.MaxOpen: defaultOpen, &o.MaxOpenEach: defaultOpenEach,
		&o.MaxInFlight: defaultHTTPInFlight, &o.MaxInFlightEach: defaultInFlightEach, &o.MaxSessions: defaultSessions,
		&o.MaxSessionsEach: defaultSessionsEach, &o.MaxBody: defaultBodyBytes, &o.MaxHeader: defaultHeaderBytes} {
		*n = cmp.Or(max(0, *n), def)
	}
	for d, def := range map[*time.Duration]time.Duration{&o.SessionTimeout: defaultSessionTimeout, &o.HeaderTime: defaultHeaderTime,
		&o.BodyTime: defaultBodyTime, &o.WriteTime: defaultWriteTime, &o.IdleTime: defaultIdleTime, &o.Grace: defaultGrace} {
		*d = cmp.Or(max(0, *d), def)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// ServeHTTP serves MCP over streamable HTTP on a listener, until ctx ends or the
// listener breaks, and returns the error that was the end. It closes the listener.
//
// Clients of protocol 2026-07-28 are served request by request; those of the ones
// before have sessions, which belong to the caller that began them. Nothing is ordered
// between requests: a client that needs one after another waits for the answer. A call
// ends when its client hangs up (2026-07-28) or cancels it (the ones before).
//
// Every request has to name a host that the server is known by, and to come from no
// web page but an allowed one, so that a page in somebody's browser cannot reach a
// server on their machine by a name of its own (DNS rebinding). Then its bearer token
// has to be admitted (RFC 6750); the calls of the server's CallFunc find who that is by
// CallerOf.
//
// When ctx ends, requests are refused, calls at work have o.Grace to finish and are
// then cancelled, and last the sessions, the connections and the listener are closed.
//
// The server must be served by nothing else, and once.
func ServeHTTP(ctx context.Context, server *mcp.Server, l net.Listener, o HTTPOptions) error {
	defer func() { _ = l.Close() }()
	o = o.withDefaults()
	loopback := isLoopback(l.Addr())
	switch {
	case o.Admit == nil:
		return errors.New("gateway: nothing admits callers")
	case o.TLS == nil && !loopback:
		return fmt.Errorf("gateway: %s is not a loopback address, and is served with TLS only", l.Addr())
	}
	h := newHTTPHandler(server, o, loopback)
	l = netutil.LimitListener(l, o.MaxConnections)
	if o.TLS != nil {
		c := o.TLS.Clone()
		c.MinVersion = max(c.MinVersion, tls.VersionTLS12)
		c.NextProtos = []string{"http/1.1"}
		l = tls.NewListener(l, c)
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: o.HeaderTime, IdleTimeout: o.IdleTime, MaxHeaderBytes: o.MaxHeader,
		// What a stranger sends is not worth a line of somebody's log each.
		ErrorLog: log.New(io.Discard, "", 0)}
	fresh := &freshConns{}
	s.ConnState = func(c net.Conn, state http.ConnState) {
		fresh.note(c, state)
		h.conns.note(c, state)
	}
	s.ConnContext = h.conns.carry
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	select {
	case err := <-served:
		h.stop(0)
		_ = s.Close()
		return err
	case <-ctx.Done():
		h.stop(o.Grace)
		ending, cancel := context.WithTimeout(context.Background(), unwindTime)
		defer cancel()
		fresh.close()
		_ = s.Shutdown(ending) // what does not end by itself is cut off
		_ = s.Close()
		return ctx.Err()
	}
}

// freshConns are connections on which nothing has come yet. Clients open some to have
// them ready, and http.Server.Shutdown would wait for those.
type freshConns struct {
	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool
}

func (f *freshConns) note(c net.Conn, state http.ConnState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case state != http.StateNew:
		delete(f.conns, c)
	case f.closed:
		_ = c.Close()
	default:
		if f.conns == nil {
			f.conns = map[net.Conn]struct{}{}
		}
		f.conns[c] = struct{}{}
	}
}

func (f *freshConns) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for c := range f.conns {
		_ = c.Close() // as a client sees it that comes a moment later
	}
}

func isLoopback(a net.Addr) bool {
	t, ok := a.(*net.TCPAddr)
	return ok && t.IP.IsLoopback()
}

// newHTTPHandler joins the two ways in which the library serves HTTP: it has sessions,
// and can ask a person meanwhile, or it speaks the protocol that has none.
func newHTTPHandler(server *mcp.Server, o HTTPOptions, loopback bool) *httpHandler {
	h := &httpHandler{o: o, loopback: loopback, server: server, callers: map[string]*callerState{}, sessions: map[string]*httpSession{},
		calls: map[*httpCall]struct{}{}, places: make(chan struct{}, o.MaxInFlight), empty: make(chan struct{})}
	h.life, h.end = context.WithCancel(context.Background())
	server.AddReceivingMiddleware(h.middleware)
	library := func(stateless bool) http.Handler {
		handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{
			Stateless: stateless, SessionTimeout: o.SessionTimeout, PropagateRequestCancellation: true, MaxRequestBodyBytes: int64(o.MaxBody),
			DisableLocalhostProtection: true, // ours is stricter, and its own knows no other names
		})
		// This is how the library learns whose a session is, and how a call is found
		// again from the request that the library hands to the handler.
		return auth.RequireBearerToken(tokenOfCall, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(handler)
	}
	h.sessionful, h.stateless = library(false), library(true)
	return h
}

func tokenOfCall(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
	c, ok := ctx.Value(httpCallKey{}).(*httpCall)
	if !ok {
		return nil, auth.ErrInvalidToken
	}
	return &auth.TokenInfo{UserID: c.caller.ID, Extra: map[string]any{httpCallExtra: c}}, nil
}
