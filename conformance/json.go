package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"strconv"
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

// show writes a value for people, in bounds.
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

// maxExponent keeps a server from having us compute 1e999999999.
const maxExponent = 400

// number is the value of a JSON number; false for one too large to compute with.
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

// isNumber reports whether a value is a number as large as n: 1 is 1.0.
func isNumber(v any, n json.Number) bool {
	m, ok := v.(json.Number)
	if !ok {
		return false
	}
	x, okX := number(m)
	y, okY := number(n)
	return m == n || okX && okY && x.Cmp(y) == 0
}

// looseJSON says why a text is not one JSON value in UTF-8, without white space
// around its tokens and without a member twice in one object; empty if it is.
func looseJSON(s string) string {
	if !utf8.ValidString(s) {
		return "it is not UTF-8"
	}
	if _, err := decode([]byte(s)); err != nil {
		return "it is not JSON"
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(s)); err != nil || compact.String() != s {
		return "there is white space around its tokens"
	}
	if name := memberTwice(s); name != "" {
		return "the member " + name + " is there twice"
	}
	return ""
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
