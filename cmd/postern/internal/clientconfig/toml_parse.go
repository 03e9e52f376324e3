package clientconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/postern-mail/postern/internal/plain"
)

// tomlStatement is a table's header or a key with its value (TOML 1.0), and where it
// stands in the text.
type tomlStatement struct {
	kind       byte     // t for a table, a for one of an array of tables, k for a key
	path       []string // from the root, also of a key
	table      []string // a key's: that of the header it stands under
	start, end int      // whole lines, with the comment behind it and the line's end
	value      tomlValue
}

type tomlValue struct {
	kind       byte // " [ { or 0 for the rest
	start, end int
	text       string      // of a string, decoded
	items      []tomlValue // of an array
	pairs      []tomlPair  // of an inline table
}

type tomlPair struct {
	path  []string
	value tomlValue
	start int
}

const maxTOMLDepth = 50

// parseTOML reads a file into its statements. It refuses what is no TOML as far as it
// matters for changing one table: text that it takes for something else than it is.
func parseTOML(text []byte) (list []tomlStatement, err error) {
	if !utf8.Valid(text) {
		return nil, errors.New("it is not in UTF-8")
	}
	p := &tomlParser{text: text}
	if bytes.HasPrefix(text, []byte(byteOrderMark)) {
		p.pos = len(byteOrderMark)
	}
	var table []string
	defined := make(map[string]bool)
	for {
		p.skipBlank()
		if p.pos >= len(text) {
			return list, nil
		}
		s := tomlStatement{start: bytes.LastIndexByte(text[:p.pos], '\n') + 1}
		if p.peek() == '[' {
			if s.kind, s.path, err = p.header(); err != nil {
				return nil, err
			}
			table = s.path
			if name := joinPath(table); s.kind == 't' {
				if defined[name] {
					return nil, fmt.Errorf("the table %s is in it twice", plain.Line(strings.Join(table, ".")))
				}
				defined[name] = true
			}
		} else {
			var pair tomlPair
			if pair, err = p.pair(0); err != nil {
				return nil, err
			}
			s.kind, s.value, s.table = 'k', pair.value, table
			s.path = append(append([]string(nil), table...), pair.path...)
		}
		if err := p.lineEnd(); err != nil {
			return nil, err
		}
		s.end = p.pos
		list = append(list, s)
	}
}

func joinPath(path []string) string {
	b, _ := json.Marshal(path) // strings have a form
	return string(b)
}

type tomlParser struct {
	text []byte
	pos  int
}

func (p *tomlParser) unexpected() error {
	if p.pos >= len(p.text) {
		return errors.New("it ends too early")
	}
	return fmt.Errorf("it cannot be read from line %d on", 1+bytes.Count(p.text[:p.pos], []byte("\n")))
}

func (p *tomlParser) peek() byte {
	if p.pos < len(p.text) {
		return p.text[p.pos]
	}
	return 0
}

func (p *tomlParser) has(s string) bool { return bytes.HasPrefix(p.text[p.pos:], []byte(s)) }

func (p *tomlParser) spaces() {
	for p.peek() == ' ' || p.peek() == '\t' {
		p.pos++
	}
}

func (p *tomlParser) comment() {
	if p.peek() == '#' {
		for p.pos < len(p.text) && p.text[p.pos] != '\n' {
			p.pos++
		}
	}
}

// skipBlank passes white space, line ends and comments.
func (p *tomlParser) skipBlank() {
	for p.pos < len(p.text) {
		switch p.text[p.pos] {
		case ' ', '\t', '\r', '\n':
			p.pos++
		case '#':
			p.comment()
		default:
			return
		}
	}
}

func (p *tomlParser) lineEnd() error {
	p.spaces()
	p.comment()
	switch {
	case p.pos >= len(p.text):
		return nil
	case p.has("\r\n"):
		p.pos += 2
		return nil
	case p.peek() == '\n':
		p.pos++
		return nil
	}
	return p.unexpected()
}

func (p *tomlParser) header() (kind byte, path []string, err error) {
	kind, opening, closing := byte('t'), "[", "]"
	if p.has("[[") {
		kind, opening, closing = 'a', "[[", "]]"
	}
	p.pos += len(opening)
	if path, err = p.key(); err != nil {
		return 0, nil, err
	}
	if !p.has(closing) {
		return 0, nil, p.unexpected()
	}
	p.pos += len(closing)
	return kind, path, nil
}

// key reads a key, with its dots and the space around it.
func (p *tomlParser) key() (path []string, err error) {
	for {
		p.spaces()
		var part string
		switch c := p.peek(); c {
		case '"', '\'':
			if p.has(strings.Repeat(string(c), 3)) {
				return nil, p.unexpected()
			}
			if part, err = p.str(); err != nil {
				return nil, err
			}
		default:
			start := p.pos
			for isBare(p.peek()) {
				p.pos++
			}
			if part = string(p.text[start:p.pos]); part == "" {
				return nil, p.unexpected()
			}
		}
		path = append(path, part)
		p.spaces()
		if p.peek() != '.' {
			return path, nil
		}
		p.pos++
	}
}

func isBare(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

func (p *tomlParser) pair(depth int) (pair tomlPair, err error) {
	pair.start = p.pos
	if pair.path, err = p.key(); err != nil {
		return pair, err
	}
	if p.peek() != '=' {
		return pair, p.unexpected()
	}
	p.pos++
	p.spaces()
	pair.value, err = p.value(depth)
	return pair, err
}

// tomlScalar is a number, a boolean, a date or a time; more is for the client to judge.
var tomlScalar = regexp.MustCompile(`\A(true|false|[+-]?(inf|nan)|[+-]?[0-9][0-9A-Za-z_.:+-]*( [0-9][0-9:.]*(Z|z|[+-][0-9:]+)?)?)`)

func (p *tomlParser) value(depth int) (v tomlValue, err error) {
	if depth > maxTOMLDepth {
		return v, errors.New("it is nested too deeply")
	}
	v.start = p.pos
	switch c := p.peek(); c {
	case '"', '\'':
		v.kind = '"'
		v.text, err = p.str()
	case '[':
		v.kind = '['
		v.items, err = p.array(depth)
	case '{':
		v.kind = '{'
		v.pairs, err = p.inline(depth)
	default:
		n := len(tomlScalar.Find(p.text[p.pos:min(len(p.text), p.pos+100)]))
		if n == 0 {
			return v, p.unexpected()
		}
		p.pos += n
	}
	v.end = p.pos
	return v, err
}

func (p *tomlParser) array(depth int) (items []tomlValue, err error) {
	for p.pos++; ; {
		p.skipBlank()
		if p.peek() == ']' {
			p.pos++
			return items, nil
		}
		item, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
		p.skipBlank()
		switch p.peek() {
		case ',':
			p.pos++
		case ']':
		default:
			return nil, p.unexpected()
		}
	}
}

func (p *tomlParser) inline(depth int) (pairs []tomlPair, err error) {
	for p.pos++; ; {
		p.skipBlank()
		if p.peek() == '}' {
			p.pos++
			return pairs, nil
		}
		pair, err := p.pair(depth + 1)
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, pair)
		p.skipBlank()
		switch p.peek() {
		case ',':
			p.pos++
		case '}':
		default:
			return nil, p.unexpected()
		}
	}
}

// str reads a string of any of the four kinds.
func (p *tomlParser) str() (string, error) {
	quote := string(p.text[p.pos])
	start := p.pos
	if long := strings.Repeat(quote, 3); p.has(long) {
		p.pos += 3
		for p.pos < len(p.text) {
			switch {
			case quote == `"` && p.peek() == '\\':
				p.pos += 2
			case p.has(long):
				p.pos += 3
				for range 2 { // up to two quotes can stand before the closing three
					if p.peek() == quote[0] {
						p.pos++
					}
				}
				return string(p.text[start+3 : p.pos-3]), nil // escapes stay: nobody compares these
			default:
				p.pos++
			}
		}
		p.pos = len(p.text)
		return "", p.unexpected()
	}
	for p.pos++; p.pos < len(p.text) && p.text[p.pos] != '\n'; p.pos++ {
		switch {
		case quote == `"` && p.text[p.pos] == '\\':
			p.pos++
		case p.text[p.pos] == quote[0]:
			p.pos++
			body := string(p.text[start+1 : p.pos-1])
			if quote == `'` {
				return body, nil
			}
			s, ok := unescapeTOML(body)
			if !ok {
				p.pos = start
				return "", p.unexpected()
			}
			return s, nil
		}
	}
	p.pos = start
	return "", p.unexpected()
}

// unescapeTOML decodes a basic string.
func unescapeTOML(s string) (string, bool) {
	if !strings.Contains(s, `\`) {
		return s, true
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		if i++; i >= len(s) {
			return "", false
		}
		if at := strings.IndexByte(`btnfre"\`, s[i]); at >= 0 {
			b.WriteByte("\b\t\n\f\r\x1b\"\\"[at])
			continue
		}
		n := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[i]]
		if n == 0 || i+n >= len(s) {
			return "", false
		}
		r, err := strconv.ParseUint(s[i+1:i+1+n], 16, 32)
		if err != nil || !utf8.ValidRune(rune(r)) {
			return "", false
		}
		b.WriteRune(rune(r))
		i += n
	}
	return b.String(), true
}
