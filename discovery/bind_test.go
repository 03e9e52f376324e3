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
	"unicode/utf8"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway/gatewaytest"
	"github.com/postern-mail/postern/internal/testmain"
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
	for _, c := range testmain.Table[struct {
		Differs string
		Tokens  []string
	}](t, "testdata/cases/bind_values.txt") {
		want := Args{Names: []string{"a"}, Count: 4, Level: "low"}
		must(t, json.Unmarshal([]byte(c.Differs), &want))
		if got, err := bind(t, c.Tokens...); err != nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("%q:\n got %+v, %v\nwant %+v", c.Tokens, got, err, want)
		}
	}
	if got, err := bind(t, "a", "--day", "2024-02-29"); err != nil || !got.Day.Equal(time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("%+v, %v", got, err)
	}
	for text, want := range map[string]discovery.Datetime{"2026-02-02T10:00:00+01:00": {Time: time.Date(2026, 2, 2, 9, 0, 0, 0, time.UTC)}, "2024-02-29": {Time: time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC), DateOnly: true}} {
		if got, err := bind(t, "a", "--when", text); err != nil || !got.When.Equal(want.Time) || got.When.DateOnly != want.DateOnly {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

func TestBindRefuses(t *testing.T) {
	for _, c := range testmain.Table[struct {
		Code, Says string
		Tokens     []string
	}](t, "testdata/cases/bind_refuses.txt") {
		_, err := bind(t, c.Tokens...)
		f := discovery.AsFault(err)
		if f == nil {
			t.Errorf("%q: no fault, err %v", c.Tokens, err)
			continue
		}
		if string(f.Code) != c.Code || !strings.Contains(f.Message, c.Says) {
			t.Errorf("%q: %s %q, want %s with %q", c.Tokens, f.Code, f.Message, c.Code, c.Says)
		}
		if (f.Code == discovery.PathTraversal) != (f.Reason == "path") {
			t.Errorf("%q: reason for the audit log %q", c.Tokens, f.Reason)
		}
		if f.Hint == "" || len(f.Examples) == 0 {
			t.Errorf("%q: no hint or no example", c.Tokens)
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
		"10:30":                  time.Now().In(zone).Format("2006-01-02") + "T10:30:00+02:00",
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
	must(t, err)
	b, err := thing().Bind([]string{"a", "--when", "2026-09-06"}, zone)
	must(t, err)
	if got := b.Args.(*Args).When.Format(time.RFC3339); got != "2026-09-06T01:00:00-03:00" {
		t.Errorf("%s", got)
	}
}

func TestRedactKeepsOnlyWhatItKnows(t *testing.T) {
	type none struct{}
	bare := discovery.New(discovery.Spec{Path: "bare", Summary: "Take nothing", Effect: discovery.Read, Examples: []string{"bare"}},
		func(context.Context, *discovery.Call, *none) (none, error) { return none{}, nil })
	for _, c := range testmain.Table[struct {
		Sensitive bool
		Want      string
		In        []string
	}](t, "testdata/cases/redacted.txt") {
		got := bare.Redact(c.In)
		if c.Sensitive {
			got = thing().Redact(c.In)
		}
		if strings.Join(got, " ") != c.Want {
			t.Errorf("%q: %q, want %s", c.In, got, c.Want)
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
	must(t, err)
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
	must(t, c.Err())
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
func TestPeekSaysWhatCanBeToldBeforeBinding(t *testing.T) {
	for _, c := range testmain.Table[struct {
		Seconds     int
		Wrong, Help bool
		Line        string
	}](t, "testdata/cases/peeked.txt") {
		want := discovery.Outlook{Timeout: time.Duration(c.Seconds) * time.Second, Wrong: c.Wrong, Help: c.Help}
		if got := thing().Peek(strings.Fields(c.Line)); got != want {
			t.Errorf("%s: %+v, want %+v", c.Line, got, want)
		}
		if _, err := thing().Bind(strings.Fields(c.Line), nil); (err != nil) != want.Wrong {
			t.Errorf("%s: binding says %v", c.Line, err)
		}
	}
}

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestUnbindWritesWhatWasGivenAndNoMore(t *testing.T) {
	c := thing()
	for _, test := range testmain.Table[struct {
		Want string
		In   []string
	}](t, "testdata/cases/unbound.txt") {
		b, err := c.Bind(test.In, time.UTC)
		if err != nil {
			t.Fatalf("%q: %v", test.In, err)
		}
		if got := strings.ReplaceAll(strings.Join(c.Unbind(b.Args, b.Common), " "), "  ", " '' "); got != test.Want {
			t.Errorf("%q: %s, want %s", test.In, got, test.Want)
		}
	}
}

// FuzzUnbindIsTheInverseOfBind takes any token list that binds, writes it anew, and
// binds that: the arguments must be the same.
func FuzzUnbindIsTheInverseOfBind(f *testing.F) {
	for _, seed := range []string{
		"a\x00-n-3\x00--text=-x", "--\x00-a\x00--", "a\x00--list=x\\,y,z\\\x00--list=\\", "a\x00--ratio=1e-7\x00--numbers=1,2",
		"a\x00--when=2026-02-02T10:30\x00--optional=false", "a\x00--day=2026-02-02\x00--pattern=\x00--secret=", "-\x00--fields=total\x00--timeout=300",
		"a\x00--when=1850-01-01T00:00\x00--list=\\,",
	} {
		f.Add(seed)
	}
	zone, err := time.LoadLocation("Europe/Berlin")
	must(f, err)
	c := thing()
	f.Fuzz(func(t *testing.T, joined string) {
		if !utf8.ValidString(joined) {
			t.Skip("tokens are valid UTF-8, which the gateway sees to")
		}
		b, err := c.Bind(strings.Split(joined, "\x00"), zone)
		if err != nil || b.Help {
			return
		}
		tokens := c.Unbind(b.Args, b.Common)
		again, err := c.Bind(tokens[2:], zone)
		if err != nil {
			t.Fatalf("%q: %q does not bind: %v", joined, tokens, err)
		}
		was, is := *b.Args.(*Args), *again.Args.(*Args)
		if !was.When.Equal(is.When.Time) || was.When.DateOnly != is.When.DateOnly {
			t.Fatalf("%q: when %v became %v", joined, was.When, is.When)
		}
		was.When, is.When = discovery.Datetime{}, discovery.Datetime{}
		if !reflect.DeepEqual(was, is) || !reflect.DeepEqual(b.Common, again.Common) {
			t.Fatalf("%q: %q binds to\n%+v, not\n%+v", joined, tokens, is, was)
		}
	})
}

type pickyArgs struct {
	Wide  bool   `json:"wide,omitempty" jsonschema_description:"Wide"`
	Width int    `json:"width,omitempty" acli:"requires=wide" jsonschema:"minimum=1,maximum=9,default=5" jsonschema_description:"Width, with --wide"`
	Word  string `json:"word,omitempty" jsonschema_description:"Word"`
}

func picky(run func(*discovery.Call, *pickyArgs)) *discovery.Command {
	return discovery.New(discovery.Spec{Path: "picky", Summary: "Pick", Effect: discovery.Read, Examples: []string{"picky"}},
		func(_ context.Context, call *discovery.Call, args *pickyArgs) (Result, error) {
			if run != nil {
				run(call, args)
			}
			return Result{}, nil
		})
}

func TestAnOptionThatRequiresAnotherIsRefusedWithoutIt(t *testing.T) {
	c := picky(nil)
	for _, tokens := range [][]string{{"--width", "5"}, {"--width=3", "--word", "wide"}} {
		_, err := c.Bind(tokens, nil)
		if f := discovery.AsFault(err); f == nil || f.Code != discovery.ValidationError || f.Message != "--width works only together with --wide." {
			t.Errorf("%q: %v", tokens, err)
		}
	}
	b, err := c.Bind([]string{"--width", "3", "--wide"}, nil)
	if err != nil || b.Args.(*pickyArgs).Width != 3 {
		t.Errorf("with both: %+v, %v", b, err)
	}
	if b, err = c.Bind(nil, nil); err != nil || b.Args.(*pickyArgs).Width != 5 {
		t.Errorf("default without either: %+v, %v", b, err)
	}
	type bad struct {
		X string `json:"x,omitempty" acli:"requires=y" jsonschema_description:"X"`
	}
	c = discovery.New(discovery.Spec{Path: "x", Summary: "X", Effect: discovery.Read, Examples: []string{"x"}},
		func(context.Context, *discovery.Call, *bad) (Result, error) { return Result{}, nil })
	if c.Err() == nil {
		t.Error("an option may require one that does not exist")
	}
}

func TestAgainKeepsTheCommonOptions(t *testing.T) {
	var got []string
	c := picky(func(call *discovery.Call, args *pickyArgs) {
		next := *args
		next.Word = "it's here"
		got = append(got, call.Again(&next))
	})
	for _, tokens := range [][]string{nil, {"--wide", "--timeout", "7", "--fields", "items.size,total"}} {
		b, err := c.Bind(tokens, nil)
		must(t, err)
		if _, err := c.Run(t.Context(), &discovery.Call{}, b); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{`picky --word "it's here"`, `picky --wide --word "it's here" --fields items.size,total --timeout 7`}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// FuzzBind shows that no token list makes binding panic, that every refusal is a
// complete fault, and that neither a refusal nor the redacted form repeats a
// sensitive value.
func FuzzBind(f *testing.F) {
	for _, seed := range []string{
		"a", "a\x00--text\x00x", "a\x00-n10", "--help", "--\x00--text", "a\x00--list=a,b\\,c", "a\x00--secret\x00hunter2hunter2",
		"a\x00--secret=hunter2hunter2\x00--secret=x", "-", "a\x00--file\x00../x", "a\x00--when\x002026-02-30", "a\x00-\xff", "a\x00--=x", "a\x00--optional=x",
	} {
		f.Add(seed)
	}
	c := thing()
	f.Fuzz(func(t *testing.T, joined string) {
		tokens := strings.Split(joined, "\x00")
		b, err := c.Bind(tokens, time.UTC)
		redacted := strings.Join(c.Redact(tokens), " ")
		if err != nil {
			fault := discovery.AsFault(err)
			if fault == nil || fault.Message == "" || fault.Hint == "" || len(fault.Examples) == 0 || !fault.Usage() {
				t.Fatalf("%q: incomplete fault %+v", tokens, err)
			}
			redacted += fault.Message + fault.Hint + strings.Join(fault.Examples, " ")
		} else if !b.Help && b.Args == nil {
			t.Fatalf("%q: bound to nothing", tokens)
		}
		const canary = "hunter2hunter2"
		if strings.Contains(joined, "--secret\x00"+canary) && strings.Count(joined, canary) == 1 && !strings.Contains(joined, "--\x00") && strings.HasPrefix(joined, "a\x00--secret\x00") && strings.Contains(redacted, canary) {
			t.Fatalf("%q: %s", tokens, redacted)
		}
	})
}

var jsonNumber = regexp.MustCompile(`\A-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?\z`)

// jsonForm is the JSON value that a text stands for under a kind; a text that
// stands for none is the string itself, which the schema then refuses.
func jsonForm(kind discovery.Kind, text string) any {
	switch kind {
	case discovery.KindInteger, discovery.KindNumber:
		if jsonNumber.MatchString(text) {
			return json.Number(text)
		}
	case discovery.KindBoolean, discovery.KindFlag:
		if text == "true" || text == "false" {
			return text == "true"
		}
	}
	return text
}

// A datetime may be written in more ways than RFC 3339; only its own ways can be
// compared with the schema's format.
var rfc3339 = regexp.MustCompile(`\A[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-5][0-9](\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})\z`)

var integerForm = regexp.MustCompile(`\A-?[0-9]+\z`)

// FuzzBindAgreesWithSchema gives one argument the same value as tokens and as an
// instance of the generated schema: both take it or both refuse it.
func FuzzBindAgreesWithSchema(f *testing.F) {
	for i := range 20 {
		for _, v := range []string{"", "x", "12345", "123456", "0", "-3", "-4", "10", "11", "4294967296", "1.5", "true", "low", "abc", "a,b", "2026-02-02T10:00:00Z", "2026-02-30T10:00:00Z", "é日"} {
			f.Add(uint8(i), v, "")
		}
		f.Add(uint8(i), "a", "b,c")
	}
	c := thing()
	schema := gatewaytest.Schema(f, c.InputSchema())
	arguments := c.Arguments()
	f.Fuzz(func(t *testing.T, which uint8, first, second string) {
		if !utf8.ValidString(first) || !utf8.ValidString(second) {
			t.Skip("tokens are valid UTF-8, which the gateway sees to")
		}
		a := arguments[int(which)%len(arguments)]
		texts := []string{first}
		kind := a.Kind
		if kind == discovery.KindArray {
			kind = a.Item
			if second != "" {
				texts = append(texts, second)
			}
		}
		var values []any
		for _, text := range texts {
			switch {
			case a.Path:
				t.Skip("a schema cannot say where a path leads")
			case kind == discovery.KindDatetime && strings.HasPrefix(text, "0000"):
				t.Skip("the year 0 is refused, which a format cannot say")
			case kind == discovery.KindDatetime && a.Name != "day" && !rfc3339.MatchString(text):
				t.Skip("not the schema's way to write a time")
			case kind == discovery.KindInteger && jsonNumber.MatchString(text) && !integerForm.MatchString(text):
				t.Skip("1.0 is an integer to a schema, and not the form of one in a command")
			}
			values = append(values, jsonForm(kind, text))
		}
		instance := map[string]any{"names": []any{"a"}}
		tokens := []string{}
		switch {
		case a.Positional:
			tokens = append(tokens, append([]string{"--"}, texts...)...)
			instance[a.Name] = values
		case a.Kind == discovery.KindArray:
			for _, text := range texts {
				// A backslash before a comma would be read with it, and
				// needs no escape of its own anywhere else.
				tokens = append(tokens, "--"+a.Name+"="+strings.ReplaceAll(text, ",", `\,`))
			}
			tokens = append(tokens, "--", "a")
			instance[a.Name] = values
		default:
			tokens = append(tokens, "--"+a.Name+"="+first, "--", "a")
			instance[a.Name] = values[0]
		}
		_, bindErr := c.Bind(tokens, time.UTC)
		schemaErr := schema.Validate(instance)
		if (bindErr == nil) != (schemaErr == nil) {
			t.Fatalf("%q\nbinding: %v\nschema of %s: %v", tokens, bindErr, a.Name, schemaErr)
		}
	})
}
