package faulty

import (
	"context"
	"encoding/json"
	"io"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ask runs a command string and returns the response as a client reads it.
func ask(t *testing.T, s *Server, line string) map[string]any {
	t.Helper()
	b, err := plain(s.envelope(line, s.do(t.Context(), line)))
	if err != nil {
		t.Fatal(err)
	}
	var e map[string]any
	if err := json.Unmarshal(b, &e); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return e
}

// code is what a command string came to: ok, or the code of its error.
func code(t *testing.T, s *Server, line string) string {
	t.Helper()
	e := ask(t, s, line)
	if e["success"] == true {
		return "ok"
	}
	return e["error"].(map[string]any)["code"].(string)
}

func TestCorrectServerReadsCommandStrings(t *testing.T) {
	s := New(Fault{})
	for line, want := range map[string][]string{
		"":                               nil,
		" \t\r\n":                        nil,
		"a\tb\rc\nd":                     {"a", "b", "c", "d"},
		"a\u00a0b\u3000c":                {"a\u00a0b\u3000c"},
		`--subject '' --to a@b.c`:        {"--subject", "", "--to", "a@b.c"},
		`"" ''""`:                        {"", ""},
		`#12 a#b '#' # x`:                {"#12", "a#b", "#", "#", "x"},
		`'a\nb\\'`:                       {`a\nb\\`},
		`"a\nb\t\"\\" "C:\dir\$x"`:       {"a\nb\t\"\\", `C:\dir\$x`},
		`a\ b \\ \n \' \"`:               {"a b", `\`, "n", "'", `"`},
		`a'b'"c"\d`:                      {"abcd"},
		`events; rm -rf / && x | y > z`:  {"events;", "rm", "-rf", "/", "&&", "x", "|", "y", ">", "z"},
		"$HOME $(id) `id` * ~ a{b,c} x&": {"$HOME", "$(id)", "`id`", "*", "~", "a{b,c}", "x&"},
		`X=1 "it's" 'say "x"'`:           {"X=1", "it's", `say "x"`},
	} {
		if got, p := s.tokenize(line); p != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q, %v; want %q", line, got, p, want)
		}
	}
	for _, line := range []string{`'a`, `"a`, `"a\"`, `"a\`, `a\`, "a\x00b", "'\x00'", "\"\\\x00\"", "\\\x00", "\xff", "'\xc3'",
		strings.Repeat("a", maxLength+1), strings.Repeat("a ", maxArguments+1)} {
		if got, p := s.tokenize(line); p == nil || p.code != "PARSE_ERROR" {
			t.Errorf("%.20q: %.20q, %v; want PARSE_ERROR", line, got, p)
		}
	}
	for _, line := range []string{strings.Repeat("é", maxLength), strings.Repeat("a ", maxArguments)} {
		if _, p := s.tokenize(line); p != nil {
			t.Errorf("%.20q: %v", line, p.message)
		}
	}
}

func TestCorrectServerBinds(t *testing.T) {
	s := New(Fault{})
	for line, want := range map[string]map[string]any{
		"echo":                                             {"words": []any{}, "count": 10.0, "offset": 0.0, "ratio": 0.5, "bright": true, "loud": false, "tags": []any{}, "style": "plain"},
		"echo one '' -- --count --help -":                  {"words": []any{"one", "", "--count", "--help", "-"}},
		"echo --text=a=b=c":                                {"text": "a=b=c"},
		"echo --text=--help -n10 -l":                       {"text": "--help", "count": 10.0, "loud": true},
		"echo -n=20 -m x":                                  {"count": 20.0, "text": "x"},
		"echo --offset -5 --ratio -.5":                     {"offset": -5.0, "ratio": -0.5},
		"echo --offset=-7":                                 {"offset": -7.0},
		"echo --loud=false":                                {"loud": false},
		`echo --tags a,b\\,c --tags d`:                     {"tags": []any{"a", "b,c", "d"}},
		"echo --tags ''":                                   {"tags": []any{""}},
		"echo --bright false --text -":                     {"bright": false, "text": "-"},
		"echo --at 2028-02-29":                             {"at": "2028-02-29"},
		"echo --at 2026-02-02T10:00:00+01:00 --style bold": {"style": "bold"},
		"echo --count 1 --ratio 2.5":                       {"count": 1.0, "ratio": 2.5},
	} {
		e := ask(t, s, line)
		data, _ := e["data"].(map[string]any)
		got, _ := data["arguments"].(map[string]any)
		for name, value := range want {
			if !reflect.DeepEqual(got[name], value) {
				t.Errorf("%s: %s is %v, want %v (%v)", line, name, got[name], value, e["error"])
			}
		}
	}
}

func TestCorrectServerRefuses(t *testing.T) {
	s := New(Fault{})
	for line, want := range map[string]string{
		"": "PARSE_ERROR", "help 'x": "PARSE_ERROR", "nope": "COMMAND_NOT_FOUND", "note nope": "COMMAND_NOT_FOUND", "HELP": "COMMAND_NOT_FOUND",
		"hel": "COMMAND_NOT_FOUND", "help nope": "COMMAND_NOT_FOUND", "help ''": "COMMAND_NOT_FOUND", "schema __proto__": "COMMAND_NOT_FOUND",
		"help echo echo": "COMMAND_NOT_FOUND", "note": "ok", "note --help": "ok", "note list --help": "ok", "note --x": "VALIDATION_ERROR",
		"echo --nope": "VALIDATION_ERROR", "echo --coun 3": "VALIDATION_ERROR", "echo -x": "VALIDATION_ERROR", "echo -count 3": "VALIDATION_ERROR",
		"echo --COUNT 3": "VALIDATION_ERROR", "echo --count 3 --count 3": "VALIDATION_ERROR", "echo -n 3 --count 3": "VALIDATION_ERROR",
		"echo --count": "VALIDATION_ERROR", "echo --text --loud": "VALIDATION_ERROR", "echo --text --": "VALIDATION_ERROR", "echo --loud=maybe": "VALIDATION_ERROR",
		"echo --count 010": "VALIDATION_ERROR", "echo --count 0": "VALIDATION_ERROR", "echo --count 501": "VALIDATION_ERROR", "echo --count 500": "ok", "echo --count 3.0": "VALIDATION_ERROR",
		"echo --count 1e1": "VALIDATION_ERROR", "echo --count 0x2": "VALIDATION_ERROR", "echo --count ' 3'": "VALIDATION_ERROR", "echo --count ''": "VALIDATION_ERROR",
		"echo --count 18446744073709551619": "VALIDATION_ERROR", "echo --count +3": "VALIDATION_ERROR", "echo --ratio NaN": "VALIDATION_ERROR",
		"echo --ratio 0x1p-2": "VALIDATION_ERROR", "echo --ratio 100.51": "VALIDATION_ERROR", "echo --bright yes": "VALIDATION_ERROR", "echo --bright TRUE": "VALIDATION_ERROR",
		"echo --at 2026-02-30": "VALIDATION_ERROR", "echo --at '2026-02-02 x'": "VALIDATION_ERROR", "echo --at today": "VALIDATION_ERROR", "echo --at 02/02/2026": "VALIDATION_ERROR",
		"echo --style Bold": "VALIDATION_ERROR", "echo --style b": "VALIDATION_ERROR", "echo --style ''": "VALIDATION_ERROR",
		"echo --tags a,b,c,d,e,f,g,h,i,j,k": "VALIDATION_ERROR", "note show": "VALIDATION_ERROR", "note show 1 2": "VALIDATION_ERROR", "note show 1": "ok",
		"note add --due 2026-01-01": "VALIDATION_ERROR", "version x": "VALIDATION_ERROR", "version ''": "VALIDATION_ERROR",
		"file read --path ../x": "PATH_TRAVERSAL_BLOCKED", "file read --path a/../x": "PATH_TRAVERSAL_BLOCKED", "file read --path /etc/passwd": "PATH_TRAVERSAL_BLOCKED",
		`file read --path 'C:\x'`: "PATH_TRAVERSAL_BLOCKED", `file read --path 'C:x'`: "PATH_TRAVERSAL_BLOCKED", `file read --path 'a\..\..\x'`: "PATH_TRAVERSAL_BLOCKED",
		"file read --path notes/today.txt": "ok", "file read --path a..b": "EXECUTION_ERROR", "wait --milliseconds 60000": "TIMEOUT",
	} {
		if got := code(t, s, line); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	for range rations {
		if got := code(t, s, "ration"); got != "ok" {
			t.Errorf("ration: %s", got)
		}
	}
	if got := code(t, s, "ration"); got != "RATE_LIMITED" {
		t.Errorf("one ration more: %s", got)
	}
}

func TestSecretIsShownNowhere(t *testing.T) {
	s := New(Fault{})
	const secret = "s3cr3t-s3cr3t-s3cr3t-s3cr3t"
	for _, line := range []string{"login --user a --token " + secret, "login --user a --token=" + secret + "x", "login --user a '--token' " + secret,
		`login --user a --tok\en ` + secret, "login --token '" + secret, "login --nope --token " + secret} {
		b, err := plain(s.envelope(line, s.do(t.Context(), line)))
		if err != nil || strings.Contains(string(b), secret) {
			t.Errorf("%s: %s, %v", line, b, err)
		}
	}
}

func TestEveryExampleOfHelpBinds(t *testing.T) {
	s := New(Fault{})
	for _, c := range s.commands(s.root) {
		for _, line := range append(append(c.examples, s.recipes()...), s.root.sub[1].sub[0].examples...) {
			if got := code(t, s, line); got != "ok" && got != "RATE_LIMITED" {
				t.Errorf("%s: %s", line, got)
			}
		}
	}
}

// A client that knows nothing of this server gets along with it.
func TestClientOfAnotherMakeConnects(t *testing.T) {
	for _, version := range []string{"", "2024-11-05", "2025-11-25", "2026-07-28"} {
		toServer, fromClient := io.Pipe()
		toClient, fromServer := io.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- New(Fault{}).Serve(ctx, toServer, fromServer) }()
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		session, err := client.Connect(ctx, &mcp.IOTransport{Reader: toClient, Writer: fromClient}, &mcp.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		list, err := session.ListTools(ctx, nil)
		if err != nil || len(list.Tools) != 1 || list.Tools[0].Name != "cli" {
			t.Errorf("tools: %v, %v", list, err)
		}
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "cli", Arguments: map[string]any{"command": "version"}})
		if err != nil || result.IsError || len(result.Content) != 1 || !strings.Contains(result.Content[0].(*mcp.TextContent).Text, `"acli_version":"0.1.0"`) {
			t.Errorf("version: %v, %v", result, err)
		}
		_ = session.Close()
		_ = fromClient.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
		cancel()
	}
}

func TestFaultsAreNamedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range All {
		if seen[f.Name] || !regexp.MustCompile(`\A[a-z]+(-[a-z]+)*\z`).MatchString(f.Name) || f.Mistake == "" {
			t.Errorf("fault %q (%s) is there twice or badly named", f.Name, f.Mistake)
		}
		seen[f.Name] = true
	}
	if len(All) < 40 {
		t.Errorf("there are %d faults", len(All))
	}
}
