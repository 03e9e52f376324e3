package imap

import (
	"regexp"
	"strings"
	"sync"
)

// list reads a list whose elements f reads. It may be empty.
func (c *cursor) list(f func() bool) bool {
	if !c.accept('(') {
		return false
	}
	if c.accept(')') {
		return true
	}
	for f() {
		if c.accept(')') {
			return true
		}
		if !c.space() {
			return false
		}
	}
	return false
}

func (c *cursor) isString() bool {
	_, ok := c.str()
	return ok
}

// plain reads a value made only of strings, atoms and lists of them.
func (c *cursor) plain() bool {
	return c.isString() || c.peek() == '(' && c.list(c.plain) || c.atom() != ""
}

// all reads values one after the other, with a space in between.
func (c *cursor) all(fs ...func() bool) bool {
	for i, f := range fs {
		if i > 0 && !c.space() || !f() {
			return false
		}
	}
	return true
}

// some is all, but the values after the first may be missing.
func (c *cursor) some(fs ...func() bool) bool {
	for i, f := range fs {
		if i > 0 && !c.space() {
			return true
		}
		if !f() {
			return false
		}
	}
	return true
}

// digits reads a number of the given number of bits.
func (c *cursor) digits(bits int) func() bool {
	return func() bool {
		_, ok := number(c.run(isDigit), bits)
		return ok
	}
}

// body reads a body structure (RFC 9051 section 9, body). Its depth is bounded by
// the scanner.
func (c *cursor) body() bool {
	if !c.accept('(') {
		return false
	}
	if c.peek() == '(' {
		if !c.multipart() {
			return false
		}
	} else if !c.singlePart() {
		return false
	}
	for c.space() {
		if !c.plain() {
			return false
		}
	}
	return c.accept(')')
}

func (c *cursor) multipart() bool {
	for {
		if !c.body() || !c.space() {
			return false
		}
		if c.peek() != '(' {
			break
		}
	}
	if !c.isString() {
		return false
	}
	return !c.space() || c.some(c.params, c.disposition, c.language, c.nstring)
}

func (c *cursor) singlePart() bool {
	typ, ok := c.str()
	if !ok || !c.space() {
		return false
	}
	subtype, ok := c.str()
	if !ok || !c.space() || !c.all(c.params, c.nstring, c.nstring, c.nstring, c.octets) {
		return false
	}
	if !c.space() {
		return true
	}
	switch {
	case strings.EqualFold(typ, "message") && (strings.EqualFold(subtype, "rfc822") || strings.EqualFold(subtype, "global")):
		if !c.all(c.envelope, c.body, c.digits(63)) {
			return false
		}
	case strings.EqualFold(typ, "text"):
		if !c.digits(63)() {
			return false
		}
	default:
		return c.some(c.nstring, c.disposition, c.language, c.nstring)
	}
	return !c.space() || c.some(c.nstring, c.disposition, c.language, c.nstring)
}

// octets reads a size, which some servers do not know.
func (c *cursor) octets() bool {
	if c.accept('-') {
		return c.accept('1')
	}
	return c.digits(32)()
}

func (c *cursor) null() bool { return c.atom() == "NIL" }

func (c *cursor) params() bool {
	if c.peek() != '(' {
		return c.null()
	}
	key := "" // an empty key does not count as one
	ok := c.list(func() bool {
		s, ok := c.str()
		if key == "" {
			key = s
		} else {
			key = ""
		}
		return ok
	})
	return ok && key == ""
}

func (c *cursor) disposition() bool {
	if c.peek() != '(' {
		return c.null()
	}
	return c.accept('(') && c.isString() && c.space() && c.params() && c.accept(')')
}

func (c *cursor) language() bool {
	if c.peek() == '(' {
		return c.list(c.isString)
	}
	return c.nstring()
}

func (c *cursor) envelope() bool {
	people := func() bool {
		if c.peek() != '(' {
			return c.null()
		}
		return c.list(func() bool {
			return c.accept('(') && c.all(c.nstring, c.nstring, c.nstring, c.nstring) && c.accept(')')
		})
	}
	return c.accept('(') && c.all(c.nstring, c.nstring, people, people, people, people, people, people, c.nstring, c.nstring) && c.accept(')')
}

// sectionSpec is a section in brackets and its origin, such as [1.TEXT]<0>, as the
// protocol library reads it.
var sectionSpec = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\A\[(` + part + `(\.` + part + `)*(\.(MIME|` + text + `))?|` + text + `)?\](<` + part + `>)?`)
})

const (
	part  = `[0-9]{1,9}`
	text  = `(TEXT|HEADER|HEADER\.FIELDS(\.NOT)? \((` + field + `( ` + field + `)*)?\))`
	field = `("([^"\\\r\n]|\\[^\r\n])*"|[!#$&'+-\[\]-z|-~]+)`
)

// section reads such a section. If it is not ok, section has skipped as much of it as it
// could.
func (c *cursor) section() bool {
	if spec := sectionSpec().FindString(c.b[c.i:]); spec != "" {
		c.i += len(spec)
		return true
	}
	from := c.i
	for depth := 0; ; {
		switch c.peek() {
		case 0:
			c.i = from
			return false
		case '"':
			if _, ok := c.quoted(); !ok {
				c.i = from
				return false
			}
			continue
		case '[':
			depth++
		case ']':
			depth--
		}
		c.i++
		if depth == 0 {
			_ = c.accept('<') && c.run(isDigit) != "" && c.accept('>')
			return false
		}
	}
}
