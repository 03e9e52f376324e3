package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The tool of 002 section 3.1, compact.
const specifiedTool = `{"name":"cli","description":"Execute CLI command. Run 'help' for available commands.","inputSchema":{"type":"object","properties":{"command":{"type":"string","description":"CLI command string (e.g., 'calendar events --today')"}},"required":["command"]}}`

// modern is the _meta of a request of protocol 2026-07-28.
const modern = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

func TestTheToolIsTheSpecifiedOneByteForByte(t *testing.T) {
	readOnly := strings.TrimSuffix(specifiedTool, "}") + `,"annotations":{"readOnlyHint":true}}`
	for name, c := range map[string]struct {
		o      MCPOptions
		params string
		want   string
	}{
		"initialized":           {MCPOptions{}, "", specifiedTool},
		"stateless":             {MCPOptions{}, `,"params":{` + modern + `}`, specifiedTool},
		"initialized read-only": {MCPOptions{ReadOnly: true}, "", readOnly},
		"stateless read-only":   {MCPOptions{ReadOnly: true}, `,"params":{` + modern + `}`, readOnly},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
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
				if err := s.finish(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestClientsThatInitialize(t *testing.T) {
	for offered, agreed := range map[string]string{
		"2024-11-05": "2024-11-05", "2025-03-26": "2025-03-26", "2025-06-18": "2025-06-18", "2025-11-25": "2025-11-25",
		"2026-07-28": "2025-11-25", "1999-01-01": "2025-11-25",
	} {
		t.Run(offered, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := startSession(t, echo, MCPOptions{Name: "postern", Version: "1.2.3", Instructions: "Mail."})
				s.send(callLine("early", "x"))
				if got := s.one(); summary(t, got) != `"early"|-32600` {
					t.Errorf("before initialize: %s", got)
				}
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
				if err := s.finish(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestClientsThatDoNotInitialize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startSession(t, echo, MCPOptions{Name: "postern", Version: "1.2.3", Instructions: "Mail."})
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
		if err := json.Unmarshal([]byte(got), &discovered); err != nil {
			t.Fatal(err)
		}
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
		if got := s.one(); summary(t, got) != "3|-32601" {
			t.Errorf("ping is gone from this protocol: %s", got)
		}
		if err := s.finish(); err != nil {
			t.Error(err)
		}
	})
}

func TestMethodsOfOtherCapabilitiesAreNotFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startInitialized(t, echo, MCPOptions{})
		for _, params := range []string{"", `,"params":{"uri":"file:///x","name":"x","level":"debug","ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"a","value":"b"}}`,
			`,"params":{"notifications":{"toolsListChanged":true},` + modern + `}`} {
			for i, method := range []string{"resources/list", "resources/read", "resources/templates/list", "resources/subscribe", "resources/unsubscribe",
				"prompts/list", "prompts/get", "logging/setLevel", "completion/complete", "subscriptions/listen", "tasks/list", "nope", ""} {
				s.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q%s}`, i, method, params))
				if got := s.one(); summary(t, got) != fmt.Sprintf("%d|-32601", i) {
					t.Errorf("%s: %s", method, got)
				}
			}
		}
		if err := s.finish(); err != nil {
			t.Error(err)
		}
	})
}

func TestMethodsOfOtherCapabilitiesAreNotFoundOverOtherTransports(t *testing.T) {
	client, server := mcp.NewInMemoryTransports()
	if _, err := NewMCPServer(echo, MCPOptions{}).Connect(t.Context(), server, nil); err != nil {
		t.Fatal(err)
	}
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), client, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.ListPrompts(t.Context(), nil); errorCode(err) != jsonrpc.CodeMethodNotFound {
		t.Errorf("prompts/list: %v", err)
	}
}

func errorCode(err error) int64 {
	var e *jsonrpc.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

func TestAnUnknownToolIsAnInvalidParameter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startInitialized(t, echo, MCPOptions{})
		for _, name := range []string{"CLI", "shell", "", strings.Repeat("x", 100_000)} {
			s.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":{"command":"help"}}}`, name))
			if got := s.one(); summary(t, got) != "1|-32602" {
				t.Errorf("%.20s: %.300s", name, got)
			}
		}
		if err := s.finish(); err != nil {
			t.Error(err)
		}
	})
}

func TestOnlyAnExactCommandIsACommand(t *testing.T) {
	for arguments, want := range map[string]MCPCall{
		`{"command":"mail list"}`:            {Command: "mail list", HasCommand: true},
		` { "command" : "a\u0020\"b\"\n" } `: {Command: "a \"b\"\n", HasCommand: true},
		`{"\u0063ommand":"x"}`:               {Command: "x", HasCommand: true},
		`{"command":""}`:                     {HasCommand: true},
		`{"command":"a\u0000b"}`:             {Command: "a\x00b", HasCommand: true},
		``:                                   {Fault: `the argument "command" is missing`},
		`null`:                               {Fault: `the argument "command" is missing`},
		`{}`:                                 {Fault: `the argument "command" is missing`},
		`{"command":null}`:                   {Fault: `the argument "command" is not a string`},
		`{"command":5}`:                      {Fault: `the argument "command" is not a string`},
		`{"command":["mail","list"]}`:        {Fault: `the argument "command" is not a string`},
		`{"command":{"command":"x"}}`:        {Fault: `the argument "command" is not a string`},
		`{"COMMAND":"x"}`:                    {Fault: `the tool has the argument "command" alone; options belong into its string`},
		`{"Command":"x"}`:                    {Fault: `the tool has the argument "command" alone; options belong into its string`},
		`{"command":"x","dry_run":true}`:     {Fault: `the tool has the argument "command" alone; options belong into its string`},
		`{"dry_run":{"command":"y"},"command":"x"}`: {Fault: `the tool has the argument "command" alone; options belong into its string`},
		`{"command":"x","command":"y"}`:             {Fault: `the argument "command" is there twice`},
		`"mail list"`:                               {Fault: "the arguments are not an object"},
		`["mail list"]`:                             {Fault: "the arguments are not an object"},
		`5`:                                         {Fault: "the arguments are not an object"},
		`true`:                                      {Fault: "the arguments are not an object"},
	} {
		t.Run(arguments, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []MCPCall
				s := startInitialized(t, func(_ context.Context, c MCPCall) MCPResult {
					got = append(got, c)
					return MCPResult{Text: "{}", IsError: !c.HasCommand}
				}, MCPOptions{})
				if arguments != "" {
					arguments = `,"arguments":` + arguments
				}
				s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"cli"` + arguments + `}}`)
				answer := s.one()
				if err := s.finish(); err != nil {
					t.Error(err)
				}
				if wantAnswer := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{}"}],"isError":%v}}`, !want.HasCommand); answer != wantAnswer {
					t.Errorf("answered %s, want %s", answer, wantAnswer)
				}
				if len(got) != 1 {
					t.Fatalf("called %d times", len(got))
				}
				if c := got[0]; c.Command != want.Command && want.HasCommand || c.HasCommand != want.HasCommand || c.Fault != want.Fault {
					t.Errorf("got %+v, want %+v", c, want)
				}
				if c := got[0]; !c.HasCommand && c.Command != "" {
					t.Errorf("a call without a command has %q", c.Command)
				}
			})
		})
	}
}

func TestProgressGoesToWhoAskedUntilCancelled(t *testing.T) {
	for name, token := range map[string]string{"string": `"t"`, "number": `7`} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := startInitialized(t, func(ctx context.Context, c MCPCall) MCPResult {
					if c.Progress == nil {
						return MCPResult{Text: "silent"}
					}
					c.Progress(1, 3, "one of three")
					c.Progress(2, 0, "")
					if c.Command == "forever" {
						<-ctx.Done()
						c.Progress(3, 3, "too late")
					}
					return MCPResult{Text: "done"}
				}, MCPOptions{})
				s.send(callLine(1, "x"))
				if got := s.one(); !strings.Contains(got, "silent") {
					t.Errorf("not asked: %s", got)
				}
				ask := func(id int, command string) string {
					return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"cli","arguments":{"command":%q},"_meta":{"progressToken":%s}}}`, id, command, token)
				}
				want := []string{
					`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + token + `,"message":"one of three","progress":1,"total":3}}`,
					`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + token + `,"progress":2}}`,
					`{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"done"}],"isError":false}}`,
				}
				s.send(ask(2, "x"))
				if got := s.take(); strings.Join(got, "\n") != strings.Join(want, "\n") {
					t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
				s.send(ask(3, "forever"))
				if got := s.take(); strings.Join(got, "\n") != strings.Join(want[:2], "\n") {
					t.Errorf("got %q", got)
				}
				s.send(cancelLine(3))
				if got := s.take(); len(got) != 0 {
					t.Errorf("after the cancellation: %q", got)
				}
				if err := s.finish(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestInstructionsAreBounded(t *testing.T) {
	NewMCPServer(echo, MCPOptions{Instructions: strings.Repeat("x", MaxInstructions)})
	defer func() {
		if recover() == nil {
			t.Error("instructions beyond the bound were accepted")
		}
	}()
	NewMCPServer(echo, MCPOptions{Instructions: strings.Repeat("x", MaxInstructions+1)})
}

func TestNothingOfACommandIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := startInitialized(t, echo, MCPOptions{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
		s.send(callLine(1, "--password hunter2"), `{"hunter2":`, `[{"a":"hunter2"}]`, `{"jsonrpc":"2.0","id":"hunter2","method":"hunter2"}`,
			`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hunter2","arguments":"hunter2"}}`,
			`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":["hunter2"]}}`)
		s.take()
		if err := s.finish(); err != nil {
			t.Error(err)
		}
		if strings.Contains(log.String(), "hunter2") || !strings.Contains(log.String(), "the line is not JSON") {
			t.Errorf("log: %s", log.String())
		}
	})
}

func TestTheLibrarysOwnClientIsServed(t *testing.T) {
	o := MCPOptions{Name: "postern", Version: "1"}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	result := make(chan error, 1)
	go func() { result <- ServeStdio(t.Context(), NewMCPServer(echo, o), inR, outW, o) }()
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.IOTransport{Reader: outR, Writer: inW}, nil)
	if err != nil {
		t.Fatal(err)
	}
	tools, err := c.ListTools(t.Context(), nil)
	if err != nil || len(tools.Tools) != 1 || tools.Tools[0].Name != "cli" {
		t.Errorf("tools: %v, %v", tools, err)
	}
	r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "cli", Arguments: map[string]any{"command": "help"}})
	if err != nil || r.IsError || len(r.Content) != 1 || r.Content[0].(*mcp.TextContent).Text != "help" {
		t.Errorf("call: %v, %v", r, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-result; err != nil {
		t.Error(err)
	}
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
	server := NewMCPServer(echo, MCPOptions{})
	f.Fuzz(func(t *testing.T, between []byte) {
		script := fmt.Appendf(nil, "%s\n%s\n%s\n%s\n", initializeLine, initializedLine, between, callLine("the last one", "last"))
		var out bytes.Buffer
		if err := ServeStdio(t.Context(), server, io.NopCloser(bytes.NewReader(script)), nopWriteCloser{&out}, MCPOptions{}); err != nil {
			t.Fatal(err)
		}
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

func BenchmarkCall(b *testing.B) {
	transports := map[string]func(ctx context.Context, s *mcp.Server) mcp.Transport{
		"library": func(ctx context.Context, s *mcp.Server) mcp.Transport {
			client, server := mcp.NewInMemoryTransports()
			if _, err := s.Connect(ctx, server, nil); err != nil {
				b.Fatal(err)
			}
			return client
		},
		"stdio": func(ctx context.Context, s *mcp.Server) mcp.Transport {
			inR, inW := io.Pipe()
			outR, outW := io.Pipe()
			go func() { _ = ServeStdio(ctx, s, inR, outW, MCPOptions{}) }()
			return &mcp.IOTransport{Reader: outR, Writer: inW}
		},
	}
	for name, transport := range transports {
		b.Run(name, func(b *testing.B) {
			c, err := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil).Connect(b.Context(), transport(b.Context(), NewMCPServer(echo, MCPOptions{})), nil)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.CallTool(b.Context(), &mcp.CallToolParams{Name: "cli", Arguments: map[string]any{"command": "help"}}); err != nil {
					b.Fatal(err)
				}
			}
			_ = c.Close()
		})
	}
}
