package quoted

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAround(t *testing.T) {
	long := strings.Repeat("before ", 30) + "the\n  LAMPS come late " + strings.Repeat("after ", 30)
	for _, c := range []struct{ text, words, want string }{
		{"short text with lamps", "lamps", "short text with lamps"},
		{long, "lamps come", "…before the LAMPS come late after after…"},
		{long, "nothing", "before before before before before…"},
		{long, "", "before before before before before…"},
		{long, "(", "before before before before before…"},
		{strings.Repeat("é", 200) + "lamps", "lamps", "…" + strings.Repeat("é", 13) + "lamps"},
	} {
		var lines []Line
		for l := range strings.SplitSeq(c.text, "\n") {
			lines = append(lines, Line{Text: l})
		}
		lines = append(lines, Line{Text: "lamps in the history", Depth: 1})
		if got := Around(lines, c.words, 40); got != c.want || utf8.RuneCountInString(got) > 40 {
			t.Errorf("%q in %.20q…: %q, want %q", c.words, c.text, got, c.want)
		}
	}
}
