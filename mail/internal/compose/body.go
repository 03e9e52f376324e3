package compose

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// The measures of a text line, in columns.
const (
	maxColumns  = 78 // longer lines are wrapped (RFC 5322 section 2.1.1)
	wrapColumns = 76 // the most columns of a wrapped line, its last space included
	minColumns  = 24 // columns that quote marks must leave free
	tabColumns  = 8
)

// signature is the separator above a signature, the one line whose last space
// counts (RFC 3676 section 4.3).
const signature = "-- "

var unixLines = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// layout turns text into lines that end with CRLF, and says whether they are
// format=flowed.
//
// Only text that had to be wrapped is flowed. Then a space precedes every line
// that begins with a space or "From "; a reader of format=flowed removes it.
// Lines that begin with ">" are quotations to any reader and stay unchanged;
// see wrap for when one is wrapped.
func layout(body string) (text []byte, flowed bool, err error) {
	if !utf8.ValidString(body) {
		return nil, false, fault("Body", "it is not valid UTF-8")
	}
	for _, r := range body {
		if unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' && r != '\f' {
			return nil, false, fault("Body", "it holds the control character %U", r)
		}
	}
	if body == "" {
		return nil, false, nil
	}
	body = unixLines.Replace(body)
	body = strings.TrimSuffix(body, "\n")
	var pieces []string // the lines of the result
	for line := range strings.SplitSeq(body, "\n") {
		if line != signature {
			line = strings.TrimRight(line, " \t")
		}
		before := len(pieces)
		pieces = wrap(pieces, line)
		flowed = flowed || len(pieces) > before+1
	}
	text = make([]byte, 0, len(body)+len(body)/32+2*len(pieces))
	for _, p := range pieces {
		if flowed && (strings.HasPrefix(p, " ") || strings.HasPrefix(p, "From ")) {
			text = append(text, ' ')
		}
		text = append(append(text, p...), "\r\n"...)
	}
	return text, flowed, nil
}

// wrap appends a line to pieces, as several when it is too long. All but the
// last end with the spaces at which the line was split, so that joining them
// gives the line again.
//
// A quoted line repeats its marks before every piece. It is wrapped only where
// these are ">" and one space, as RFC 3676 section 4.5 writes them: a reader
// would join other marks into the text.
func wrap(pieces []string, line string) []string {
	if !wider(line, maxColumns) {
		return append(pieces, line)
	}
	marks, text := "", line
	if strings.HasPrefix(line, ">") {
		text = strings.TrimLeft(line, ">")
		marks = line[:len(line)-len(text)] + " "
		if len(text) < 2 || text[0] != ' ' || text[1] == ' ' || text[1] == '>' {
			return append(pieces, line)
		}
		text = text[1:]
	}
	limit := wrapColumns - len(marks)
	if limit < minColumns {
		return append(pieces, line)
	}
	for wider(text, limit) {
		n := breakAt(text, limit)
		if n == len(text) {
			break
		}
		pieces = append(pieces, marks+text[:n])
		text = text[n:]
	}
	return append(pieces, marks+text)
}

// breakAt returns where to split text so that its beginning, with one space at
// its end, has at most limit columns: behind the last run of spaces that allows
// it, else behind the first run that allows any split, else len(text). Words
// are never split, and so no link is.
//
// It does not split where the rest would begin with ">" or "From ", which a
// reader could mistake, or where the beginning would look like the separator
// above a signature or hold only spaces.
func breakAt(text string, limit int) int {
	best, col := 0, 0
	start := len(text) - len(strings.TrimLeft(text, " "))
	for i := 0; i < len(text); {
		if text[i] != ' ' || i < start {
			r, n := utf8.DecodeRuneInString(text[i:])
			col += runeColumns(r)
			i += n
			continue
		}
		end := i
		for end < len(text) && text[end] == ' ' {
			end++
		}
		fits := col+1 <= limit
		if !fits && best > 0 {
			return best
		}
		rest := text[end:]
		if rest != "" && rest[0] != '>' && !strings.HasPrefix(rest, "From ") && text[:end] != signature {
			best = end
			if !fits {
				return best
			}
		}
		col += end - i
		i = end
	}
	if best == 0 {
		return len(text)
	}
	return best
}

// wider reports whether a line has more than limit columns where characters have
// one width each, and East Asian wide ones two.
func wider(s string, limit int) bool {
	if len(s) <= limit && strings.IndexByte(s, '\t') < 0 {
		return false // no character is wider than its bytes
	}
	col := 0
	for _, r := range s {
		if col += runeColumns(r); col > limit {
			return true
		}
	}
	return false
}

func runeColumns(r rune) int {
	switch {
	case r == '\t':
		return tabColumns
	case r < utf8.RuneSelf:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}
