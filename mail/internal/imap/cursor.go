package imap

import (
	"encoding/base64"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// cursor reads values (RFC 9051 section 9) of a whole response. The protocol library
// accepts every value that its strict methods accept; they may accept less.
type cursor struct {
	b string
	i int
}

func (c *cursor) done() bool { return c.i >= len(c.b) }

// peek is the next byte, 0 at the end.
func (c *cursor) peek() byte {
	if c.done() {
		return 0
	}
	return c.b[c.i]
}

func (c *cursor) accept(b byte) bool {
	if c.done() || c.b[c.i] != b {
		return false
	}
	c.i++
	return true
}

// space takes one space, which is optional in front of a list.
func (c *cursor) space() bool { return c.accept(' ') || c.peek() == '(' }

func (c *cursor) spaces() {
	for c.accept(' ') {
	}
}

func (c *cursor) run(in func(b byte) bool) string {
	from := c.i
	for !c.done() && in(c.b[c.i]) {
		c.i++
	}
	return c.b[from:c.i]
}

func isAtom(b byte) bool {
	return b > ' ' && b < 0x7f && !strings.ContainsRune(`(){%*"\]`, rune(b)) || b >= 0xa0
}

func (c *cursor) atom() string { return c.run(isAtom) }

// name is the name of an item, in front of a section or a value.
func (c *cursor) name() string {
	return c.run(func(b byte) bool { return isAtom(b) && b != '[' })
}

func (c *cursor) quoted() (string, bool) {
	from := c.i
	if !c.accept('"') {
		return "", false
	}
	var s strings.Builder
	for !c.done() {
		b := c.b[c.i]
		c.i++
		switch {
		case b == '"':
			return s.String(), true
		case b == '\\' && !c.done():
			b = c.b[c.i]
			c.i++
		}
		s.WriteByte(b)
	}
	c.i = from
	return "", false
}

func (c *cursor) literal() (string, bool) {
	from := c.i
	if c.accept('{') {
		n, err := strconv.Atoi(c.run(isDigit))
		ok := err == nil && c.accept('}')
		_ = c.accept(' ')
		_ = c.accept('\r')
		if ok && c.accept('\n') && n <= len(c.b)-c.i {
			c.i += n
			return c.b[c.i-n : c.i], true
		}
	}
	c.i = from
	return "", false
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

func (c *cursor) str() (string, bool) {
	if s, ok := c.quoted(); ok {
		return s, true
	}
	return c.literal()
}

func (c *cursor) nstring() bool {
	if a := c.atom(); a != "" {
		return a == "NIL"
	}
	_, ok := c.str()
	return ok
}

// skip passes over any value, even if the grammar does not define it.
func (c *cursor) skip() bool {
	depth, from := 0, c.i
	for !c.done() {
		switch b := c.peek(); {
		case b == '"', b == '{':
			if _, ok := c.str(); !ok {
				if b == '"' {
					return false
				}
				c.i++
			}
		case b == '(':
			depth++
			c.i++
		case b == ')':
			if depth == 0 {
				return c.i > from
			}
			depth--
			c.i++
		case b == ' ' && depth == 0:
			return c.i > from
		default:
			c.i++
		}
		if depth == 0 && (c.done() || c.b[c.i-1] == ')') {
			return true
		}
	}
	return depth == 0 && c.i > from
}

// flags reads a list of flags or attributes and returns the valid ones.
func (c *cursor) flags() (string, bool) {
	if !c.accept('(') {
		return "", false
	}
	var flags []string
	for {
		c.spaces()
		if c.accept(')') {
			return strings.Join(flags, " "), true
		}
		from := c.i
		if !c.skip() {
			return "", false
		}
		flag := c.b[from:c.i]
		name := strings.TrimPrefix(flag, `\`)
		rest := cursor{b: name}
		if flag == `\*` || name != "" && rest.atom() == name {
			flags = append(flags, flag)
		}
	}
}

// mailbox reads a folder's name and checks that it can be decoded.
func (c *cursor) mailbox() (string, bool) {
	name, ok := c.str()
	if !ok {
		name = c.run(func(b byte) bool { return isAtom(b) || b == ']' })
	}
	return name, name != "" && decodable(name)
}

// encoded is a run of characters in modified UTF-7, or a lone &.
var encoded = regexp.MustCompile(`&([^-]*)(-?)`)

// decodable reports whether a name is in modified UTF-7 (RFC 3501 section
// 5.1.3), in which raw UTF-8 is allowed besides.
func decodable(name string) bool {
	if !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return false
	}
	end := -1 // of the run before, where this may not begin
	for _, at := range encoded.FindAllStringSubmatchIndex(name, -1) {
		run := name[at[2]:at[3]]
		if at[4] == at[5] || run != "" && (at[0] == end || !shift(run)) {
			return false
		}
		if end = at[1]; run == "" { // it stands for &
			end = -1
		}
	}
	return true
}

var utf7 = base64.NewEncoding("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+,").WithPadding(base64.NoPadding)

// shift reports whether s encodes characters that need it.
func shift(s string) bool {
	b, err := utf7.DecodeString(s)
	if err != nil || len(b) == 0 || len(b)%2 == 1 || strings.ContainsAny(s, "\r\n") {
		return false
	}
	for _, r := range unshift(b) {
		if r == utf8.RuneError || r >= ' ' && r <= '~' {
			return false
		}
	}
	return true
}

func unshift(b []byte) []rune {
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = uint16(b[2*i])<<8 | uint16(b[2*i+1])
	}
	return utf16.Decode(units)
}

// decoded is a name that mailbox read as a person reads it.
func decoded(name string) string {
	return encoded.ReplaceAllStringFunc(name, func(run string) string {
		b, _ := utf7.DecodeString(strings.Trim(run, "&-"))
		if len(b) == 0 {
			return "&"
		}
		return string(unshift(b))
	})
}
