package authres

import "strings"

// The parser is our own because github.com/emersion/go-msgauth/authres cuts a field at every
// semicolon, also inside comments and quoted strings, where a stranger's words stand (an SPF
// explanation, a quoted local part), passes over what it cannot read, and knows no field
// without an authserv-id. Here what is not understood makes the whole field unreadable.

// results is what one Authentication-Results field says.
type results struct {
	id   string // the authserv-id; empty: the field has none
	list []result
}

// result is one resinfo (RFC 8601 section 2.2). Names and the outcome are in lower case.
type result struct {
	method, outcome string
	props           map[string]string // such as header.from; as written, quotes removed
	twice           bool              // a property has two values
}

// parseResults reads the value of a field. ok is false where any of it departs from the
// grammar of RFC 8601 section 2.2 further than the large providers do: a value may hold any
// printable characters but ;()"\ and a property may have a name of one part.
func parseResults(value string) (r results, ok bool) {
	if strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
		return r, false
	}
	s := scanner{s: value}
	if !s.space() {
		return r, false
	}
	start := s.i
	if r.id, ok = s.value(); !ok || r.id == "" {
		return r, false
	}
	if !s.space() {
		return r, false
	}
	if strings.Contains(r.id, "=") || s.peek() == '=' { // it begins with a result, as Microsoft's do
		r.id, s.i = "", start
	} else {
		if s.peek() == '1' { // the version
			s.i++
			if !s.space() {
				return r, false
			}
		}
		if !s.take(';') {
			return r, s.i == len(s.s) && r.id != ""
		}
	}
	for {
		if !s.space() {
			return r, false
		}
		if s.i == len(s.s) {
			return r, true // the last semicolon ends, rather than separates
		}
		one, found := s.result()
		if !found {
			return r, false
		}
		if one.method != "" {
			r.list = append(r.list, one)
		}
		if s.i == len(s.s) {
			return r, true
		}
		if !s.take(';') {
			return r, false
		}
	}
}

// scanner reads the structured text of a field from s[i:].
type scanner struct {
	s string
	i int
}

func (s *scanner) peek() byte {
	if s.i == len(s.s) {
		return 0
	}
	return s.s[s.i]
}

func (s *scanner) take(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.i++
	return true
}

// space passes over white space and comments. It is false for a comment without an end.
func (s *scanner) space() bool {
	for depth := 0; ; s.i++ {
		switch c := s.peek(); {
		case s.i == len(s.s):
			return depth == 0
		case c == '(':
			depth++
		case c == ')' && depth == 0:
			return true // nothing takes it
		case c == ')':
			depth--
		case c == '\\' && depth > 0:
			if s.i++; s.i == len(s.s) {
				return false
			}
		case c != ' ' && c != '\t' && depth == 0:
			return true
		}
	}
}

// word takes the characters that pass.
func (s *scanner) word(pass func(c byte) bool) string {
	start := s.i
	for s.i < len(s.s) && pass(s.s[s.i]) {
		s.i++
	}
	return s.s[start:s.i]
}

func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.'
}

func valueByte(c byte) bool { return c > ' ' && c != 0x7f && strings.IndexByte(`;()"\`, c) < 0 }

// value reads a value, which may be empty, or a quoted string and what touches it.
func (s *scanner) value() (string, bool) {
	if !s.take('"') {
		return s.word(valueByte), s.peek() != '"' && s.peek() != '\\'
	}
	var text strings.Builder
	for !s.take('"') {
		if s.take('\\'); s.i == len(s.s) {
			return "", false
		}
		text.WriteByte(s.s[s.i])
		s.i++
	}
	text.WriteString(s.word(valueByte)) // "a b"@example.org
	return text.String(), s.peek() != '"' && s.peek() != '\\'
}

// result reads to the next semicolon or the end. The word none alone, and nothing at all, are
// results without a method.
func (s *scanner) result() (result, bool) {
	r := result{props: make(map[string]string)}
	for first := true; ; first = false {
		if !s.space() {
			return r, false
		}
		if c := s.peek(); c == ';' || s.i == len(s.s) {
			return r, true
		}
		name := strings.ToLower(s.word(nameByte))
		if !s.space() || name == "" {
			return r, false
		}
		if first && name == "none" && (s.peek() == ';' || s.i == len(s.s)) {
			return r, true
		}
		if first && s.take('/') { // the method's version
			if v := s.word(nameByte); v != "1" || !s.space() {
				return r, false
			}
		}
		if !s.take('=') || !s.space() {
			return r, false
		}
		value, ok := s.value()
		if !ok {
			return r, false
		}
		if first {
			if r.method, r.outcome = name, strings.ToLower(value); value == "" || strings.Trim(r.outcome, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
				return r, false
			}
			continue
		}
		if had, there := r.props[name]; there && had != value {
			r.twice = true
		}
		r.props[name] = value
	}
}
