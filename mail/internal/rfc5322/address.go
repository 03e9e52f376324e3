package rfc5322

import (
	"bytes"
	"cmp"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/postern-mail/postern/internal/plain"
)

// Address is one mailbox of an address field, decoded and cleaned. Addr holds
// an @, or is empty where the field gives a name without an address. It is
// the address as the message has it and may be invalid.
type Address struct {
	Name string
	Addr string
}

// String returns the address as a person writes it: Ann Lee <ann@example.org>.
// The name is quoted only where RFC 5322 needs that, and always where it could
// be taken for an address.
func (a Address) String() string {
	name := plain.Line(a.Name)
	if needsQuotes(name) {
		name = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name) + `"`
	}
	switch {
	case name == "":
		return a.Addr
	case a.Addr == "":
		return name
	}
	return name + " <" + a.Addr + ">"
}

// MarshalText is String.
func (a Address) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads the text of MarshalText. Text without a mailbox, or with several,
// becomes a name without an address. The error is always nil.
func (a *Address) UnmarshalText(text []byte) error {
	var p addressScanner
	p.scan(string(text))
	if *a = (Address{Name: plain.Line(string(text))}); len(p.out) == 1 {
		*a = p.out[0]
	}
	return nil
}

// needsQuotes reports whether a name is not a phrase of atoms (RFC 5322 section
// 3.2.5, with RFC 6532 section 3.2).
func needsQuotes(name string) bool {
	for i := range len(name) {
		if c := name[i]; c != ' ' && c < utf8.RuneSelf && !IsAtext(c) {
			return true
		}
	}
	return false
}

// IsAtext reports whether an ASCII character may stand in an atom (RFC 5322 section 3.2.3).
func IsAtext(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		c < utf8.RuneSelf && strings.IndexByte("!#$%&'*+-/=?^_`{|}~", c) >= 0
}

// IsToken reports whether s is a token of RFC 2045 section 5.1, which names and values of
// parameters are without quotes.
func IsToken(s string) bool {
	for i := range len(s) {
		if !IsTokenChar(s[i]) {
			return false
		}
	}
	return s != ""
}

// IsTokenChar reports whether a token may hold c.
func IsTokenChar(c byte) bool {
	return c > ' ' && c < 0x7f && strings.IndexByte(`()<>@,;:\"/[]?=`, c) < 0
}

// Addresses returns every mailbox in every field of the name, in order. Groups are
// flattened and empty ones give nothing. It reads the errors that mail programs accept:
// missing or doubled angle brackets, semicolons between addresses, commas in unquoted
// names, names in comments, routes, quotes that never end. To decide on an address rather
// than show it, compare with StrictAddresses.
func (h Header) Addresses(name string) []Address {
	var p addressScanner
	for _, v := range h.Values(name) {
		p.scan(v)
	}
	return p.out
}

// maxPending is how much of an unquoted name with commas is kept together, in
// bytes. It bounds the copying when the pieces are joined.
const maxPending = 256

// addressScanner reads address lists in one pass. It looks once for the missing
// end of an opening character and then takes the character as text, and an angle
// bracket ends within maxAngle, so that the time is linear.
type addressScanner struct {
	out []Address

	skip skipper

	// The mailbox being read.
	words   []addressWord
	current addressWord
	at      bool   // a word has an unquoted @
	comment string // the last comment, without its parentheses
	angle   string // the text in angle brackets
	angled  bool
	pending string // "Lee," of Lee, Ann <ann@example.org>
}

// addressWord is a run without white space; a quoted string counts as one
// character of it.
type addressWord struct {
	raw  []byte // as written
	text []byte // without quotes
	at   bool   // it has an unquoted @
}

func (p *addressScanner) scan(s string) {
	p.skip = skipper{}
	for i := 0; i < len(s); {
		switch c := s[i]; c {
		case '"':
			end := p.skip.quoted(s, i)
			if end > i+1 {
				p.current.raw = append(p.current.raw, s[i:end]...)
				p.current.text = append(p.current.text, quotedPair.ReplaceAllString(s[i+1:end-1], "$1")...)
			}
			i = end
		case '(':
			end := p.skip.comment(s, i)
			if end > i+1 {
				p.comment = s[i+1 : end-1]
			}
			i = end
		case '<':
			if p.angled {
				p.flush(false) // a second bracket without a comma
			}
			p.angle, i = bracket(s, i)
			p.angled = true
		case ',', ';':
			p.flush(c == ',')
			i++
		case ':':
			if p.angled || p.at {
				p.put(c)
			} else {
				p.reset() // the name of a group
				p.pending = ""
			}
			i++
		case ' ', '\t', '\r', '\n':
			rest := strings.TrimLeft(s[i:], " \t\r\n")
			i = len(s) - len(rest)
			if strings.HasPrefix(rest, "@") || bytes.HasSuffix(p.current.raw, []byte("@")) {
				p.current.text = append(p.current.text, ' ') // white space around the @ is obsolete but allowed
				continue
			}
			p.endWord()
		case '>', ')':
			i++ // a closing character without an opening one
		default:
			p.put(c)
			i++
		}
	}
	p.flush(false)
	p.flushPending()
}

func (p *addressScanner) put(c byte) {
	p.current.raw = append(p.current.raw, c)
	p.current.text = append(p.current.text, c)
	if c == '@' {
		p.current.at, p.at = true, true
	}
}

// maxAngle is how far the scanner looks for the end of an angle bracket.
const maxAngle = 4 * MaxAddrBytes

// bracket returns the content of the angle bracket at s[i] and the index
// behind it. Of nested brackets the innermost counts; one that is not closed,
// or not before a comma and another bracket, ends at the comma or the bracket.
func bracket(s string, i int) (inner string, next int) {
	i++
	inner, _, closed := strings.Cut(s[i:min(len(s), i+maxAngle)], ">")
	if closed {
		comma := strings.IndexAny(inner, ",;")
		closed = comma < 0 || !strings.Contains(inner[comma:], "<")
	}
	if !closed {
		end := strings.IndexAny(inner, ",;<")
		if end < 0 {
			end = len(inner)
		}
		return inner[:end], i + end
	}
	return inner[strings.LastIndexByte(inner, '<')+1:], i + len(inner) + 1
}

func (p *addressScanner) endWord() {
	if len(p.current.raw) > 0 {
		p.words = append(p.words, p.current)
		p.current = addressWord{}
	}
}

func (p *addressScanner) reset() {
	p.words, p.current, p.at = nil, addressWord{}, false
	p.comment, p.angle, p.angled = "", "", false
}

// flush ends a mailbox; comma says that a comma ended it.
func (p *addressScanner) flush(comma bool) {
	p.endWord()
	defer p.reset()
	switch {
	case p.angled:
		name := phrase(p.words)
		if p.pending != "" {
			name = p.pending + " " + name
			p.pending = ""
		}
		p.emit(cmp.Or(strings.TrimSpace(name), p.comment), tidyAddr(p.angle))
	case p.at:
		p.flushPending()
		p.bare()
	case len(p.words) > 0 && comma:
		// Perhaps the surname of the next mailbox.
		if len(p.pending) > maxPending {
			p.flushPending()
		}
		p.pending = strings.TrimSpace(p.pending+" "+phrase(p.words)) + ","
	case len(p.words) > 0:
		p.pending = strings.TrimSpace(p.pending + " " + phrase(p.words))
		p.flushPending()
	}
}

func (p *addressScanner) flushPending() {
	if p.pending != "" {
		p.emit(strings.TrimSuffix(p.pending, ","), "")
		p.pending = ""
	}
}

// phrase joins words as a display name.
func phrase(words []addressWord) string {
	var texts []string
	for _, w := range words {
		texts = append(texts, string(w.text))
	}
	return strings.Join(texts, " ")
}

// bare emits the addresses of a mailbox without angle brackets. Each word with
// an @ is one; the words before it are its name, or else the comment is.
func (p *addressScanner) bare() {
	from := 0
	for i, w := range p.words {
		if w.at {
			p.emit(cmp.Or(phrase(p.words[from:i]), p.comment), tidyAddr(string(w.raw)))
			from = i + 1
		}
	}
	if last := len(p.out) - 1; last >= 0 && p.out[last].Name == "" {
		p.out[last].Name = DecodeHeader(phrase(p.words[from:]))
	}
}

// emit adds a mailbox. An addr without an @ is a name.
func (p *addressScanner) emit(name, addr string) {
	a := Address{Name: DecodeHeader(name), Addr: addr}
	if !strings.Contains(addr, "@") {
		if a.Name == "" {
			a.Name = addr
		}
		a.Addr = ""
	}
	if a != (Address{}) {
		p.out = append(p.out, a)
	}
}

// tidyAddr removes comments, white space outside quotes and a source route from
// an address and cleans it. Encoded words in it stay undecoded.
func tidyAddr(s string) string {
	for before := ""; before != s; { // comments may be nested
		before = s
		s = addrNoise.ReplaceAllStringFunc(s, func(part string) string {
			if part[0] == '"' {
				return part
			}
			return ""
		})
	}
	if strings.HasPrefix(s, "@") {
		if _, after, ok := strings.Cut(s, ":"); ok {
			s = after
		}
	}
	return plain.Line(rawText(s))
}

var (
	addrNoise  = regexp.MustCompile(`(?s)"(?:\\.|[^"\\])*"|\([^()]*\)|\s`)
	quotedPair = regexp.MustCompile(`(?s)\\(.)`) // RFC 5322 section 3.2.1
)
