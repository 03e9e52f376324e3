package clientconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/postern-mail/postern/internal/plain"
)

// statement is a table's header or a key with its value (TOML 1.0), and where it
// stands in the text.
type statement struct {
	kind       byte     // t for a table, a for one of an array of tables, k for a key
	path       []string // from the root, also of a key
	table      []string // a key's: that of the header it stands under
	start, end int      // whole lines, with the comment behind it and the line's end
	value      string   // a key's, as it is written
	at         int      // where the value begins
}

const (
	tomlPart = `(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')`
	tomlKey  = `[ \t]*` + tomlPart + `(?:[ \t]*\.[ \t]*` + tomlPart + `)*[ \t]*`
)

var (
	tomlParts = regexp.MustCompile(tomlPart)
	headLine  = regexp.MustCompile(`\A[ \t]*\[(?:(` + tomlKey + `)|\[(` + tomlKey + `)\])\]`)
	keyLine   = regexp.MustCompile(`\A(` + tomlKey + `)=[ \t]*`)
	lineRest  = regexp.MustCompile(`\A[ \t]*(?:#[^\n]*)?(?:\r?\n|\z)`)
	blankLine = regexp.MustCompile(`\A[ \t\r]*(?:#[^\n]*)?(?:\n|\z)`)
	// A number, a boolean, a date or a time; more is for the client to judge.
	tomlScalar = regexp.MustCompile(`\A(?:true|false|[+-]?(?:inf|nan)|[+-]?[0-9][0-9A-Za-z_.:+-]*(?: [0-9][0-9:.]*(?:Z|z|[+-][0-9:]+)?)?)`)
)

var errTooEarly = errors.New("it ends too early")

// statements reads a file. It refuses text that is not TOML as far as that matters for
// changing one table. What an array or an inline table of another entry holds is not
// checked.
func statements(text []byte) (list []statement, err error) {
	if !utf8.Valid(text) {
		return nil, errors.New("it is not in UTF-8")
	}
	pos := 0
	unexpected := func() error {
		return fmt.Errorf("it cannot be read from line %d on", 1+bytes.Count(text[:pos], []byte("\n")))
	}
	if bytes.HasPrefix(text, []byte(byteOrderMark)) {
		pos = len(byteOrderMark)
	}
	var table []string
	defined := make(map[string]bool)
	for pos < len(text) {
		if n := len(blankLine.Find(text[pos:])); n > 0 {
			pos += n
			continue
		}
		s := statement{start: pos}
		if m := headLine.FindSubmatch(text[pos:]); m != nil {
			s.kind = 't'
			if m[2] != nil {
				s.kind = 'a'
			}
			if s.path, err = tomlPath(m[1], m[2]); err != nil {
				return nil, err
			}
			table = s.path
			if name := fmt.Sprintf("%q", table); s.kind == 't' {
				if defined[name] {
					return nil, fmt.Errorf("the table %s is in it twice", plain.Line(strings.Join(table, ".")))
				}
				defined[name] = true
			}
			pos += len(m[0])
		} else if m := keyLine.FindSubmatch(text[pos:]); m != nil {
			path, err := tomlPath(m[1])
			if err != nil {
				return nil, err
			}
			s.kind, s.table, s.at = 'k', table, pos+len(m[0])
			s.path = append(append([]string(nil), table...), path...)
			n, err := valueEnd(text[s.at:])
			if err != nil {
				return nil, err
			}
			if n == 0 {
				return nil, unexpected()
			}
			s.value, pos = string(text[s.at:s.at+n]), s.at+n
		} else {
			return nil, unexpected()
		}
		rest := lineRest.FindIndex(text[pos:])
		if rest == nil {
			return nil, unexpected()
		}
		pos += rest[1]
		s.end = pos
		list = append(list, s)
	}
	return list, nil
}

// tomlPath decodes a key that stands in one of the texts.
func tomlPath(texts ...[]byte) (path []string, err error) {
	for _, part := range tomlParts.FindAll(bytes.Join(texts, nil), -1) {
		name, ok := tomlString(string(part))
		if !ok && isBare(part[0]) {
			name = string(part)
		} else if !ok {
			return nil, errOtherForm
		}
		path = append(path, name)
	}
	return path, nil
}

func isBare(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

// tomlString decodes a string on one line. Of its escapes it knows those that JSON has.
func tomlString(s string) (text string, ok bool) {
	if n := len(s); n > 1 && s[0] == '\'' && s[n-1] == '\'' {
		return s[1 : n-1], true
	}
	return text, strings.HasPrefix(s, `"`) && json.Unmarshal([]byte(s), &text) == nil
}

// valueEnd is how long the value is that a text begins with; 0 when there is none.
func valueEnd(text []byte) (int, error) {
	var open []byte
	for pos := 0; pos < len(text); {
		c := text[pos]
		switch {
		case c == '"' || c == '\'':
			n := stringEnd(text[pos:])
			if n == 0 {
				return 0, errTooEarly
			}
			pos += n
		case c == '[' || c == '{':
			open = append(open, c+2) // which closes it
			pos++
		case len(open) == 0:
			return len(tomlScalar.Find(text[pos:min(len(text), pos+100)])), nil
		case c == ']' || c == '}':
			if c != open[len(open)-1] {
				return 0, nil
			}
			open = open[:len(open)-1]
			pos++
		case c == '#':
			pos += len(blankLine.Find(text[pos:]))
		default:
			pos++
		}
		if len(open) == 0 {
			return pos, nil
		}
	}
	return 0, errTooEarly
}

// stringEnd is how long the string of any of the four kinds is that a text begins
// with; 0 when it does not end.
func stringEnd(text []byte) int {
	quote := text[:1]
	if long := bytes.Repeat(quote, 3); bytes.HasPrefix(text, long) {
		quote = long
	}
	for pos := len(quote); pos < len(text); pos++ {
		switch {
		case text[0] == '"' && text[pos] == '\\':
			pos++
		case bytes.HasPrefix(text[pos:], quote):
			pos += len(quote)
			// Up to two quotes can stand before the closing three.
			for range len(quote) - 1 {
				if pos < len(text) && text[pos] == quote[0] {
					pos++
				}
			}
			return pos
		case len(quote) == 1 && text[pos] == '\n':
			return 0
		}
	}
	return 0
}

// elements are those of an array or an inline table, as they are written.
func elements(value string) (list []string) {
	text := []byte(value[1 : len(value)-1])
	for {
		for len(text) > 0 {
			if n := len(blankLine.Find(text)); n > 0 {
				text = text[n:]
			} else if strings.IndexByte(" \t,", text[0]) >= 0 {
				text = text[1:]
			} else {
				break
			}
		}
		key := len(keyLine.Find(text))
		n, err := valueEnd(text[key:])
		if n == 0 || err != nil {
			return list // all of it, or what the client will not read either
		}
		list = append(list, string(text[:key+n]))
		text = text[key+n:]
	}
}

// pairName is the name of an element of an inline table; of a dotted one, its first.
func pairName(pair string) string {
	if path, err := tomlPath(keyLine.FindSubmatch([]byte(pair))[1:]...); err == nil {
		return path[0]
	}
	return ""
}
