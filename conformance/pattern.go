package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Pattern is what a value is held to: literal JSON in which an object whose members
// all start with "$" is a matcher. README.md defines every one.
type Pattern struct{ node any }

// missing is the value of a member that is not there.
type missing struct{}

// UnmarshalJSON implements json.Unmarshaler. A matcher that does not exist, or one
// with an operand it cannot use, is an error.
func (p *Pattern) UnmarshalJSON(b []byte) error {
	v, err := decode(b)
	if err != nil {
		return err
	}
	if err := checkPattern(v); err != nil {
		return err
	}
	p.node = v
	return nil
}

// MarshalJSON implements json.Marshaler.
func (p *Pattern) MarshalJSON() ([]byte, error) { return json.Marshal(p.node) }

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

// Mismatch is one place where a value is not what was expected.
type Mismatch struct {
	At   string `json:"at"` // JSON pointer
	Want string `json:"want"`
	Got  string `json:"got"`
}

// maxMismatches bounds what is told of one answer.
const maxMismatches = 5

// match compares a value with the pattern. An error is a fault of the case, such as
// a placeholder that nothing fills.
func (p *Pattern) match(value any, vars scope) ([]Mismatch, error) {
	m := matcher{vars: vars}
	m.value("", p.node, value)
	return m.found, m.err
}

type matcher struct {
	vars  scope
	found []Mismatch
	err   error
}

func (m *matcher) miss(at, want string, got any) {
	if len(m.found) < maxMismatches {
		m.found = append(m.found, Mismatch{at, want, show(got)})
	}
}

func (m *matcher) fail(err error) {
	if m.err == nil {
		m.err = err
	}
}

// try reports whether a value matches, without telling why not.
func (m *matcher) try(pattern, value any) bool {
	t := matcher{vars: m.vars}
	t.value("", pattern, value)
	if t.err != nil {
		m.fail(t.err)
	}
	return len(t.found) == 0
}

// show writes a value for people, in bounds.
func show(v any) string {
	if _, ok := v.(missing); ok {
		return "nothing"
	}
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

func (m *matcher) value(at string, pattern, value any) {
	switch p := pattern.(type) {
	case string:
		want, err := m.vars.value(p)
		if err != nil {
			m.fail(err)
			return
		}
		if !equal(want, value) {
			m.miss(at, show(want), value)
		}
	case []any:
		list, ok := value.([]any)
		if !ok || len(list) != len(p) {
			m.miss(at, fmt.Sprintf("an array of %d", len(p)), value)
			return
		}
		for i := range p {
			m.value(at+"/"+strconv.Itoa(i), p[i], list[i])
		}
	case map[string]any:
		if isMatcher(p) {
			for _, name := range slices.Sorted(maps.Keys(p)) {
				m.apply(at, name, p[name], value)
			}
			return
		}
		object, ok := value.(map[string]any)
		if !ok {
			m.miss(at, "an object", value)
			return
		}
		for _, name := range slices.Sorted(maps.Keys(p)) {
			key, err := m.vars.expand(name)
			if err != nil {
				m.fail(err)
				return
			}
			var member any = missing{}
			if v, ok := object[key]; ok {
				member = v
			}
			m.value(at+"/"+escapePointer(key), p[name], member)
		}
	default:
		if !equal(p, value) {
			m.miss(at, show(p), value)
		}
	}
}

func escapePointer(s string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(s) }

func isMatcher(p map[string]any) bool {
	for name := range p {
		return isMark(name)
	}
	return false
}

// isMark reports whether a member's name is that of a matcher; one that is a
// placeholder is not.
func isMark(name string) bool {
	return strings.HasPrefix(name, "$") && !strings.HasPrefix(name, "${")
}

// equal compares JSON values; numbers by value, so 1 is 1.0.
func equal(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		n, ok := b.(json.Number)
		return ok && compareNumbers(a, n) == 0
	case []any:
		list, ok := b.([]any)
		return ok && slices.EqualFunc(a, list, equal)
	case map[string]any:
		object, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, object, equal)
	}
	switch b.(type) {
	case []any, map[string]any:
		return false
	}
	return a == b
}

// maxExponent keeps a server from having us compute 1e999999999.
const maxExponent = 400

func number(n json.Number) (*big.Rat, bool) {
	s := n.String()
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		if e, err := strconv.Atoi(s[i+1:]); err != nil || e > maxExponent || e < -maxExponent {
			return nil, false
		}
	}
	if len(s) > 2*maxExponent {
		return nil, false
	}
	return new(big.Rat).SetString(s)
}

// compareNumbers is 2 for numbers too large to compare.
func compareNumbers(a, b json.Number) int {
	if a == b {
		return 0
	}
	x, ok1 := number(a)
	y, ok2 := number(b)
	if !ok1 || !ok2 {
		return 2
	}
	return x.Cmp(y)
}

func typeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		if r, ok := number(v); ok && r.IsInt() {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return "nothing"
}

func hasType(v any, name string) bool {
	t := typeOf(v)
	return t == name || name == "number" && t == "integer"
}

func regexOf(s string) (*regexp.Regexp, error) {
	re, err := regexp.Compile(s)
	if err != nil {
		return nil, fmt.Errorf("the regular expression %q cannot be used: %w", s, err)
	}
	return re, nil
}

// containsWord reports whether a word stands in a text as such, not as a part of a
// longer name. Dashes before it belong to the way an option is written.
func containsWord(text, word string) bool {
	if word == "" {
		return false
	}
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return false
		}
		start, end := from+i, from+i+len(word)
		before, _ := utf8.DecodeLastRuneInString(strings.TrimRight(text[:start], "-"))
		after, _ := utf8.DecodeRuneInString(text[end:])
		longer := isWord(after) || after == '-' && end+1 < len(text) && isWord(rune(text[end+1]))
		if !isWord(before) && !longer {
			return true
		}
		from = start + 1
	}
}

func isWord(r rune) bool {
	return r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
}
