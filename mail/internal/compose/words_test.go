package compose

import (
	"mime"
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
)

// subjectLines returns the lines of a built Subject field.
func subjectLines(t *testing.T, subject string) []string {
	t.Helper()
	m := sample()
	m.Subject = subject
	wire := string(build(t, m).Wire)
	from := strings.Index(wire, "Subject: ")
	to := from + strings.Index(wire[from:], "\r\nMessage-ID:")
	return strings.Split(wire[from+len("Subject: "):to], "\r\n ")
}

func TestSubjectsAreEncodedOnlyWhereNecessary(t *testing.T) {
	for _, c := range testmain.Table[struct{ In, Want string }](t, "testdata/cases/subject.txt") {
		if got := strings.Join(subjectLines(t, c.In), "|"); got != c.Want {
			t.Errorf("%q: %q, want %q", c.In, got, c.Want)
		}
	}
}

// Some readers decode each encoded word alone, so each must hold whole characters, also
// those that consist of several runes.
func TestEncodedWordsHoldWholeCharacters(t *testing.T) {
	const family, flag, thumb, accent, hindi = "👨‍👩‍👧‍👦", "🇩🇪", "👍🏽", "e\u0301", "क्\u200dष"
	for _, character := range []string{"é", "会", "😀", family, flag, thumb, accent, hindi, "ab" + family, "x" + accent} {
		for offset := range 12 {
			subject := strings.Repeat("x", offset) + strings.Repeat(character, 30)
			var words []string
			for _, line := range subjectLines(t, subject) {
				words = append(words, strings.Fields(line)...)
			}
			if len(words) < 2 {
				t.Fatalf("%q is not parted: %q", subject, words)
			}
			rest := subject
			for _, w := range words {
				text, err := new(mime.WordDecoder).Decode(w)
				if err != nil {
					t.Fatalf("%q: %v", w, err)
				}
				if !strings.HasPrefix(rest, text) {
					t.Fatalf("%q decodes to %q", w, text)
				}
				rest = rest[len(text):]
				tail := strings.TrimLeft(text, "x")
				if strings.Contains(character, "x") || strings.HasPrefix(character, "ab") {
					continue // its ASCII letters may be in a word of their own
				}
				if tail != strings.Repeat(character, len(tail)/len(character)) {
					t.Errorf("%q of %q is parted: %q", character, subject, text)
				}
			}
			if rest != "" {
				t.Errorf("%q is missing from %q", rest, words)
			}
		}
	}
}

// A letter with too many marks for one encoded word is split between runes, not refused.
func TestEndlessClustersAreSplit(t *testing.T) {
	for _, s := range []string{"z" + strings.Repeat("\u0301", 500), strings.Repeat("👨‍", 100) + "👨", strings.Repeat("🇩", 99)} {
		subjectLines(t, s)
	}
}
