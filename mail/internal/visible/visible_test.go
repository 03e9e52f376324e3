package visible

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail/internal/quoted"
)

func readCases[T any](t testing.TB, path string) []T {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var cases []T
	if err := json.Unmarshal(raw, &cases); err != nil || len(cases) < 100 {
		t.Fatalf("%d cases in %s: %v", len(cases), path, err)
	}
	return cases
}

// visibleCase is a document in which SEEN stands where a person reads it on a
// desktop and SECRET where a person does not.
type visibleCase struct{ Name, HTML string }

var marks = regexp.MustCompile(`SEEN|SECRET`)

// numbered gives every mark of a document a number, so that each can be found in
// what is made of it.
func (c visibleCase) numbered() (doc string, want []bool) {
	doc = "<!doctype html><body>" + marks.ReplaceAllStringFunc(c.HTML, func(m string) string {
		want = append(want, m == "SEEN")
		return "MARK" + strings.Repeat("I", len(want)) + "."
	})
	return doc, want
}

func shows(text string, i int) bool {
	return strings.Contains(text, "MARK"+strings.Repeat("I", i+1)+".")
}

// ways are all that shows text of HTML.
var ways = []struct {
	name string
	text func(doc string) string
}{
	{"Text", func(doc string) string { return Text(doc, 100_000) }},
	{"Sanitize", func(doc string) string {
		safe, _ := Sanitize(doc, 100_000)
		return safe
	}},
	{"Snippet", func(doc string) string { return quoted.Snippet(Text(doc, 100_000), 100_000) }},
}

func TestStyleSheetsDecideWhatIsSeen(t *testing.T) {
	for _, c := range readCases[visibleCase](t, "testdata/visible.json") {
		doc, want := c.numbered()
		for _, way := range ways {
			got := way.text(doc)
			for i, seen := range want {
				if shows(got, i) != seen {
					t.Errorf("%s, %s: mark %d of %s: shown %v, want %v", way.name, c.Name, i+1, c.HTML, !seen, seen)
				}
			}
		}
	}
}

// Without a tree a selector cannot be followed to the elements around. Then more
// may be hidden than a browser hides, and never less.
func TestStyleSheetsHideNoLessInDeepNesting(t *testing.T) {
	for _, c := range readCases[visibleCase](t, "testdata/visible.json") {
		doc, want := c.numbered()
		check := func(way, got string) {
			for i, seen := range want {
				if !seen && shows(got, i) {
					t.Errorf("%s, %s: mark %d of %s is shown", way, c.Name, i+1, c.HTML)
				}
			}
		}
		deep := strings.Repeat("<div>", 600)
		safe, _ := Sanitize(doc+"</style></progress></svg></table></div></div></div></div>"+deep, 100_000)
		check("Sanitize", safe)
		for _, doc := range []string{doc, deep + doc, strings.Repeat("<i>", 510) + doc} {
			r := newRenderer(newFlatPage(doc), 100_000)
			r.tokens(doc)
			check("tokens", r.finish())
		}
	}
}

// Text in elements that are too deep to be opened is read, and hidden, all the
// same; in more than that it counts as cut.
func TestVeryDeepText(t *testing.T) {
	for _, depth := range []int{10, 500, 511, 512, 513, 600, 4000} {
		doc := strings.Repeat("<div>", depth) + "ONE<p hidden>SECRET</p><br hidden><span style='font-size:.5em'><b style='font-size:.3em'>SECRET</b></span><script>SECRET</script>TWO<img alt=THREE>" + strings.Repeat("</div>", depth) + "FOUR"
		got := Text(doc, 1000)
		if strings.Join(strings.Fields(got), "") != "ONETWOTHREEFOUR" {
			t.Errorf("at depth %d: %q", depth, got)
		}
	}
	got, cut := Sanitize("ONE"+strings.Repeat("<div>", 10_000)+"TWO", 1000)
	if got != "<p>ONE</p>" || !cut {
		t.Errorf("%q, cut %v", got, cut)
	}
}

// browserCase is a document made at random, and the texts T1, T2, … of it that a
// browser shows (Chromium 156, 1280 by 800).
type browserCase struct {
	HTML string
	Seen []string
}

func TestShownTextIsWhatABrowserShows(t *testing.T) {
	texts := regexp.MustCompile(`\bT\d+\b`)
	for i, c := range readCases[browserCase](t, "testdata/browser.json") {
		want := strings.Join(c.Seen, " ")
		for _, way := range ways {
			if got := strings.Join(texts.FindAllString(way.text(c.HTML), -1), " "); got != want {
				t.Errorf("%s: document %d: %s\n%s\na browser shows %s", way.name, i, c.HTML, got, want)
			}
		}
	}
}
