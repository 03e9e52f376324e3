// Package plain has the one rule for characters that a person does not see, and the
// functions that apply it: text without them, text on one line, and text cut to a length.
//
// Mail, answers of servers, arguments of agents and texts of extensions all come from
// strangers, and a program reads more of them than a person does: controls that steer
// a terminal, characters that turn the direction of writing, tags and zero-width
// characters that carry whole sentences. Callers treat them differently (Text removes
// them, an answer escapes them, an error shows U+FFFD), but the set is defined here
// and nowhere else.
//
// Every function is pure and safe for concurrent use.
package plain

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	zwnj = '\u200c'
	zwj  = '\u200d'
	vs16 = '\ufe0f' // the character before it is drawn as an emoji

	lineSep      = '\u2028'
	paraSep      = '\u2029'
	brailleBlank = '\u2800' // a space in all but its properties
)

// Unseen reports whether a character has no appearance of its own, or steers how
// others appear. These are the controls (line feed and tab too), the line and
// paragraph separators, Unicode's Default_Ignorable_Code_Point, the format characters
// (bidirectional controls, tags, zero width, annotation marks) except the Arabic,
// Syriac and Kaithi ones that are drawn, the noncharacters, and three that fonts draw
// as nothing: the empty Braille pattern, the musical null notehead and the object
// replacement character. Spaces and combining marks are not Unseen.
//
// Some writing needs joiners and selectors, which are unseen as well: see Text.
func Unseen(r rune) bool {
	if r < 0x7f {
		return r < ' '
	}
	return r < 0xa0 || unicode.Is(unseen, r) || r&0xfffe == 0xfffe
}

// Unclear reports whether a character must be escaped or replaced where a person or a
// program has to know exactly which characters are there: on a terminal, in a question and
// in an answer. These are the Unseen characters and, since only a font gives them a
// meaning, those for private use; the selector U+FE0F, which follows many emoji, is clear.
func Unclear(r rune) bool { return r != vs16 && (Unseen(r) || unicode.Is(unicode.Co, r)) }

// Text returns s as a person sees it: without Unseen characters other than line feed
// and tab. Kept are a joiner and the selector U+FE0F inside an emoji, and one joiner
// between two letters of a script that is written with them.
//
// CRLF, CR and the Unicode line and paragraph separators become a line feed, the empty
// Braille pattern a space, and a run of bytes that is not UTF-8 one U+FFFD. A second
// call changes nothing. The result is at most three times as long as s.
func Text(s string) string {
	if isText(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	prev := rune(0) // last rune written
	broken := false // it replaced bytes that are not UTF-8
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		if r == utf8.RuneError && n == 1 {
			if !broken {
				b.WriteRune(r)
			}
			prev, broken = r, true
			continue
		}
		broken = false
		switch {
		case r == '\r':
			if i < len(s) && s[i] == '\n' {
				continue
			}
			r = '\n'
		case r == lineSep || r == paraSep:
			r = '\n'
		case r == brailleBlank:
			r = ' '
		case r == '\n' || r == '\t':
		case r == vs16:
			if !unicode.Is(emoji, prev) && !isKeycap(prev, s[i:]) {
				continue
			}
		case r == zwj || r == zwnj:
			if next, _ := utf8.DecodeRuneInString(s[i:]); !joins(prev, r, next) {
				continue
			}
		case Unseen(r):
			continue
		}
		b.WriteRune(r)
		prev = r
	}
	return b.String()
}

// lineEnds are all sequences that readers treat as the end of a line.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n", "\u0085", "\n", "\v", "\n", "\f", "\n")

// LineEnds turns every line end that a reader knows into a line feed, and leaves the
// rest of s unchanged.
func LineEnds(s string) string { return lineEnds.Replace(s) }

// Line is Text on one line: every run of spaces, tabs and line ends becomes one space,
// and no white space is left at the ends.
func Line(s string) string {
	s = Text(s)
	if !strings.ContainsAny(s, "\n\t") && !strings.Contains(s, "  ") {
		return strings.TrimFunc(s, unicode.IsSpace)
	}
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == '\n' || r == '\t' }), " ")
	return strings.TrimFunc(s, unicode.IsSpace)
}

// Excerpt returns at most n characters of untrusted text for an error that repeats
// it, cut as Clip cuts. Characters that are Unclear or not UTF-8 show as U+FFFD, so
// that the reader learns of them.
func Excerpt(s string, n int) string {
	return Clip(strings.Map(func(r rune) rune {
		if Unclear(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s), n)
}

// joins reports whether a joiner between the two runes is part of the spelling.
func joins(prev, joiner, next rune) bool {
	if Unseen(next) {
		return false
	}
	if joiner == zwj && unicode.Is(emoji, next) {
		return prev == vs16 || unicode.Is(emoji, prev)
	}
	return !Unseen(prev) && unicode.In(prev, joining...) && unicode.In(next, joining...)
}

// isKeycap reports whether a selector between prev and rest makes a keycap such
// as 1️⃣.
func isKeycap(prev rune, rest string) bool {
	return (prev >= '0' && prev <= '9' || prev == '#' || prev == '*') && strings.HasPrefix(rest, "\u20e3")
}

func isText(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= 0x7f || c < ' ' && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}
