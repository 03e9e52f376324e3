package mcpserve

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/postern-mail/postern/gateway"
)

// A httpServer is Server.HTTP on a loopback address.
type httpServer struct {
	url   string
	addr  string
	pipes *pipes // nil where it listens on a socket
	log   *lockedBuffer
	stop  func() error // tells it to stop and waits until it has

	mu      sync.Mutex
	callers map[string]Caller // by token
}

// lockedBuffer is a log.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// serveOn starts a server whose callers "ann" and "bob" have tokens of their names.
func serveOn(t testing.TB, g Gateway, o HTTPOptions) *httpServer {
	t.Helper()
	return serveWith(t, listen(t), Server{Gateway: g}, o, defaultTimes)
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	return l
}

// serveWith is serveOn with everything that a server can be given.
func serveWith(t testing.TB, l net.Listener, server Server, o HTTPOptions, times httpTimes) *httpServer {
	t.Helper()
	s := &httpServer{addr: l.Addr().String(), log: &lockedBuffer{}, callers: map[string]Caller{}}
	s.url = "http://" + s.addr + "/mcp"
	s.pipes, _ = l.(*pipes)
	if o.TLS != nil {
		s.url = "https://" + s.addr + "/mcp"
	}
	for _, name := range []string{"ann", "bob"} {
		s.callers[name] = Caller{ID: "id of " + name, Principal: gateway.Principal{Name: name}}
	}
	if o.Admit == nil {
		o.Admit = s.admit
	}
	server.Name, server.Version = "test", "1"
	if server.Logger == nil {
		server.Logger = slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- server.serveHTTP(ctx, l, o, times)
	}()
	s.stop = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() {
		if err := s.stop(); !errors.Is(err, context.Canceled) {
			t.Errorf("the server ended with %v", err)
		}
	})
	return s
}

func (s *httpServer) admit(_ context.Context, token string) (Caller, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := s.callers[token]; ok {
		return c, nil
	}
	return Caller{}, ErrNotAdmitted
}

// revoke ends a token.
func (s *httpServer) revoke(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.callers, token)
}

// bearing is a client that sends a token.
func bearing(token string) *http.Client {
	return &http.Client{Transport: withToken{token, &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxIdleConnsPerHost: 200}}}
}

// client is one that sends a token to this server.
func (s *httpServer) client(token string) *http.Client {
	c := bearing(token)
	if s.pipes != nil {
		c.Transport.(withToken).DialContext = s.pipes.dial
	}
	return c
}

type withToken struct {
	token string
	*http.Transport
}

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if r.Header.Get("Authorization") == "" && w.token != "" {
		r.Header.Set("Authorization", "Bearer "+w.token)
	}
	return w.Transport.RoundTrip(r)
}

// session connects the library's client in an era.
func (s *httpServer) session(t testing.TB, token, era string, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	c, err := s.connect(t.Context(), token, era, o)
	must(t, err)
	if got := c.InitializeResult().ProtocolVersion; era < statelessSince && got != era {
		t.Fatalf("the protocol is %s", got)
	}
	if sessions := c.ID() != ""; sessions != (era < statelessSince) {
		t.Fatalf("%s has a session: %v", era, sessions)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func (s *httpServer) connect(ctx context.Context, token, era string, o *mcp.ClientOptions) (*mcp.ClientSession, error) {
	return mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, o).Connect(ctx,
		&mcp.StreamableClientTransport{Endpoint: s.url, HTTPClient: s.client(token), MaxRetries: -1}, &mcp.ClientSessionOptions{ProtocolVersion: era})
}

// callTool calls the tool and returns the text of its answer.
func callTool(ctx context.Context, c *mcp.ClientSession, command string) (string, error) {
	r, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "cli", Arguments: cli(command)})
	if err != nil {
		return "", err
	}
	if len(r.Content) != 1 {
		return "", fmt.Errorf("%d contents", len(r.Content))
	}
	return r.Content[0].(*mcp.TextContent).Text, nil
}

func wantText(t testing.TB, c *mcp.ClientSession, command, want string) {
	t.Helper()
	if got, err := callTool(t.Context(), c, command); err != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

// whoAndWhat answers with who called and what.
var whoAndWhat = fakeGateway(func(_ context.Context, r gateway.Request) gateway.Answer {
	return gateway.Answer{JSON: []byte(r.Principal.Name + ": " + r.Line)}
})

// A rawRequest is sent as it is, without the library.
type rawRequest struct {
	method, body string
	header       http.Header
	host, path   string
	chunked      bool
}

const initializing = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`

// A stateless call and its header.
func statelessCall(command string) string { return modernLine(1, command) }

func statelessHeader() http.Header {
	return http.Header{versionHeader: {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"cli"}}
}

// send returns the answer, whose body has been read.
func (s *httpServer) send(t testing.TB, token string, q rawRequest) (*http.Response, string) {
	t.Helper()
	client := s.client(token)
	defer client.CloseIdleConnections()
	res, err := s.do(t, client, q)
	if err != nil {
		t.Error(err)
		return &http.Response{}, ""
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return res, string(b)
}

// do returns the answer as it comes.
func (s *httpServer) do(t testing.TB, client *http.Client, q rawRequest) (*http.Response, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), q.method, strings.TrimSuffix(s.url, "/mcp")+cmp.Or(q.path, "/mcp"), strings.NewReader(q.body))
	must(t, err)
	r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	for name, values := range q.header {
		r.Header[http.CanonicalHeaderKey(name)] = values
	}
	r.Host = q.host
	if q.chunked {
		r.ContentLength = -1
	}
	return client.Do(r)
}

// dial opens a connection that gives up after a minute and ends with the test.
func (s *httpServer) dial(t testing.TB) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err == nil {
		t.Cleanup(func() { _ = conn.Close() })
		err = conn.SetDeadline(time.Now().Add(time.Minute))
	}
	must(t, err)
	return conn.(*net.TCPConn)
}

// begin starts a session by hand and returns its ID.
func (s *httpServer) begin(t testing.TB, token string) string {
	t.Helper()
	res, body := s.send(t, token, rawRequest{method: "POST", body: initializing})
	id := res.Header.Get(sessionHeader)
	if res.StatusCode != http.StatusOK || id == "" {
		t.Fatalf("%s: %s", res.Status, body)
	}
	return id
}

// ping is a request of a session, which answers 200.
func (s *httpServer) ping(t testing.TB, token, session string) int {
	t.Helper()
	res, _ := s.send(t, token, rawRequest{method: "POST", body: `{"jsonrpc":"2.0","id":2,"method":"ping"}`, header: inSession(session)})
	return res.StatusCode
}

func inSession(id string) http.Header {
	return http.Header{sessionHeader: {id}, versionHeader: {"2025-06-18"}}
}

func TestPlaintextIsForThisMachine(t *testing.T) {
	l, err := net.Listen("tcp", "0.0.0.0:0")
	must(t, err)
	o := HTTPOptions{Admit: func(context.Context, string) (Caller, error) { return Caller{ID: "x"}, nil }}
	err = (&Server{Gateway: whoAndWhat}).HTTP(t.Context(), l, o)
	if err == nil || !strings.Contains(err.Error(), "TLS") {
		t.Errorf("served: %v", err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the listener is open: %v", err)
	}
	l, err = net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	if err := (&Server{Gateway: whoAndWhat}).HTTP(t.Context(), l, HTTPOptions{}); err == nil || !strings.Contains(err.Error(), "admits") {
		t.Errorf("served without anybody to admit callers: %v", err)
	}
}
