package rfc5322

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/postern-mail/postern/internal/plain"
)

// The bounds of Message-ID, In-Reply-To and References. The fields name other
// messages, so a long one costs its reader a search for each.
const (
	maxIDField = 8 << 10 // bytes read of one field
	maxIDBytes = 998     // bytes of one id, a line of RFC 5322
)

// MsgIDs returns the message ids in every field of the name, in order and
// without their angle brackets (RFC 5322 section 3.6.4). Text around the ids,
// comments and white space inside an id are ignored; in a field without angle
// brackets, the words that hold an @ are ids. Of a field over 8 KiB the first
// and last 4 KiB are read, which keeps the root and the parent of a thread. Ids
// with other white space, characters that plain.Text removes, or over 998 bytes
// are left out.
func (h Header) MsgIDs(name string) []string {
	var ids []string
	for _, v := range h.Values(name) {
		if len(v) > maxIDField {
			ids = scanIDs(ids, v[:maxIDField/2])
			v = v[len(v)-maxIDField/2:]
		}
		ids = scanIDs(ids, v)
	}
	return ids
}

// scanIDs appends the ids in s. It passes over s once, and once more for an
// unclosed comment and an unclosed quoted string each.
func scanIDs(ids []string, s string) []string {
	if !strings.Contains(s, "<") {
		for word := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == ' ' || r == '\t' || r == ',' }) {
			if strings.Contains(word, "@") {
				ids = appendID(ids, word)
			}
		}
		return ids
	}
	var skip skipper
	for i := 0; i < len(s); {
		switch s[i] {
		case '(':
			i = skip.comment(s, i)
		case '"':
			i = skip.quoted(s, i)
		case '<':
			end := strings.IndexByte(s[i:], '>')
			if end < 0 {
				return ids
			}
			id := s[i+1 : i+end]
			if inner := strings.LastIndexByte(id, '<'); inner >= 0 {
				id = id[inner+1:]
			}
			ids = appendID(ids, id)
			i += end + 1
		default:
			i++
		}
	}
	return ids
}

func appendID(ids []string, id string) []string {
	id = strings.Map(func(r rune) rune {
		if r == ' ' || r == '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(id, "\x00"))
	if id == "" || len(id) > maxIDBytes || !utf8.ValidString(id) || plain.Text(id) != id || strings.ContainsAny(id, "<>") || strings.ContainsFunc(id, unicode.IsSpace) {
		return ids
	}
	return append(ids, id)
}

// skipper jumps over comments and quoted strings of structured fields (RFC 5322
// section 3.2). Once one of a kind has no end, the characters that open that
// kind are ordinary from there on, which keeps a scan linear.
type skipper struct {
	openComment, openQuote bool
}

// comment returns the index behind the comment that opens at s[i], or i+1 when
// it has no end.
func (k *skipper) comment(s string, i int) int {
	if k.openComment {
		return i + 1
	}
	depth := 0
	for j := i; j < len(s); j++ {
		switch s[j] {
		case '\\':
			j++
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return j + 1
			}
		}
	}
	k.openComment = true
	return i + 1
}

// quoted returns the index behind the quoted string that opens at s[i], or i+1
// when it has no end.
func (k *skipper) quoted(s string, i int) int {
	if k.openQuote {
		return i + 1
	}
	for j := i + 1; j < len(s); j++ {
		switch s[j] {
		case '\\':
			j++
		case '"':
			return j + 1
		}
	}
	k.openQuote = true
	return i + 1
}
