package pdftext

import (
	"bytes"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

// kind is the type of an operand.
type kind uint8

const (
	number kind = iota
	name
	text
	openArray
	closeArray
	operator
)

// operand is one object of a content stream or a character map. The elements of an
// array come one by one, as the strings of TJ are drawn; dictionaries come in the same
// way, and no operator here uses one.
type operand struct {
	kind kind
	n    float64
	s    string // a name without its slash, the bytes of a string, or an operator
}

const (
	maxOperands = 1 << 17
	maxTokenLen = 256 // of a name, a number or an operator
)

// scanner reads objects of a content stream (ISO 32000-1 section 7.2 and 7.8.2).
// It never fails: it skips unreadable bytes.
type scanner struct {
	b []byte
	i int
}

// next returns the next object, and false at the end.
func (s *scanner) next() (operand, bool) {
	for {
		s.space()
		if s.i >= len(s.b) {
			return operand{}, false
		}
		c := s.b[s.i]
		if !isDelimiter(c) {
			return wordOperand(s.regular()), true
		}
		s.i++
		switch c {
		case '(':
			return operand{kind: text, s: s.literal()}, true
		case '/':
			return operand{kind: name, s: unescapeName(s.regular())}, true
		case '[':
			return operand{kind: openArray}, true
		case ']':
			return operand{kind: closeArray}, true
		case '<':
			if s.i == len(s.b) || s.b[s.i] != '<' {
				return operand{kind: text, s: s.hex()}, true
			}
			s.i++
		}
	}
}

// wordOperand reads a number, which has no exponent, or an operator. A malformed
// number, such as --5, is 0.
func wordOperand(word string) operand {
	if strings.Trim(word, "+-.0123456789") != "" {
		return operand{kind: operator, s: word}
	}
	n, err := strconv.ParseFloat(word, 64)
	if err != nil {
		n = 0
	}
	return operand{n: n}
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

// regular reads up to the next delimiter.
func (s *scanner) regular() string {
	start := s.i
	for s.i < len(s.b) && !isSpace(s.b[s.i]) && !isDelimiter(s.b[s.i]) {
		s.i++
	}
	return string(s.b[start:min(s.i, start+maxTokenLen)])
}

// literal reads a string in parentheses; the opening one has been read.
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

// escapes match the sequences for other bytes in a literal string (ISO 32000-1 table 3).
var escapes = regexp.MustCompile(`\\(?:[0-7]{1,3}|\r\n?|(?s:.)|\z)|\r\n?`)

func unescapeLiteral(b []byte) string {
	return string(escapes.ReplaceAllFunc(b, func(e []byte) []byte {
		switch {
		case e[0] == '\r':
			return []byte{'\n'}
		case len(e) == 1, e[1] == '\r', e[1] == '\n':
			return nil // an escaped line end is dropped
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

// hex reads a string of hexadecimal digits; the opening bracket has been read.
func (s *scanner) hex() string {
	text := s.b[s.i:]
	if end := bytes.IndexByte(text, '>'); end >= 0 {
		text = text[:end]
		s.i++
	}
	s.i += len(text)
	digits := strings.Map(func(r rune) rune {
		if strings.ContainsRune("0123456789abcdefABCDEF", r) {
			return r
		}
		return -1
	}, string(text))
	out, _ := hex.DecodeString(digits + strings.Repeat("0", len(digits)%2)) // all are digits
	return string(out)
}

// skipInlineImage skips the data of an image whose ID operator was read.
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

// unescapeName resolves #xx in a name.
func unescapeName(s string) string {
	if decoded, err := types.DecodeName(s); err == nil {
		return decoded
	}
	return s
}
