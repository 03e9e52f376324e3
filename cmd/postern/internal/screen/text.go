package screen

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"

	"github.com/postern-mail/postern/internal/plain"
)

// maxMarks is the most combining marks of one character that are shown: no script
// needs more, and a pile of them covers other lines.
const maxMarks = 4

// Visible returns text of one line that a terminal only shows. Control characters, which
// would steer it, are removed; a tab and every other space is a space; and invisible
// characters and those that would change the order of others are written out as in
// \u{202E}, but joiners that belong to the spelling of emoji and words are left out, since
// terminals differ in how wide they draw what is joined. Of the combining marks of a
// character four are kept, and one U+FFFD stands for the others, as for bytes that are not UTF-8. Text without any of
// these stays the same. The length is not bounded: see Wrap and Cut.
func Visible(s string) string {
	var b strings.Builder
	marks, before := 0, ""
	for i, r := range s {
		if joined := string(r); r == '\u200c' || r == '\u200d' {
			_, next := utf8.DecodeRuneInString(s[i+len(joined):])
			joined = before + s[i:i+len(joined)+next]
			if before != "" && next > 0 && plain.Text(joined) == joined {
				continue
			}
		}
		if !unicode.Is(unicode.Mn, r) || len(before) > 16 {
			before = "" // else it is spelled with the marks on it
		}
		before += string(r)
		if unicode.IsControl(r) && r != '\t' {
			continue // and marks behind it combine with the character before it
		}
		if unicode.In(r, unicode.Mn, unicode.Me) && !plain.Unclear(r) {
			if marks++; marks > maxMarks+1 {
				continue
			} else if marks > maxMarks || b.Len() == 0 { // a mark must combine with a character of its own text
				r, marks = unicode.ReplacementChar, maxMarks+1
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

// Cut shortens visible text of one line that is wider than that many columns, so that it
// ends in an ellipsis within them. With fewer columns than one the result is empty.
func Cut(s string, columns int) string {
	if columns < 1 {
		return ""
	}
	return runewidth.Truncate(s, columns, "…")
}

// fill returns text in exactly that many columns.
func fill(s string, columns int) string { return runewidth.FillRight(Cut(s, columns), columns) }

// apart are the parts of our own sentences that stay on one line, to be copied or read in one:
// commands in quotes, options in brackets, and an option with its value.
var apart = regexp.MustCompile(`(^|[ (])'[^' ][^']*'|\[[^\]]*\]| --[a-z-]+ [A-Z]+\b`)

// Words breaks visible text of one line at spaces alone, so that no part is wider than that
// many columns unless it is one word, or a command in quotes. It is for our own sentences: a
// terminal breaks what is wider, and the text of others could pass for something else there;
// see Wrap. Fewer than eight columns count as eight, and there is always one part.
func Words(s string, columns int) []string {
	columns = max(columns, 8)
	s = apart.ReplaceAllStringFunc(s, func(a string) string { return a[:1] + strings.ReplaceAll(a[1:], " ", "\u00a0") })
	var lines []string
	line := ""
	for i, word := range strings.Split(s, " ") {
		switch {
		case i == 0:
			line = word
		case strings.Trim(line, " ") != "" && runewidth.StringWidth(line)+1+runewidth.StringWidth(word) > columns:
			lines, line = append(lines, strings.TrimRight(line, " ")), word
		default:
			line += " " + word
		}
	}
	lines = append(lines, strings.TrimRight(line, " "))
	for i := range lines {
		lines[i] = strings.ReplaceAll(lines[i], "\u00a0", " ")
	}
	return lines
}

// Wrap breaks visible text of one line so that no part is wider than that many columns,
// at a space where possible; a character that is wider by itself stays whole. Fewer
// than eight columns count as eight. There is always one part, which may be empty;
// spaces at the end of a part are left out.
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
			if part == "" { // not even one character fits
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

// upTo returns the width of visible text, exact only up to so many columns: a long
// line without a space is not measured again for each part.
func upTo(s string, columns int) int { return runewidth.StringWidth(beginning(s, columns)) }

// beginning returns as much of visible text as so many columns can need.
func beginning(s string, columns int) string {
	const perColumn = utf8.UTFMax * (maxMarks + 1)
	if n := (columns + 1) * perColumn; len(s) > n {
		for ; n < len(s) && !utf8.RuneStart(s[n]); n++ {
		}
		return s[:n]
	}
	return s
}

// Line returns text of any number of lines as Visible text of one line: a line end
// of any kind becomes a space.
func Line(s string) string {
	return Visible(strings.ReplaceAll(plain.LineEnds(s), "\n", " "))
}

// text returns a value in one line.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case []string:
		var parts []string
		for _, s := range v {
			if s != "" {
				parts = append(parts, Line(s))
			}
		}
		return strings.Join(parts, ", ")
	case []any:
		return strings.Join(words(v), ", ")
	case object:
		parts := make([]string, len(v))
		for i, f := range v {
			parts[i] = Line(f.name) + "=" + text(f.value)
		}
		return strings.Join(parts, " ")
	case bool:
		if v {
			return "yes"
		}
		return "no"
	}
	return Line(fmt.Sprint(v))
}
