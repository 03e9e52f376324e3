package message

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/internal/testmain"
)

func TestBaseSubject(t *testing.T) {
	for _, tc := range readTable[struct {
		Subject, Base string
		Reply         bool
	}](t, "subject") {
		if base, reply := BaseSubject(tc.Subject); base != tc.Base || reply != tc.Reply {
			t.Errorf("BaseSubject(%q) = %q, %v, want %q, %v", tc.Subject, base, reply, tc.Base, tc.Reply)
		}
	}
}

// subjectKey is the form in which two subjects are compared.
func subjectKey(s string) string {
	base, _ := BaseSubject(s)
	return foldSubject(base)
}

func TestSubjectsAreCompared(t *testing.T) {
	for _, same := range [][]string{
		{"Lunch", "LUNCH", "Re: lunch", "[x] Fwd:  Lunch", "Ｌｕｎｃｈ"},
		{"Straße", "STRASSE", "AW: strasse"},
		{"", "Re:", " ", "Fwd: (fwd)"},
		{"café", "cafe\u0301", "Re: CAFÉ"},
	} {
		for _, s := range same[1:] {
			if subjectKey(s) != subjectKey(same[0]) {
				t.Errorf("%q and %q differ: %q, %q", same[0], s, subjectKey(same[0]), subjectKey(s))
			}
		}
	}
	if subjectKey("Lunch") == subjectKey("Lunch today") || subjectKey("") != "" {
		t.Error("different subjects are the same")
	}
}

func TestIsForward(t *testing.T) {
	for _, tc := range testmain.Table[struct {
		Subject string
		Want    bool
	}](t, "testdata/cases/forward.txt") {
		if IsForward(tc.Subject) != tc.Want {
			t.Errorf("IsForward(%q) = %v", tc.Subject, !tc.Want)
		}
	}
}

func FuzzBaseSubject(f *testing.F) {
	for _, s := range []string{"Re: [a] Fwd: b (fwd)", "[fwd: Re[2]: x]", "回复：[x] y", strings.Repeat("[a]", 50), "\xff: Re^3:"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		base, _ := BaseSubject(s)
		if again, reply := BaseSubject(base); again != base || reply {
			t.Errorf("base %q of %q has base %q, %v", base, s, again, reply)
		}
		if plain.Line(base) != base || !utf8.ValidString(base) {
			t.Errorf("base %q is not one clean line", base)
		}
		if _, reply := BaseSubject("Re: " + s); !reply {
			t.Errorf("an answer to %q is none", s)
		}
		if len(s) < 1000 {
			if subjectKey("Re: "+s) != subjectKey(s) {
				t.Errorf("the answer to %q is about %q, not %q", s, subjectKey("Re: "+s), subjectKey(s))
			}
			if k := subjectKey(s); subjectKey(strings.ToUpper(base)) != k && !hasOddCase(base) {
				t.Errorf("the case of %q counts", base)
			}
		}
	})
}

// hasOddCase reports whether s has characters beyond ASCII: some of those letters have
// more than two forms.
func hasOddCase(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}
