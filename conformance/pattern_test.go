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
	vars := scope{"name": "limit", "list": []any{"a", "b"}, "n": json.Number("5"), "schema": keys{"type": "string", "minLength": json.Number("2")},
		"circle":  keys{"type": []any{"object", "integer"}, "properties": keys{"a": keys{"$ref": "#"}}},
		"date":    keys{"type": "string", "format": "date-time"},
		"perl":    keys{"type": "string", "pattern": "(?=x)y"},
		"outside": keys{"$ref": "file:///etc/hostname"}}
	for text, c := range map[string]struct{ yes, no []string }{
		`"a"`:                             {[]string{`"a"`}, []string{`"b"`, `1`, `null`, `["a"]`}},
		`1`:                               {[]string{`1`, `1.0`, `10e-1`}, []string{`"1"`, `2`, `true`, `1e999999999`}},
		`null`:                            {[]string{`null`}, []string{`0`, `{}`}},
		`[1,{"a":2}]`:                     {[]string{`[1,{"a":2,"b":3}]`}, []string{`[1]`, `[1,{"a":3}]`, `[1,{"a":2},3]`}},
		`{"a":{"b":1}}`:                   {[]string{`{"a":{"b":1,"c":2},"d":3}`}, []string{`{}`, `{"a":1}`, `[]`}},
		`{"a":{"$any":true}}`:             {[]string{`{"a":null}`}, []string{`{}`}},
		`{"a":{"$absent":true}}`:          {[]string{`{}`}, []string{`{"a":null}`}},
		`{"a":{"$optional":1}}`:           {[]string{`{}`, `{"a":1}`}, []string{`{"a":2}`, `{"a":null}`}},
		`{"$const":{"a":1}}`:              {[]string{`{"a":1.0}`}, []string{`{"a":1,"b":2}`, `{}`}},
		`{"$const":{"$any":"${n}"}}`:      {[]string{`{"$any":5}`}, []string{`{"$any":true}`}},
		`{"$enum":["a",1]}`:               {[]string{`"a"`, `1.0`}, []string{`"b"`, `["a"]`}},
		`{"$enum":"${list}"}`:             {[]string{`"a"`}, []string{`"c"`, `["a","b"]`}},
		`{"$type":"integer"}`:             {[]string{`1`, `-2.0`}, []string{`1.5`, `"1"`}},
		`{"$type":["number","null"]}`:     {[]string{`1`, `1.5`, `null`}, []string{`"1"`, `[]`}},
		`{"$pattern":"^a.c$"}`:            {[]string{`"abc"`}, []string{`"xabc"`, `1`}},
		`{"$pattern":"^${name|regex}$"}`:  {[]string{`"limit"`}, []string{`"limits"`}},
		`{"$minLength":1,"$maxLength":2}`: {[]string{`"é"`, `"ab"`}, []string{`""`, `"abc"`, `[1]`}},
		`{"$word":"${name}"}`:             {[]string{`"--limit is"`, `"limit"`, `"(limit)"`, `"limit-"`, `"élimité"`}, []string{`"limits"`, `"page-limit"`, `"limit-x"`, `"--page-limit"`, `""`, `1`}},
		`{"$contains":"b"}`:               {[]string{`["a","b"]`}, []string{`"abc"`, `["abc"]`, `{}`}},
		`{"$contains":{"a":1}}`:           {[]string{`[{"a":2},{"a":1,"b":1}]`}, []string{`[]`, `{"a":1}`}},
		`{"$items":{"$type":"string"}}`:   {[]string{`[]`, `["a"]`}, []string{`["a",1]`, `{"x":"y"}`, `"a"`}},
		`{"$additionalProperties":"y"}`:   {[]string{`{}`, `{"x":"y"}`}, []string{`{"x":1}`, `["y"]`, `"y"`}},
		`{"$uniqueItems":true}`:           {[]string{`[1,2]`, `[]`}, []string{`[1,1.0]`, `"aa"`}},
		`{"$minItems":1,"$maxItems":2}`:   {[]string{`[1]`, `[1,2]`}, []string{`[]`, `[1,2,3]`, `"a"`}},
		`{"$set":["a","b"]}`:              {[]string{`["b","a"]`, `["a","b","a"]`}, []string{`["a"]`, `["a","b","c"]`, `"ab"`}},
		`{"$set":"${list}"}`:              {[]string{`["b","a"]`}, []string{`["a"]`}},
		`{"$set":[]}`:                     {[]string{`[]`}, []string{`["a"]`, `""`}},
		`{"$only":{"a":{"$any":true}}}`:   {[]string{`{"a":1}`}, []string{`{"a":1,"b":2}`, `{}`, `[]`}},
		`{"$required":"${list}","$propertyNames":{"$enum":"${list}"}}`: {[]string{`{"b":1,"a":2}`}, []string{`{"a":1}`, `{"a":1,"b":1,"c":1}`, `["a","b"]`}},
		`{"$minProperties":1,"$maxProperties":1}`:                      {[]string{`{"a":1}`}, []string{`{}`, `{"a":1,"b":1}`, `[1]`}},
		`{"$minimum":1,"$maximum":3}`:                                  {[]string{`1`, `3`, `2.5`}, []string{`0`, `3.1`, `"2"`, `1e999999999`}},
		`{"$maximum":3}`:                                               {[]string{`-1e9`}, []string{`4`}},
		`{"$not":1}`:                                                   {[]string{`2`, `"1"`}, []string{`1`}},
		`{"a":{"$not":1}}`:                                             {[]string{`{"a":2}`, `{}`}, []string{`{"a":1}`}},
		`{"a":{"$not":{"$absent":true}}}`:                              {[]string{`{"a":2}`}, []string{`{}`}},
		`{"$anyOf":[1,{"a":2}]}`:                                       {[]string{`1`, `{"a":2}`}, []string{`2`, `{"a":1}`}},
		`{"a":{"$anyOf":[1,{"$absent":true}]}}`:                        {[]string{`{}`, `{"a":1}`}, []string{`{"a":2}`}},
		`{"a":{"$allOf":[{"$absent":true},{"$optional":1}]}}`:          {[]string{`{}`}, []string{`{"a":1}`}},
		`{"$allOf":[{"a":1},{"b":2}]}`:                                 {[]string{`{"a":1,"b":2}`}, []string{`{"a":1}`}},
		`{"$schema":"${schema}"}`:                                      {[]string{`"ab"`}, []string{`"a"`, `1`}},
		`{"$schema":"${circle}"}`:                                      {[]string{`{"a":{"a":1}}`}, []string{`{"a":"x"}`}},
		`{"$schema":"${date}"}`:                                        {[]string{`"2026-02-02T10:00:00Z"`}, []string{`"today"`}},
		`{"$schema":"${perl}"}`:                                        {[]string{`"x"`}, []string{`1`}},
		`{"$schema":"${list}"}`:                                        {nil, []string{`"x"`}},
		`{"$schema":"${outside}"}`:                                     {nil, []string{`"x"`}},
		`{"$type":"string","$pattern":"^a"}`:                           {[]string{`"ab"`}, []string{`"b"`}},
		`"${n}"`:                                                       {[]string{`5`}, []string{`"5"`, `6`}},
		`{"${name}":1}`:                                                {[]string{`{"limit":1}`}, []string{`{"limit":2}`, `{}`}},
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
	for _, text := range []string{`"${x}"`, `{"$const":["${x}"]}`, `{"$word":"${x}"}`, `{"$not":"${x}"}`, `{"$anyOf":["${x}"]}`, `{"$schema":"${x}"}`} {
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

// TestASchemaOfAServerCostsBoundedWork has schemas that grow without end, some of them
// with the value.
func TestASchemaOfAServerCostsBoundedWork(t *testing.T) {
	var deep any = "x"
	for range 200 {
		deep = []any{deep}
	}
	var wide []any
	for range 2 * maxSubschemas {
		wide = append(wide, keys{})
	}
	for _, schema := range []any{
		keys{"allOf": []any{keys{"$ref": "#"}, keys{"$ref": "#"}}},
		keys{"not": keys{"not": keys{"allOf": []any{keys{"$ref": "#"}, keys{"$ref": "#"}, keys{"$ref": "#"}}}}},
		keys{"$ref": "#"},
		keys{"allOf": []any{keys{"items": keys{"$ref": "#"}}, keys{"items": keys{"$ref": "#"}}}},
		keys{"not": keys{"anyOf": []any{keys{"items": keys{"not": keys{"$ref": "#"}}}, keys{"items": keys{"$ref": "#"}}}}},
		keys{"allOf": wide},
	} {
		miss, err := pattern(t, `{"$schema":"${x}"}`).match(deep, scope{"x": schema})
		if err != nil || len(miss) == 0 {
			t.Errorf("a value is valid under %s: %v", show(schema), err)
		}
	}
}

// FuzzMatch has any value held to any pattern, and to itself as a schema: neither
// panics, and a literal matches itself.
func FuzzMatch(f *testing.F) {
	f.Add(`{"a":[1,"x",null]}`, `{"a":[1,"x",null],"b":2}`)
	f.Add(`{"$contains":{"$not":{"$pattern":"("}}}`, `[[]]`)
	f.Add(`{"$schema":"${x}"}`, `{"$ref":"#"}`)
	f.Add(`{"$minimum":1e400}`, `1e-401`)
	f.Fuzz(func(t *testing.T, text, value string) {
		v, err := decode([]byte(value))
		if err != nil {
			return
		}
		looseJSON(value)
		var p Pattern
		if json.Unmarshal([]byte(text), &p) != nil {
			return
		}
		_, _ = p.match(v, scope{"x": v})
		if !strings.Contains(value, "$") && !strings.ContainsAny(value, "eE") {
			literal := Pattern{node: v}
			if miss, err := literal.match(v, nil); err != nil || len(miss) > 0 {
				t.Errorf("%s does not match itself: %v %v", value, miss, err)
			}
		}
	})
}

// TestLooseJSON has texts that are compact JSON and texts that are not.
func TestLooseJSON(t *testing.T) {
	for text, compact := range map[string]bool{
		`{"a":"x y\" z"}`: true, `"<é>"`: true, `{ }`: false, `{"a":1,"a":1}`: false, `{} `: false, ` {}`: false, `x`: false, "\"\xff\"": false, `{}{}`: false,
	} {
		if why := looseJSON(text); (why == "") != compact {
			t.Errorf("%s: %q", text, why)
		}
	}
}
