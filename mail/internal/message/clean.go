package message

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// hidden is what Clean removes: characters that a person does not see but that
// a program reading the text does, or that make text look like other text. It
// is Unicode's Default_Ignorable_Code_Point, the bidirectional controls, the
// interlinear annotation marks and the noncharacters of the first plane. Some
// of them are kept where writing needs them; see Clean.
var hidden = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x00ad, Hi: 0x00ad, Stride: 1}, // soft hyphen
		{Lo: 0x034f, Hi: 0x034f, Stride: 1}, // combining grapheme joiner
		{Lo: 0x061c, Hi: 0x061c, Stride: 1}, // Arabic letter mark
		{Lo: 0x115f, Hi: 0x1160, Stride: 1}, // Hangul fillers
		{Lo: 0x17b4, Hi: 0x17b5, Stride: 1}, // Khmer inherent vowels
		{Lo: 0x180b, Hi: 0x180f, Stride: 1}, // Mongolian selectors and separator
		{Lo: 0x200b, Hi: 0x200f, Stride: 1}, // zero width, left-to-right and right-to-left marks
		{Lo: 0x202a, Hi: 0x202e, Stride: 1}, // bidirectional embeddings and overrides
		{Lo: 0x2060, Hi: 0x206f, Stride: 1}, // word joiner, invisible operators, isolates
		{Lo: 0x3164, Hi: 0x3164, Stride: 1}, // Hangul filler
		{Lo: 0xfdd0, Hi: 0xfdef, Stride: 1}, // noncharacters
		{Lo: 0xfe00, Hi: 0xfe0f, Stride: 1}, // variation selectors
		{Lo: 0xfeff, Hi: 0xfeff, Stride: 1}, // byte order mark
		{Lo: 0xffa0, Hi: 0xffa0, Stride: 1}, // halfwidth Hangul filler
		{Lo: 0xfff0, Hi: 0xfffb, Stride: 1}, // reserved, interlinear annotation
		{Lo: 0xfffe, Hi: 0xffff, Stride: 1}, // noncharacters
	},
	R32: []unicode.Range32{
		{Lo: 0x13430, Hi: 0x1343f, Stride: 1}, // hieroglyph format controls
		{Lo: 0x1bca0, Hi: 0x1bca3, Stride: 1}, // shorthand format controls
		{Lo: 0x1d173, Hi: 0x1d17a, Stride: 1}, // musical format controls
		{Lo: 0xe0000, Hi: 0xe0fff, Stride: 1}, // tags, variation selectors supplement
	},
	LatinOffset: 1,
}

// emoji holds the characters after which a variation selector or joiner is part
// of a picture. It is wider than Unicode's Emoji property, by whole blocks of
// symbols, since the only harm in that is a selector kept after an arrow.
var emoji = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x00a9, Hi: 0x00a9, Stride: 1},
		{Lo: 0x00ae, Hi: 0x00ae, Stride: 1},
		{Lo: 0x203c, Hi: 0x203c, Stride: 1},
		{Lo: 0x2049, Hi: 0x2049, Stride: 1},
		{Lo: 0x2122, Hi: 0x2122, Stride: 1},
		{Lo: 0x2139, Hi: 0x2139, Stride: 1},
		{Lo: 0x2190, Hi: 0x21ff, Stride: 1},
		{Lo: 0x2300, Hi: 0x23ff, Stride: 1},
		{Lo: 0x24c2, Hi: 0x24c2, Stride: 1},
		{Lo: 0x25a0, Hi: 0x27bf, Stride: 1},
		{Lo: 0x2934, Hi: 0x2935, Stride: 1},
		{Lo: 0x2b00, Hi: 0x2bff, Stride: 1},
		{Lo: 0x3030, Hi: 0x3030, Stride: 1},
		{Lo: 0x303d, Hi: 0x303d, Stride: 1},
		{Lo: 0x3297, Hi: 0x3299, Stride: 2},
	},
	R32:         []unicode.Range32{{Lo: 0x1f000, Hi: 0x1faff, Stride: 1}},
	LatinOffset: 2,
}

// joining holds the scripts in which a joiner between two letters changes how
// the word is written.
var joining = []*unicode.RangeTable{
	unicode.Arabic, unicode.Syriac, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi,
	unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada,
	unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Myanmar,
}

const (
	zwnj    = '\u200c'
	zwj     = '\u200d'
	vs16    = '\ufe0f'
	lineSep = '\u2028'
	paraSep = '\u2029'
)

// Clean returns s as a person sees it: without control characters other than
// newline and tab, without bidirectional controls, and without the characters
// that have no appearance, which hide words from a person that a program reads.
// Kept are a joiner and the selector U+FE0F inside an emoji, and one joiner
// between two letters of a script that is written with them.
//
// CRLF, CR and the Unicode line and paragraph separators become a newline; a run
// of bytes that is no UTF-8 becomes one U+FFFD. Cleaning twice changes nothing
// more. The result is at most three times as long as s.
func Clean(s string) string {
	if isPlain(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	prev := rune(0) // last rune written
	broken := false // it stands for bytes that are no UTF-8
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
		case r == '\n' || r == '\t':
		case r == vs16:
			if !unicode.Is(emoji, prev) && !isKeycap(prev, s[i:]) {
				continue
			}
		case r == zwj || r == zwnj:
			if next, _ := utf8.DecodeRuneInString(s[i:]); !joins(prev, r, next) {
				continue
			}
		case unicode.Is(unicode.Cc, r) || unicode.Is(hidden, r):
			continue
		}
		b.WriteRune(r)
		prev = r
	}
	return b.String()
}

// joins reports whether a joiner between the two runes belongs to the writing.
func joins(prev, joiner, next rune) bool {
	if unicode.Is(hidden, next) {
		return false
	}
	if joiner == zwj && unicode.Is(emoji, next) {
		return prev == vs16 || unicode.Is(emoji, prev)
	}
	return !unicode.Is(hidden, prev) && unicode.In(prev, joining...) && unicode.In(next, joining...)
}

// isKeycap reports whether a selector between prev and rest makes a keycap such
// as 1️⃣.
func isKeycap(prev rune, rest string) bool {
	return (prev >= '0' && prev <= '9' || prev == '#' || prev == '*') && strings.HasPrefix(rest, "\u20e3")
}

func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= 0x7f || c < ' ' && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// CleanLine is Clean for text that stands on one line: every run of white space
// becomes one space, and none is left at the ends.
func CleanLine(s string) string {
	s = Clean(s)
	if !strings.ContainsAny(s, "\n\t") && !strings.Contains(s, "  ") {
		return strings.TrimFunc(s, unicode.IsSpace)
	}
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == '\n' || r == '\t' }), " ")
	return strings.TrimFunc(s, unicode.IsSpace)
}
