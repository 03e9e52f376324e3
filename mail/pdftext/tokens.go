package pdftext

import (
	"bytes"
	"encoding/hex"
	"regexp"
	"strconv"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

// kind says what an operand is.
type kind uint8

const (
	null kind = iota
	number
	name
	text
	array
	operator
)

// operand is one object of a content stream or a character map. Dictionaries
// are read and dropped: no operator here needs one.
type operand struct {
	kind  kind
	n     float64
	s     string // a name without its slash, the bytes of a string, or an operator
	items []operand
}

const (
	maxNesting  = 32
	maxItems    = 1 << 17
	maxTokenLen = 256 // of a name, a number or an operator
)

// scanner reads objects of a content stream (ISO 32000-1 section 7.2 and 7.8.2).
// It never fails: what it cannot read it skips.
type scanner struct {
	b     []byte
	i     int
	depth int
}

// next returns the next object, and false at the end.
func (s *scanner) next() (operand, bool) {
	for {
		s.space()
		if s.i >= len(s.b) {
			return operand{}, false
		}
		switch c := s.b[s.i]; c {
		case '(':
			s.i++
			return operand{kind: text, s: s.literal()}, true
		case '<':
			s.i++
			if s.i < len(s.b) && s.b[s.i] == '<' {
				s.i++
				s.nested('>')
				return operand{}, true
			}
			return operand{kind: text, s: s.hex()}, true
		case '/':
			s.i++
			return operand{kind: name, s: unescapeName(s.regular())}, true
		case '[':
			s.i++
			return operand{kind: array, items: s.nested(']')}, true
		case ']', ')', '{', '}':
			s.i++
		case '>':
			s.i++
		default:
			word := s.regular()
			if n, ok := parseNumber(word); ok {
				return operand{kind: number, n: n}, true
			}
			switch word {
			case "null", "true", "false":
				return operand{}, true
			}
			return operand{kind: operator, s: word}, true
		}
	}
}

// nested reads the objects up to the end of an array, or of a dictionary with
// its two brackets.
func (s *scanner) nested(end byte) []operand {
	s.depth++
	defer func() { s.depth-- }()
	var items []operand
	for {
		s.space()
		if s.i >= len(s.b) {
			return items
		}
		if s.b[s.i] == end {
			s.i++
			if end == '>' && s.i < len(s.b) && s.b[s.i] == '>' {
				s.i++
			}
			return items
		}
		if s.depth > maxNesting {
			s.i++ // deeper than any page: not worth a stack
			continue
		}
		item, ok := s.next()
		if !ok {
			return items
		}
		if end == ']' && len(items) < maxItems {
			items = append(items, item)
		}
	}
}

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch c := s.b[s.i]; {
		case isSpace(c):
			s.i++
		case c == '%':
			for s.i < len(s.b) && s.b[s.i] != '\n' && s.b[s.i] != '\r' {
				s.i++
			}
		default:
			return
		}
	}
}

// regular reads to the next delimiter.
func (s *scanner) regular() string {
	start := s.i
	for s.i < len(s.b) && !isSpace(s.b[s.i]) && !isDelimiter(s.b[s.i]) {
		s.i++
	}
	return string(s.b[start:min(s.i, start+maxTokenLen)])
}

// literal reads a string in parentheses, of which the first is behind.
func (s *scanner) literal() string {
	start := s.i
	for depth := 1; s.i < len(s.b); s.i++ {
		switch s.b[s.i] {
		case '\\':
			s.i++
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				s.i++
				return unescapeLiteral(s.b[start : s.i-1])
			}
		}
	}
	s.i = len(s.b)
	return unescapeLiteral(s.b[start:])
}

// escapes are what stands for other bytes in a literal string (ISO 32000-1 table 3).
var escapes = regexp.MustCompile(`\\(?:[0-7]{1,3}|\r\n?|(?s:.)|\z)|\r\n?`)

func unescapeLiteral(b []byte) string {
	return string(escapes.ReplaceAllFunc(b, func(e []byte) []byte {
		switch {
		case e[0] == '\r':
			return []byte{'\n'}
		case len(e) == 1, e[1] == '\r', e[1] == '\n':
			return nil // an escaped line end stands for nothing
		case e[1] >= '0' && e[1] <= '7':
			n, _ := strconv.ParseUint(string(e[1:]), 8, 16)
			return []byte{byte(n)} // a carry is dropped
		}
		if i := bytes.IndexByte([]byte("nrtbf"), e[1]); i >= 0 {
			return []byte{"\n\r\t\b\f"[i]}
		}
		return e[1:]
	}))
}

// hex reads a string of hexadecimal digits, of which the bracket is behind.
func (s *scanner) hex() string {
	text := s.b[s.i:]
	if end := bytes.IndexByte(text, '>'); end >= 0 {
		text = text[:end]
		s.i++
	}
	s.i += len(text)
	digits := make([]byte, 0, len(text)+1)
	for _, c := range text {
		if '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' {
			digits = append(digits, c)
		}
	}
	if len(digits)%2 == 1 {
		digits = append(digits, '0')
	}
	out, _ := hex.DecodeString(string(digits)) // all of them are digits
	return string(out)
}

// skipInlineImage goes behind the data of an image whose ID operator was read.
func (s *scanner) skipInlineImage() {
	for {
		n := bytes.Index(s.b[s.i:], []byte("EI"))
		if n < 0 {
			s.i = len(s.b)
			return
		}
		at := s.i + n
		s.i = at + 2
		if at > 0 && isSpace(s.b[at-1]) && (s.i >= len(s.b) || isSpace(s.b[s.i])) {
			return
		}
	}
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\f' || c == 0
}

func isDelimiter(c byte) bool {
	switch c {
	case '(', ')', '<', '>', '[', ']', '{', '}', '/', '%':
		return true
	}
	return false
}

// parseNumber reads a number of a content stream, which has no exponent. Numbers
// like --5 or 1.2.3, which some writers make, read as far as they make sense.
func parseNumber(word string) (float64, bool) {
	if word == "" || !(word[0] >= '0' && word[0] <= '9' || word[0] == '+' || word[0] == '-' || word[0] == '.') {
		return 0, false
	}
	sign := 1.0
	i := 0
	for i < len(word) && (word[i] == '+' || word[i] == '-') {
		if word[i] == '-' {
			sign = -1
		}
		i++
	}
	end, dot := i, false
	for end < len(word) && (word[end] >= '0' && word[end] <= '9' || word[end] == '.' && !dot) {
		dot = dot || word[end] == '.'
		end++
	}
	if end == i {
		return 0, false
	}
	n, err := strconv.ParseFloat(word[i:end], 64)
	if err != nil {
		return 0, word[i:end] == "."
	}
	return sign * n, true
}

// unescapeName resolves #xx in a name.
func unescapeName(s string) string {
	if decoded, err := types.DecodeName(s); err == nil {
		return decoded
	}
	return s
}
