package plain

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/postern-mail/postern/internal/testmain"
)

func TestTextHasOnlyWhatAPersonSees(t *testing.T) {
	for _, tc := range testmain.Table[struct{ In, Want string }](t, "testdata/cases/text.txt") {
		got := Text(tc.In)
		if got != tc.Want {
			t.Errorf("Text(%+q) = %+q, want %+q", tc.In, got, tc.Want)
		}
		if again := Text(got); again != got {
			t.Errorf("Text(%+q) = %+q, cleaned again %+q", tc.In, got, again)
		}
	}
}

func TestLineStandsOnOneLine(t *testing.T) {
	for _, tc := range testmain.Table[struct{ In, Want string }](t, "testdata/cases/line.txt") {
		if got := Line(tc.In); got != tc.Want || Line(got) != got {
			t.Errorf("Line(%+q) = %+q, want %+q", tc.In, got, tc.Want)
		}
	}
}

// TestUnseenIsUnicodesRule holds the table against the properties of Unicode that it
// is made of.
func TestUnseenIsUnicodesRule(t *testing.T) {
	const drawnAsNothing = "\u2800\ufffc\U0001d159"
	for r := rune(0); r <= unicode.MaxRune; r++ {
		want := strings.ContainsRune(drawnAsNothing, r) ||
			unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Noncharacter_Code_Point) ||
			unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
		if got := Unseen(r); got != want {
			t.Errorf("Unseen(%U) = %v", r, got)
		}
		if clear := r == 0xfe0f || !want && !unicode.Is(unicode.Co, r); Unclear(r) == clear {
			t.Errorf("Unclear(%U) = %v", r, clear)
		}
	}
}

func TestExcerptShowsWhereSomethingUnseenStood(t *testing.T) {
	for _, tc := range testmain.Table[struct {
		In   string
		N    int
		Want string
	}](t, "testdata/cases/excerpt.txt") {
		if got := Excerpt(tc.In, tc.N); got != tc.Want {
			t.Errorf("Excerpt(%+q, %d) = %+q, want %+q", tc.In, tc.N, got, tc.Want)
		}
	}
}

func FuzzPlain(f *testing.F) {
	f.Add("a\u202eb\r\n\xff\u200d👩\u200d💻 1\ufe0f\u20e3 می\u200cخ", 7)
	f.Add("e\u0301\u0301 🇩🇪🇫🇷", 2)
	f.Fuzz(func(t *testing.T, s string, n int) {
		n = min(n, 1<<20)
		text, line := Text(s), Line(s)
		for name, got := range map[string]string{"Text": text, "Line": line} {
			if !utf8.ValidString(got) || len(got) > 3*len(s) {
				t.Errorf("%s(%+q) = %+q", name, s, got)
			}
			for i, r := range got {
				if kept := r == '\n' || r == '\t' || i > 0 && (r == vs16 || r == zwj || r == zwnj); Unseen(r) && !kept || name == "Line" && r < ' ' {
					t.Errorf("%s(%+q) leaves %U", name, s, r)
				}
			}
		}
		if Text(text) != text || Line(line) != line || Line(text) != line {
			t.Errorf("%+q: a second time changes %+q or %+q", s, text, line)
		}
		clip, excerpt := Clip(text, n), Excerpt(s, n)
		if utf8.RuneCountInString(clip) > max(n, 0) || utf8.RuneCountInString(excerpt) > max(n, 0) {
			t.Errorf("%+q: %d characters are %+q and %+q", s, n, clip, excerpt)
		}
		if utf8.RuneCountInString(text) <= n && clip != text {
			t.Errorf("Clip(%+q, %d) = %+q", text, n, clip)
		}
		if strings.ContainsFunc(excerpt, Unclear) || !utf8.ValidString(excerpt) {
			t.Errorf("Excerpt(%+q) = %+q", s, excerpt)
		}
		if head, cut := Head(text, n); !strings.HasPrefix(text, head) || cut != (head != text) {
			t.Errorf("Head(%+q, %d) = %+q, %v", text, n, head, cut)
		}
	})
}

func TestLineEnds(t *testing.T) {
	if got := LineEnds("a\r\nb\rc\nd\u2028e\u2029f\u0085g\vh\fi\tj"); got != "a\nb\nc\nd\ne\nf\ng\nh\ni\tj" {
		t.Errorf("%q", got)
	}
}
