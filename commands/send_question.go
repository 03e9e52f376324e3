package commands

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"

	"github.com/postern-mail/postern/mail"
)

// The question that a person is asked before a message leaves. What is not from the
// agent comes first, a field a line; everything that the agent wrote stands in
// quotes or on lines of its own that begin with >, broken before a window would
// break them, and without a character that hides or moves text. So nothing that it
// wrote can look like a part of the question, and nothing that it writes can push
// a part of the question out of sight.

// Bounds of what a question shows of the text.
const (
	maxQuestionChars = 2000
	maxQuestionLines = 100
	questionWidth    = 66 // columns of a line that the agent wrote
)

// questionText is the question about a message that waits.
func questionText(s *mail.Shown) string {
	var b strings.Builder
	b.WriteString("Send this message? Nothing leaves unless you accept.\n\n")
	row := func(name, value string) {
		lines := wrapped(value, questionWidth)
		fmt.Fprintf(&b, "%-9s%s\n", name, lines[0])
		for _, l := range lines[1:] {
			fmt.Fprintf(&b, "        > %s\n", l)
		}
	}
	row("From:", harmless(s.From)+", account "+s.Account)
	left := map[string]bool{}
	for _, r := range s.Recipients {
		left[r] = true
	}
	for _, kind := range []struct {
		name string
		list []string
	}{{"To:", s.HeaderTo}, {"Cc:", s.HeaderCC}, {"Bcc:", s.BCC}} {
		for _, written := range kind.list {
			address, shown := recipientShown(written)
			delete(left, address)
			row(kind.name, shown)
		}
	}
	for _, r := range s.Recipients { // an address that is written in another way above
		if left[r] {
			row("Goes to:", harmless(r))
		}
	}
	row("Subject:", quoted(s.Subject))
	for _, f := range s.Files {
		row("File:", fmt.Sprintf("%s, %s, %s", quoted(f.Name), harmless(f.Type), count(int(f.Size), "byte", "bytes")))
	}
	row("Digest:", s.Digest[:min(16, len(s.Digest))]+" (outbox "+s.ID+")")
	text := strings.TrimRight(newlines.Replace(s.Body), "\n")
	shown, hidden := head(text)
	b.WriteByte('\n')
	switch {
	case text == "":
		b.WriteString("The message has no text.\n")
		return b.String()
	case hidden > 0:
		fmt.Fprintf(&b, "Only the beginning of the text is shown here; %s are not. See all of it with 'outbox show %s' before you accept, or send it from there.\n",
			count(hidden, "character", "characters"), s.ID)
	}
	b.WriteString("The agent wrote this text, on the lines that begin with >:\n\n")
	for line := range strings.SplitSeq(shown, "\n") {
		for _, l := range wrapped(harmless(line), questionWidth) {
			b.WriteString(strings.TrimRight("> "+l, " ") + "\n")
		}
	}
	if hidden > 0 {
		fmt.Fprintf(&b, "\nThe text goes on for %s.\n", count(hidden, "character", "characters"))
	}
	return b.String()
}

// recipientShown is an address before the name that the agent gave it: a name can
// look like another address.
func recipientShown(written string) (address, shown string) {
	i := strings.LastIndex(written, "<")
	if i < 0 || !strings.HasSuffix(written, ">") {
		return written, harmless(written)
	}
	address = written[i+1 : len(written)-1]
	name := strings.TrimSpace(written[:i])
	if n := len(name); n > 1 && name[0] == '"' && name[n-1] == '"' {
		name = name[1 : n-1]
	}
	if name == "" {
		return address, harmless(address)
	}
	return address, harmless(address) + ", called " + quoted(name)
}

// newlines makes one kind of line end of all.
var newlines = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n", "\u0085", "\n", "\v", "\n", "\f", "\n")

// head is the beginning of a text within the bounds, and how many characters there
// are behind it.
func head(text string) (shown string, hidden int) {
	end, chars, lines := 0, 0, 1
	for i, r := range text {
		if r == '\n' {
			lines++
		}
		if chars == maxQuestionChars || lines > maxQuestionLines {
			return text[:end], utf8.RuneCountInString(text[end:])
		}
		chars++
		end = i + utf8.RuneLen(r)
	}
	return text, 0
}

func quoted(s string) string { return `"` + harmless(inQuotes.Replace(s)) + `"` }

var inQuotes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// harmless writes out every character that a person would not see as one: controls,
// those that turn the direction of text or have no width, and what is piled on
// another character more than writing needs.
func harmless(s string) string {
	var b strings.Builder
	marks := 0
	for _, r := range s {
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me):
			marks++
		default:
			marks = 0
		}
		switch {
		case r == '\t':
			b.WriteString("    ")
		case r == utf8.RuneError, r == ' ':
			b.WriteRune(r)
		case marks > 3, unseen(r):
			fmt.Fprintf(&b, "\\u{%X}", r)
		case unicode.Is(unicode.Zs, r):
			b.WriteByte(' ')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// unseen reports whether a character shows nothing by itself, or only in fonts of
// somebody's own.
func unseen(r rune) bool {
	const brailleBlank, emojiStyle = '\u2800', '\ufe0f'
	return r == brailleBlank || r != emojiStyle && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// wrapped breaks a line so that no part is wider than that many columns, at a space
// where there is one. There is always one part.
func wrapped(line string, columns int) []string {
	var parts []string
	start, space, used := 0, -1, 0
	for i, r := range line {
		w := columnsOf(r)
		if used+w > columns {
			cut := i
			if space > start {
				cut = space
			}
			parts = append(parts, line[start:cut])
			start, space, used = cut, -1, 0
			for _, c := range line[start:i] {
				used += columnsOf(c)
			}
		}
		if used += w; r == ' ' {
			space = i + 1
		}
	}
	return append(parts, line[start:])
}

func columnsOf(r rune) int {
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth, width.EastAsianAmbiguous:
		return 2
	}
	return 1
}
