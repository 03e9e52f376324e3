package extension

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/internal/testmain"
)

// good is a manifest with every kind of member.
const good = `{"name":"x-good","summary":"Do good","program":"does-trap","commands":[
	{"name":"look","summary":"Look","details":"More of it.","effect":"read","timeout":5,
	 "arguments":[
		{"name":"what","type":"string","positional":true,"required":true,"min_length":2,"max_length":9,"pattern":"^[a-z]+$","description":"What","examples":["tea"]},
		{"name":"level","short":"l","type":"enum","enum":["low","high"],"default":"low","description":"Level"},
		{"name":"ratio","type":"number","minimum":-0.5,"maximum":1e2,"default":0.25,"description":"Ratio"},
		{"name":"on","type":"flag","description":"On"},
		{"name":"sure","type":"boolean","default":true,"description":"Sure"},
		{"name":"after","type":"datetime","description":"After","requires":"on"},
		{"name":"ids","type":"array","items":"integer","min_items":1,"max_items":3,"minimum":0,"description":"Numbers"}],
	 "examples":["x-good look tea","x-good look tea -l high --ids 1,2 --fields total"],
	 "output":{"type":"object","properties":{"total":{"type":"integer","description":"How many"},"kinds":{"type":"array","items":{"type":"string","enum":["a","b"]}}},"required":["total"]}},
	{"name":"act","summary":"Act","effect":"write","examples":["x-good act"]}]}`

func init() {
	// This program must not be started; if it is, it leaves a file.
	behaviours["trap"] = func() { _ = os.WriteFile("ran", nil, 0o644) }
}

func TestAnExtensionIsACommandLikeAnyOther(t *testing.T) {
	dir := directory(t)
	at := install(t, dir, "x-good", "trap", good)
	s := whole(t, dir, Options{})
	if !slices.Equal(s.set.Names, []string{"x-good"}) || len(s.set.Commands) != 2 || s.set.Groups["x-good"] != "Do good" {
		t.Fatalf("%+v", s.set)
	}
	for line, wants := range map[string][]string{
		"help":             {`"name":"x-good look","usage":"x-good look WHAT [--level low|high] [--ratio 0.25]`, `"name":"x-good act","usage":"x-good act","description":"Act"`},
		"version":          {`"extensions":["x-good"]`},
		"x-good":           {`"description":"Do good"`, `"x-good look"`, `"x-good act"`},
		"help x-good look": {`"usage":"x-good look WHAT [--level low|high] `, `"default":"low"`, `"maximum":1e2`, `"requires":"--on"`, `"description":"Look. More of it."`, `"name":"--timeout","type":"integer","default":5`},
		"schema x-good look": {`"inputSchema":{`, `"pattern":"^[a-z]+$"`, `"enum":["low","high"]`, `"format":"date-time"`, `"additionalProperties":false`,
			`"outputSchema":{"properties":{"kinds":{"items":{"type":"string","enum":["a","b"]},"type":"array"},"total":{"type":"integer","description":"How many"}}`},
		"x-good look --help": {`"command":"x-good look"`}, "schema x-good": {`"x-good act"`}, "schema": {`"x-good act"`}, "help x-good": {`"x-good act"`},
	} {
		r := s.do(t, line)
		for _, want := range wants {
			if !r.Success || !strings.Contains(r.raw, want) {
				t.Errorf("%s: %s\nwant %s", line, r.raw, want)
			}
		}
	}
	for line, want := range map[string]string{
		"x-good look": "what is missing", "x-good look t": "at least 2 characters", "x-good look TEA": "does not have the form", "x-good look tea --level mid": "one of low, high",
		"x-good look tea --after 2026-02-30 --on": "ISO 8601", "x-good look tea --ratio 101": "between -0.5 and 1e2", "x-good look tea --nope": "no option '--nope'",
		"x-good look tea --ids 1,2,3,4": "at most 3", "x-good look tea --fields nope": "no field 'nope'", "x-good lok tea": "no command 'x-good lok'",
		"x-good look tea tea": "one value too many", "x-good look tea --after 2026-02-02": "only together with --on",
	} {
		if r := s.do(t, line); r.Success || !strings.Contains(r.Error.Message, want) || len(r.Error.Examples) == 0 {
			t.Errorf("%s: %s", line, r.raw)
		}
	}
	if _, err := os.Stat(filepath.Join(at, "ran")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something of it was run: %v", err)
	}
	// When it is run, the program does leave the file, so the check above can fail.
	s.do(t, "x-good act")
	if _, err := os.Stat(filepath.Join(at, "ran")); err != nil {
		t.Error(err)
	}
}

func TestAManifestSaysTheEffect(t *testing.T) {
	dir := directory(t)
	for _, effect := range []string{"read", "state", "flag", "write", "send", "admin"} {
		install(t, dir, "x-"+effect, "echo", manifestOf("x-"+effect, prefix+"echo", effect))
	}
	s := whole(t, dir, Options{})
	for _, c := range s.set.Commands {
		if c.Effect.String() != strings.TrimPrefix(c.Path, "x-") {
			t.Errorf("%s is %s", c.Path, c.Effect)
		}
	}
	for line, code := range map[string]discovery.Code{"x-admin": discovery.PermissionDenied, "x-send": ""} {
		if r := s.do(t, line); r.Error.Code != code {
			t.Errorf("%s: %s", line, r.raw)
		}
	}
}

// Each broken extension is in a directory with a good one.
func TestOnlyABrokenExtensionIsLeftOut(t *testing.T) {
	t.Parallel()
	manifest := func(change ...string) string {
		return strings.NewReplacer(change...).Replace(manifestOf("x-bad", "does-trap", "read"))
	}
	makers := map[string]func(...string) string{"manifest": manifest, "whole": func(c ...string) string { return c[0] }}
	for kind, form := range map[string]string{"argument": `"effect":"read","examples":["x-bad"],"arguments":[%s]`, "output": `"effect":"read","examples":["x-bad"],"output":%s`, "group": `"commands":[%s]`} {
		makers[kind] = func(c ...string) string {
			return fmt.Sprintf(`{"name":"x-bad","summary":"Do","program":"does-trap",`+form+`}`, c[0])
		}
	}
	for _, c := range testmain.Table[struct {
		Kind, Want string
		Of         []string
	}](t, "testdata/cases/broken_manifests.txt") {
		name := fmt.Sprintf("%.100q", c.Of)
		dir := directory(t)
		install(t, dir, "x-bad", "trap", makers[c.Kind](c.Of...))
		install(t, dir, "x-good", "trap", good)
		s := serve(t, dir, Options{})
		if m := s.set.messages(); len(m) != 1 || !strings.HasPrefix(m[0], "Extension x-bad: It is left out: ") || !strings.Contains(m[0], c.Want) || len(m[0]) > 400 {
			t.Errorf("%s: %q, want %q", name, m, c.Want)
		}
		if !slices.Equal(s.set.Names, []string{"x-good"}) {
			t.Errorf("%s: there are %q", name, s.set.Names)
		}
		if r := s.do(t, "x-bad"); r.Error.Code != discovery.CommandNotFound {
			t.Errorf("%s: %s", name, r.raw)
		}
	}
}

func TestNamesOfDirectories(t *testing.T) {
	dir := directory(t)
	for _, name := range []string{"mail", "help", "x-", "x-Big", "x-under_score", "x-" + strings.Repeat("a", 70), "__proto__", ".hidden", "x-no-manifest"} {
		must(t, os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	for _, name := range []string{"README.md", "x-file"} {
		must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
	}
	s, err := Load(dir, Options{})
	must(t, err)
	got := map[string]string{}
	for _, p := range s.Problems {
		got[p.Extension] = p.Message
	}
	for name, want := range map[string]string{`"mail"`: "its name", `"help"`: "its name", `"x-"`: "its name", `"x-Big"`: "its name", `"x-under_score"`: "its name",
		`"x-` + strings.Repeat("a", 37) + `\u2026"`: "its name", `"__proto__"`: "its name", "x-no-manifest": "no file manifest.json", "x-file": "not a directory"} {
		if !strings.Contains(got[name], want) {
			t.Errorf("%s: %q", name, got[name])
		}
		delete(got, name)
	}
	if len(got) != 0 || len(s.Names) != 0 || len(s.Commands) != 0 {
		t.Errorf("%q, %+v", got, s)
	}
}

// Extensions beyond the bound are left out, also those with which the schemas would not fit
// into one answer.
func TestSurplusExtensionsAreLeftOut(t *testing.T) {
	t.Parallel()
	dir := directory(t)
	for i := range maxExtensions + 2 {
		name := fmt.Sprintf("x-%02d", i)
		install(t, dir, name, "trap", manifestOf(name, "does-trap", "read"))
	}
	s := serve(t, dir, Options{})
	if m := s.set.messages(); len(s.set.Names) != maxExtensions || len(m) != 1 || !strings.Contains(m[0], "more than 32") {
		t.Errorf("%d, %q", len(s.set.Names), m)
	}
	dir = directory(t)
	for i := range 4 {
		name := fmt.Sprintf("x-%02d", i)
		var arguments []string
		for j := range 39 {
			arguments = append(arguments, fmt.Sprintf(`{"name":"a%d","type":"string","description":%q}`, j, strings.Repeat("x", 590)))
		}
		install(t, dir, name, "trap", fmt.Sprintf(`{"name":%q,"summary":"Do","program":"does-trap","effect":"read","examples":[%q],"arguments":[%s]}`, name, name, strings.Join(arguments, ",")))
	}
	s = serve(t, dir, Options{})
	if len(s.set.Names) != 2 || len(s.set.Problems) != 2 || !strings.Contains(s.set.Problems[0].Message, "64 KiB") {
		t.Errorf("%q %q", s.set.Names, s.set.messages())
	}
	if r := s.do(t, "schema"); !r.Success {
		t.Errorf("%.300s", r.raw)
	}
}

func TestUnusableDirectories(t *testing.T) {
	dir := directory(t)
	if s, err := Load(filepath.Join(dir, "nowhere"), Options{}); !errors.Is(err, fs.ErrNotExist) || s == nil || len(s.Problems) != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, nil, 0o644))
	for path, want := range map[string]string{"relative": "absolute path", "": "absolute path", file: "not a directory"} {
		s, err := Load(path, Options{})
		if err != nil || len(s.Problems) != 1 || !strings.Contains(s.Problems[0].String(), want) || len(s.Commands) != 0 {
			t.Errorf("%q: %v, %v", path, s.Problems, err)
		}
	}
	if s, err := Load(dir, Options{}); err != nil || len(s.Problems) != 0 {
		t.Errorf("%v, %v", s.Problems, err)
	}
}

// FuzzManifest checks that reading a manifest never panics, and that the commands of an
// accepted one have valid schemas.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte(manifestOf("x-good", "run", "read")))
	f.Add([]byte(`{"name":"x-good","commands":[null]}`))
	f.Add([]byte(`{"name":"x-good","program":"p","summary":"s","effect":"read","examples":["x-good"],"output":{"type":"array","items":{"type":"array","items":null}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := parseManifest(raw, "x-good")
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\x1b") && !strings.Contains(err.Error(), "\n") {
				t.Fatalf("%q", err)
			}
			return
		}
		all := []command{m.command}
		if m.Commands != nil {
			all = nil
			for _, c := range m.Commands {
				all = append(all, c.command)
			}
		}
		for i := range all {
			path := "x-good"
			if m.Commands != nil {
				path += " " + m.Commands[i].Name
			}
			c, err := define(path, &all[i], nil, nil)
			if err == nil && (!json.Valid(c.InputSchema()) || !json.Valid(c.OutputSchema(true)) || c.Effect < discovery.Read) {
				t.Fatalf("%s", raw)
			}
		}
	})
}

// FuzzScrub checks that the result is one JSON value without invisible characters, and that
// scrub does not change it again.
func FuzzScrub(f *testing.F) {
	for _, s := range []string{`{"a":[1,"x\u202e",null,true]}`, `"\ud800"`, ` [1e308 , -0.0]`, `{"a":1}{}`, "\"\u200d\u200d\"", `{"":{"":""}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		out, err := scrub(raw, false)
		if err != nil {
			return
		}
		again, err := scrub(out, false)
		if err != nil || string(again) != string(out) || !json.Valid(out) {
			t.Fatalf("%q: %q, %q, %v", raw, out, again, err)
		}
		for _, r := range string(out) {
			if plain.Unseen(r) && r != '\u200c' && r != '\u200d' && r != '\ufe0f' {
				t.Fatalf("%q holds %U", out, r)
			}
		}
	})
}

// TestTheDocumentationNamesEveryMember compares the manifest's types with the page.
func TestTheDocumentationNamesEveryMember(t *testing.T) {
	page, err := os.ReadFile("../../docs/extensions.md")
	must(t, err)
	n := 0
	for _, typ := range []reflect.Type{reflect.TypeFor[manifest](), reflect.TypeFor[argument](), reflect.TypeFor[discovery.Shape]()} {
		for _, f := range reflect.VisibleFields(typ) {
			if name := f.Tag.Get("json"); name != "" {
				n++
				if !strings.Contains(string(page), "`"+name+"`") {
					t.Errorf("docs/extensions.md does not name %s", name)
				}
			}
		}
	}
	for _, c := range codes {
		if !strings.Contains(string(page), "`"+string(c)+"`") {
			t.Errorf("docs/extensions.md does not name %s", c)
		}
	}
	for _, v := range passed {
		if !strings.Contains(string(page), "`"+v+"`") {
			t.Errorf("docs/extensions.md does not name %s", v)
		}
	}
	if n < 30 {
		t.Errorf("only %d members were looked for", n)
	}
}
