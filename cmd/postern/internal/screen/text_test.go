package screen

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"

	"github.com/postern-mail/postern/internal/plain"
)

func TestLine(t *testing.T) {
	for s, want := range map[string]string{"": "", "a\r\nb\rc\nd": "a b c d", "a\u2028b\u0085c\vd": "a b c d", "a\x1b[2Jb\tc": "a[2Jb c"} {
		if got := Line(s); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	for _, tc := range []struct {
		s    string
		n    int
		want string
	}{{"whole", 5, "whole"}, {"shortened", 5, "shor…"}, {"漢字漢字", 6, "漢字…"}, {"x", 0, ""}, {"x", -1, ""}, {"xy", 1, "…"}} {
		if got := Cut(tc.s, tc.n); got != tc.want {
			t.Errorf("%q in %d: %q, want %q", tc.s, tc.n, got, tc.want)
		}
	}
}

// Text that Visible leaves as it is holds nothing hidden: callers rely on that.
func TestWhatIsHiddenIsNotLeft(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if plain.Unclear(r) && strings.ContainsRune(Visible("a"+string(r)), r) {
			t.Errorf("U+%04X", r)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, tc := range []struct {
		s    string
		n    int
		want string
	}{
		{"", 10, ""}, {"short", 10, "short"}, {"two words here", 9, "two words|here"}, {"exactly10!", 10, "exactly10!"},
		{"anunbreakableword", 8, "anunbrea|kablewor|d"}, {"漢字漢字漢字", 8, "漢字漢字|漢字"}, {"a  b", 10, "a  b"}, {"    indented", 20, "    indented"},
	} {
		if got := strings.Join(Wrap(tc.s, tc.n), "|"); got != tc.want {
			t.Errorf("%q in %d: %q, want %q", tc.s, tc.n, got, tc.want)
		}
	}
}

// Our own sentences are broken between words alone, and a command in them is in one piece.
func TestWords(t *testing.T) {
	for _, tc := range []struct {
		s    string
		n    int
		want string
	}{
		{"", 10, ""}, {"two words here", 9, "two words|here"}, {"an unbreakableword more", 8, "an|unbreakableword|more"}, {"  indented text", 12, "  indented|text"},
		{"Run 'help mail list' for more", 18, "Run|'help mail list'|for more"}, {"the account's host 'a b'", 12, "the|account's|host 'a b'"}, {"list [--folder F] [--new]", 12, "list|[--folder F]|[--new]"},
		{"save it with --save NAME.", 19, "save it with|--save NAME."},
		{"a  b", 10, "a  b"},
	} {
		if got := strings.Join(Words(tc.s, tc.n), "|"); got != tc.want {
			t.Errorf("%q in %d: %q, want %q", tc.s, tc.n, got, tc.want)
		}
	}
}

// What joins emoji or letters is left out where it belongs there, and written out elsewhere, as are selectors; of a pile of marks is told.
func TestJoiners(t *testing.T) {
	for s, want := range map[string]string{"👩\u200d👩\u200d👧 family": "👩👩👧 family", "می\u200cروم": "میروم", "a\u200db": `a\u{200D}b`, "\u200d👧": `\u{200D}👧`, "👧\u200d": `👧\u{200D}`, "❤️\u200d🔥": "❤️🔥",
		"\U000e0141hi": `\u{E0141}hi`, "a\u0301\u0301\u0301\u0301\u0301\u0302": "a\u0301\u0301\u0301\u0301\ufffd", "\u0301\u0301x": "\ufffdx"} {
		if got := Visible(s); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}

// A line of a quarter of a megabyte costs time in proportion.
func TestWrapOfALongLine(t *testing.T) {
	s := strings.Repeat("x", 256<<10)
	if lines := Wrap(s, 64); len(lines) != 4096 {
		t.Errorf("%d lines", len(lines))
	}
}

// Text is neither lost nor added where it is broken into lines.
func FuzzWrap(f *testing.F) {
	for _, s := range hostileText {
		f.Add(s, 20)
	}
	f.Fuzz(func(t *testing.T, s string, n int) {
		n = 8 + abs(n)%100
		s = Visible(s)
		if again := Visible(s); again != s {
			t.Errorf("%q is made visible once more: %q", s, again)
		}
		lines := Wrap(s, n)
		squeeze := func(s string) string { return strings.ReplaceAll(s, " ", "") }
		if squeeze(strings.Join(lines, "")) != squeeze(s) {
			t.Errorf("%q became %q", s, lines)
		}
		for _, l := range lines {
			if w := runewidth.StringWidth(l); w > n && utf8.RuneCountInString(l) > 1 && runewidth.StringWidth(runewidth.Truncate(l, n, "")) > 0 {
				t.Errorf("%q is %d columns of %d", l, w, n)
			}
		}
	})
}

func abs(n int) int {
	if n < 0 {
		return -(n + 1)
	}
	return n
}
