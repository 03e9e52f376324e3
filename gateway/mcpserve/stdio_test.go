package mcpserve

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/internal/testmain"
)

const (
	initializeLine  = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`
	initializedLine = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

func callLine(id any, command string) string {
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": "tools/call",
		"params": map[string]any{"name": "cli", "arguments": map[string]any{"command": command}}})
	if err != nil {
		panic(err)
	}
	return string(line)
}

func cancelLine(id any) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%v,"reason":"enough"}}`, id)
}

// bubble runs a part of a test in a synctest bubble.
func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// A session is Server.Stdio between two pipes inside a synctest bubble. Its output is
// collected; every test ends with the session's goroutines gone, or the bubble
// reports a deadlock.
type session struct {
	t      *testing.T
	in     *io.PipeWriter
	stop   context.CancelFunc
	result chan error
	over   bool // its result was read

	mu    sync.Mutex
	lines []string
}

func startSession(t *testing.T, g Gateway, o Server) *session {
	t.Helper()
	o.Gateway, o.Principal = g, gateway.Principal{Name: "agent"}
	ctx, cancel := context.WithCancel(context.Background()) // that of t ends before what is cleaned up
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	s := &session{t: t, in: inW, stop: cancel, result: make(chan error, 1)}
	go func() { s.result <- o.Stdio(ctx, inR, outW) }()
	t.Cleanup(func() {
		if !s.over {
			s.finish()
		}
		cancel()
	})
	go func() {
		for r := bufio.NewReader(outR); ; {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			s.mu.Lock()
			s.lines = append(s.lines, strings.TrimSuffix(line, "\n"))
			s.mu.Unlock()
		}
	}()
	return s
}

// startConn starts a session whose connection a test looks into.
func startConn(t *testing.T, out io.WriteCloser, server Server) (in *io.PipeWriter, c *stdioConn, session *mcp.ServerSession) {
	t.Helper()
	inR, inW := io.Pipe()
	c = newStdioConn(inR, out, &server)
	session, err := server.library().Connect(t.Context(), c, nil)
	must(t, err)
	go c.readLines()
	return inW, c, session
}

func startInitialized(t *testing.T, g Gateway, o Server) *session {
	t.Helper()
	s := startSession(t, g, o)
	s.send(initializeLine, initializedLine)
	if got := s.take(); len(got) != 1 || !strings.Contains(got[0], `"protocolVersion":"2025-06-18"`) {
		t.Fatalf("initialize: %q", got)
	}
	return s
}

// send writes lines and returns when they have been read.
func (s *session) send(lines ...string) {
	for _, l := range lines {
		_, _ = io.WriteString(s.in, l+"\n")
	}
}

// take returns what was written since the last take, once nothing moves any more.
func (s *session) take() []string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := s.lines
	s.lines = nil
	return lines
}

// one is take for exactly one line.
func (s *session) one() string {
	s.t.Helper()
	lines := s.take()
	if len(lines) != 1 {
		s.t.Fatalf("got %d lines, want 1: %.300q", len(lines), lines)
	}
	return lines[0]
}

// finish ends the input and waits for the end of the session, as the end of the test does.
func (s *session) finish() {
	s.t.Helper()
	_ = s.in.Close()
	must(s.t, s.wait())
}

// wait returns what Stdio returned.
func (s *session) wait() error {
	s.over = true
	return <-s.result
}

var echo = fakeGateway(func(_ context.Context, r gateway.Request) gateway.Answer {
	return gateway.Answer{JSON: []byte(r.Line)}
})

func TestMalformedLinesAreAnsweredAndTheSessionGoesOn(t *testing.T) {
	cases := map[string]struct{ line, want string }{
		"too long":          {`{"jsonrpc":"2.0","id":7,"method":"` + strings.Repeat("x", maxLine) + `"}`, `null|-32600`},
		"second initialize": {strings.Replace(initializeLine, `"id":0`, `"id":7`, 1), `7|-32600`},
		"longest line":      {padded(maxLine), `7|result`},
		"a byte too long":   {padded(maxLine + 1), `null|-32600`},
	}
	for i, c := range testmain.Table[struct{ Want, Line string }](t, "testdata/cases/malformed.txt") {
		cases[fmt.Sprint("malformed ", i+1)] = struct{ line, want string }{c.Line, c.Want}
	}
	for _, line := range readLines(t, "lines.txt") {
		want, line, _ := strings.Cut(line, " ")
		cases[line] = struct{ line, want string }{line, strings.TrimPrefix(want, "none")}
	}
	if len(cases) != 64 {
		t.Errorf("%d lines", len(cases))
	}
	for name, c := range cases {
		bubble(t, name, func(t *testing.T) {
			s := startInitialized(t, echo, Server{})
			s.send(c.line)
			got := s.take()
			if c.want == "" {
				if len(got) != 0 {
					t.Errorf("answered with %.300q", got)
				}
			} else if len(got) != 1 || summary(t, got[0]) != c.want {
				t.Errorf("got %.300q, want %s", got, c.want)
			}
			s.send(callLine(8, "still here"))
			if got := s.one(); !strings.Contains(got, `"id":8`) || !strings.Contains(got, "still here") {
				t.Errorf("the session did not go on: %.300q", got)
			}
		})
	}
}

// readLines reads the lines of a file in testdata that are no comments.
func readLines(t *testing.T, file string) []string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + file)
	must(t, err)
	return slices.DeleteFunc(strings.Split(string(b), "\n"), func(l string) bool { return l == "" || strings.HasPrefix(l, "#") })
}

// padded is a ping of so many bytes.
func padded(length int) string {
	const head, tail = `{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":"`, `"}}`
	return head + strings.Repeat("x", length-len(head)-len(tail)) + tail
}

// summary is id|code or id|result of an answer.
func summary(t *testing.T, line string) string {
	t.Helper()
	var m struct {
		Version string `json:"jsonrpc"`
		ID      json.RawMessage
		Result  json.RawMessage
		Error   *struct {
			Code    int
			Message string
		}
	}
	if err := json.Unmarshal([]byte(line), &m); err != nil || m.Version != "2.0" || (m.Error == nil) == (m.Result == nil) {
		t.Fatalf("not an answer: %v: %.300q", err, line)
	}
	if m.Error == nil {
		return string(m.ID) + "|result"
	}
	if m.Error.Message == "" || len(m.Error.Message) > 1000 {
		t.Errorf("message of %d bytes", len(m.Error.Message))
	}
	return fmt.Sprintf("%s|%d", m.ID, m.Error.Code)
}

// wantSummary takes one line and compares its summary.
func (s *session) wantSummary(want string) {
	s.t.Helper()
	if got := s.one(); summary(s.t, got) != want {
		s.t.Errorf("got %.300s, want %s", got, want)
	}
}

func TestIdsComeBackAsTheyWere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startInitialized(t, echo, Server{})
		for _, id := range []string{`1`, `-1`, `9223372036854775807`, `9007199254740993`, `123456789012345678901234567890`, `1.5`, `1e3`,
			`""`, `"a"`, `"\u0061\u003c"`, `"日本"`, `"1"`} {
			s.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`)
			if got, want := s.one(), `{"jsonrpc":"2.0","id":`+id+`,"result":{}}`; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	})
}

func TestAnIdInUseIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newBlockingGateway()
		s := startInitialized(t, g, Server{})
		s.send(callLine(1, "first"), strings.Replace(callLine(1, "second"), `"id":1`, `"id":1.0`, 1))
		s.wantSummary("null|-32600")
		close(g.release)
		if got := s.one(); !strings.Contains(got, "first") {
			t.Errorf("got %s", got)
		}
		s.send(callLine(1, "again"))
		if got := s.one(); !strings.Contains(got, "again") {
			t.Errorf("an id that was answered is not free: %s", got)
		}
	})
}

// An id is the same however it is written.
func TestACancelledCallEndsAtOnceAndIsNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newBlockingGateway()
		s := startInitialized(t, g, Server{})
		s.send(callLine("a", "doomed"), callLine(json.RawMessage("9007199254740993"), "doomed"))
		synctest.Wait()
		s.send(cancelLine(`"\u0061"`), cancelLine(`"\u0061"`), cancelLine("9007199254740993"))
		if got := s.take(); len(got) != 0 || len(g.cancelled) != 2 {
			t.Errorf("answered: %q, %d cancelled", got, len(g.cancelled))
		}
	})
}

func TestInitializeCannotBeCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startSession(t, echo, Server{})
		s.send(initializeLine+"\n"+cancelLine(0), initializedLine)
		s.wantSummary("0|result")
	})
}

// A client that writes without reading costs a bounded amount: answers pile up nowhere.
func TestFloodsAreAnsweredWithBoundedWork(t *testing.T) {
	const most, n = 8, 2000
	for name, line := range map[string]func(id int) string{
		"call":      func(id int) string { return callLine(id, "x") },
		"ping":      func(id int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, id) },
		"unknown":   func(id int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"nope"}`, id) },
		"malformed": func(int) string { return "nope" },
	} {
		bubble(t, name, func(t *testing.T) {
			outR, outW := io.Pipe()
			inW, conn, session := startConn(t, outW, Server{Gateway: echo, MaxInFlight: most, MaxQueued: 100})
			answers := bufio.NewScanner(outR)
			_, _ = io.WriteString(inW, initializeLine+"\n")
			if !answers.Scan() {
				t.Fatal("no answer to initialize")
			}
			before := runtime.NumGoroutine()
			go func() {
				for id := range n {
					_, _ = io.WriteString(inW, line(id+1)+"\n")
				}
				_ = inW.Close()
			}()
			synctest.Wait()
			conn.mu.Lock()
			if conn.frames > 100 || conn.control.running > maxControl || conn.calls.running > most || len(conn.byKey) > 100+maxControl {
				t.Errorf("%d frames wait, %d and %d at work, %d known", conn.frames, conn.control.running, conn.calls.running, len(conn.byKey))
			}
			conn.mu.Unlock()
			if more := runtime.NumGoroutine() - before; more > 3*maxControl {
				t.Errorf("%d goroutines for it", more)
			}
			seen := map[string]bool{}
			lines := 0
			for ; answers.Scan(); lines++ {
				seen[answers.Text()] = true
			}
			if lines != n || name != "malformed" && len(seen) != n {
				t.Errorf("%d answers, %d different, want %d", lines, len(seen), n)
			}
			must(t, session.Wait())
		})
	}
}

func TestQueuedBytesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newBlockingGateway()
		inW, conn, session := startConn(t, nopWriteCloser{io.Discard}, Server{Gateway: g, MaxInFlight: 1})
		if conn.fullBytes != 16<<20 {
			t.Errorf("%d bytes may wait", conn.fullBytes)
		}
		conn.fullBytes = 160_000
		go func() {
			_, _ = io.WriteString(inW, initializeLine+"\n")
			for id := range 40 {
				size := 10_000
				if id == 20 {
					size = 500_000 // more than fits: it goes alone
				}
				_, _ = io.WriteString(inW, callLine(id+1, strings.Repeat("x", size))+"\n")
			}
			_ = inW.Close()
		}()
		synctest.Wait()
		conn.mu.Lock()
		if conn.bytes > conn.fullBytes || conn.frames < 14 {
			t.Errorf("%d bytes wait in %d frames", conn.bytes, conn.frames)
		}
		conn.mu.Unlock()
		close(g.release)
		must(t, session.Wait())
		if n := len(g.began); n != 40 {
			t.Errorf("%d calls ran, want 40", n)
		}
	})
}

func TestAnEndlessLineCostsBoundedMemory(t *testing.T) {
	r := bufio.NewReaderSize(io.MultiReader(io.LimitReader(neverNewline{}, 256<<20), strings.NewReader("\nnext\n")), readBufferLength)
	allocated := testing.Benchmark(func(b *testing.B) {
		if b.N > 1 {
			return
		}
		b.ReportAllocs()
		line, long, err := readLine(r)
		if line != nil || !long || err != nil {
			b.Errorf("got %d bytes, %v, %v", len(line), long, err)
		}
	}).MemBytes
	if allocated > 8*maxLine {
		t.Errorf("%d bytes allocated", allocated)
	}
	if line, long, err := readLine(r); string(line) != "next" || long || err != nil {
		t.Errorf("after it: %q, %v, %v", line, long, err)
	}
}

type neverNewline struct{}

func (neverNewline) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestPingAndCancelOvertakeWaitingCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newBlockingGateway()
		s := startInitialized(t, g, Server{MaxInFlight: 2})
		for id := range 1000 {
			s.send(callLine(id+1, "x"))
		}
		s.send(`{"jsonrpc":"2.0","id":"p","method":"ping"}`, `{"jsonrpc":"2.0","id":"l","method":"tools/list"}`)
		got := s.take()
		if len(got) != 2 {
			t.Fatalf("got %d answers while calls wait, want those to ping and tools/list", len(got))
		}
		s.send(cancelLine(1))
		synctest.Wait()
		if len(g.cancelled) != 1 {
			t.Error("a cancellation waits behind calls")
		}
		close(g.release)
		if got := s.take(); len(got) != 999 {
			t.Errorf("%d answers, want 999", len(got))
		}
	})
}

type nopWriteCloser struct{ io.Writer }

func (nopWriteCloser) Close() error { return nil }

// brokenPipe fails every write after the first so many, as a client that went away
// makes them fail.
type brokenPipe struct{ left atomic.Int32 }

func (b *brokenPipe) Write(p []byte) (int, error) {
	if b.left.Add(-1) < 0 {
		return 0, syscall.EPIPE
	}
	return len(p), nil
}

func (*brokenPipe) Close() error { return nil }

func TestABrokenOutputEndsTheSession(t *testing.T) {
	for name, stubborn := range map[string]bool{"calls that stop": false, "a call that ignores its context": true} {
		bubble(t, name, func(t *testing.T) {
			g, release := newBlockingGateway(), make(chan struct{})
			var receipts []string
			fake := fakeGateway(func(ctx context.Context, c gateway.Request) gateway.Answer {
				if stubborn && c.Line == "slow" {
					<-release
				}
				a := g.Do(ctx, c)
				a.Receipts = []func(){func() { receipts = append(receipts, c.Line) }}
				return a
			})
			out := &brokenPipe{}
			out.left.Store(2) // the answer to initialize, and one more
			inR, inW := io.Pipe()
			result := make(chan error, 1)
			go func() { result <- (&Server{Gateway: fake}).Stdio(t.Context(), inR, out) }()
			for i, line := range []string{initializeLine, callLine(1, "slow"), callLine(2, "now"), callLine(3, "now")} {
				_, _ = io.WriteString(inW, line+"\n")
				if i < 3 {
					synctest.Wait()
				}
			}
			if err := <-result; !errors.Is(err, syscall.EPIPE) {
				t.Errorf("got %v, want EPIPE", err)
			}
			close(release)
			synctest.Wait()
			if len(g.cancelled) != 1 || !slices.Equal(receipts, []string{"now"}) {
				t.Errorf("%d calls cancelled, receipts for %q", len(g.cancelled), receipts)
			}
		})
	}
}

func TestRealPipes(t *testing.T) {
	errAny := errors.New("any error") // systems name it differently
	pipe := func() (r, w *os.File) {
		r, w, err := os.Pipe()
		must(t, err)
		t.Cleanup(func() { _, _ = r.Close(), w.Close() })
		return r, w
	}
	for name, c := range map[string]struct {
		end  func(stop func(), in, out *os.File)
		want error
	}{
		"end of input":         {func(_ func(), in, _ *os.File) { _ = in.Close() }, nil},
		"stop while it reads":  {func(stop func(), _, _ *os.File) { stop() }, context.Canceled},
		"client stops reading": {func(_ func(), in, out *os.File) { _ = out.Close(); _, _ = io.WriteString(in, callLine(1, "x")+"\n") }, errAny},
	} {
		t.Run(name, func(t *testing.T) {
			inR, inW := pipe()
			outR, outW := pipe()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			result := make(chan error, 1)
			go func() { result <- (&Server{Gateway: echo}).Stdio(ctx, inR, outW) }()
			_, _ = io.WriteString(inW, initializeLine+"\n")
			if line, err := bufio.NewReader(outR).ReadString('\n'); err != nil || summary(t, line) != "0|result" {
				t.Fatalf("%q, %v", line, err)
			}
			c.end(stop, inW, outR)
			if err := <-result; !errors.Is(err, c.want) && (c.want != errAny || err == nil) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

func TestAnOutputThatNobodyReadsDoesNotKeepTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		inR, inW := io.Pipe()
		_, outW := io.Pipe()
		result := make(chan error, 1)
		go func() { result <- (&Server{Gateway: echo}).Stdio(ctx, inR, outW) }()
		_, _ = io.WriteString(inW, initializeLine+"\n")
		synctest.Wait()
		stop()
		if err := <-result; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

func TestABrokenInputIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("cable pulled")
		s := startInitialized(t, echo, Server{})
		_ = s.in.CloseWithError(broken)
		if err := s.wait(); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
		s.stop()
	})
}

// Each notification carries the token of its call and more than the one before, whatever
// the command counts.
func TestProgressGoesToWhoAskedUntilCancelled(t *testing.T) {
	for name, token := range map[string]string{"string": `"t"`, "number": `7`} {
		bubble(t, name, func(t *testing.T) {
			s := startInitialized(t, fakeGateway(func(ctx context.Context, c gateway.Request) gateway.Answer {
				if c.Progress == nil {
					return gateway.Answer{JSON: []byte("silent")}
				}
				c.Progress(1, 3, "one of three")
				c.Progress(2, 0, "")
				c.Progress(2, 0, "as many")
				c.Progress(1, 2, "fewer")
				if c.Line == "forever" {
					<-ctx.Done()
					c.Progress(3, 3, "too late")
				}
				return gateway.Answer{JSON: []byte("done")}
			}), Server{})
			s.send(callLine(1, "x"))
			if got := s.one(); !strings.Contains(got, "silent") {
				t.Errorf("not asked: %s", got)
			}
			ask := func(id int, command string) string {
				return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"cli","arguments":{"command":%q},"_meta":{"progressToken":%s}}}`, id, command, token)
			}
			var want []string
			for _, told := range []string{`"message":"one of three","progress":1,"total":3`, `"progress":2`, `"message":"as many","progress":2.001`, `"message":"fewer","progress":2.002`} {
				want = append(want, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`+token+`,`+told+`}}`)
			}
			want = append(want, `{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"done"}],"isError":false}}`)
			s.send(ask(2, "x"))
			if got := s.take(); strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			s.send(ask(3, "forever"))
			if got := s.take(); strings.Join(got, "\n") != strings.Join(want[:4], "\n") {
				t.Errorf("got %q", got)
			}
			s.send(cancelLine(3))
			if got := s.take(); len(got) != 0 {
				t.Errorf("after the cancellation: %q", got)
			}
		})
	}
}

func modernLine(id int, command string) string {
	return strings.Replace(callLine(id, command), `"params":{`, `"params":{`+modern+`,`, 1)
}

// startStore is startInitialized with a fakeStore behind the gateway.
func startStore(t *testing.T, o gateway.Options, server Server) (*fakeStore, *session) {
	t.Helper()
	l, g := newFakeStore(t, o)
	return l, startInitialized(t, g, server)
}

func numbers(from, to, step int) []int {
	var list []int
	for n := from; n < to; n += step {
		list = append(list, n)
	}
	return list
}

func TestAHundredInFlightTakeEffectInTheOrderOfTheirFrames(t *testing.T) {
	for era, line := range map[string]func(int, string) string{
		"initialized": func(id int, command string) string { return callLine(id, command) },
		"stateless":   modernLine,
	} {
		for _, inFlight := range []int{1, 2, 64} {
			t.Run(fmt.Sprint(era, " ", inFlight), func(t *testing.T) {
				for range testmain.Rounds(3, 20) { // each of them in another order
					synctest.Test(t, func(t *testing.T) {
						l, g := newFakeStore(t, gateway.Options{})
						s := startSession(t, g, Server{MaxInFlight: inFlight})
						if era == "initialized" {
							s.send(initializeLine, initializedLine)
							s.take()
						}
						for n := range 100 {
							s.send(line(n, hundredth(n)))
						}
						s.finish()
						l.checkHundred(t, answers(t, s.take()))
					})
				}
			})
		}
	}
}

func TestAWaitInVainSaysThatNothingWasDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := startStore(t, gateway.Options{}, Server{})
		l.hold(1)
		start := time.Now()
		s.send(callLine(1, "do write --n 1 --timeout 30"), callLine(2, "do write --n 2 --timeout 7"), callLine(3, "do read --n 3 --timeout 5"), callLine(4, "do write --n 4 --timeout 300"))
		s.take()
		for _, c := range []struct{ id, after int }{{3, 5}, {2, 7}} {
			time.Sleep(time.Until(start.Add(time.Duration(c.after) * time.Second)))
			a := answers(t, s.take())[c.id]
			if a.Error.Code != discovery.Timeout || !strings.Contains(a.Error.Message, fmt.Sprintf("did not start within %ds", c.after)) || !strings.Contains(a.Error.Message, "Nothing was done") {
				t.Errorf("%d after %s: %+v", c.id, time.Since(start), a)
			}
		}
		l.mu.Lock()
		audit := slices.Clone(l.audit)
		l.mu.Unlock()
		if len(audit) != 2 {
			t.Errorf("%d audit entries, want 2", len(audit))
		}
		for _, e := range audit {
			if e.Allowed || e.Reason != "not_started" || e.Code != "TIMEOUT" || e.Parsed == "" || !strings.HasPrefix(e.Command, "do ") {
				t.Errorf("audited as %+v", e)
			}
		}
		time.Sleep(time.Minute) // the first one is over its own time, and makes way
		if got := answers(t, s.take()); len(got) != 2 || !strings.Contains(got[1].Error.Message, "was stopped after 30s") || !got[4].Success {
			t.Errorf("%+v", got)
		}
		if b := l.begun(); b != "write 1, write 4" {
			t.Errorf("begun: %s", b)
		}
	})
}

// changingSettings take all commands away once the store holds a 1.
type changingSettings struct{ store *fakeStore }

func (c *changingSettings) Settings(context.Context, bool) (gateway.Settings, error) {
	s := gateway.Settings{Location: time.FixedZone("", 2*60*60)}
	if slices.Contains(c.store.written(), 1) {
		s.Deny = []string{"do"}
	}
	return s, nil
}

// Behind a change that is at work every other command waits, and is judged in its turn; what
// is no command is answered at once.
func TestTheLineBehindAChange(t *testing.T) {
	var changing changingSettings
	for name, c := range map[string]struct {
		settings      gateway.SettingsSource
		lines         []string // an id and a command, "cancel" and an id, or as they are
		atOnce, after []string // ids and codes of the answers
		written       []int
	}{
		"no commands": {nil, []string{"2 nope", "3 do write 'open", "4 do write --nope", "5 do write --help", "6 do", "7 ", "12 schema do write",
			`{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"cli","arguments":{"COMMAND":"do write"}}}`,
			`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"shell","arguments":{"command":"do write"}}}`,
			`{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{"name":5}}`, `{"jsonrpc":"2.0","id":11,"method":"tools/call"}`},
			[]string{"10 ", "11 ", "12 ", "2 COMMAND_NOT_FOUND", "3 PARSE_ERROR", "4 VALIDATION_ERROR", "5 ", "6 ", "7 COMMAND_NOT_FOUND",
				"8 VALIDATION_ERROR", "9 "}, nil, []int{1}},
		"commands": {nil, []string{"20 do panic", "21 do admin --n 21", "22 do write --n 22", "23 do read"},
			nil, []string{"20 EXECUTION_ERROR", "21 PERMISSION_DENIED", "22 ", "23 "}, []int{1, 22}},
		"beyond the rate": {gateway.FixedSettings{CommandsPerMinute: 2}, []string{"2 do write --n 2", "3 do write --n 3", "4 do write --n 4"},
			nil, []string{"2 ", "3 RATE_LIMITED", "4 RATE_LIMITED"}, []int{1, 2}},
		"taken away meanwhile": {&changing, []string{"2 do write --n 2", "3 do read --n 3"},
			nil, []string{"2 PERMISSION_DENIED", "3 PERMISSION_DENIED"}, []int{1}},
		// Whether these can be bound only a command's own check finds, by the settings of its turn.
		"arguments that depend on the settings": {gateway.FixedSettings{Location: time.FixedZone("", 2*60*60)},
			[]string{"2 do write --n 2 --at 2026-02-02T10:30", "3 do write --n 3 --at 2026-02-02T10:30Z"},
			nil, []string{"2 ", "3 VALIDATION_ERROR"}, []int{1, 2}},
		// One that waits for its turn, one that waits for a place, and the one at work, which
		// does not stop at once.
		"cancelled": {nil, []string{"2 do write --n 2", "3 do write --n 3", "4 do write --n 4", "5 do write --n 5", "6 do write --n 6",
			"cancel 3", "cancel 5", "cancel 1"}, nil, []string{"2 ", "4 ", "6 "}, []int{1, 2, 4, 6}},
	} {
		bubble(t, name, func(t *testing.T) {
			l, g := newFakeStore(t, gateway.Options{Settings: c.settings})
			changing.store = l
			s := startInitialized(t, g, Server{MaxInFlight: 4})
			release := l.hold(1)
			s.send(callLine(1, "do write --n 1 --deaf"))
			synctest.Wait()
			for _, line := range c.lines {
				switch first, rest, _ := strings.Cut(line, " "); {
				case strings.HasPrefix(line, "{"):
					s.send(line)
				case first == "cancel":
					s.send(cancelLine(rest))
				default:
					s.send(callLine(json.RawMessage(first), rest))
				}
			}
			wantCodes(t, s.take(), c.atOnce...)
			if b := l.begun(); b != "write 1" {
				t.Errorf("begun: %s", b)
			}
			release()
			time.Sleep(5 * time.Second) // a refusal by rate comes late
			after := c.after
			if name != "cancelled" {
				after = append([]string{"1 "}, after...)
			}
			wantCodes(t, s.take(), after...)
			if w := l.written(); !slices.Equal(w, c.written) {
				t.Errorf("written: %d, want %d", w, c.written)
			}
			for _, e := range l.audit {
				started := e.Allowed || e.Reason != "not_started" || e.Parsed != "do write"
				if name == "cancelled" && strings.HasSuffix(e.Command, "--n 3") && started {
					t.Errorf("what was cancelled in line is audited as %+v", e)
				}
			}
		})
	}
}

func TestNoTicketIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, g := newFakeStore(t, gateway.Options{})
		inW, conn, session := startConn(t, nopWriteCloser{io.Discard}, Server{Gateway: g, MaxInFlight: 3})
		release := l.hold(1)
		_, _ = io.WriteString(inW, initializeLine+"\n"+callLine(1, "do write --n 1")+"\n")
		for id := 2; id < 300; id += 4 {
			for i, command := range []string{"do write", "do read", "do panic", "nope"} {
				_, _ = io.WriteString(inW, callLine(id+i, command)+"\n")
			}
			_, _ = io.WriteString(inW, cancelLine(id)+"\n"+cancelLine(id+1)+"\n")
		}
		synctest.Wait()
		release()
		_ = inW.Close()
		must(t, session.Wait())
		if n := len(conn.byKey) + conn.frames + conn.bytes + conn.direct.Len(); n != 0 {
			t.Errorf("%d requests, %d frames", len(conn.byKey), conn.frames)
		}
		if a := g.Do(t.Context(), gateway.Request{Line: "do write --timeout 1", Ticket: conn.order.Ticket()}); !a.Success() {
			t.Errorf("somebody is left in line: %s", a.JSON)
		}
	})
}

func TestARequestThatNoTransportKnowsIsRefused(t *testing.T) {
	here, there := mcp.NewInMemoryTransports()
	must(t, second((&Server{Gateway: echo}).library().Connect(t.Context(), there, nil)))
	if _, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), here, nil); err == nil {
		t.Error("it is served")
	}
}
