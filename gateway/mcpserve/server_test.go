package mcpserve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
)

// The tool of 002 section 3.1, compact.
const specifiedTool = `{"name":"cli","description":"Execute CLI command. Run 'help' for available commands.","inputSchema":{"type":"object","properties":{"command":{"type":"string","description":"CLI command string (e.g., 'calendar events --today')"}},"required":["command"]}}`

// modern is the _meta of a request of protocol 2026-07-28.
const modern = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

func TestTheToolIsTheSpecifiedOneByteForByte(t *testing.T) {
	readOnly := strings.TrimSuffix(specifiedTool, "}") + `,"annotations":{"readOnlyHint":true}}`
	for name, c := range map[string]struct {
		o      Server
		params string
		want   string
	}{
		"initialized":           {Server{}, "", specifiedTool},
		"stateless":             {Server{}, `,"params":{` + modern + `}`, specifiedTool},
		"initialized read-only": {Server{ReadOnly: true}, "", readOnly},
		"stateless read-only":   {Server{ReadOnly: true}, `,"params":{` + modern + `}`, readOnly},
	} {
		bubble(t, name, func(t *testing.T) {
			s := startSession(t, echo, c.o)
			if c.params == "" {
				s.send(initializeLine, initializedLine)
				s.take()
			}
			s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"` + c.params + `}`)
			got := s.one()
			if !strings.Contains(got, `"tools":[`+c.want+`]`) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if strings.Contains(got, "nextCursor") {
				t.Errorf("there is more to list: %s", got)
			}
			if len(c.want) > 400 {
				t.Errorf("the tool takes %d bytes", len(c.want))
			}
		})
	}
}

func TestClientsThatInitialize(t *testing.T) {
	for offered, agreed := range map[string]string{
		"2024-11-05": "2024-11-05", "2025-03-26": "2025-03-26", "2025-06-18": "2025-06-18", "2025-11-25": "2025-11-25",
		"2026-07-28": "2025-11-25", "1999-01-01": "2025-11-25",
	} {
		bubble(t, offered, func(t *testing.T) {
			s := startSession(t, echo, Server{Name: "postern", Version: "1.2.3", Instructions: "Mail."})
			s.send(callLine("early", "x"))
			s.wantSummary(`"early"|-32600`)
			s.send(strings.Replace(initializeLine, "2025-06-18", offered, 1))
			want := `{"jsonrpc":"2.0","id":0,"result":{"capabilities":{"tools":{}},"instructions":"Mail.","protocolVersion":"` + agreed +
				`","serverInfo":{"name":"postern","version":"1.2.3"}}}`
			if got := s.one(); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			s.send(initializedLine, callLine(1, "mail list <a@b.c> & 日本"))
			want = `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"mail list <a@b.c> & 日本"}],"isError":false}}`
			if offered == "2026-07-28" { // the library also says what only that protocol has
				want = strings.Replace(want, "false}}", `false,"resultType":"complete"}}`, 1)
			}
			if got := s.one(); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestClientsThatDoNotInitialize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startSession(t, echo, Server{Name: "postern", Version: "1.2.3", Instructions: "Mail."})
		s.send(`{"jsonrpc":"2.0","id":"d","method":"server/discover","params":{` + modern + `}}`)
		var discovered struct {
			Result struct {
				SupportedVersions []string
				Capabilities      json.RawMessage
				Instructions      string
				ResultType        string
				CacheScope        string
			}
		}
		got := s.one()
		must(t, json.Unmarshal([]byte(got), &discovered))
		r := discovered.Result
		if len(r.SupportedVersions) != 5 || r.SupportedVersions[0] != "2026-07-28" || string(r.Capabilities) != `{"tools":{}}` ||
			r.Instructions != "Mail." || r.ResultType != "complete" || r.CacheScope != "private" {
			t.Errorf("got %s", got)
		}
		s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"cli","arguments":{"command":"help"},` + modern + `}}`)
		got = s.one()
		for _, want := range []string{`"content":[{"type":"text","text":"help"}]`, `"isError":false`, `"resultType":"complete"`, `"name":"postern"`} {
			if !strings.Contains(got, want) {
				t.Errorf("no %s in %s", want, got)
			}
		}
		s.send(`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{` + strings.Replace(modern, "2026-07-28", "2099-01-01", 1) + `}}`)
		if got := s.one(); summary(t, got) != "2|-32022" || !strings.Contains(got, `"supported":["2026-07-28"`) {
			t.Errorf("unknown version: %s", got)
		}
		s.send(`{"jsonrpc":"2.0","id":3,"method":"ping","params":{` + modern + `}}`)
		s.wantSummary("3|-32601")
	})
}

func TestOnlyAnExactCommandIsACommand(t *testing.T) {
	lines := readLines(t, "arguments.txt")
	for i := 0; i+1 < len(lines); i += 2 {
		line, fault := commandOf(json.RawMessage(strings.TrimPrefix(lines[i], "< ")))
		if fault == "" {
			fault = strconv.Quote(line)
		}
		if want := strings.TrimPrefix(lines[i+1], "> "); fault != want {
			t.Errorf("%s: %s, want %s", lines[i], fault, want)
		}
	}
	if len(lines) != 42 {
		t.Errorf("%d lines", len(lines))
	}
	synctest.Test(t, func(t *testing.T) {
		s := startInitialized(t, fakeGateway(func(_ context.Context, r gateway.Request) gateway.Answer {
			return gateway.Answer{JSON: []byte(r.Refusal.Message), Code: r.Refusal.Code}
		}), Server{})
		s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"cli"}}`)
		if got := s.one(); !strings.Contains(got, "is missing") || !strings.Contains(got, `"isError":true`) {
			t.Errorf("answered %s", got)
		}
	})
}

func TestAServerThatIsNotSetUpServesNothing(t *testing.T) {
	for name, s := range map[string]Server{"no gateway": {}, "instructions": {Gateway: echo, Instructions: strings.Repeat("x", MaxInstructions+1)}} {
		if err := s.Stdio(t.Context(), io.NopCloser(strings.NewReader("")), nopWriteCloser{io.Discard}); err == nil {
			t.Errorf("%s: served over stdio", name)
		}
		if err := s.HTTP(t.Context(), listen(t), HTTPOptions{}); err == nil {
			t.Errorf("%s: served over HTTP", name)
		}
	}
	s := Server{Gateway: echo, Instructions: strings.Repeat("x", MaxInstructions)}
	must(t, s.Stdio(t.Context(), io.NopCloser(strings.NewReader("")), nopWriteCloser{io.Discard}))
}

func TestNothingOfACommandIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := startInitialized(t, echo, Server{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
		s.send(callLine(1, "--password hunter2"), `{"hunter2":`, `[{"a":"hunter2"}]`, `{"jsonrpc":"2.0","id":"hunter2","method":"hunter2"}`,
			`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hunter2","arguments":"hunter2"}}`,
			`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":["hunter2"]}}`)
		s.take()
		s.finish()
		if strings.Contains(log.String(), "hunter2") || !strings.Contains(log.String(), "the line is not JSON") {
			t.Errorf("log: %s", log.String())
		}
	})
}

// FuzzStdio sends any bytes between a handshake and a last call: every line that
// comes back is a well-formed message, and the last call is answered.
func FuzzStdio(f *testing.F) {
	for _, seed := range []string{"", "\n\n", "nope", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, initializeLine, callLine(1, "x") + "\n" + cancelLine(1),
		`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"cli","arguments":{"command":"x"},` + modern + `}}`,
		`{"jsonrpc":"2.0","id":1e400,"method":"tools/list","params":{"cursor":"x"}}`, "[{}]", "\xff", "{\"id\":\"\x00\"}",
		`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}`} {
		f.Add([]byte(seed))
	}
	server := &Server{Gateway: echo}
	f.Fuzz(func(t *testing.T, between []byte) {
		script := fmt.Appendf(nil, "%s\n%s\n%s\n%s\n", initializeLine, initializedLine, between, callLine("the last one", "last"))
		var out bytes.Buffer
		must(t, server.Stdio(t.Context(), io.NopCloser(bytes.NewReader(script)), nopWriteCloser{&out}))
		last := false
		for line := range bytes.Lines(out.Bytes()) {
			var m struct {
				Version string          `json:"jsonrpc"`
				ID      json.RawMessage `json:"id"`
				Result  json.RawMessage `json:"result"`
				Error   json.RawMessage `json:"error"`
			}
			if err := json.Unmarshal(line, &m); err != nil || m.Version != "2.0" || m.ID == nil || (m.Result == nil) == (m.Error == nil) {
				t.Fatalf("not an answer: %v: %q", err, line)
			}
			last = last || string(m.ID) == `"the last one"`
		}
		if !last && !bytes.Contains(between, []byte("cancelled")) {
			t.Fatalf("the last call has no answer: %q", out.Bytes())
		}
	})
}

// BenchmarkCall is what a call costs besides its command, with 16 in flight, and how much of
// that is the client here.
func BenchmarkCall(b *testing.B) {
	const inFlight = 16
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	server := &Server{Gateway: fakeGateway(func(context.Context, gateway.Request) gateway.Answer { return gateway.Answer{JSON: typicalAnswer} })}
	served := make(chan error, 1)
	go func() { served <- server.Stdio(b.Context(), inR, outW) }()
	go func() { _, _ = io.WriteString(inW, initializeLine+"\n"+initializedLine+"\n") }()
	answers := bufio.NewReaderSize(outR, 1<<20)
	next := func() {
		must(b, second(answers.ReadSlice('\n')))
	}
	next()
	b.ReportAllocs()
	sent := 0
	for b.Loop() {
		sent++
		must(b, second(io.WriteString(inW, callLine(sent, "mail list --limit 3")+"\n")))
		if sent >= inFlight {
			next()
		}
	}
	for range min(sent, inFlight-1) {
		next()
	}
	_ = inW.Close()
	must(b, <-served)
}

var typicalAnswer = []byte(`{"success":true,"data":{"folder":"INBOX","messages":[` + strings.Repeat(`{"id":"imap:work:INBOX:1:50","subject":"About \"this\" mailbox","from":"Help desk <help@example.org>"},`, 20) + `{}]}}`)

// A fakeStore is what the commands of these tests change and show: a list of numbers.
// A command may be held in the middle of its work.
type fakeStore struct {
	mu      sync.Mutex
	entries []int
	running int           // writes
	slowest time.Duration // that a command takes
	holds   map[int]chan struct{}
	started []string // every command that got to run
	audit   []gateway.AuditEntry
	opened  []int    // matters that a person was to be asked about
	heard   []string // each reply that came, as "state verdict by"
}

type numberArgs struct {
	N    int                `json:"n,omitempty" jsonschema_description:"Number"`
	Deaf bool               `json:"deaf,omitempty" jsonschema_description:"Ignore the end of the context"`
	At   discovery.Datetime `json:"at,omitzero" jsonschema_description:"An instant that is right in the zone of the settings alone"`
}

// Validate depends on the zone.
func (a *numberArgs) Validate() error {
	if at := a.At.Time; !at.IsZero() && at.UTC().Hour() == at.Hour() {
		return errors.New("the zone is wrong")
	}
	return nil
}

type numberResult struct {
	Entries []int `json:"entries"`
}

// hold keeps the command with that number until the returned function is called.
func (l *fakeStore) hold(n int) (release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := make(chan struct{})
	l.holds[n] = c
	return sync.OnceFunc(func() { close(c) })
}

func (l *fakeStore) begin(name string, n int) chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.started = append(l.started, fmt.Sprint(name, " ", n))
	return l.holds[n]
}

func (l *fakeStore) run(name string, change bool) func(context.Context, *discovery.Call, *numberArgs) (*numberResult, error) {
	return func(ctx context.Context, _ *discovery.Call, a *numberArgs) (*numberResult, error) {
		hold := l.begin(name, a.N)
		if change {
			l.mu.Lock()
			l.running++
			together := l.running
			l.mu.Unlock()
			defer func() { l.mu.Lock(); l.running--; l.mu.Unlock() }()
			if together > 1 {
				return nil, errors.New("two changes at once")
			}
		}
		switch {
		case hold != nil && a.Deaf:
			<-hold
		case hold != nil:
			select {
			case <-hold:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		case l.slowest > 0:
			time.Sleep(rand.N(l.slowest))
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if change {
			l.entries = append(l.entries, a.N)
		}
		return &numberResult{Entries: slices.Clone(l.entries)}, nil
	}
}

func (l *fakeStore) Record(_ context.Context, e gateway.AuditEntry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.audit = append(l.audit, e)
	return nil
}

func (l *fakeStore) written() []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.entries)
}

// begun tells which commands have got to run.
func (l *fakeStore) begun() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.started, ", ")
}

func newFakeStore(t testing.TB, o gateway.Options) (*fakeStore, *gateway.Gateway) {
	t.Helper()
	l := &fakeStore{slowest: 5 * time.Millisecond, holds: map[int]chan struct{}{}}
	command := func(path string, effect discovery.Effect, run func(context.Context, *discovery.Call, *numberArgs) (*numberResult, error)) *discovery.Command {
		return discovery.New(discovery.Spec{Path: path, Summary: "Run " + path, Effect: effect, Examples: []string{path}}, run)
	}
	o.Auditor = l
	return l, newGateway(t, o, command("do read", discovery.Read, l.run("read", false)),
		command("do state", discovery.State, l.run("state", true)),
		command("do flag", discovery.Flag, l.run("flag", true)),
		command("do write", discovery.Write, l.run("write", true)),
		command("do send", discovery.Send, l.run("send", true)),
		command("do admin", discovery.Admin, l.run("admin", true)),
		command("do ask", discovery.Send, l.ask),
		command("do panic", discovery.Write, func(context.Context, *discovery.Call, *numberArgs) (*numberResult, error) { panic("boom") }))
}

// newGateway has these commands and no limit worth the name.
func newGateway(t testing.TB, o gateway.Options, commands ...*discovery.Command) *gateway.Gateway {
	t.Helper()
	var err error
	if o.Registry, err = discovery.NewRegistry(discovery.Info{Name: "test", Version: "1", Groups: map[string]string{"do": "Do things"}}, commands...); err != nil {
		t.Fatal(err)
	}
	o.Profile = gateway.FullProfile()
	if o.Settings == nil {
		o.Settings = gateway.FixedSettings{CommandsPerMinute: 1 << 30}
	}
	g, err := gateway.New(o)
	must(t, err)
	return g
}

// fakeGateway is a function that answers.
type fakeGateway func(ctx context.Context, r gateway.Request) gateway.Answer

func (f fakeGateway) Do(ctx context.Context, r gateway.Request) gateway.Answer { return f(ctx, r) }

// blockingGateway answers a call when it is released, or when the call is cancelled; the
// command "now" at once.
type blockingGateway struct {
	began, cancelled chan string // command strings
	release          chan struct{}
}

func newBlockingGateway() *blockingGateway {
	return &blockingGateway{began: make(chan string, 2000), cancelled: make(chan string, 2000), release: make(chan struct{})}
}

func (b *blockingGateway) Do(ctx context.Context, r gateway.Request) gateway.Answer {
	if r.Line != "now" {
		b.began <- r.Line
		select {
		case <-b.release:
		case <-ctx.Done():
			b.cancelled <- r.Line
		}
	}
	return whoAndWhat(ctx, r)
}

// ask is a command that needs a person's word.
func (l *fakeStore) ask(ctx context.Context, call *discovery.Call, a *numberArgs) (*numberResult, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	waits := &discovery.Fault{Code: discovery.ApprovalRequired, Message: "The matter waits.", Hint: "See to it."}
	if call.Reply == nil {
		l.opened = append(l.opened, a.N)
		return nil, &discovery.Question{Text: fmt.Sprintf("Matter %d?", a.N), State: fmt.Sprint("m", a.N), Otherwise: waits}
	}
	l.heard = append(l.heard, fmt.Sprintf("%s %d %s", call.Reply.State, call.Reply.Verdict, call.Reply.By))
	switch call.Reply.Verdict {
	case discovery.Accepted:
		return &numberResult{}, ctx.Err()
	case discovery.Declined:
		return nil, &discovery.Fault{Code: discovery.PermissionDenied, Message: "Declined.", Hint: "Leave it.", Reason: "declined"}
	}
	return nil, waits
}

// replies are those that came since the last time.
func (l *fakeStore) replies() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	heard := l.heard
	l.heard = nil
	return heard
}

func (l *fakeStore) wantReplies(t *testing.T, want ...string) {
	t.Helper()
	if heard := l.replies(); !slices.Equal(heard, want) {
		t.Errorf("heard %q, want %q", heard, want)
	}
}

func (l *fakeStore) wantRecords(t *testing.T, want ...string) {
	t.Helper()
	if got := l.records("do ask"); !slices.Equal(got, want) {
		t.Errorf("audited as %q, want %q", got, want)
	}
}

// records are the audit entries of a command, in a line each.
func (l *fakeStore) records(path string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []string
	for _, e := range l.audit {
		if e.Parsed == path {
			list = append(list, fmt.Sprintf("%s %v %s %s", e.Principal, e.Allowed, e.Reason, e.Code))
		}
	}
	return list
}

// checkHundred checks the outcome of a hundred commands in flight of which every
// second, from the first, writes its number.
func (l *fakeStore) checkHundred(t *testing.T, got map[int]storeAnswer) {
	t.Helper()
	if len(got) != 100 {
		t.Errorf("%d answers", len(got))
	}
	if w := l.written(); !slices.Equal(w, numbers(0, 100, 2)) {
		t.Errorf("took effect as %d", w)
	}
	for n, a := range got {
		// A read, like a change, shows every change before it and none after.
		if !a.Success || !slices.Equal(a.Data.Entries, numbers(0, n+1, 2)) {
			t.Errorf("%d: %+v", n, a)
		}
	}
	var audited []string
	for _, e := range l.audit {
		if e.Parsed != "do read" {
			audited = append(audited, e.Command[strings.LastIndexByte(e.Command, ' ')+1:])
		}
	}
	if want := strings.Trim(fmt.Sprint(numbers(0, 100, 2)), "[]"); strings.Join(audited, " ") != want {
		t.Errorf("changes are audited as %s", audited)
	}
}

// hundredth is the n-th command of a hundred.
func hundredth(n int) string {
	if n%2 == 1 {
		return fmt.Sprintf("do read --n %d", n)
	}
	return fmt.Sprintf("do %s --n %d", []string{"state", "flag", "write", "send"}[n/2%4], n)
}

// answers is the envelope of each answer, by the id of its request.
func answers(t *testing.T, lines []string) map[int]storeAnswer {
	t.Helper()
	all := map[int]storeAnswer{}
	for _, line := range lines {
		var m struct {
			ID     int
			Result struct{ Content []struct{ Text string } }
			Error  *struct{ Code int }
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil || len(m.Result.Content) != 1 && m.Error == nil {
			t.Fatalf("%v in %s", err, line)
		}
		var a storeAnswer
		if m.Error != nil {
			a.rpc = m.Error.Code
		} else if err := json.Unmarshal([]byte(m.Result.Content[0].Text), &a); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if _, twice := all[m.ID]; twice {
			t.Errorf("%d is answered twice", m.ID)
		}
		all[m.ID] = a
	}
	return all
}

type storeAnswer struct {
	Success bool
	Data    struct{ Entries []int }
	Error   struct {
		Code          discovery.Code
		Message, Hint string
	}
	rpc int // code of a JSON-RPC error
}

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
