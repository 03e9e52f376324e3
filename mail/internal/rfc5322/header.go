package rfc5322

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
)

// The bounds of a header. What is beyond them is not read, and Header.Certain
// then says so.
const (
	MaxHeaderBytes = 256 << 10 // of a whole header block
	MaxFields      = 1000
	MaxFieldBytes  = 64 << 10 // of one field's value
)

// Field is one header field. Name has the spelling of the message, Value is
// unfolded but neither decoded nor cleaned: it may hold any byte but LF.
type Field struct {
	Name  string
	Value string
}

// Text returns the value as a person reads it, decoded by DecodeHeader.
func (f Field) Text() string { return DecodeHeader(f.Value) }

// Header is a parsed header block. The zero Header has no fields. A Header is
// never changed after ParseHeader and does not share memory with its bytes.
type Header struct {
	fields []Field
	cut    []int    // indexes of the fields that lost their end to MaxFieldBytes
	odd    []string // lines that are no field, as they stood
	lost   bool     // MaxHeaderBytes or MaxFields left something out
}

// ParseHeader reads a header block, which ends at the first empty line or at the
// end of b; whatever follows is ignored. It takes everything that is found in
// real mailboxes: bare LF line ends, a leading mbox "From " line, white space
// before the colon, lines that are no field (left out), control characters,
// NUL and 8-bit bytes in values, and no end at all. A CR that does not stand
// before LF is an ordinary byte of the value.
func ParseHeader(b []byte) Header {
	var h Header
	s := string(b[:min(len(b), MaxHeaderBytes)])
	h.lost = len(b) > MaxHeaderBytes
	if end := strings.LastIndexByte(s, '\n'); h.lost && end >= 0 {
		s = s[:end+1]
	}
	var f *unfolder // the field that a continuation line belongs to
	for first := true; s != ""; first = false {
		var line string
		line, s, _ = strings.Cut(s, "\n")
		line = strings.TrimRight(line, "\r")
		if line == "" {
			h.lost = false // what the bound left out is no header
			break
		}
		if line[0] == ' ' || line[0] == '\t' {
			if f != nil {
				f.add(line)
			} else {
				h.odd = append(h.odd, line)
			}
			continue
		}
		h.finish(f)
		f = nil
		name, value, ok := strings.Cut(line, ":")
		name = strings.TrimRight(name, " \t")
		if !ok || !isFieldName(name) {
			if !first || !strings.HasPrefix(line, "From ") {
				h.odd = append(h.odd, line)
			}
			continue
		}
		if len(h.fields) == MaxFields {
			h.lost = true
			break
		}
		f = &unfolder{name: name}
		f.add(value)
	}
	h.finish(f)
	return h
}

// unfolder joins the lines of one field (RFC 5322 section 2.2.3).
type unfolder struct {
	name  string
	first string // the only line, while there is just one
	more  strings.Builder
	cut   bool
}

func (f *unfolder) add(line string) {
	if f.more.Len() == 0 && f.first == "" {
		f.first = f.clip(line, MaxFieldBytes)
		return
	}
	if f.more.Len() == 0 {
		f.more.WriteString(f.first)
	}
	f.more.WriteString(f.clip(line, MaxFieldBytes-f.more.Len()))
}

// clip cuts line to n bytes, not inside a character.
func (f *unfolder) clip(line string, n int) string {
	if len(line) <= n {
		return line
	}
	f.cut = true
	for back := 0; back < utf8.UTFMax && n > 0 && !utf8.RuneStart(line[n]); back++ {
		n--
	}
	return line[:n]
}

func (h *Header) finish(f *unfolder) {
	if f == nil {
		return
	}
	value := f.first
	if f.more.Len() > 0 {
		value = f.more.String()
	}
	if f.cut {
		h.cut = append(h.cut, len(h.fields))
	}
	h.fields = append(h.fields, Field{Name: f.name, Value: strings.Trim(value, " \t")})
}

func isFieldName(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return s != ""
}

// Fields returns every field in the order of the message.
func (h Header) Fields() []Field { return slices.Clone(h.fields) }

// Has reports whether there is a field of this name, in any case.
func (h Header) Has(name string) bool {
	return slices.ContainsFunc(h.fields, func(f Field) bool { return strings.EqualFold(f.Name, name) })
}

// Get returns the first value of the name, unfolded and not decoded, or "".
func (h Header) Get(name string) string {
	for _, f := range h.fields {
		if strings.EqualFold(f.Name, name) {
			return f.Value
		}
	}
	return ""
}

// Values returns every value of the name as Get does, in order.
func (h Header) Values(name string) []string {
	var values []string
	for _, f := range h.fields {
		if strings.EqualFold(f.Name, name) {
			values = append(values, f.Value)
		}
	}
	return values
}

// Text returns the first value of the name as a person reads it, decoded by
// DecodeHeader, or "".
func (h Header) Text(name string) string { return DecodeHeader(h.Get(name)) }

// Certain reports whether Values(name) is all that any reader of this message
// could take for a field of this name. It is false when a bound left something
// out that may have been one, and when another program may find one where this
// parser found none: behind a bare CR, in a name with a control character or
// NUL, or in a line that stands where no continuation may.
func (h Header) Certain(name string) bool {
	if h.lost {
		return false
	}
	for _, i := range h.cut {
		if strings.EqualFold(h.fields[i].Name, name) {
			return false
		}
	}
	for _, f := range h.fields {
		if _, tail, ok := strings.Cut(f.Value, "\r"); ok && maybeField(tail, name) {
			return false
		}
	}
	return !slices.ContainsFunc(h.odd, func(line string) bool { return maybeField(line, name) })
}

// maybeField reports whether one of the pieces between the CRs of s begins with
// name and a colon, once what a reader may drop is dropped.
func maybeField(s, name string) bool {
	for piece := range strings.SplitSeq(s, "\r") {
		before, _, ok := strings.Cut(piece, ":")
		if !ok {
			continue
		}
		before = strings.Map(func(r rune) rune {
			if r <= ' ' || r >= 0x7f {
				return -1
			}
			return r
		}, before)
		if strings.EqualFold(before, name) {
			return true
		}
	}
	return false
}

// LineAt returns the end of the line of b that starts at pos, without its line
// end, and the start of the next one. Every CR before the LF belongs to it.
func LineAt(b []byte, pos int, eol byte) (end, next int) {
	end, next = len(b), len(b)
	if i := bytes.IndexByte(b[pos:], eol); i >= 0 {
		end, next = pos+i, pos+i+1
	}
	for end > pos && b[end-1] == '\r' {
		end--
	}
	return end, next
}
