package pdftext

import (
	"bytes"
	"strconv"
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
	var out []byte
	for depth := 1; s.i < len(s.b); {
		c := s.b[s.i]
		s.i++
		switch c {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return string(out)
			}
		case '\r':
			if s.i < len(s.b) && s.b[s.i] == '\n' {
				s.i++
			}
			c = '\n'
		case '\\':
			if s.i >= len(s.b) {
				return string(out)
			}
			var keep bool
			if c, keep = s.escape(); !keep {
				continue
			}
		}
		out = append(out, c)
	}
	return string(out)
}

// escape reads what follows a backslash: false for an escaped line end, which
// stands for nothing.
func (s *scanner) escape() (byte, bool) {
	c := s.b[s.i]
	s.i++
	switch c {
	case 'n':
		return '\n', true
	case 'r':
		return '\r', true
	case 't':
		return '\t', true
	case 'b':
		return '\b', true
	case 'f':
		return '\f', true
	case '\n':
		return 0, false
	case '\r':
		if s.i < len(s.b) && s.b[s.i] == '\n' {
			s.i++
		}
		return 0, false
	}
	if c < '0' || c > '7' {
		return c, true
	}
	n := int(c - '0')
	for range 2 {
		if s.i >= len(s.b) || s.b[s.i] < '0' || s.b[s.i] > '7' {
			break
		}
		n = n<<3 | int(s.b[s.i]-'0')
		s.i++
	}
	return byte(n), true // a carry is dropped
}

// hex reads a string of hexadecimal digits, of which the bracket is behind.
func (s *scanner) hex() string {
	var out []byte
	high, odd := byte(0), false
	for s.i < len(s.b) {
		c := s.b[s.i]
		s.i++
		if c == '>' {
			break
		}
		v, ok := hexDigit(c)
		switch {
		case !ok:
		case odd:
			out = append(out, high|v)
			odd = false
		default:
			high, odd = v<<4, true
		}
	}
	if odd {
		out = append(out, high)
	}
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

func hexDigit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
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
	if !bytes.ContainsRune([]byte(s), '#') {
		return s
	}
	var out []byte
	for i := 0; i < len(s); i++ {
		if s[i] == '#' && i+2 < len(s) {
			high, ok1 := hexDigit(s[i+1])
			low, ok2 := hexDigit(s[i+2])
			if ok1 && ok2 {
				out = append(out, high<<4|low)
				i += 2
				continue
			}
		}
		out = append(out, s[i])
	}
	return string(out)
}
