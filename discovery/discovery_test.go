package discovery_test

import (
	"context"
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/postern-mail/postern/discovery"
)

// Args has an argument of every kind and every bound.
type Args struct {
	Names    []string           `json:"names" acli:"positional" jsonschema:"minItems=1,maxItems=3,maxLength=8" jsonschema_description:"Positional names"`
	Text     string             `json:"text,omitempty" acli:"short=t" jsonschema:"minLength=1,maxLength=5" jsonschema_description:"Text"`
	Count    int                `json:"count,omitempty" acli:"short=n" jsonschema:"minimum=-3,maximum=10,default=4" jsonschema_description:"Count"`
	Size     uint32             `json:"size,omitempty" jsonschema:"minimum=1,maximum=4294967295" jsonschema_description:"Size"`
	Ratio    float64            `json:"ratio,omitempty" jsonschema:"minimum=-1,maximum=1" jsonschema_description:"Ratio"`
	Flag     bool               `json:"flag,omitempty" acli:"short=f" jsonschema_description:"Flag"`
	Choice   bool               `json:"choice,omitempty" acli:"boolean" jsonschema_description:"Boolean"`
	When     discovery.Datetime `json:"when,omitempty" jsonschema_description:"When"`
	List     []string           `json:"list,omitempty" jsonschema:"maxItems=4,minLength=1" jsonschema_description:"List"`
	Numbers  []int              `json:"numbers,omitempty" jsonschema:"minimum=0,maximum=9" jsonschema_description:"Numbers"`
	Level    string             `json:"level,omitempty" jsonschema:"enum=low,enum=high,default=low" jsonschema_description:"Level"`
	Code     string             `json:"code,omitempty" jsonschema:"pattern=^[a-c]+$" form:"must be letters from a to c" jsonschema_description:"Code"`
	Secret   string             `json:"secret,omitempty" acli:"sensitive" jsonschema_description:"Secret"`
	File     string             `json:"file,omitempty" acli:"path" jsonschema_description:"File"`
	Optional *bool              `json:"optional,omitempty" jsonschema_description:"Optional flag"`
	Pattern  *string            `json:"pattern,omitempty" jsonschema_description:"Optional text"`
	Day      discovery.Date     `json:"day,omitempty" acli:"rare" jsonschema_description:"Day"`
}

type Item struct {
	Name string `json:"name" acli:"untrusted"`
	Size int    `json:"size"`
}

type Result struct {
	Total int    `json:"total"`
	Items []Item `json:"items"`
	Note  string `json:"note,omitempty"`
}

func run(context.Context, *discovery.Call, *Args) (Result, error) { return Result{}, nil }

func thing() *discovery.Command {
	return discovery.New(discovery.Spec{Path: "thing do", Summary: "Do a thing", Effect: discovery.Read, Examples: []string{"thing do a"}}, run)
}

func bind(t *testing.T, tokens ...string) (*Args, error) {
	t.Helper()
	b, err := thing().Bind(tokens, nil)
	if err != nil {
		return nil, err
	}
	if b.Help {
		t.Fatal("bound to help")
	}
	return b.Args.(*Args), nil
}

func TestBindValues(t *testing.T) {
	yes, empty := true, ""
	for _, c := range []struct {
		tokens []string
		want   Args
	}{
		{[]string{"a"}, Args{}},
		{[]string{"a", "b", "c"}, Args{Names: []string{"a", "b", "c"}}},
		{[]string{"a,b"}, Args{Names: []string{"a,b"}}},
		{[]string{"a", "--text", "xy"}, Args{Text: "xy"}},
		{[]string{"a", "--text=x=y"}, Args{Text: "x=y"}},
		{[]string{"--text", "é日本語x", "a"}, Args{Text: "é日本語x"}},
		{[]string{"a", "-t", "xy"}, Args{Text: "xy"}},
		{[]string{"a", "-txy"}, Args{Text: "xy"}},
		{[]string{"a", "-t=xy"}, Args{Text: "xy"}},
		{[]string{"a", "--text=-x"}, Args{Text: "-x"}},
		{[]string{"a", "--text", "-"}, Args{Text: "-"}},
		{[]string{"a", "-n10"}, Args{Count: 10}},
		{[]string{"a", "-n=10"}, Args{Count: 10}},
		{[]string{"a", "--count", "-3"}, Args{Count: -3}},
		{[]string{"a", "--count=-3"}, Args{Count: -3}},
		{[]string{"a", "--size", "4294967295"}, Args{Size: 4294967295}},
		{[]string{"a", "--ratio", "-0.5"}, Args{Ratio: -0.5}},
		{[]string{"a", "--ratio", "1e-2"}, Args{Ratio: 0.01}},
		{[]string{"a", "--flag"}, Args{Flag: true}},
		{[]string{"a", "--flag=true"}, Args{Flag: true}},
		{[]string{"--flag", "a"}, Args{Flag: true}},
		{[]string{"a", "--flag=false"}, Args{}},
		{[]string{"a", "-f"}, Args{Flag: true}},
		{[]string{"a", "--choice", "true"}, Args{Choice: true}},
		{[]string{"a", "--list", "x,y"}, Args{List: []string{"x", "y"}}},
		{[]string{"a", "--list", `x\,y`, "--list", "z"}, Args{List: []string{"x,y", "z"}}},
		{[]string{"a", "--list", `x\y`}, Args{List: []string{`x\y`}}},
		{[]string{"a", "--numbers", "1,2", "--numbers=3"}, Args{Numbers: []int{1, 2, 3}}},
		{[]string{"a", "--level", "high"}, Args{Level: "high"}},
		{[]string{"a", "--secret", ""}, Args{}},
		{[]string{"a", "--file", "x/y..z.txt"}, Args{File: "x/y..z.txt"}},
		{[]string{"a", "--optional"}, Args{Optional: &yes}},
		{[]string{"a", "--pattern="}, Args{Pattern: &empty}},
		{[]string{"--", "--text"}, Args{Names: []string{"--text"}}},
		{[]string{"--", "a", "--"}, Args{Names: []string{"a", "--"}}},
		{[]string{"-"}, Args{Names: []string{"-"}}},
		{[]string{"--", "--help"}, Args{Names: []string{"--help"}}},
		{[]string{"a", "--day", "2024-02-29"}, Args{Day: discovery.Date{Time: time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)}}},
		{[]string{"a", "--when", "2026-02-02T10:00:00+01:00"}, Args{When: discovery.Datetime{Time: time.Date(2026, 2, 2, 9, 0, 0, 0, time.UTC)}}},
		{[]string{"a", "--when", "2024-02-29"}, Args{When: discovery.Datetime{Time: time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC), DateOnly: true}}},
	} {
		got, err := bind(t, c.tokens...)
		if err != nil {
			t.Errorf("%q: %v", c.tokens, err)
			continue
		}
		if c.want.Names == nil {
			c.want.Names = []string{"a"}
			if c.tokens[0] == "a,b" || c.tokens[0] == "-" {
				c.want.Names = []string{c.tokens[0]}
			}
		}
		if c.want.Count == 0 {
			c.want.Count = 4
		}
		if c.want.Level == "" {
			c.want.Level = "low"
		}
		if !got.When.Equal(c.want.When.Time) || got.When.DateOnly != c.want.When.DateOnly {
			t.Errorf("%q: when %v, want %v", c.tokens, got.When, c.want.When)
		}
		got.When, c.want.When = discovery.Datetime{}, discovery.Datetime{}
		if !reflect.DeepEqual(*got, c.want) {
			t.Errorf("%q:\n got %+v\nwant %+v", c.tokens, *got, c.want)
		}
	}
}

func TestBindRefuses(t *testing.T) {
	for _, c := range []struct {
		tokens []string
		code   discovery.Code
		says   string
	}{
		{nil, discovery.ValidationError, "names is missing"},
		{[]string{"a", "b", "c", "d"}, discovery.ValidationError, "at most 3 values"},
		{[]string{"a", "--text", "x", "--text", "y"}, discovery.ValidationError, "given twice"},
		{[]string{"a", "--text", "x", "-t", "y"}, discovery.ValidationError, "given twice"},
		{[]string{"a", "--text"}, discovery.ValidationError, "needs a value"},
		{[]string{"a", "--text", "-x"}, discovery.ValidationError, "needs a value"},
		{[]string{"a", "--text", "--help"}, discovery.ValidationError, "needs a value"},
		{[]string{"a", "--text", "--flag"}, discovery.ValidationError, "needs a value"},
		{[]string{"a", "--text="}, discovery.ValidationError, "must not be empty"},
		{[]string{"a", "--text", "123456"}, discovery.ValidationError, "at most 5 characters"},
		{[]string{"a", "--count", "11"}, discovery.ValidationError, "between -3 and 10"},
		{[]string{"a", "--count", "-4"}, discovery.ValidationError, "between -3 and 10"},
		{[]string{"a", "--count", "1.5"}, discovery.ValidationError, "decimal integer"},
		{[]string{"a", "--count", "0x10"}, discovery.ValidationError, "decimal integer"},
		{[]string{"a", "--count", "+1"}, discovery.ValidationError, "decimal integer"},
		{[]string{"a", "--count", "1_0"}, discovery.ValidationError, "decimal integer"},
		{[]string{"a", "--count", "٣"}, discovery.ValidationError, "decimal integer"},
		{[]string{"a", "--count", "99999999999999999999999"}, discovery.ValidationError, "between"},
		{[]string{"a", "--size", "0"}, discovery.ValidationError, "between 1"},
		{[]string{"a", "--size", "4294967296"}, discovery.ValidationError, "between 1"},
		{[]string{"a", "--ratio", "NaN"}, discovery.ValidationError, "decimal number"},
		{[]string{"a", "--ratio", "Inf"}, discovery.ValidationError, "decimal number"},
		{[]string{"a", "--ratio", "1e999"}, discovery.ValidationError, "decimal number"},
		{[]string{"a", "--flag=yes"}, discovery.ValidationError, "true or false"},
		{[]string{"a", "--choice"}, discovery.ValidationError, "needs a value"},
		{[]string{"a", "--choice", "TRUE"}, discovery.ValidationError, "true or false"},
		{[]string{"a", "--level", "mid"}, discovery.ValidationError, "one of low, high"},
		{[]string{"a", "--code", "abd"}, discovery.ValidationError, "--code must be letters from a to c."},
		{[]string{"a", "--list", "a,,b"}, discovery.ValidationError, "must not be empty"},
		{[]string{"a", "--list", "a,b,c,d,e"}, discovery.ValidationError, "at most 4"},
		{[]string{"a", "--numbers", "1,10"}, discovery.ValidationError, "between 0 and 9"},
		{[]string{"a", "--when", "2026-02-30"}, discovery.ValidationError, "ISO 8601"},
		{[]string{"a", "--when", "2025-02-29"}, discovery.ValidationError, "ISO 8601"},
		{[]string{"a", "--when", "2026-2-3"}, discovery.ValidationError, "ISO 8601"},
		{[]string{"a", "--when", "2026-02-02T24:00:00Z"}, discovery.ValidationError, "ISO 8601"},
		{[]string{"a", "--when", "2026-02-02T10:00:00z"}, discovery.ValidationError, "ISO 8601"},
		{[]string{"a", "--when", "2026-02-02 10:00"}, discovery.ValidationError, "ISO 8601"},
		{[]string{"a", "--when", "yesterday"}, discovery.ValidationError, "ISO 8601"},
		{[]string{"a", "--when", "2026-02-02T10:00:00+25:00"}, discovery.ValidationError, "ISO 8601"},
		{[]string{"a", "--nope"}, discovery.ValidationError, "no option '--nope'"},
		{[]string{"a", "--tex", "x"}, discovery.ValidationError, "no option '--tex'"},
		{[]string{"a", "--names", "x"}, discovery.ValidationError, "no option '--names'"},
		{[]string{"a", "--__proto__", "x"}, discovery.ValidationError, "no option"},
		{[]string{"a", "--constructor=x"}, discovery.ValidationError, "no option"},
		{[]string{"a", "-x"}, discovery.ValidationError, "no option '-x'"},
		{[]string{"a", "-ft"}, discovery.ValidationError, "true or false"},
		{[]string{"a", "--file", "/etc/passwd"}, discovery.PathTraversal, "outside"},
		{[]string{"a", "--file", "../x"}, discovery.PathTraversal, "outside"},
		{[]string{"a", "--file", `a\..\x`}, discovery.PathTraversal, "outside"},
		{[]string{"a", "--file", `C:x`}, discovery.PathTraversal, "outside"},
		{[]string{"a", "--file", `\\host\x`}, discovery.PathTraversal, "outside"},
		{[]string{"a", "--file", "a\x00b"}, discovery.PathTraversal, "outside"},
		{[]string{"a", "--day", "2026-02-30"}, discovery.ValidationError, "must be a day"},
		{[]string{"a", "--day", "2026-02-02T10:00:00Z"}, discovery.ValidationError, "must be a day"},
		{[]string{"a", "--day", "0000-02-02"}, discovery.ValidationError, "must be a day"},
		{[]string{"a", "--day", "today"}, discovery.ValidationError, "must be a day"},
		{[]string{"a", "--timeout", "301"}, discovery.ValidationError, "between 1 and 300"},
		{[]string{"a", "--timeout", "0"}, discovery.ValidationError, "between 1 and 300"},
	} {
		_, err := bind(t, c.tokens...)
		f := discovery.AsFault(err)
		if f == nil {
			t.Errorf("%q: no fault, err %v", c.tokens, err)
			continue
		}
		if f.Code != c.code || !strings.Contains(f.Message, c.says) {
			t.Errorf("%q: %s %q, want %s with %q", c.tokens, f.Code, f.Message, c.code, c.says)
		}
		if (f.Code == discovery.PathTraversal) != (f.Reason == "path") {
			t.Errorf("%q: reason for the audit log %q", c.tokens, f.Reason)
		}
		if f.Hint == "" || len(f.Examples) == 0 {
			t.Errorf("%q: no hint or no example", c.tokens)
		}
	}
}

func TestHelpIsHonouredInOptionPositionOnly(t *testing.T) {
	c := thing()
	for _, tokens := range [][]string{{"--help"}, {"a", "--help"}, {"--text", "x", "--help"}} {
		b, err := c.Bind(tokens, nil)
		if err != nil || !b.Help {
			t.Errorf("%q: help %v, err %v", tokens, b, err)
		}
	}
	if b, err := c.Bind([]string{"--", "--help"}, nil); err != nil || b.Help {
		t.Errorf("after --: %v, %v", b, err)
	}
}

func TestDatetimeWithoutOffsetIsInTheGivenZone(t *testing.T) {
	zone := time.FixedZone("test", 2*3600)
	for text, want := range map[string]string{
		"2026-02-02":             "2026-02-02T00:00:00+02:00",
		"2026-02-02T10:30":       "2026-02-02T10:30:00+02:00",
		"2026-02-02T10:30:01.5":  "2026-02-02T10:30:01.5+02:00",
		"2026-02-02T10:30:01Z":   "2026-02-02T10:30:01Z",
		"2026-02-02T10:30-05:00": "2026-02-02T10:30:00-05:00",
	} {
		b, err := thing().Bind([]string{"a", "--when", text}, zone)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := b.Args.(*Args).When.Format(time.RFC3339Nano); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestADateWithoutAMidnightIsThatDate(t *testing.T) {
	zone, err := time.LoadLocation("America/Santiago")
	if err != nil {
		t.Fatal(err)
	}
	b, err := thing().Bind([]string{"a", "--when", "2026-09-06"}, zone)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.Args.(*Args).When.Format(time.RFC3339); got != "2026-09-06T01:00:00-03:00" {
		t.Errorf("%s", got)
	}
}

func TestRedactKeepsOnlyWhatItKnows(t *testing.T) {
	const r = discovery.Redacted
	for _, c := range []struct{ in, want []string }{
		{[]string{"a", "--text", "x", "-n5"}, []string{"a", "--text", "x", "-n=5"}},
		{[]string{"a", "--secret", "hunter2"}, []string{"a", "--secret", r}},
		{[]string{"a", "--secret=hunter2"}, []string{"a", "--secret=" + r}},
		{[]string{"a", "--secrte", "hunter2"}, []string{"a", "--secrte", r}},
		{[]string{"a", "--secrte=hunter2"}, []string{"a", "--secrte=" + r}},
		{[]string{"a", "--hunter 2"}, []string{"a", "--" + r}},
		{[]string{"a", "-p", "hunter2"}, []string{"a", "-" + r, r}},
		{[]string{"a", "-phunter2"}, []string{"a", "-" + r}},
		{[]string{"a", "--flag", "b"}, []string{"a", "--flag", "b"}},
		{[]string{"a", "--count", "--secret=hunter2"}, []string{"a", "--count", "--secret=" + r}},
		{[]string{"a", "--count", "-3"}, []string{"a", "--count", "-3"}},
		{[]string{"a", "--", "--secret", "x"}, []string{"a", "--", "--secret", "x"}},
	} {
		got := thing().Redact(c.in)
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.in, got, c.want)
		}
	}
	type none struct{}
	bare := discovery.New(discovery.Spec{Path: "bare", Summary: "Take nothing", Effect: discovery.Read, Examples: []string{"bare"}},
		func(context.Context, *discovery.Call, *none) (none, error) { return none{}, nil })
	for _, c := range []struct{ in, want []string }{
		{[]string{"my", "words", "|", "cat", "-1"}, []string{"my", "words", "|", "cat", "-1"}},
		{[]string{"--unknown", "value", "-x"}, []string{"--unknown", "value", "-x"}},
		{[]string{"--password", "hunter2"}, []string{"--password", r}},
		{[]string{"--api-token=hunter2"}, []string{"--api-token=" + r}},
		{[]string{"--", "--Passwd", "hunter2"}, []string{"--", "--Passwd", r}},
	} {
		if got := bare.Redact(c.in); !slices.Equal(got, c.want) {
			t.Errorf("without a sensitive argument: %q: %q, want %q", c.in, got, c.want)
		}
	}
}

func TestProject(t *testing.T) {
	data := json.RawMessage(`{"total":2,"items":[{"name":"a","size":1},{"name":"b","size":2}]}`)
	c := thing()
	for _, test := range []struct{ fields, want string }{
		{"total", `{"total":2}`},
		{"items,total", `{"items":[{"name":"a","size":1},{"name":"b","size":2}],"total":2}`},
		{"items.size", `{"items":[{"size":1},{"size":2}]}`},
		{"items.size,items.name", `{"items":[{"size":1,"name":"a"},{"size":2,"name":"b"}]}`},
		{"items.size,items", `{"items":[{"name":"a","size":1},{"name":"b","size":2}]}`},
		{"note", `{}`},
	} {
		p, err := c.Project(strings.Split(test.fields, ","), true)
		if err != nil {
			t.Fatalf("%s: %v", test.fields, err)
		}
		got, err := p.Apply(data)
		if err != nil || string(got) != test.want {
			t.Errorf("%s: %s (%v), want %s", test.fields, got, err, test.want)
		}
	}
	_, err := c.Project([]string{"total", "nope", "items.nope"}, true)
	f := discovery.AsFault(err)
	if f == nil || f.Code != discovery.ValidationError || !strings.Contains(f.Message, "nope', 'items.nope") || !strings.Contains(f.Hint, "items.…, ") {
		t.Errorf("unknown fields: %+v", f)
	}
	for text, want := range map[string][]string{string(data): {"items.name"}, `{"items":[{"size":1}]}`: nil, `{"note":"\"name\":"}`: nil} {
		if got := c.Untrusted([]byte(text), true); !slices.Equal(got, want) {
			t.Errorf("untrusted of %s: %q", text, got)
		}
	}
}

func TestProjectOfAnAnswerWithoutFields(t *testing.T) {
	c := discovery.New(discovery.Spec{Path: "x", Summary: "X", Effect: discovery.Read, Examples: []string{"x"}},
		func(context.Context, *discovery.Call, *Args) (struct{}, error) { return struct{}{}, nil })
	_, err := c.Project([]string{"x"}, true)
	if f := discovery.AsFault(err); f == nil || f.Code != discovery.ValidationError || len(f.Examples) == 0 {
		t.Errorf("%v", err)
	}
}

func TestRegistryRefusesMistakes(t *testing.T) {
	type bad struct {
		X string `json:"x"`
	}
	nothing := func(context.Context, *discovery.Call, *Args) (Result, error) { return Result{}, nil }
	for name, c := range map[string][]*discovery.Command{
		"effect":    {discovery.New(discovery.Spec{Path: "x", Summary: "X", Examples: []string{"x"}}, nothing)},
		"path":      {discovery.New(discovery.Spec{Path: "X", Summary: "X", Effect: discovery.Read, Examples: []string{"x"}}, nothing)},
		"example":   {discovery.New(discovery.Spec{Path: "x", Summary: "X", Effect: discovery.Read}, nothing)},
		"duplicate": {thing(), thing()},
		"below":     {thing(), discovery.New(discovery.Spec{Path: "thing", Summary: "X", Effect: discovery.Read, Examples: []string{"x"}}, nothing)},
		"reserved":  {discovery.New(discovery.Spec{Path: "help", Summary: "X", Effect: discovery.Read, Examples: []string{"x"}}, nothing)},
	} {
		if _, err := discovery.NewRegistry(discovery.Info{}, c...); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	c := discovery.New(discovery.Spec{Path: "x", Summary: "X", Effect: discovery.Read, Examples: []string{"x"}},
		func(context.Context, *discovery.Call, *bad) (Result, error) { return Result{}, nil })
	if c.Err() == nil {
		t.Error("no description: no error")
	}
	defer func() {
		if recover() == nil {
			t.Error("a command without a description binds")
		}
	}()
	_, _ = c.Bind(nil, nil)
}

// An option that is of use only with another command goes where that is not.
func TestAnOptionGoesWithItsCommand(t *testing.T) {
	type args struct {
		New bool `json:"new,omitempty" acli:"short=w,with=ack" jsonschema_description:"New ones"`
	}
	run := func(context.Context, *discovery.Call, *args) (Result, error) { return Result{}, nil }
	command := func(path string) *discovery.Command {
		return discovery.New(discovery.Spec{Path: path, Summary: "X", Effect: discovery.Read, Examples: []string{path}}, run)
	}
	for _, ack := range []bool{true, false} {
		list, others := command("list"), []*discovery.Command{}
		if ack {
			others = append(others, command("ack"))
		}
		if _, err := discovery.NewRegistry(discovery.Info{}, append(others, list)...); err != nil {
			t.Fatal(err)
		}
		_, long := list.Bind([]string{"--new"}, nil)
		_, short := list.Bind([]string{"-w"}, nil)
		if told := strings.Contains(list.Usage()+string(list.InputSchema()), "new"); told != ack || (long == nil) != ack || (short == nil) != ack {
			t.Errorf("with the command %v: told %v, %v, %v", ack, told, long, short)
		}
	}
}

func everything(*discovery.Command) bool { return true }

func TestResolveSuggests(t *testing.T) {
	r, err := discovery.NewRegistry(discovery.Info{Name: "test"}, thing())
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"thing dp":   "'thing do'",
		"thnig do":   "'thing do'",
		"do":         "'thing do'",
		"hlep":       "'help'",
		"shcema":     "'schema'",
		"zzzzzzzzzz": "Run 'help'",
	} {
		_, err := r.Resolve(strings.Fields(line), everything)
		f := discovery.AsFault(err)
		if f == nil || f.Code != discovery.CommandNotFound || !strings.Contains(f.Hint, want) || len(f.Examples) == 0 {
			t.Errorf("%s: %+v", line, f)
		}
	}
	if found, err := r.Resolve([]string{"thing"}, everything); err != nil || found.Group != "thing" {
		t.Errorf("group alone: %+v, %v", found, err)
	}
	hidden := func(c *discovery.Command) bool { return c.Path != "thing do" }
	_, err = r.Resolve([]string{"thing", "dp"}, hidden)
	if f := discovery.AsFault(err); f == nil || strings.Contains(f.Hint, "thing do") {
		t.Errorf("hidden command suggested: %+v", f)
	}
	if _, err := r.Resolve([]string{"thing"}, hidden); err == nil {
		t.Error("a group whose commands are hidden answers")
	}
}

// TestAFormIsThatOfSeveralArguments binds fields of a form, alone and in arrays, and
// one that narrows it.
func TestAFormIsThatOfSeveralArguments(t *testing.T) {
	type paint struct {
		One   string   `json:"one,omitempty" acli:"form=colour" jsonschema_description:"One"`
		Short *string  `json:"short,omitempty" acli:"form=colour" jsonschema:"maxLength=4" jsonschema_description:"Short"`
		Many  []string `json:"many,omitempty" acli:"form=colour" jsonschema:"maxItems=2" jsonschema_description:"Many"`
	}
	forms := map[string]discovery.Form{"colour": {MinLength: 3, MaxLength: 6, Pattern: regexp.MustCompile("^[a-z]+$"), Words: "must be the name of a colour"}}
	c := discovery.New(discovery.Spec{Path: "paint", Summary: "Paint", Effect: discovery.Read, Examples: []string{"paint"}, Forms: forms},
		func(context.Context, *discovery.Call, *paint) (Result, error) { return Result{}, nil })
	if err := c.Err(); err != nil {
		t.Fatal(err)
	}
	want := `"one":{"type":"string","maxLength":6,"minLength":3,"pattern":"^[a-z]+$","description":"One"},` +
		`"short":{"type":"string","maxLength":4,"minLength":3,"pattern":"^[a-z]+$","description":"Short"},` +
		`"many":{"items":{"type":"string","maxLength":6,"minLength":3,"pattern":"^[a-z]+$"},"type":"array","maxItems":2,"description":"Many"}`
	if got := string(c.InputSchema()); !strings.Contains(got, want) {
		t.Errorf("schema %s", got)
	}
	for option, want := range map[string]string{
		"--one=red": "", "--many=red,green": "", "--short=blue": "", "--short=green": "must be at most 4 characters long",
		"--one=RED": "must be the name of a colour", "--many=red,x9z": "must be the name of a colour", "--one=re": "must be at least 3 characters long",
	} {
		b, err := c.Bind([]string{option}, nil)
		if want == "" && (err != nil || !slices.Equal(c.Unbind(b.Args, discovery.Common{Timeout: 30})[1:], strings.Split(option, "="))) {
			t.Errorf("%s: %v", option, err)
		}
		if want != "" && (err == nil || !strings.HasSuffix(err.Error(), want+".")) {
			t.Errorf("%s: %v", option, err)
		}
	}
}

// TestAPatternNeedsWords has a field whose error would have to show a regular
// expression.
func TestAPatternNeedsWords(t *testing.T) {
	type bare struct {
		Code string `json:"code,omitempty" jsonschema:"pattern=^[a-c]+$" jsonschema_description:"Code"`
	}
	c := discovery.New(discovery.Spec{Path: "bare", Summary: "Bare", Effect: discovery.Read, Examples: []string{"bare"}},
		func(context.Context, *discovery.Call, *bare) (Result, error) { return Result{}, nil })
	if c.Err() == nil {
		t.Error("it was taken")
	}
}
