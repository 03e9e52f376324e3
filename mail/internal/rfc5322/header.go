package rfc5322

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// The bounds of a header. Bytes beyond them are not read, and Header.Certain
// reports that.
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

// Header is a parsed header block. The zero Header has no fields. A Header
// does not change after ParseHeader and does not share memory with its bytes.
type Header struct {
	fields []Field
	cut    []int    // indexes of the fields that lost their end to MaxFieldBytes
	odd    []string // lines that are not fields, unchanged
	lost   bool     // MaxHeaderBytes or MaxFields left something out
}

// ParseHeader reads a header block, which ends at the first empty line or at the
// end of b; bytes behind it are ignored. It accepts the errors of real
// mailboxes: bare LF line ends, a leading mbox "From " line, white space before
// the colon, lines that are not fields (left out), control characters, NUL and
// 8-bit bytes in values, and a missing end. A CR that is not before LF is an
// ordinary byte of the value.
func ParseHeader(b []byte) Header {
	var h Header
	s := string(b[:min(len(b), MaxHeaderBytes)])
	h.lost = len(b) > MaxHeaderBytes
	if end := strings.LastIndexByte(s, '\n'); h.lost && end >= 0 {
		s = s[:end+1]
	}
	for first := true; s != ""; first = false {
		lines, rest := cutField(s)
		if lines[0] == "" {
			h.lost = false // the bound cut only the body
			break
		}
		s = rest
		name, _, ok := strings.Cut(lines[0], ":")
		value := strings.Join(lines, "")[min(len(name)+1, len(lines[0])):] // RFC 5322 section 2.2.3
		if name = strings.TrimRight(name, " \t"); !ok || !isFieldName(name) {
			if first && strings.HasPrefix(lines[0], "From ") {
				lines = lines[1:]
			}
			h.odd = append(h.odd, lines...)
			continue
		}
		if len(h.fields) == MaxFields {
			h.lost = true
			break
		}
		if n := MaxFieldBytes; len(value) > n {
			h.cut = append(h.cut, len(h.fields))
			for back := 1; back < utf8.UTFMax && !utf8.RuneStart(value[n]); back++ { // do not cut inside a character
				n--
			}
			value = value[:n]
		}
		h.fields = append(h.fields, Field{Name: name, Value: strings.Trim(value, " \t")})
	}
	return h
}

// cutField takes a line off the beginning of s, with the lines that continue it, all
// without their ends.
func cutField(s string) (lines []string, rest string) {
	for lines == nil || s != "" && (s[0] == ' ' || s[0] == '\t') {
		var line string
		line, s, _ = strings.Cut(s, "\n")
		lines = append(lines, strings.TrimRight(line, "\r"))
	}
	return lines, s
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
// could take for a field of this name. It is false when a bound cut something
// that may have been such a field, and when another program may find one that
// this parser does not: behind a bare CR, in a name with a control character
// or NUL, or in a line where a continuation is not allowed.
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
// name and a colon, after removing the characters that a reader may drop.
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
