package conformance

import (
	"encoding/json"
	"os"
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
	file, err := os.ReadFile("testdata/matchers.txt")
	must(t, err)
	matchers, values := 0, 0
	var p *Pattern
	for line := range strings.Lines(string(file)) {
		word, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch word {
		case "match":
			p = pattern(t, text)
			matchers++
		case "yes", "no":
			values++
			v, err := decode([]byte(text))
			must(t, err)
			miss, err := p.match(v, vars)
			must(t, err)
			if (len(miss) == 0) != (word == "yes") {
				t.Errorf("%s: %s: %v", show(p.node), line, miss)
			}
		}
	}
	if matchers < 48 || values < 168 {
		t.Errorf("%d matchers, %d values", matchers, values)
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
		if why := looseJSON(text); (len(why) == 0) != compact {
			t.Errorf("%s: %q", text, why)
		}
	}
}
