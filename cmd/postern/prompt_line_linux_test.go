package main

import (
	"regexp"
	"strings"
	"testing"
)

// A line is drawn as a person types it, in a window of eight rows: taller than that, with characters
// that are joined or wide, pasted, called up, and in a window that changes.
func TestALineOfThePromptIsDrawn(t *testing.T) {
	t.Parallel()
	const columns, rows, home, left, rest, search, suspend, wordAhead = 40, 8, "\x01", "\x1b[D", "\x0b", "\x12", "\x1a", "\x1bd"
	x := onTerminal(t, columns, rows, []string{"POSTERN_HISTORY=off"}, "demo")
	g := newGolden(t, "line-40.txt", columns)
	g.shows(x, "Ctrl-D ends.")
	tall := ""
	for _, number := range strings.Fields("one two three four five six seven eight nine ten") {
		tall += strings.Repeat(number+" ", 9)
	}
	for _, s := range []step{
		{"seven seven seven", tall + left + left + "X"}, {"postern> Yone one", home + "Y"}, {"^C", interrupt},
		{"a 👩‍👩‍👧 漢字b", "a 👩‍👩‍👧 漢字b"}, {"a 👩‍👩‍👧c", backspace + backspace + backspace + backspace + "c"}, {"a c", left + backspace},
		{"postern> mor", home + rest + "more\rmore" + enter + "mor"}, {"postern> more", "\t"}, {"none  curated  all", home + rest + "mail get --headers \t"},
		{"typed ahead", home + rest + "mail watch --wait 1\rmore\rtyped ahead"},
		{"(search) wat: mail watch --wait 1", home + rest + search + "wat"}, {"postern> mail watch --wait 1", home}, {"postern> more", home + rest + up + down + up},
		{"postern> more or less", " or less nor  " + left + wordAhead + backspace + backspace + backspace + backspace + suspend},
	} {
		x.types(s.types)
		g.shows(x, s.sees)
	}
	x.resize(13, rows)
	g.shows(x, " or less")
	x.types(home + rest + endOfInput)
	x.quits(0)
	g.end()
	for _, ups := range regexp.MustCompile(`(\x1b\[A)+`).FindAllString(x.written(), -1) {
		if n := strings.Count(ups, "A"); n >= rows {
			t.Errorf("it goes up %d rows in a window of %d", n, rows)
		}
	}
}
