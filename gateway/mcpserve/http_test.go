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
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/postern-mail/postern/discovery"
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
	must(t, err)
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

// get asks for /ready.
func (s *httpServer) get(t *testing.T, method, host string) said {
	t.Helper()
	return s.timed(t, "", rawRequest{method: method, path: "/ready", host: host})
}

// Who asks needs no token, learns one word, and costs one look a second however many ask.
func TestReadyIsAskedOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		var fails atomic.Bool
		s := serveWith(t, newPipes(), Server{Gateway: whoAndWhat}, HTTPOptions{Ready: func(ctx context.Context) error {
			asked.Add(1)
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
			}
			if fails.Load() {
				return errors.New("the password is hunter22")
			}
			return nil
		}}, defaultTimes)
		many := func(status int, body string) {
			t.Helper()
			var all sync.WaitGroup
			for range 50 {
				all.Go(func() {
					if a := s.get(t, "GET", ""); a.status != status || a.body != body {
						t.Errorf("%+v, want %d %q", a, status, body)
					}
				})
			}
			all.Wait()
		}
		many(http.StatusOK, "ready\n")
		fails.Store(true)
		many(http.StatusOK, "ready\n") // for less than a second
		if n := asked.Load(); n != 1 {
			t.Errorf("asked %d times, want once", n)
		}
		time.Sleep(readyFor)
		many(http.StatusServiceUnavailable, "unavailable\n")
		many(http.StatusServiceUnavailable, "unavailable\n")
		if n := asked.Load(); n != 2 {
			t.Errorf("asked %d times, want twice", n)
		}
		time.Sleep(readyFor)
		fails.Store(false)
		many(http.StatusOK, "ready\n")
		if a := s.get(t, "HEAD", ""); a.status != http.StatusOK || a.body != "" {
			t.Errorf("%+v", a)
		}
		if log := s.log.String(); strings.Count(log, "readiness has changed") != 2 || strings.Contains(log, "hunter22") {
			t.Errorf("the log is %s", log)
		}
		for method, host := range map[string]string{"POST": "", "GET": "evil.example"} {
			want := map[string]int{"POST": http.StatusMethodNotAllowed, "GET": http.StatusForbidden}[method]
			if a := s.get(t, method, host); a.status != want {
				t.Errorf("%s at %q: %+v, want %d", method, host, a, want)
			}
		}
	})
}

// A store that does not answer is not waited for, and one that answers late is not said to be
// ready by a server that stops meanwhile.
func TestReadyIsBoundedAndEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newBlockingGateway()
		var slow atomic.Bool
		slow.Store(true)
		s := serveWith(t, newPipes(), Server{Gateway: g}, HTTPOptions{Ready: func(ctx context.Context) error {
			if slow.Load() {
				<-ctx.Done()
				return ctx.Err()
			}
			time.Sleep(time.Second)
			return nil
		}}, defaultTimes)
		if a := s.get(t, "GET", ""); a.status != http.StatusServiceUnavailable || a.after != admitTime {
			t.Errorf("%+v", a)
		}
		slow.Store(false)
		time.Sleep(readyFor)
		go s.call(t, "ann", "wait")
		<-g.began
		late := make(chan said, 1)
		go func() { late <- s.get(t, "GET", "") }()
		synctest.Wait()
		stopped := make(chan struct{})
		go func() {
			_ = s.stop() // its error is checked at the end of the test
			close(stopped)
		}()
		synctest.Wait()
		if a := s.call(t, "bob", "now"); a.status != http.StatusServiceUnavailable {
			t.Errorf("a call while it stops: %+v", a)
		}
		for _, a := range []said{<-late, s.get(t, "GET", "")} {
			if a.status != http.StatusServiceUnavailable || a.body != "stopping\n" {
				t.Errorf("%+v", a)
			}
		}
		close(g.release)
		<-stopped
		if _, err := s.pipes.dial(t.Context(), "", ""); !errors.Is(err, net.ErrClosed) {
			t.Errorf("it listens still: %v", err)
		}
	})
}

// Nobody's answer is taken for delivered that did not leave: the client hung up, or
// stopped reading, or the session was ended meanwhile.
func TestNoReceiptForAnAnswerThatDidNotLeave(t *testing.T) {
	const withSession = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"cli","arguments":{"command":"x"},"_meta":{"progressToken":1}}}`
	for _, stateless := range []bool{false, true} {
		for _, how := range []string{"hangs up", "reads nothing", "ends the session"} {
			if stateless && how == "ends the session" {
				continue
			}
			bubble(t, fmt.Sprintf("%s, stateless %v", how, stateless), func(t *testing.T) {
				began, goOn := make(chan struct{}), make(chan struct{})
				var receipts atomic.Int32
				l := newPipes()
				s := serveWith(t, l, Server{Gateway: fakeGateway(func(ctx context.Context, c gateway.Request) gateway.Answer {
					began <- struct{}{}
					if c.Progress != nil {
						c.Progress(1, 2, string(answerMark)) // something is written before the answer
					}
					if how == "ends the session" {
						<-ctx.Done()
					} else {
						<-goOn
					}
					return gateway.Answer{JSON: []byte("short"), Receipts: []func(){func() { receipts.Add(1) }}}
				})}, HTTPOptions{}, defaultTimes)
				head := "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ann\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
				body, session := statelessCall("x"), ""
				if stateless {
					head += "Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: cli\r\n"
				} else {
					session = s.begin(t, "ann")
					head += "Mcp-Protocol-Version: 2025-06-18\r\nMcp-Session-Id: " + session + "\r\n"
					body = withSession
				}
				conn, err := l.dial(t.Context(), "", "")
				must(t, err)
				defer conn.Close()
				must(t, second(fmt.Fprintf(conn, "%sContent-Length: %d\r\n\r\n%s", head, len(body), body)))
				<-began
				got := make(chan []byte, 1)
				switch how {
				case "hangs up":
					_ = conn.Close()
				case "ends the session":
					go func() {
						all, _ := io.ReadAll(conn)
						got <- all
					}()
					if res, _ := s.send(t, "ann", rawRequest{method: "DELETE", header: inSession(session)}); res.StatusCode != http.StatusNoContent {
						t.Fatal(res.Status)
					}
				}
				close(goOn)
				time.Sleep(3 * defaultTimes.write)
				_ = s.stop() // whatever receipt there was to be given has been; its error is checked at the end of the test
				// Where the session ended the answer may have left before that was known.
				if n := receipts.Load(); n > 0 && (how != "ends the session" || n > 1 || !bytes.Contains(<-got, []byte(`"short"`))) {
					t.Errorf("%d receipts", n)
				}
			})
		}
	}
}

// pipes is a listener within the process, so that a server and its clients can share
// the clock of a synctest bubble.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	shut  chan struct{}
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), shut: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.shut:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.shut) })
	return nil
}

func (*pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.shut:
		return nil, net.ErrClosed
	}
}

// said is the answer to one request, and how long it took.
type said struct {
	status int
	header http.Header
	body   string
	after  time.Duration
}

// call sends one call of protocol 2026-07-28.
func (s *httpServer) call(t *testing.T, token, command string) said {
	t.Helper()
	return s.timed(t, token, rawRequest{method: "POST", body: statelessCall(command), header: statelessHeader()})
}

func (s *httpServer) timed(t *testing.T, token string, q rawRequest) said {
	t.Helper()
	start := time.Now()
	res, body := s.send(t, token, q)
	return said{res.StatusCode, res.Header, body, time.Since(start)}
}

// Where who calls cannot be found out, such as while somebody holds the store, each
// request has an answer in bounded time, and none holds a connection on.
func TestAdmissionIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := true
		s := serveWith(t, newPipes(), Server{Gateway: whoAndWhat}, HTTPOptions{MaxConnections: 2, Admit: func(ctx context.Context, token string) (Caller, error) {
			if held {
				select {
				case <-ctx.Done():
					return Caller{}, ctx.Err()
				case <-time.After(time.Hour):
				}
			}
			return Caller{ID: token, Principal: gateway.Principal{Name: token}}, nil
		}}, defaultTimes)
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				a := s.call(t, "ann", "x")
				if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" || !strings.Contains(a.body, "try again") || a.after != admitTime {
					t.Errorf("after %s: %d, Retry-After %q: %s", a.after, a.status, a.header.Get("Retry-After"), a.body)
				}
			})
		}
		wg.Wait()
		held = false
		if a := s.call(t, "ann", "x"); a.status != 200 || !strings.Contains(a.body, "ann: x") || a.after != 0 {
			t.Errorf("afterwards: after %s: %d %s", a.after, a.status, a.body)
		}
	})
}

// A call that stood aside while it waited answers within its own time, also when its
// caller's other calls have taken all the places meanwhile and keep them.
func TestACallThatFindsNoPlaceAgainAnswersInItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told, release := make(chan struct{}), make(chan struct{})
		type none struct{}
		spec := func(path string) discovery.Spec {
			return discovery.Spec{Path: path, Summary: "Wait or hold", Effect: discovery.State, Timeout: 300, Examples: []string{path}}
		}
		wentOn := 0
		g := newGateway(t, gateway.Options{},
			discovery.New(spec("wait"), func(ctx context.Context, call *discovery.Call, _ *none) (*none, error) {
				err := call.Aside(ctx, func(ctx context.Context) error {
					select {
					case <-told:
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				})
				if err == nil {
					wentOn++
				}
				return &none{}, err
			}),
			discovery.New(spec("hold"), func(ctx context.Context, _ *discovery.Call, _ *none) (*none, error) {
				select {
				case <-release:
				case <-ctx.Done():
				}
				return &none{}, ctx.Err()
			}))
		s := serveWith(t, newPipes(), Server{Gateway: g}, HTTPOptions{MaxCalls: 1}, defaultTimes)
		answers := map[string]chan said{}
		send := func(name, command string) {
			answers[name] = make(chan said, 1)
			go func() { answers[name] <- s.call(t, "ann", command) }()
			synctest.Wait() // it waits for something now
		}
		send("first", "wait --timeout 20")
		send("second", "wait --timeout 20") // has its place while the first stands aside
		send("hold", "hold")
		close(told)
		for _, name := range []string{"first", "second"} {
			a := <-answers[name]
			if a.after != 20*time.Second || a.status != 200 || !strings.Contains(a.body, "TIMEOUT") || !strings.Contains(a.body, "too many other calls were at work") {
				t.Errorf("%s: after %s: %d %s", name, a.after, a.status, a.body)
			}
		}
		if wentOn != 0 {
			t.Errorf("%d went on without a place", wentOn)
		}
		close(release)
		if a := <-answers["hold"]; !strings.Contains(a.body, `\"success\":true`) {
			t.Errorf("who had the place: %s", a.body)
		}
		// Nothing of the places is lost.
		for range 3 {
			if a := s.call(t, "ann", "wait"); a.after != 0 || !strings.Contains(a.body, `\"success\":true`) {
				t.Errorf("afterwards: after %s: %s", a.after, a.body)
			}
		}
		if wentOn != 3 {
			t.Errorf("%d went on", wentOn)
		}
	})
}
