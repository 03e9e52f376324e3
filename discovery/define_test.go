package discovery_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway/gatewaytest"
	"github.com/postern-mail/postern/internal/testmain"
)

// definitions are the arguments of thing as somebody would write them down; days
// have no kind of their own.
func definitions(t testing.TB) []discovery.Argument {
	t.Helper()
	var list []discovery.Argument
	for _, a := range thing().Arguments() {
		switch d := *a; a.Name {
		case "day", "full", "fields", "timeout":
		default:
			if d.Default != nil {
				if _, text := d.Default.(string); !text {
					d.Default = json.Number(fmt.Sprint(d.Default))
				}
			}
			list = append(list, d)
		}
	}
	if len(list) != 16 {
		t.Fatalf("%d arguments", len(list))
	}
	return list
}

func echo(_ context.Context, _ *discovery.Call, args json.RawMessage) (json.RawMessage, error) {
	return args, nil
}

// right is a spec without a mistake.
var right = discovery.Spec{Path: "x", Summary: "X", Effect: discovery.Read, Examples: []string{"x"}}

func made(t testing.TB, c *discovery.Command) *discovery.Command {
	t.Helper()
	must(t, c.Err())
	return c
}

func defined(t testing.TB) *discovery.Command {
	t.Helper()
	return made(t, discovery.Define(discovery.Spec{Path: "thing do", Summary: "Do a thing", Effect: discovery.Read, Examples: []string{"thing do a"}},
		discovery.Definition{Arguments: definitions(t)}, echo))
}

// same reports whether two JSON documents are the same but for members named day.
func same(t testing.TB, a, b any) bool {
	t.Helper()
	var v [2]any
	for i, doc := range []any{a, b} {
		raw, err := json.Marshal(doc)
		must(t, err)
		must(t, json.Unmarshal(raw, &v[i]))
		strip(v[i])
	}
	return reflect.DeepEqual(v[0], v[1])
}

func strip(v any) {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "day")
		for k, e := range v {
			if list, ok := e.([]any); ok {
				v[k] = slices.DeleteFunc(list, func(e any) bool {
					m, ok := e.(map[string]any)
					return ok && m["name"] == "--day"
				})
			}
			strip(v[k])
		}
	case []any:
		for _, e := range v {
			strip(e)
		}
	}
}

// TestADefinedCommandIsDescribedLikeOneWithTypes holds the two ways to say what a
// command takes to one help and one schema.
func TestADefinedCommandIsDescribedLikeOneWithTypes(t *testing.T) {
	help := func(c *discovery.Command) any {
		r, err := discovery.NewRegistry(discovery.Info{Name: "test"}, c)
		must(t, err)
		h, err := r.Lookup("help").Run(t.Context(), &discovery.Call{Caller: discovery.Caller{Visible: everything}}, &discovery.Bound{Args: &discovery.HelpArgs{Command: []string{"thing", "do"}}})
		must(t, err)
		return h
	}
	if typed, def := thing(), defined(t); !same(t, help(typed), help(def)) {
		t.Errorf("help differs\n%+v\n%+v", help(typed), help(def))
	} else if !same(t, typed.InputSchema(), def.InputSchema()) {
		t.Errorf("schema differs\n%s\n%s", typed.InputSchema(), def.InputSchema())
	} else if typed.Usage() != def.Usage() {
		t.Errorf("usage: %s, %s", typed.Usage(), def.Usage())
	}
}

// FuzzDefinedBindsLikeTyped gives the same tokens to both: what one refuses the
// other refuses with the same words, and both show the same in a log.
func FuzzDefinedBindsLikeTyped(f *testing.F) {
	for _, seed := range []string{"a", "", "a\x00--text\x00x", "a\x00-n10\x00-f", "--help", "a\x00--list=a,b\\,c", "a\x00--secret\x00hunter2", "a\x00--ratio=2",
		"a\x00--when\x002026-02-30", "a\x00--when=2026-02-02", "a\x00--numbers=1,2,30", "a\x00--level=mid", "a\x00--code=abd", "a\x00--file=../x", "a\x00--size=-1",
		"a\x00--txet=x", "a\x00--choice=maybe", "a\x00b\x00c\x00d", "a\x00--pattern=\x00--optional"} {
		f.Add(seed)
	}
	typed, def := thing(), defined(f)
	f.Fuzz(func(t *testing.T, joined string) {
		tokens := strings.Split(joined, "\x00")
		if strings.Contains(joined, "d") && slices.ContainsFunc(tokens, func(s string) bool { return strings.HasPrefix(s, "--d") }) {
			t.Skip("day is an option of one of them, or its neighbour")
		}
		one, err1 := typed.Bind(tokens, time.UTC)
		two, err2 := def.Bind(tokens, time.UTC)
		f1, f2 := discovery.AsFault(err1), discovery.AsFault(err2)
		switch {
		case (f1 == nil) != (f2 == nil), f1 != nil && (f1.Code != f2.Code || f1.Message != f2.Message):
			t.Fatalf("%q\n%+v\n%+v", tokens, f1, f2)
		case !slices.Equal(typed.Redact(tokens), def.Redact(tokens)):
			t.Fatalf("%q: %q, %q", tokens, typed.Redact(tokens), def.Redact(tokens))
		case f1 != nil || one.Help:
			return
		case !reflect.DeepEqual(one.Common, two.Common):
			t.Fatalf("%q: %+v, %+v", tokens, one.Common, two.Common)
		}
		// What the function gets is in the schema's terms what was written.
		raw, err := json.Marshal(two.Args)
		must(t, err)
		again, err := def.Bind(def.Unbind(two.Args, two.Common)[2:], time.UTC)
		if err != nil {
			t.Fatalf("%q: %v", def.Unbind(two.Args, two.Common), err)
		}
		raw2, err := json.Marshal(again.Args)
		if err != nil || string(raw) != string(raw2) {
			t.Fatalf("%s, %s, %v", raw, raw2, err)
		}
	})
}

func TestADefinedFunctionGetsJSON(t *testing.T) {
	c := defined(t)
	for _, test := range []struct{ line, want string }{
		{"a", `{"names":["a"],"count":4,"flag":false,"level":"low"}`},
		{"a b --text= -n -3 --size 7 --ratio 1e-1 -f --choice false --list x,y --numbers 3,4 --level high --secret s --optional=false --pattern=",
			""},
		{"a b --text z -n -3 --size 7 --ratio 1e-1 -f --choice false --list x,y --numbers 3,4 --level high --secret s --optional=false --pattern=",
			`{"names":["a","b"],"text":"z","count":-3,"size":7,"ratio":0.1,"flag":true,"choice":false,"list":["x","y"],"numbers":[3,4],"level":"high","secret":"s","optional":false,"pattern":""}`},
		{"a --when 2026-02-02", `{"names":["a"],"count":4,"flag":false,"when":"2026-02-02T00:00:00Z","level":"low"}`},
		{"a --when 2026-02-02T10:00:00.5+01:00", `{"names":["a"],"count":4,"flag":false,"when":"2026-02-02T10:00:00.5+01:00","level":"low"}`},
	} {
		b, err := c.Bind(strings.Fields(test.line), time.UTC)
		if test.want == "" {
			if err == nil {
				t.Errorf("%s: bound", test.line)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", test.line, err)
		}
		got, err := c.Run(t.Context(), &discovery.Call{}, b)
		must(t, err)
		// Flags are always there; --optional is one.
		want := test.want
		if !strings.Contains(want, "optional") {
			want = strings.TrimSuffix(want, "}") + `,"optional":false}`
		}
		if raw, _ := got.(json.RawMessage); !same(t, raw, json.RawMessage(want)) {
			t.Errorf("%s\n%s\n%s", test.line, raw, want)
		}
	}
}

// TestOldOffsetsAreWrittenAsTheInstantTheyAre takes a zone that was 19 minutes and 32
// seconds ahead, which RFC 3339 cannot say.
func TestOldOffsetsAreWrittenAsTheInstantTheyAre(t *testing.T) {
	zone := time.FixedZone("old", 19*60+32)
	b, err := defined(t).Bind([]string{"a", "--when", "1900-01-01T00:00:00"}, zone)
	must(t, err)
	raw, err := json.Marshal(b.Args)
	if err != nil || !strings.Contains(string(raw), `"when":"1899-12-31T23:40:28Z"`) {
		t.Errorf("%s, %v", raw, err)
	}
}

func TestDefineRefusesMistakes(t *testing.T) {
	for _, c := range testmain.Table[struct{ Name, Arguments string }](t, "testdata/cases/wrong_arguments.txt") {
		var list []discovery.Argument
		d := json.NewDecoder(strings.NewReader(c.Arguments))
		d.UseNumber()
		must(t, d.Decode(&list))
		for i := range list {
			if c.Name != "no description" {
				list[i].Description = "Text"
			}
		}
		if discovery.Define(right, discovery.Definition{Arguments: list}, echo).Err() == nil {
			t.Errorf("%s: no error", c.Name)
		}
	}
	for name, change := range map[string]func(*discovery.Spec){
		"effect": func(s *discovery.Spec) { s.Effect = 0 }, "path": func(s *discovery.Spec) { s.Path = "X" }, "timeout": func(s *discovery.Spec) { s.Timeout = 301 },
		"summary": func(s *discovery.Spec) { s.Summary = "" }, "examples": func(s *discovery.Spec) { s.Examples = nil },
	} {
		s := right
		change(&s)
		if discovery.Define(s, discovery.Definition{}, echo).Err() == nil {
			t.Errorf("spec, %s: no error", name)
		}
	}
	made(t, discovery.Define(right, discovery.Definition{}, echo))
}

// TestAnIntegerWithoutBoundsStaysExact shows that no reader of JSON gets another
// integer than was written.
func TestAnIntegerWithoutBoundsStaysExact(t *testing.T) {
	c := made(t, discovery.Define(right, discovery.Definition{Arguments: []discovery.Argument{{Name: "n", Kind: discovery.KindInteger, Description: "N"}}}, echo))
	for text, ok := range map[string]bool{"9007199254740991": true, "-9007199254740991": true, "9007199254740993": false, "9223372036854775807": false, "1e3": false} {
		b, err := c.Bind([]string{"--n=" + text}, nil)
		if (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
		if err == nil {
			var v struct{ N float64 }
			raw, _ := json.Marshal(b.Args)
			if err := json.Unmarshal(raw, &v); err != nil || fmt.Sprintf("%.0f", v.N) != text || math.IsInf(v.N, 0) {
				t.Errorf("%s: %s", text, raw)
			}
		}
	}
}

func shaped(t testing.TB, s *discovery.Shape) (*discovery.Command, error) {
	t.Helper()
	c := discovery.Define(right, discovery.Definition{Output: s}, echo)
	return c, c.Err()
}

// TestAShapeAgreesWithItsSchema tries values on a shape and on the schema that is
// shown of it.
func TestAShapeAgreesWithItsSchema(t *testing.T) {
	s := &discovery.Shape{}
	if err := json.Unmarshal([]byte(`{"type":"object","required":["list"],"properties":{"ratio":{"type":"number"},"on":{"type":"boolean"},"text":{"type":"string"},
		"list":{"type":"array","items":{"type":"object","required":["n"],"properties":{"level":{"type":"string","enum":["low","high"]},"n":{"type":"integer"}}}}}}`), s); err != nil {
		t.Fatal(err)
	}
	c, err := shaped(t, s)
	must(t, err)
	schema := gatewaytest.Schema(t, c.OutputSchema(true))
	good := 0
	for _, text := range []string{`{"list":[]}`, `{"list":[{"n":1}]}`, `{"list":[{"n":1,"level":"low"}],"ratio":1.5,"on":true,"text":""}`, `{}`, `[]`, `null`, `"x"`, `{"list":{}}`,
		`{"list":[{}]}`, `{"list":[{"n":1.5}]}`, `{"list":[{"n":"1"}]}`, `{"list":[{"n":1,"level":"mid"}]}`, `{"list":[{"n":1,"x":1}]}`, `{"list":[],"x":1}`, `{"list":[],"ratio":"1"}`,
		`{"list":[],"on":1}`, `{"list":[],"text":null}`, `{"list":null}`, `{"list":[null]}`} {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		var v any
		must(t, d.Decode(&v))
		fits := s.Fits(v)
		if err := schema.Validate(v); (err == nil) != fits {
			t.Errorf("%s fits: %v; schema: %v", text, fits, err)
		}
		if fits {
			good++
		}
	}
	if good != 3 {
		t.Errorf("%d fit", good)
	}
	if names := c.FieldNames(true); !slices.Equal(names, []string{"list", "list.level", "list.n", "on", "ratio", "text"}) {
		t.Errorf("fields %q", names)
	}
	if got := c.Untrusted([]byte("{}"), true); !slices.Equal(got, []string{discovery.Everything}) {
		t.Errorf("untrusted %q", got)
	}
}

func TestDefineRefusesShapes(t *testing.T) {
	for _, c := range testmain.Table[struct{ Name, Shape string }](t, "testdata/cases/wrong_shapes.txt") {
		var s discovery.Shape
		must(t, json.Unmarshal([]byte(c.Shape), &s))
		if _, err := shaped(t, &s); err == nil {
			t.Errorf("%s: no error", c.Name)
		}
	}
	c, err := shaped(t, nil)
	must(t, err)
	if _, err := c.Project([]string{"a"}, true); err == nil {
		t.Error("--fields of an answer that may be anything")
	}
	must(t, gatewaytest.Schema(t, c.OutputSchema(true)).Validate([]any{1}))
}

type row struct {
	ID      string `json:"id"`
	Subject string `json:"subject" acli:"untrusted"`
	Marks   string `json:"marks"`
	Size    int    `json:"size"`
}

type shelf struct {
	Rows []row  `json:"rows_in_full"`
	Next string `json:"next"`
}

type briefShelf struct {
	Folder string `json:"folder,omitempty"`
	discovery.Table[row]
	Inner *innerShelf `json:"inner,omitempty"`
	More  string      `json:"more,omitempty"`
}

type innerShelf struct {
	Books discovery.Table[row] `json:"books"`
}

func (s *shelf) Brief() briefShelf {
	b := briefShelf{Folder: "INBOX", Table: discovery.TableOf(s.Rows), More: s.Next}
	if s.Next == "inner" {
		b.Inner = &innerShelf{discovery.TableOf(s.Rows)}
	}
	return b
}

func shelfCommand(t *testing.T) *discovery.Command {
	t.Helper()
	c := discovery.New(discovery.Spec{Path: "shelf", Summary: "A shelf", Effect: discovery.Read, Examples: []string{"shelf"}},
		func(context.Context, *discovery.Call, *struct{}) (*shelf, error) { return nil, nil })
	must(t, c.Err())
	return c
}

func encoded(t *testing.T, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	must(t, e.Encode(v))
	return bytes.TrimSpace(b.Bytes())
}

func TestATableIsWrittenChosenFromAndDescribed(t *testing.T) {
	c := shelfCommand(t)
	books := []row{{ID: "1", Subject: "a <b>"}, {ID: "2", Marks: "unread"}}
	for _, test := range []struct {
		rows               []row
		next, fields, want string
	}{
		{books, "", "", `{"untrusted":"subject","folder":"INBOX","columns":["id","subject","marks"],"rows":[["1","a <b>",""],["2","","unread"]]}`},
		{books[1:], "", "", `{"folder":"INBOX","columns":["id","marks"],"rows":[["2","unread"]]}`},
		{nil, "", "", `{"folder":"INBOX","columns":[],"rows":[]}`},
		{books, "shelf 3", "subject,size,id", `{"untrusted":"subject","columns":["subject","id"],"rows":[["a <b>","1"],["","2"]],"more":"shelf 3"}`},
		{books, "", "folder", `{"folder":"INBOX"}`},
		{books, "", "folder,marks", `{"columns":["marks"],"rows":[[""],["unread"]],"folder":"INBOX"}`},
		{nil, "", "marks", `{"columns":[],"rows":[]}`},
		{books[1:], "inner", "inner.books.id", `{"inner":{"books":{"columns":["id"],"rows":[["2"]]}},"more":"inner"}`},
		{books[1:], "inner", "inner.books", `{"inner":{"books":{"columns":["id","marks"],"rows":[["2","unread"]]}},"more":"inner"}`},
	} {
		var names []string
		if test.fields != "" {
			for name := range bytes.SplitSeq([]byte(test.fields), []byte(",")) {
				names = append(names, string(name))
			}
		}
		p, err := c.Project(names, false)
		must(t, err)
		view := encoded(t, c.View(&shelf{test.rows, test.next}, false))
		data, err := p.Apply(view)
		must(t, err)
		labelled, ok := c.Label(data)
		if !ok || string(labelled) != test.want {
			t.Errorf("%q: %v %s\nwant %s", test.fields, ok, labelled, test.want)
		}
		var v any
		if whole, _ := c.Label(view); json.Unmarshal(whole, &v) != nil || gatewaytest.Schema(t, c.OutputSchema(false)).Validate(v) != nil {
			t.Errorf("%s does not have the shape that the schema says: %s", whole, c.OutputSchema(false))
		}
	}
	if got := c.FieldNames(false); !slices.Equal(got, []string{"folder", "id", "inner", "inner.books", "inner.books.id", "inner.books.marks", "inner.books.size", "inner.books.subject", "marks", "more", "size", "subject"}) {
		t.Errorf("fields %q", got)
	}
	if v, ok := c.View(&shelf{}, true).(*shelf); !ok || v == nil {
		t.Error("the full answer is another value")
	}
	_, err := c.Project([]string{"rows_in_full.id"}, false)
	if f := discovery.AsFault(err); f == nil || f.Code != discovery.ValidationError || !bytes.Contains([]byte(f.Hint), []byte("Add --full")) {
		t.Errorf("a field of the full answer: %v", err)
	}
}

type wrongBrief struct{}

func (wrongBrief) Brief(int) string { return "" }

func TestABriefOfAnotherFormIsAMistake(t *testing.T) {
	c := discovery.New(discovery.Spec{Path: "wrong", Summary: "Wrong", Effect: discovery.Read, Examples: []string{"wrong"}},
		func(context.Context, *discovery.Call, *struct{}) (wrongBrief, error) { return wrongBrief{}, nil })
	if c.Err() == nil {
		t.Error("it is taken")
	}
}
