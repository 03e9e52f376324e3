package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

// decode reads one JSON value and keeps its numbers as they are written.
func decode(b []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("something follows the JSON value")
	}
	return v, nil
}

// show writes a value for people, in bounded length.
func show(v any) string {
	b, err := marshalPlain(v)
	if err != nil {
		return "?"
	}
	return clip(string(b), 300)
}

func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}

// marshalPlain is compact JSON in which angle brackets stay readable.
func marshalPlain(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// isNumber reports whether a value is a number as large as n: 1 is 1.0.
func isNumber(v any, n json.Number) bool {
	m, ok := v.(json.Number)
	x, errX := m.Float64()
	y, errY := n.Float64()
	return ok && (m == n || errX == nil && errY == nil && x == y)
}

// looseJSON names what is odd about a JSON text, for patterns: loose, white space around its
// tokens; twice, a member that one object has two times.
func looseJSON(s string) map[string]any {
	found := map[string]any{}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(s)); err != nil || compact.String() != s || !utf8.ValidString(s) {
		found["loose"] = "there is white space around its tokens, or it is no JSON in UTF-8"
	}
	if name := memberTwice(s); name != "" {
		found["twice"] = name
	}
	return found
}

// memberTwice returns the name of a member that an object of the text has twice.
func memberTwice(s string) string {
	type level struct {
		names map[string]bool
		value bool // the next token is a value
	}
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	var stack []level
	for {
		t, err := d.Token()
		if err != nil {
			return ""
		}
		if len(stack) > 0 {
			top := &stack[len(stack)-1]
			if name, isName := t.(string); isName && top.names != nil && !top.value {
				if top.names[name] {
					return show(name)
				}
				top.names[name], top.value = true, true
				continue
			}
			top.value = false
		}
		switch t {
		case json.Delim('{'):
			stack = append(stack, level{names: map[string]bool{}})
		case json.Delim('['):
			stack = append(stack, level{})
		case json.Delim('}'), json.Delim(']'):
			stack = stack[:len(stack)-1]
		}
	}
}
