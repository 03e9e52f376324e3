package faulty

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"
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

func TestFaultNamesAreUnique(t *testing.T) {
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
