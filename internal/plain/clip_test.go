package plain

import (
	"strings"
	"testing"
)

func TestHead(t *testing.T) {
	const (
		family = "👨\u200D👩\u200D👧"
		flags  = "🇩🇪🇫🇷"
		wave   = "👋🏽"
	)
	for _, tc := range []struct {
		name, in string
		n        int
		want     string
		cut      bool
	}{
		{"empty", "", 0, "", false},
		{"nothing asked", "a", 0, "", true},
		{"negative", "a", -1, "", true},
		{"shorter", "abc", 5, "abc", false},
		{"exact", "abc", 3, "abc", false},
		{"longer", "abcd", 3, "abc", true},
		{"runes", "äöü", 3, "äöü", false},
		{"runes cut", "äöü", 2, "äö", true},
		{"before a combining mark", "ae\u0301b", 2, "a", true},
		{"behind a combining mark", "ae\u0301b", 3, "ae\u0301", true},
		{"several marks", "ae\u0301\u0302\u0303b", 4, "a", true},
		{"within a joined emoji", "a" + family, 3, "a", true},
		{"before its second half", "a" + family, 2, "a", true},
		{"whole joined emoji", "a" + family + "b", 6, "a" + family, true},
		{"within a flag", "a" + flags, 2, "a", true},
		{"between flags", "a" + flags, 3, "a🇩🇪", true},
		{"before a skin tone", "a" + wave, 2, "a", true},
		{"before a variation selector", "a❤\uFE0Fb", 2, "a", true},
		{"vowel signs of Devanagari", "नमस्ते", 3, "नम", true},
		{"between CR and LF", "a\r\nb", 2, "a", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, cut := Head(tc.in, tc.n); got != tc.want || cut != tc.cut {
				t.Errorf("Head(%q, %d) = %q, %v, want %q, %v", tc.in, tc.n, got, cut, tc.want, tc.cut)
			}
		})
	}
	// A cluster without an end does not make the result empty.
	if got, cut := Head("e"+strings.Repeat("\u0301", 1000), 100); got == "" || !cut {
		t.Errorf("%q, %v", got, cut)
	}
}

func TestClip(t *testing.T) {
	for _, tc := range []struct {
		in   string
		n    int
		want string
	}{
		{"", 0, ""},
		{"abc", 0, ""},
		{"abc", -1, ""},
		{"abc", 3, "abc"},
		{"äöü", 3, "äöü"},
		{"abcd", 3, "ab…"},
		{"abcd", 1, "…"},
		{"ab cd", 4, "ab…"},
		{"éàüö", 3, "éà…"},
		{"日本", 1, "…"},
		{"日", 1, "日"},
		{"a  bcd", 4, "a…"},
		{"ae\u0301bc", 3, "a…"},
		{"a🇩🇪🇫🇷", 3, "a…"},
	} {
		if got := Clip(tc.in, tc.n); got != tc.want {
			t.Errorf("Clip(%q, %d) = %q, want %q", tc.in, tc.n, got, tc.want)
		}
	}
}
