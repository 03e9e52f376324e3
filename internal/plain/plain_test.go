package plain

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestTextHasOnlyWhatAPersonSees(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n":                    "plain\ttext\n",
		"a\x00b\x07c\x1b[31md\x7fe":        "abc[31mde",
		"a\u0085b\u009bc":                  "abc",
		"a\r\nb\rc\u2028d\u2029e":          "a\nb\nc\nd\ne",
		"user\u202etxt.exe\u202c":          "usertxt.exe",
		"\u2066a\u2069\u061cb\u200e\u200f": "ab",
		"i\u200bg\u200cn\u200do\u2060re":   "ignore",
		"so\u00adft\ufeff":                 "soft",
		"x\U000e0041\U000e0042\U000e007fy": "xy",
		"x\U000e0100y\U000e01efz":          "xyz",
		"a\ufff9b\ufffac\ufffbd":           "abcd",
		"a\u3164b\u115fc\uffa0d\u034f":     "abcd",
		"a\ufe0fb\ufe00c":                  "abc",
		"bad \xff\xfe\xfd bytes \xc3":      "bad \ufffd bytes \ufffd",
		"kept \ufffd":                      "kept \ufffd",
		"Grüße, 你好, мир, e\u0301":          "Grüße, 你好, мир, e\u0301",
		"❤\ufe0f ok":                       "❤\ufe0f ok",
		"❤\ufe0f\ufe0f\ufe0f":              "❤\ufe0f",
		"👩\u200d💻 👩\u200dx \u200d💻":        "👩\u200d💻 👩x 💻",
		"👩\u200d\u200d\u200b💻":             "👩💻",
		"👁\ufe0f\u200d🗨\ufe0f":             "👁\ufe0f\u200d🗨\ufe0f",
		"👍🏽 1\ufe0f\u20e3 1\ufe0f2":        "👍🏽 1\ufe0f\u20e3 12",
		"می\u200cخواهم":                    "می\u200cخواهم",
		"می\u200c\u200cخ\u200c!":           "می\u200cخ!",
		"क\u094d\u200dष":                   "क\u094d\u200dष",
		"a\u2800b\ufffc":                   "a b",
		"\u06dd1 \uf8ff":                   "\u06dd1 \uf8ff",
	} {
		got := Text(in)
		if got != want {
			t.Errorf("Text(%+q) = %+q, want %+q", in, got, want)
		}
		if again := Text(got); again != got {
			t.Errorf("Text(%+q) = %+q, cleaned again %+q", in, got, again)
		}
	}
}

func TestLineStandsOnOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"":                        "",
		" \t\r\n ":                "",
		"a \r\n\t b":              "a b",
		"  a   b\u00a0":           "a b",
		"a\u2028b\u200b \u200b c": "a b c",
		"\u3000a\n\u3000b":        "a \u3000b",
	} {
		if got := Line(in); got != want || Line(got) != got {
			t.Errorf("Line(%+q) = %+q, want %+q", in, got, want)
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
	for _, tc := range []struct {
		in   string
		n    int
		want string
	}{
		{"", 5, ""},
		{"plain words", 20, "plain words"},
		{"a\x1b[31m\u202eb\xff", 20, "a\ufffd[31m\ufffdb\ufffd"},
		{"one\ntwo", 20, "one\ufffdtwo"},
		{"too many words", 5, "too…"},
		{"ok ❤\ufe0f", 20, "ok ❤\ufe0f"},
	} {
		if got := Excerpt(tc.in, tc.n); got != tc.want {
			t.Errorf("Excerpt(%+q, %d) = %+q, want %+q", tc.in, tc.n, got, tc.want)
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
