package conformance

import (
	"encoding/json"
	"strings"
	"testing"
)

func pattern(t testing.TB, text string) *Pattern {
	t.Helper()
	var p Pattern
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return &p
}

// TestMatchers has for each matcher values it takes and values it does not.
func TestMatchers(t *testing.T) {
	vars := scope{"name": "limit", "list": []any{"a", "b"}, "schema": map[string]any{"type": "string", "minLength": json.Number("2")}, "n": json.Number("5")}
	for text, c := range map[string]struct{ yes, no []string }{
		`"a"`:                              {[]string{`"a"`}, []string{`"b"`, `1`, `null`, `["a"]`}},
		`1`:                                {[]string{`1`, `1.0`, `10e-1`}, []string{`"1"`, `2`, `true`, `1e999999999`}},
		`null`:                             {[]string{`null`}, []string{`0`, `{}`}},
		`[1,{"a":2}]`:                      {[]string{`[1,{"a":2,"b":3}]`}, []string{`[1]`, `[1,{"a":3}]`, `[1,{"a":2},3]`}},
		`{"a":{"b":1}}`:                    {[]string{`{"a":{"b":1,"c":2},"d":3}`}, []string{`{}`, `{"a":1}`, `[]`}},
		`{"a":{"$any":true}}`:              {[]string{`{"a":null}`}, []string{`{}`}},
		`{"a":{"$absent":true}}`:           {[]string{`{}`}, []string{`{"a":null}`}},
		`{"a":{"$optional":1}}`:            {[]string{`{}`, `{"a":1}`}, []string{`{"a":2}`, `{"a":null}`}},
		`{"$exact":{"a":1}}`:               {[]string{`{"a":1.0}`}, []string{`{"a":1,"b":2}`, `{}`}},
		`{"$exact":{"$any":"${n}"}}`:       {[]string{`{"$any":5}`}, []string{`{"$any":true}`}},
		`{"$type":"integer"}`:              {[]string{`1`, `-2.0`}, []string{`1.5`, `"1"`}},
		`{"$type":["number","null"]}`:      {[]string{`1`, `1.5`, `null`}, []string{`"1"`, `[]`}},
		`{"$regex":"^a.c$"}`:               {[]string{`"abc"`}, []string{`"xabc"`, `1`}},
		`{"$word":"${name}"}`:              {[]string{`"--limit is"`, `"limit"`, `"(limit)"`, `"limit-"`}, []string{`"limits"`, `"page-limit"`, `"limit-x"`, `"--page-limit"`, `""`}},
		`{"$contains":"b"}`:                {[]string{`"abc"`, `["a","b"]`}, []string{`"xyz"`, `["abc"]`, `{}`}},
		`{"$contains":{"a":1}}`:            {[]string{`[{"a":2},{"a":1,"b":1}]`}, []string{`[]`, `{"a":1}`}},
		`{"$every":{"$type":"string"}}`:    {[]string{`[]`, `["a"]`, `{"x":"y"}`}, []string{`["a",1]`, `{"x":1}`, `"a"`}},
		`{"$unique":true}`:                 {[]string{`[1,2]`, `[]`}, []string{`[1,1.0]`, `"aa"`}},
		`{"$set":["a","b"]}`:               {[]string{`["b","a"]`, `["a","b","a"]`}, []string{`["a"]`, `["a","b","c"]`, `"ab"`}},
		`{"$set":"${list}"}`:               {[]string{`["b","a"]`}, []string{`["a"]`}},
		`{"$only":{"a":{"$any":true}}}`:    {[]string{`{"a":1}`}, []string{`{"a":1,"b":2}`, `{}`, `[]`}},
		`{"$keys":["a","b"]}`:              {[]string{`{"b":1,"a":2}`}, []string{`{"a":1}`, `["a","b"]`}},
		`{"$range":[1,3]}`:                 {[]string{`1`, `3`, `2.5`}, []string{`0`, `3.1`, `"2"`}},
		`{"$range":[null,3]}`:              {[]string{`-1e9`}, []string{`4`}},
		`{"$length":[1,2]}`:                {[]string{`"é"`, `[1,2]`, `{"a":1}`}, []string{`""`, `"abc"`, `3`}},
		`{"$not":1}`:                       {[]string{`2`, `"1"`}, []string{`1`}},
		`{"$oneOf":[1,{"a":2}]}`:           {[]string{`1`, `{"a":2}`}, []string{`2`, `{"a":1}`}},
		`{"$allOf":[{"a":1},{"b":2}]}`:     {[]string{`{"a":1,"b":2}`}, []string{`{"a":1}`}},
		`{"$compact":true}`:                {[]string{`"{\"a\":\"x y\\\" z\"}"`}, []string{`"{ }"`, `"{\"a\":1,\"a\":1}"`, `"{} "`, `"x"`, `1`}},
		`{"$schema":"${schema}"}`:          {[]string{`"ab"`}, []string{`"a"`, `1`}},
		`{"$type":"string","$regex":"^a"}`: {[]string{`"ab"`}, []string{`"b"`}},
		`"${n}"`:                           {[]string{`5`}, []string{`"5"`, `6`}},
		`{"${name}":1}`:                    {[]string{`{"limit":1}`}, []string{`{"limit":2}`, `{}`}},
	} {
		p := pattern(t, text)
		for want, values := range map[bool][]string{true: c.yes, false: c.no} {
			for _, value := range values {
				v, err := decode([]byte(value))
				if err != nil {
					t.Fatal(err)
				}
				miss, err := p.match(v, vars)
				if err != nil {
					t.Fatal(err)
				}
				if (len(miss) == 0) != want {
					t.Errorf("%s and %s: %v", text, value, miss)
				}
			}
		}
	}
}

func TestAPlaceholderThatNothingFillsIsAFault(t *testing.T) {
	for _, text := range []string{`"${x}"`, `{"$exact":["${x}"]}`, `{"$word":"${x}"}`, `{"$not":"${x}"}`, `{"$oneOf":["${x}"]}`} {
		if _, err := pattern(t, text).match("a", scope{}); err == nil {
			t.Errorf("%s matched", text)
		}
	}
}

// TestQuoteIsReadBack holds what is written for an argument to how 002 section 4.1
// reads it.
func TestQuoteIsReadBack(t *testing.T) {
	for _, s := range []string{"a", "", "a b", "it's", `a"b`, `it's "x" \ y`, "-5", "#x", "$HOME", "a\tb", "日本", `\`} {
		tokens, ok := split("x " + quote(s) + " y")
		if !ok || len(tokens) != 3 || tokens[1] != s {
			t.Errorf("%q is written %s and read %q", s, quote(s), tokens)
		}
	}
}

// TestWhatAServerSaysOfItselfCostsBoundedWork has schemas that grow without end.
func TestWhatAServerSaysOfItselfCostsBoundedWork(t *testing.T) {
	for _, text := range []string{`{"allOf":[{"$ref":"#"},{"$ref":"#"}]}`, `{"not":{"allOf":[{"$ref":"#"},{"$ref":"#"},{"$ref":"#"}]}}`, `{"$ref":"#"}`} {
		schema, err := decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if len(validate(schema, "x", "")) == 0 {
			t.Errorf("a value is valid under %s", text)
		}
	}
	long := make([]any, maxCompared+1)
	for _, text := range []string{`{"$unique":true}`, `{"$set":[null]}`} {
		if miss, err := pattern(t, text).match(long, nil); err != nil || len(miss) == 0 {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// FuzzMatch has any value held to any pattern: neither panics, and a literal matches
// itself.
func FuzzMatch(f *testing.F) {
	f.Add(`{"a":[1,"x",null]}`, `{"a":[1,"x",null],"b":2}`)
	f.Add(`{"$contains":{"$not":{"$regex":"("}}}`, `[[]]`)
	f.Add(`{"$schema":"${x}"}`, `{"$ref":"#"}`)
	f.Add(`{"$range":[1e400,null]}`, `1e-401`)
	f.Fuzz(func(t *testing.T, text, value string) {
		v, err := decode([]byte(value))
		if err != nil {
			return
		}
		validate(v, v, "")
		notCompact(value)
		var p Pattern
		if json.Unmarshal([]byte(text), &p) != nil {
			return
		}
		_, _ = p.match(v, scope{"x": v})
		if !strings.Contains(value, "$") {
			literal := Pattern{node: v}
			if miss, err := literal.match(v, nil); err != nil || len(miss) > 0 {
				t.Errorf("%s does not match itself: %v %v", value, miss, err)
			}
		}
	})
}
