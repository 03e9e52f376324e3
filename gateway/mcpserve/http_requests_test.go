package mcpserve

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
)

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
