package imap

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// orderItem is an item that is never requested, so that a server's value of it never
// passes. The mender numbers the responses with it: the library hands them to several
// goroutines, and of two about one message the later one counts. Its part says in which
// folder the response came, as the number of folders opened on the connection until then:
// where several are opened one after the other, a UID alone does not tell. It is the first
// item and again the last, so that a response that broke off can be told from a whole one.
const orderItem = "BINARY.SIZE[%d] %d"

// fetchMend is the mender's state of the FETCH response in progress. Such a response comes
// in parts: up to each literal that is the content of a section, and the rest behind the
// last. If a response stops being a list of items, the items before count.
type fetchMend struct {
	streaming bool   // a part has been taken
	number    uint64 // the message's
	broken    bool   // the rest of it cannot be read
	begun     bool   // some bytes were passed on
	passing   bool   // the content of the section that streams is passed on
}

// isFetch reports whether the line is a FETCH response or goes on with one.
func (f *fetchMend) isFetch(line []byte) bool {
	if f.streaming {
		return true
	}
	rest, ok := bytes.CutPrefix(line, []byte("* "))
	if !ok {
		return false
	}
	_, rest, _ = bytes.Cut(rest, []byte(" "))
	return len(rest) > 5 && bytes.EqualFold(rest[:5], []byte("FETCH")) && (rest[5] == ' ' || rest[5] == '(')
}

// last passes on the items behind the last literal, and ends the response.
func (f *fetchMend) last(m *mender) {
	f.items(m, -1)
	if f.begun {
		m.out = fmt.Appendf(m.out, " "+orderItem+")\r\n", 1, m.begun)
		m.fetches.Add(1)
	}
	*f = fetchMend{}
}

// items reads one part and passes on its items. size is that of the literal
// behind it, or negative when there is none.
func (f *fetchMend) items(m *mender, size int64) {
	f.passing = false
	c := cursor{b: string(bytes.TrimRight(m.line, "\r\n"))}
	if size >= 0 {
		c.b = c.b[:strings.LastIndexByte(c.b, '{')]
	}
	if strings.HasPrefix(c.b, "* ") && f.number == 0 && !f.broken {
		head, rest, _ := strings.Cut(c.b[2:], " ")
		c.b = rest[len("FETCH"):]
		var ok bool
		f.number, ok = number(head, 32)
		c.spaces()
		f.broken = !ok || f.number == 0 || !c.accept('(')
	}
	for !f.broken {
		c.spaces()
		if c.done() || c.peek() == ')' {
			f.broken = c.peek() == ')'
			return
		}
		name := strings.ToUpper(c.name())
		switch {
		case name == "":
			f.broken = true
		case c.peek() == '[':
			f.section(m, &c, name, size)
		default:
			f.item(m, &c, name)
		}
	}
}

// section reads an item such as BODY[TEXT]<0>. Its literal, if any, is the end of
// the part.
func (f *fetchMend) section(m *mender, c *cursor, name string, size int64) {
	from := c.i
	good := c.section() && name == "BODY"
	spec := c.b[from:c.i]
	if !good && c.i == from {
		f.broken = true
		return
	}
	c.spaces()
	if c.done() {
		f.broken = size < 0
		if size >= 0 && good {
			f.pass(m, name+spec+" {"+strconv.FormatInt(size, 10)+"}\r\n")
			f.passing = true
		}
		return
	}
	from = c.i
	if s, ok := c.quoted(); ok {
		if good {
			f.pass(m, name+spec+" "+quote(s))
		}
		return
	}
	switch ok := c.skip(); {
	case !ok:
		f.broken = true
	case good && strings.EqualFold(c.b[from:c.i], "NIL"):
		f.pass(m, name+spec+" NIL")
	}
}

// item reads an item with a value that is not a section.
func (f *fetchMend) item(m *mender, c *cursor, name string) {
	c.spaces()
	from := c.i
	if !c.skip() {
		f.broken = true
		return
	}
	value := cursor{b: c.b[from:c.i]}
	switch name {
	case "UID":
		if n, ok := number(value.b, 32); ok && n > 0 {
			f.pass(m, name+" "+value.b)
		}
	case "FLAGS":
		if flags, ok := value.flags(); ok {
			f.pass(m, name+" ("+flags+")")
		}
	case "RFC822.SIZE":
		if _, ok := number(value.b, 63); ok {
			f.pass(m, name+" "+value.b)
		}
	case "MODSEQ":
		if n, ok := strings.CutPrefix(value.b, "("); ok && strings.HasSuffix(n, ")") {
			if _, ok := number(n[:len(n)-1], 64); ok {
				f.pass(m, name+" "+value.b)
			}
		}
	case "INTERNALDATE":
		s, ok := value.quoted()
		if t, err := time.Parse("_2-Jan-2006 15:04:05 -0700", s); ok && err == nil && !t.IsZero() {
			f.pass(m, name+" "+quote(s))
		}
	case "BODYSTRUCTURE", "BODY":
		if value.body() && value.done() {
			f.pass(m, name+" "+value.b)
		}
	}
}

func (f *fetchMend) pass(m *mender, item string) {
	if !f.begun {
		f.begun = true
		m.begun++
		var opened uint32
		if m.opened != nil {
			opened = m.opened()
		}
		m.out = fmt.Appendf(m.out, "* %d FETCH ("+orderItem, f.number, opened+1, m.begun)
	}
	m.out = append(m.out, ' ')
	m.out = append(m.out, item...)
}
