package screen

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"

	"github.com/postern-mail/postern/internal/plain"
)

// maxMarks is how many combining marks of one character are shown: no script needs
// more, and a pile of them covers the lines around.
const maxMarks = 4

// Visible returns text of one line that a terminal only shows. Control characters, which
// would steer it, are taken out; a tab and every other space is a space; and characters
// that nobody would see, or that would change the order of others, are written out as in
// \u{202E}. Of the combining marks of a character four are kept, and bytes that are not
// UTF-8 become U+FFFD. Text that stays the same holds none of this. The length is not
// bounded: see Wrap and Cut.
func Visible(s string) string {
	var b strings.Builder
	marks := 0
	for _, r := range s {
		if unicode.IsControl(r) && r != '\t' {
			continue // and the marks behind it stand on what is before it
		}
		if unicode.In(r, unicode.Mn, unicode.Me) {
			if marks++; marks > maxMarks || b.Len() == 0 {
				continue // a mark has to stand on something of its own text
			}
		} else {
			marks = 0
		}
		switch {
		case r == '\t', unicode.Is(unicode.Zs, r):
			b.WriteByte(' ')
		case r == unicode.ReplacementChar:
			b.WriteRune(r)
		case plain.Unclear(r):
			fmt.Fprintf(&b, `\u{%X}`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Cut shortens visible text of one line that is wider than that many columns, so that
// it ends in an ellipsis within them. Fewer columns than one leave nothing.
func Cut(s string, columns int) string {
	if columns < 1 {
		return ""
	}
	return runewidth.Truncate(s, columns, "…")
}

// fill is text in exactly that many columns.
func fill(s string, columns int) string { return runewidth.FillRight(Cut(s, columns), columns) }

// Wrap breaks visible text of one line so that no part is wider than that many columns,
// at a space where there is one; a character that is wider by itself stays whole.
// Fewer than eight columns count as eight. There is always one part, which may be
// empty; spaces where a part ends are left out.
func Wrap(s string, columns int) []string {
	columns = max(columns, 8)
	var lines []string
	line, used := "", 0
	flush := func() { lines, line, used = append(lines, strings.TrimRight(line, " ")), "", 0 }
	for i, word := range strings.SplitAfter(s, " ") {
		w := upTo(strings.TrimRight(word, " "), columns)
		if i > 0 && used > 0 && used+w > columns {
			flush()
		}
		for w > columns {
			part := runewidth.Truncate(beginning(word, columns), columns-used, "")
			if part == "" { // not even one character fits behind what is there
				if used == 0 {
					break
				}
				flush()
				continue
			}
			line += part
			word = word[len(part):]
			w = upTo(strings.TrimRight(word, " "), columns)
			flush()
		}
		line += word
		used += upTo(word, columns)
	}
	if line != "" || len(lines) == 0 {
		flush()
	}
	return lines
}

// upTo is the width of visible text, where it matters only whether that is more than
// so many columns: a long line without a space is not measured again for each part.
func upTo(s string, columns int) int { return runewidth.StringWidth(beginning(s, columns)) }

// beginning is as much of visible text as can be needed for so many columns.
func beginning(s string, columns int) string {
	const perColumn = utf8.UTFMax * (maxMarks + 1)
	if n := (columns + 1) * perColumn; len(s) > n {
		for ; n < len(s) && !utf8.RuneStart(s[n]); n++ {
		}
		return s[:n]
	}
	return s
}

// Line returns text of any number of lines as Visible text of one: a line end of any
// kind is a space.
func Line(s string) string {
	return Visible(strings.ReplaceAll(plain.LineEnds(s), "\n", " "))
}

// text is a value in one line.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return Line(v)
	case []any:
		parts := make([]string, len(v))
		for i, x := range v {
			parts[i] = text(x)
		}
		return strings.Join(parts, ", ")
	case object:
		parts := make([]string, len(v))
		for i, f := range v {
			parts[i] = Line(f.Name) + "=" + text(f.Value)
		}
		return strings.Join(parts, " ")
	case bool:
		if v {
			return "yes"
		}
		return "no"
	}
	return fmt.Sprint(v)
}
