package mcpserve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

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
