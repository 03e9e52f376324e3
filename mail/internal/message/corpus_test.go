package message

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/postern-mail/postern/internal/plain"
)

const corpus = "../../testdata/real-emails"

// checkText returns the text of a message in at most n runes, and checks that it and the
// names of attachments are clean.
func checkText(t *testing.T, raw []byte, n int) (text string, truncated bool) {
	t.Helper()
	e := Parse(raw)
	text, truncated = Text(e.Root, e.Raw, n)
	if !utf8.ValidString(text) || utf8.RuneCountInString(text) > n {
		t.Errorf("text of %d runes, at most %d: %q", utf8.RuneCountInString(text), n, text)
	}
	for _, r := range text {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
			t.Errorf("the text holds %U: %q", r, text)
		}
	}
	if plain.Text(text) != text {
		t.Errorf("the text is not clean: %q", text)
	}
	for _, p := range Attachments(e.Root) {
		if plain.Line(p.Filename) != p.Filename {
			t.Errorf("the name of part %s is not clean: %q", p.ID, p.Filename)
		}
	}
	return text, truncated
}

func TestRealMailIsReadable(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(corpus, "*", "*.eml"))
	if err != nil || len(paths) != 103 {
		t.Fatalf("%d messages, %v", len(paths), err)
	}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		must(t, err)
		t.Run(strings.TrimPrefix(path, corpus), func(t *testing.T) {
			for _, n := range []int{0, 1, 50, 100_000} {
				checkText(t, raw, n)
			}
			for n := 0; n < len(raw); n += 1 + len(raw)/20 {
				checkText(t, raw[:n], 1000)
			}
			e := Parse(raw)
			fresh := Read(nil, e.Root, e.Raw, 1_000_000).New()
			if got, _ := checkText(t, raw, utf8.RuneCountInString(fresh)); fresh != "" && !holds(got, fresh) {
				t.Error("new text is lost where just that fits")
			}
		})
	}
}

// The cases say what a person sees, and were written by reading these messages.
func TestRealMailShowsWhatAPersonReads(t *testing.T) {
	for _, tc := range readTable[struct {
		Path        string
		Text        []string // phrases in the text, in order; none means no text at all
		Attachments string   // names, or types in brackets, separated by commas
		Never       string   // not in the text
	}](t, "corpus") {
		t.Run(tc.Path, func(t *testing.T) {
			raw, err := os.ReadFile(filepath.Join(corpus, tc.Path+".eml"))
			must(t, err)
			text, cut := checkText(t, raw, 100_000)
			if cut {
				t.Error("the text is cut")
			}
			if tc.Text == nil && text != "" {
				t.Errorf("text where there is none: %q", text)
			}
			rest := text
			for _, phrase := range tc.Text {
				_, after, ok := strings.Cut(rest, phrase)
				if !ok {
					t.Fatalf("%q is not, or not in its place, in %q", phrase, text)
				}
				rest = after
			}
			if tc.Never != "" && strings.Contains(text, tc.Never) {
				t.Errorf("%q is in %q", tc.Never, text)
			}
			var names []string
			for _, p := range Attachments(Parse(raw).Root) {
				if p.Filename == "" {
					names = append(names, "["+p.MediaType()+"]")
				} else {
					names = append(names, p.Filename)
				}
			}
			if got := strings.Join(names, ","); got != tc.Attachments {
				t.Errorf("attachments %q, want %q", got, tc.Attachments)
			}
		})
	}
}

// readTable reads the cases of a test from testdata/cases.
func readTable[T any](t testing.TB, name string) []T {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "cases", name+".json"))
	must(t, err)
	var cases []T
	if err := json.Unmarshal(raw, &cases); err != nil || len(cases) == 0 {
		t.Fatalf("%d cases of %s: %v", len(cases), name, err)
	}
	return cases
}
