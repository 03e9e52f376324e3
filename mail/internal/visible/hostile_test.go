package visible

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// bombs are documents that cause much work and are cheap to send. Each has front once and
// then repeats unit as often as it fits.
var bombs = []struct {
	name, front string
	unit        func(i int) string
}{
	{"formatting elements opened again in every paragraph", "<p>" + numbered("<b id=%d>", 400), func(int) string { return "</p><p>x" }},
	{"formatting elements opened again in every cell", "<table><tr><td>" + numbered("<font id=%d>", 400), func(int) string { return "<p>x</p>" }},
	{"attributes of the body", "<body>", func(i int) string { return fmt.Sprintf("<body a%d>", i) }},
	{"attributes of the document", "", func(i int) string { return fmt.Sprintf("<html a%d>", i) }},
	{"attributes of one tag", "<p", func(i int) string { return fmt.Sprintf(" a%d", i) }},
	{"nested blocks", "", func(int) string { return "<div>" }},
	{"nested quotations", "", func(int) string { return "<blockquote>x" }},
	{"nested lists", "", func(int) string { return "<ul><li>x" }},
	{"nested tables", "", func(int) string { return "<table><tr><td>x" }},
	{"nested formatting", "", func(i int) string { return fmt.Sprintf("<b id=%d>", i) }},
	{"misnested formatting", "", func(int) string { return "<b><p></b>" }},
	{"links across blocks", "", func(int) string { return "<a><div>" }},
	{"text in tables", "<table>", func(int) string { return "<a>x" }},
	{"end tags of nothing", strings.Repeat("<div>", 400), func(int) string { return "</p>" }},
	{"selects", "", func(int) string { return "<select><option>" }},
	{"nested media rules", "<style>", func(int) string { return "@media{" }},
	{"nested rules that apply", "<style>", func(int) string { return "@media all{" }},
	{"rules", "<style>", func(i int) string { return fmt.Sprintf(".a%d{color:red}", i) }},
	{"selectors", "<style>", func(i int) string { return fmt.Sprintf(".a%d,", i) }},
	{"declarations", "<style>p{", func(int) string { return "color:red;" }},
	{"unclosed parentheses of a style", "<p style='", func(int) string { return "a:(;" }},
	{"comments of a style", "<style>", func(int) string { return "/*" }},
	{"classes", "<style>.a{color:red}</style><p class='", func(int) string { return "a " }},
	{"style blocks", "", func(int) string { return "<style>p{color:red}</style>" }},
	{"unclosed tags", "", func(int) string { return "<" }},
	{"unclosed comments", "", func(int) string { return "<!--" }},
	{"declarations of charsets", "", func(int) string { return "<meta " }},
	{"references", "", func(int) string { return "&notit;" }},
	{"empty paragraphs", "", func(int) string { return "<p>" }},
	{"line breaks", "", func(int) string { return "<br>" }},
	{"cells of one row", "<table><tr>", func(int) string { return "<td>x" }},
	{"rows", "<table>", func(int) string { return "<tr><td>x" }},
	{"items", "<ol>", func(int) string { return "<li>x" }},
	{"links", "", func(int) string { return "<a href='https://x.example/'>x" }},
	{"hidden text", "<div hidden>", func(int) string { return "x<br>" }},
	{"preformatted lines", "<pre>", func(int) string { return "\n" }},
}

// bombSize is the length of a short bomb in bytes.
const bombSize = 6000

func numbered(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

func bomb(front string, unit func(int) string, size int) []byte {
	var b strings.Builder
	b.WriteString(front)
	for i := 0; b.Len() < size; i++ {
		b.WriteString(unit(i))
	}
	return []byte(b.String())
}

// The cost of a document is proportional to its length. Allocated bytes stand for work:
// they can be counted, and every fault of this kind in an HTML parser shows in them or
// hangs this test. What is made of a document is bounded by the caller, not by its length.
func TestCostIsLinear(t *testing.T) {
	for _, way := range []struct {
		name string
		most uint64 // bytes of memory for one of HTML
		make func(t *testing.T, doc string)
	}{
		{"Text", 1000, func(t *testing.T, doc string) {
			if n := len([]rune(Text(doc, 500))); n > 500 {
				t.Errorf("%d runes, more than were asked for", n)
			}
		}},
		{"Sanitize", 3000, func(t *testing.T, doc string) {
			got, _, _ := Sanitize(doc, 20_000)
			checkSafe(t, got, 20_000)
		}},
	} {
		for _, tc := range bombs {
			t.Run(way.name+" of "+tc.name, func(t *testing.T) {
				cost := func(size int) uint64 {
					doc := bomb(tc.front, tc.unit, size)
					var before, after runtime.MemStats
					runtime.ReadMemStats(&before)
					way.make(t, string(doc))
					runtime.ReadMemStats(&after)
					return (after.TotalAlloc - before.TotalAlloc) / uint64(len(doc))
				}
				short, long := cost(bombSize), cost(4*bombSize)
				if long > way.most || long > 2*short+50 {
					t.Errorf("a byte costs %d in a short document and %d in one four times as long", short, long)
				}
			})
		}
	}
}
