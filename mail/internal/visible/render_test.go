package visible

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail/internal/quoted"
)

// Text returns what Lines and quoted.Mark make of a document as a text of at most
// maxRunes runes.
func Text(s string, maxRunes int) string {
	lines, _, cut := Lines(nil, s, max(maxRunes, MaxBytes/8))
	text, _ := quoted.Fit(quoted.Tidy(quoted.Mark(lines, quoted.Marker{Cut: cut}), 1), maxRunes)
	return text
}

func readCases[T any](t testing.TB, path string) []T {
	t.Helper()
	raw, err := os.ReadFile(path)
	must(t, err)
	var cases []T
	if err := json.Unmarshal(raw, &cases); err != nil || len(cases) < 20 {
		t.Fatalf("%d cases in %s: %v", len(cases), path, err)
	}
	return cases
}

// visibleCase is a document with marks: SEEN in place of text that a person sees on a
// desktop, SECRET in place of text that a person does not see, and DOUBT in place of text
// that a browser shows but this package hides, because something about it is exotic.
type visibleCase struct{ Name, HTML string }

var marks = regexp.MustCompile(`SEEN|SECRET|DOUBT`)

// numbered gives every mark of a document a number, so that each can be found in the
// rendered text. want tells which ones should be there.
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

// ways are the functions that make text of HTML, or clean HTML.
var ways = []struct {
	name string
	text func(doc string) string
}{
	{"Text", func(doc string) string { return Text(doc, 100_000) }},
	{"Sanitize", func(doc string) string {
		safe, _, _ := Sanitize(nil, doc, 100_000)
		return safe
	}},
	{"Opening", func(doc string) string {
		lines, _, cut := Lines(nil, doc, 100_000)
		return quoted.Opening(quoted.Mark(lines, quoted.Marker{Cut: cut}), 100_000)
	}},
}

// If a document ends with too many open elements for the parser, it shows no other text.
func TestTextIsWhatAPersonSees(t *testing.T) {
	for i, c := range readCases[visibleCase](t, "testdata/visible.json") {
		doc, want := c.numbered()
		deep := ""
		if i%10 == 0 {
			deep = Text(doc+"</style></script></div></table>"+strings.Repeat("<div>", 600), 1000)
		}
		for _, way := range ways {
			got := way.text(doc)
			if way.name == "Sanitize" {
				checkSafe(t, got, 100_000)
			}
			for i, seen := range want {
				if shows(got, i) != seen || !seen && shows(deep, i) {
					t.Errorf("%s, %s: mark %d of %s: shown %v, want %v", way.name, c.Name, i+1, c.HTML, !seen, seen)
				}
			}
		}
	}
}

// Text inside more elements than the parser opens is not shown and counts as cut.
func TestVeryDeepText(t *testing.T) {
	for _, depth := range []int{10, 500, 520, 4000} {
		doc := "<style>.h{display:none}</style>ZERO<p class=h>SECRET</p>" + strings.Repeat("<div>", depth) + "ONE<p hidden>SECRET</p><script>SECRET</script>TWO" + strings.Repeat("</div>", depth) + "THREE"
		want := "ZEROONETWOTHREE"
		if depth > 512 {
			want = "ZERO"
		}
		lines, _, cut := Lines(nil, doc, 1000)
		if got := strings.Join(strings.Fields(quoted.Join(lines)), ""); got != want || cut != (depth > 512) {
			t.Errorf("at depth %d: %q, cut %v", depth, got, cut)
		}
	}
	// No text can be judged if style sheets were not read.
	if lines, _, cut := Lines(nil, "ONE"+strings.Repeat("<div>", 4000)+"<style>.h{display:none}</style>", 1000); len(lines) > 0 || !cut {
		t.Errorf("%v, cut %v", lines, cut)
	}
	got, _, cut := Sanitize(nil, "ONE"+strings.Repeat("<div>", 10_000)+"TWO", 1000)
	if got != "ONE" || !cut {
		t.Errorf("%q, cut %v", got, cut)
	}
}

// browserCase is the body of a document, and the texts T1, T2, … of it that a
// browser shows (Chromium 156, 1280 by 800).
type browserCase struct {
	HTML string
	Seen []string
}

func TestShownTextIsWhatABrowserShows(t *testing.T) {
	texts := regexp.MustCompile(`\bT\d+\b`)
	for _, c := range readCases[browserCase](t, "testdata/browser.json") {
		want := strings.Join(c.Seen, " ")
		for _, way := range ways {
			if got := strings.Join(texts.FindAllString(way.text("<!doctype html><body>"+c.HTML), -1), " "); got != want {
				t.Errorf("%s: %s\n%s\na browser shows %s", way.name, c.HTML, got, want)
			}
		}
	}
}

func TestLinesAreKeptApart(t *testing.T) {
	for _, tc := range testmain.Table[struct{ HTML, Want string }](t, "testdata/cases/lines.txt") {
		if got := Text(tc.HTML, 100); got != tc.Want {
			t.Errorf("%s: %q, want %q", tc.HTML, got, tc.Want)
		}
	}
	if got, _, _ := Sanitize(nil, `<span style="display:block">a</span><i>b</i><img alt="c"><img alt="d">`, 100); got != "<div>a</div><i>b</i> c  d " {
		t.Errorf("%q", got)
	}
}

// Invisible characters are removed also if they are character references.
func TestTextIsClean(t *testing.T) {
	got := Text("<p>a&#8238;b&#x200B;c&#xE0041;d&shy;e&#7;f&#0;g&#xFEFF;h&ZeroWidthSpace;i</p><a href='https://x.example/&#8238;y'>j</a><img alt='k&#x202E;l'><pre>m&#x2066;n\r\no</pre>", 1000)
	if plain.Text(got) != got || strings.ContainsFunc(got, func(r rune) bool { return r == 0x202E || r == 0x200B || r == 0xE0041 || r == 0x2066 || r == 7 }) {
		t.Errorf("%q holds what nobody sees", got)
	}
	if !strings.Contains(got, "abcdef") {
		t.Errorf("%q: the visible letters are not together", got)
	}
}

func FuzzText(f *testing.F) {
	for _, c := range readCases[visibleCase](f, "testdata/visible.json") {
		f.Add([]byte(c.HTML), 100)
	}
	f.Add([]byte("<table><tr><th>a<td>b</table><ol start=9><li>c<blockquote>d<pre>e\n f</pre>"), 5)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		n = min(max(n, 0), 10_000)
		got := Text(string(b), n)
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > n {
			t.Errorf("Text(%q, %d) = %q", b, n, got)
		}
		if plain.Text(got) != got {
			t.Errorf("Text(%q, %d) = %q, which cleaning would change", b, n, got)
		}
	})
}
