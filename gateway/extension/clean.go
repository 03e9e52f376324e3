package extension

import (
	"strings"
	"unicode"
)

// clean takes out of a text what a person would not see and a program would:
// controls other than newline and tab, characters that steer the direction of
// writing, and those without an appearance, such as tags. A joiner or selector stays
// where it stands between or behind characters that are written with them.
func clean(s string) string {
	var b strings.Builder
	prev := rune(0) // last rune kept
	for i, r := range s {
		switch {
		case r == '\n' || r == '\t':
		case r == '\u2028' || r == '\u2029':
			r = '\n'
		case r == '\u200c' || r == '\u200d' || r == '\ufe0f':
			// None follows another, so that no message can be written with them.
			if !joinable(prev) || r == '\ufe0f' && prev == r || r != '\ufe0f' && !joinable(firstRune(s[i+3:])) {
				continue
			}
		case unseen(r):
			continue
		}
		b.WriteRune(r)
		prev = r
	}
	if b.Len() == len(s) {
		return s
	}
	return b.String()
}

// unseen reports whether a rune has no appearance of its own.
func unseen(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector,
		unicode.Noncharacter_Code_Point)
}

// joinable reports whether joiners and selectors may follow a rune: a letter or mark
// beyond those of Latin, Greek and Cyrillic, which are not joined, or a symbol. A
// selector is one too, for the joiner behind it.
func joinable(r rune) bool {
	return r == '\ufe0f' || r > 0x52f && (unicode.In(r, unicode.L, unicode.M, unicode.S) && !unseen(r)) || r == '\u00a9' || r == '\u00ae'
}

func firstRune(s string) rune {
	for _, r := range s {
		return r
	}
	return 0
}

// cleanLine is clean for text that stands on one line: a run of white space becomes
// one space, and none is left at the ends.
func cleanLine(s string) string { return strings.Join(strings.Fields(clean(s)), " ") }
