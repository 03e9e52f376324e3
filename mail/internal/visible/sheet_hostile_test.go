package visible

import (
	"runtime"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/postern-mail/postern/internal/testmain"
)

// Matching rules is counted in steps. A document may take a number of steps proportional
// to its length; the text that is left when they are used up is not shown.
func TestStyleSheetsCostABoundedNumberOfSteps(t *testing.T) {
	const overshoot = 200_000 // steps that may go beyond the bound before it is noticed
	const size = 10_000
	for _, tc := range testmain.Table[struct{ Name, Rule, Body string }](t, "testdata/css_bombs.txt") {
		t.Run(tc.Name, func(t *testing.T) {
			var css strings.Builder
			for i := 0; css.Len() < size; i++ {
				css.WriteString(repetition(tc.Rule, i))
			}
			doc := "<style>" + css.String() + "</style>" + tc.Body
			p, root, _ := openHTML(doc)
			limit := stepsFor(len(doc))
			if p.steps > limit {
				t.Fatalf("%d steps left of %d", p.steps, limit)
			}
			p.show(root, p.root, newRenderer(1_000_000))
			if p.steps < -overshoot {
				t.Errorf("%d steps beyond the bound of %d", -p.steps, limit)
			}
			if p.steps < 0 {
				if _, _, cut := Lines(nil, doc, 1_000_000); !cut {
					t.Error("the bound was passed and the text counts as whole")
				}
			}
			t.Logf("%d steps for %d bytes", limit-p.steps, len(doc))
		})
	}
}

// The memory for reading is proportional to the length of the document.
func TestLongMediaQueriesTakeLittleMemory(t *testing.T) {
	doc := "<style>@media " + strings.Repeat("a ", 20_000) + "{p{display:none}}</style><p>DOUBT</p>"
	var start, end runtime.MemStats
	runtime.ReadMemStats(&start)
	if got := Text(doc, 100); got != "" {
		t.Errorf("shown: %q", got)
	}
	if runtime.ReadMemStats(&end); end.TotalAlloc-start.TotalAlloc > uint64(1000*len(doc)) {
		t.Errorf("%d bytes for a document of %d", end.TotalAlloc-start.TotalAlloc, len(doc))
	}
}

// When a style sheet cannot be judged, no text is shown and the document counts as cut.
func TestUnjudgeableStyleSheetsShowNothing(t *testing.T) {
	for _, tc := range testmain.Table[struct{ Name, CSS string }](t, "testdata/cases/unjudgeable.txt") {
		doc := "<style>" + tc.CSS + "</style><p class=h>SECRET</p>"
		if got, _, cut := Sanitize(nil, doc, 1000); got != "" || !cut {
			t.Errorf("%s: Sanitize: %q, cut %v", tc.Name, got, cut)
		}
		if lines, _, cut := Lines(nil, doc, 1000); len(lines) > 0 || !cut {
			t.Errorf("%s: Lines: %v, cut %v", tc.Name, lines, cut)
		}
	}
}

// Only the first 2 MiB of a document are read: a rule behind them does not make hidden
// text visible, and text behind them is not shown.
func TestTextBehindTheBoundOfADocument(t *testing.T) {
	filler := "<!--" + strings.Repeat("x", MaxBytes) + "-->"
	for i, doc := range []string{
		"<style>.h{display:none}</style><p class=h>SECRET</p>SEEN" + filler + "<style>.h{display:block!important}</style>",
		"SEEN" + filler + "SECRET",
		"SEEN<p hidden>" + strings.Repeat("x ", MaxBytes/2) + "</p>SECRET",
		"<style>.h{display:none}</style><p>SEEN</p><p class=h>SECRET</p><style>" + strings.Repeat("/**/", MaxBytes/4) + ".h{display:block}</style>",
	} {
		if testing.Short() && i%2 > 0 {
			continue
		}
		for _, way := range ways {
			got := way.text(doc)
			if strings.Contains(got, "SECRET") || !strings.Contains(got, "SEEN") {
				t.Errorf("%s of %.60s…: %.200q", way.name, doc, got)
			}
		}
		if _, _, cut := Sanitize(nil, doc, 100_000); !cut {
			t.Errorf("%.60s… does not count as cut", doc)
		}
	}
}

// With any style sheet Text and Sanitize end, and hide the same texts.
func FuzzStyleSheet(f *testing.F) {
	for _, c := range readCases[visibleCase](f, "testdata/visible.json") {
		var css, body string
		if _, rest, ok := strings.Cut(c.HTML, "<style>"); ok {
			css, body, _ = strings.Cut(rest, "</style>")
		} else {
			css = "p{color:red}"
			body = c.HTML
		}
		f.Add(css, body)
	}
	f.Fuzz(func(t *testing.T, css, style string) {
		if strings.Contains(strings.ToLower(css), "</") || len(css)+len(style) > 20_000 {
			t.Skip("not one style sheet")
		}
		doc := "<!doctype html><style>" + css + `</style><body class=a><div class="a b" id=i title="x y"><p class=b>MARKI.</p>` +
			`<p class="c d" style="` + html.EscapeString(style) + `">MARKII.<i class=e>MARKIII.</i></p></div><ul><li class=a>MARKIIII.<li hidden>MARKIIIII.</ul>`
		text := Text(doc, 10_000)
		safe, _, cut := Sanitize(nil, doc, 10_000)
		checkSafe(t, safe, 10_000)
		if cut {
			return
		}
		for i := range 5 {
			if shows(text, i) != shows(safe, i) {
				t.Errorf("mark %d: in the text %v, sanitized %v\ncss %q\nstyle %q", i+1, shows(text, i), shows(safe, i), css, style)
			}
		}
	})
}
