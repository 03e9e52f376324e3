package mcpserve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/postern-mail/postern/gateway"
)

// A transport is a way in, and the version of the protocol that a client speaks on it.
type transport struct{ name, version string }

var transports = []transport{{"stdio", "2025-06-18"}, {"stdio", "2025-11-25"}, {"stdio", "2026-07-28"},
	{"http", "2025-03-26"}, {"http", "2025-06-18"}, {"http", "2025-11-25"}, {"http", "2026-07-28"}}

// asks reports whether the protocol lets a server ask a person.
func (tr transport) asks() bool { return tr.version >= "2025-06-18" }

// overEveryTransport runs a test over each transport, in a synctest bubble.
func overEveryTransport(t *testing.T, f func(t *testing.T, tr transport)) {
	for _, tr := range transports {
		bubble(t, tr.name+" "+tr.version, func(t *testing.T) { f(t, tr) })
	}
}

// A libraryClient is the library's own client with a server of its own.
type libraryClient struct {
	*mcp.ClientSession
	stop   func() error // tells the server to stop and waits until it has
	hangUp func()       // over stdio: closes the pipes and waits for the server's end
}

// open starts a server and connects a client, which both end with the test.
func (tr transport) open(t *testing.T, server Server, o mcp.ClientOptions) *libraryClient {
	t.Helper()
	server.Name, server.Version = "test", "1"
	if tr.name == "http" {
		limit := server.MaxInFlight
		s := serveWith(t, newPipes(), server, HTTPOptions{MaxCalls: limit}, defaultTimes)
		s.callers["ann"] = Caller{ID: "1", Principal: server.Principal}
		return &libraryClient{ClientSession: s.session(t, "ann", tr.version, &o), stop: s.stop}
	}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Stdio(ctx, inR, outW) }()
	end := sync.OnceValue(func() error { return <-served })
	c, err := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, &o).Connect(t.Context(), &mcp.IOTransport{Reader: outR, Writer: inW}, &mcp.ClientSessionOptions{ProtocolVersion: tr.version})
	must(t, err)
	if got := c.InitializeResult().ProtocolVersion; tr.version < statelessSince && got != tr.version {
		t.Fatalf("the protocol is %s", got)
	}
	v := &libraryClient{c, func() error { cancel(); return end() }, func() { _, _ = inW.Close(), outR.Close(); _ = end() }}
	t.Cleanup(func() { _ = c.Close(); v.hangUp(); cancel() })
	return v
}

// call calls the tool and returns the text of its answer.
func (v *libraryClient) call(ctx context.Context, command string) (string, error) {
	return callTool(ctx, v.ClientSession, command)
}

func TestEveryTransportServes(t *testing.T) {
	overEveryTransport(t, func(t *testing.T, tr transport) {
		told := make(chan string, 1)
		v := tr.open(t, Server{Principal: gateway.Principal{Name: "ann"}, Gateway: fakeGateway(func(ctx context.Context, r gateway.Request) gateway.Answer {
			if r.Progress != nil {
				r.Progress(0, 0, "here")
			}
			return whoAndWhat(ctx, r)
		})}, mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			told <- fmt.Sprint(r.Params.ProgressToken, " ", r.Params.Message)
		}})
		list, err := v.ListTools(t.Context(), nil)
		if err != nil || len(list.Tools) != 1 || list.Tools[0].Name != "cli" {
			t.Fatalf("%+v, %v", list, err)
		}
		wantText(t, v.ClientSession, "mail list", "ann: mail list")
		var refused *jsonrpc.Error
		if _, err := v.ListPrompts(t.Context(), nil); !errors.As(err, &refused) || refused.Code != jsonrpc.CodeMethodNotFound {
			t.Errorf("prompts/list: %v", err)
		}
		params := &mcp.CallToolParams{Name: "cli", Arguments: cli("x")}
		params.SetProgressToken("token")
		must(t, second(v.CallTool(t.Context(), params)))
		if got := <-told; got != "token here" {
			t.Errorf("told of %q", got)
		}
	})
}

func TestAHundredCallsInFlightHaveTheirOwnAnswers(t *testing.T) {
	const atOnce, each = 8, 100
	overEveryTransport(t, func(t *testing.T, tr transport) {
		g := newBlockingGateway()
		v := tr.open(t, Server{Gateway: g, MaxInFlight: atOnce}, mcp.ClientOptions{})
		var wg sync.WaitGroup
		for i := range each {
			wg.Go(func() {
				if got, err := v.call(t.Context(), fmt.Sprint("do ", i)); err != nil || got != fmt.Sprint(": do ", i) {
					t.Errorf("%d: %q, %v", i, got, err)
				}
			})
		}
		synctest.Wait()
		if n := len(g.began); n != atOnce {
			t.Errorf("%d calls are at work at once", n)
		}
		close(g.release)
		wg.Wait()
	})
}

// A call that its client gives up ends, whether the client says so or hangs up; it leaves
// its place, and the session lives on.
func TestACancelledCallEnds(t *testing.T) {
	overEveryTransport(t, func(t *testing.T, tr transport) {
		g := newBlockingGateway()
		v := tr.open(t, Server{Gateway: g, MaxInFlight: 1}, mcp.ClientOptions{})
		for i := range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			gone := make(chan error, 1)
			go func() { gone <- second(v.call(ctx, fmt.Sprint("wait ", i))) }()
			<-g.began
			cancel()
			if err := <-gone; !errors.Is(err, context.Canceled) {
				t.Errorf("the client has %v", err)
			}
			if got := <-g.cancelled; got != fmt.Sprint("wait ", i) {
				t.Error(got)
			}
		}
		wantText(t, v.ClientSession, "now", ": now")
	})
}

func second[T any](_ T, err error) error { return err }

// A gateway answers its own panics; whatever else panics is one error, whose value may be
// what a message says.
func TestAPanicIsOneAnswer(t *testing.T) {
	overEveryTransport(t, func(t *testing.T, tr transport) {
		var log bytes.Buffer
		v := tr.open(t, Server{MaxInFlight: 1, Logger: slog.New(slog.NewTextHandler(&log, nil)), Gateway: fakeGateway(func(ctx context.Context, r gateway.Request) gateway.Answer {
			if r.Line == "panic" {
				panic("a message body")
			}
			return whoAndWhat(ctx, r)
		})}, mcp.ClientOptions{})
		var refused *jsonrpc.Error
		if _, err := v.call(t.Context(), "panic"); !errors.As(err, &refused) || refused.Code != jsonrpc.CodeInternalError || strings.Contains(err.Error(), "message body") || strings.Contains(err.Error(), ".go:") {
			t.Errorf("a panic is %v", err)
		}
		wantText(t, v.ClientSession, "help", ": help")
		_ = v.stop()
		if l := log.String(); !strings.Contains(l, "TestAPanicIsOneAnswer") || strings.Contains(l, "message body") {
			t.Errorf("log: %s", l)
		}
	})
}

// Told to stop, a server lets what is at work finish in its time, and cuts off what does
// not, even if it does not listen. Nobody's answer to an open question is waited for.
func TestStopping(t *testing.T) {
	overEveryTransport(t, func(t *testing.T, tr transport) {
		for _, how := range []string{"finishes", "too slow", "deaf"} {
			g, release := newBlockingGateway(), make(chan struct{})
			v := tr.open(t, Server{Gateway: fakeGateway(func(ctx context.Context, r gateway.Request) gateway.Answer {
				if how == "deaf" {
					<-release
				}
				return g.Do(ctx, r)
			})}, mcp.ClientOptions{})
			answered := make(chan string, 1)
			go func() {
				text, _ := v.call(t.Context(), "wait")
				answered <- text
			}()
			synctest.Wait()
			if how == "finishes" {
				time.AfterFunc(defaultGrace/2, func() { close(g.release) })
			}
			start := time.Now()
			if err := v.stop(); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: ended with %v", how, err)
			}
			took := time.Since(start)
			close(release)
			switch text := <-answered; how {
			case "finishes":
				if took < defaultGrace/2 || took > defaultGrace || text != ": wait" || len(g.cancelled) != 0 {
					t.Errorf("it took %s, answered %q", took, text)
				}
			case "too slow":
				if took < defaultGrace || took > defaultGrace+unwindTime || len(g.cancelled) != 1 {
					t.Errorf("it took %s, %d cancelled", took, len(g.cancelled))
				}
			case "deaf":
				if took > defaultGrace+3*unwindTime {
					t.Errorf("a deaf call: it took %s", took)
				}
			}
		}
	})
}

// A receipt is given for each answer that left, and once.
func TestAReceiptIsGivenWhenTheAnswerHasLeft(t *testing.T) {
	overEveryTransport(t, func(t *testing.T, tr transport) {
		receipts := make(chan string, 100)
		v := tr.open(t, Server{Gateway: fakeGateway(func(ctx context.Context, c gateway.Request) gateway.Answer {
			r := whoAndWhat(ctx, c)
			r.JSON = append(r.JSON, `"isError":`+strings.Repeat(" long", 2000)...)
			if c.Progress != nil {
				c.Progress(1, 2, string(answerMark))
			}
			r.Receipts = []func(){func() { receipts <- c.Line }}
			return r
		})}, mcp.ClientOptions{})
		var wg sync.WaitGroup
		var want, got []string
		for i := range 10 {
			want = append(want, fmt.Sprint("do ", i))
			wg.Go(func() {
				p := &mcp.CallToolParams{Name: "cli", Arguments: cli(fmt.Sprint("do ", i))}
				if i%2 == 0 {
					p.SetProgressToken(i)
				}
				if r, err := v.CallTool(t.Context(), p); err != nil || !strings.HasPrefix(r.Content[0].(*mcp.TextContent).Text, fmt.Sprint(": do ", i)) {
					t.Errorf("%d: %v", i, err)
				}
			})
		}
		wg.Wait()
		for range want {
			got = append(got, <-receipts)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("receipts for %q", got)
		}
		if err := v.stop(); !errors.Is(err, context.Canceled) || len(receipts) > 0 {
			t.Errorf("%d receipts more, %v", len(receipts), err)
		}
	})
}
