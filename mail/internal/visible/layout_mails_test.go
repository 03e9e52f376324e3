package visible

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/postern-mail/postern/internal/plain"
)

// seenTexts are the texts and the alternative texts of images of a mail, in order, by where
// Chromium 156 shows them: Seen on a screen 800 pixels wide in light colours, Elsewhere
// only on one 375 pixels wide or in dark colours, and Hidden nowhere. See record.mjs in
// testdata.
type seenTexts struct{ Seen, Elsewhere, Hidden []string }

// letters returns a text without the characters that depend on its layout.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || r == '>' || r == '|' {
			return -1
		}
		return r
	}, plain.Text(s))
}

var addresses = regexp.MustCompile(`\((https?|mailto):[^)]*\)`)

func wordsOf(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// Every text that a person sees on a desktop is shown, and no word that a person does not
// see there.
func TestMailsAsChromiumShowsThem(t *testing.T) {
	raw, err := os.ReadFile("testdata/mails/seen.json")
	must(t, err)
	var mails map[string]seenTexts
	if err := json.Unmarshal(raw, &mails); err != nil || len(mails) < 60 {
		t.Fatalf("%d mails, %v", len(mails), err)
	}
	lost, shown := 0, 0
	for name, want := range mails {
		doc, err := os.ReadFile(filepath.Join("testdata/mails", name))
		must(t, err)
		safe, _, _ := Sanitize(nil, string(doc), 1_000_000)
		for way, text := range map[string]string{"Text": Text(string(doc), 1_000_000), "Sanitize": Text(safe, 1_000_000)} {
			got, at := letters(text), 0
			for _, s := range want.Seen {
				i := strings.Index(got[at:], letters(s))
				if i < 0 {
					t.Errorf("%s of %s loses %q", way, name, s)
					lost++
					continue
				}
				at += i + len(letters(s))
			}
			visible, said := wordsOf(strings.Join(want.Seen, " ")), wordsOf(addresses.ReplaceAllString(text, ""))
			for _, word := range wordsOf(strings.Join(append(want.Hidden, want.Elsewhere...), " ")) {
				if !slices.Contains(visible, word) && slices.Contains(said, word) {
					t.Errorf("%s of %s shows %q", way, name, word)
					shown++
				}
			}
		}
	}
	t.Logf("%d texts lost, %d hidden words shown", lost, shown)
}
