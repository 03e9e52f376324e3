package mcpserve

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/postern-mail/postern/gateway"
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

func wantNoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
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
	if err := s.wait(); err != nil {
		s.t.Error(err)
	}
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
		"invalid UTF-8":     {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\xff\"}", `null|-32700`},
		"NUL":               {"{\"jsonrpc\":\"2.0\",\"id\":1,\x00\"method\":\"ping\"}", `null|-32700`},
		"NUL in a string":   {"{\"jsonrpc\":\"2.0\",\"id\":\"a\x00\",\"method\":\"ping\"}", `null|-32700`},
		"byte order mark":   {"\ufeff" + `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `null|-32700`},
		"empty batch":       {` []`, `null|-32600`},
		"wrong version":     {`{"jsonrpc":"1.0","id":"x","method":"ping"}`, `"x"|-32600`},
		"too long":          {`{"jsonrpc":"2.0","id":7,"method":"` + strings.Repeat("x", maxLine) + `"}`, `null|-32600`},
		"deeply nested":     {strings.Repeat("[", 200_000) + strings.Repeat("]", 200_000), `null|-32700`},
		"deep params":       {`{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"a":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}}`, `7|-32602`},
		"second initialize": {strings.Replace(initializeLine, `"id":0`, `"id":7`, 1), `7|-32600`},
		"blank":             {"", ""},
		"blanks":            {" \t \r", ""},
		"CRLF":              {`{"jsonrpc":"2.0","id":7,"method":"ping"}` + "\r", `7|result`},
		"space around":      {" \t{ \"jsonrpc\" : \"2.0\" , \"id\" : 7 , \"method\" : \"ping\" } ", `7|result`},
		"longest line":      {padded(maxLine), `7|result`},
		"long tool name":    {`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"` + strings.Repeat("x", 100_000) + `"}}`, `7|-32602`},
		"a byte too long":   {padded(maxLine + 1), `null|-32600`},
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
