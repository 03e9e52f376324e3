package visible

import (
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/postern-mail/postern/internal/plain"
)

func TestSanitize(t *testing.T) {
	for _, tc := range readCases[struct{ Name, In, Want string }](t, "testdata/sanitize.json") {
		t.Run(tc.Name, func(t *testing.T) {
			if got, _, cut := Sanitize(nil, tc.In, 10_000); got != tc.Want || cut {
				t.Errorf("%q, %v, want %q", got, cut, tc.Want)
			}
		})
	}
}

var safeElements = strings.Fields("a p div br hr h1 h2 h3 h4 h5 h6 blockquote pre center b strong i em u s strike del ins small big sub sup code tt kbd samp var q cite abbr mark ul ol li dl dt dd table caption thead tbody tfoot tr td th")

// checkSafe fails unless s is well-formed, bounded HTML of harmless elements.
func checkSafe(t *testing.T, s string, n int) {
	t.Helper()
	if !utf8.ValidString(s) || utf8.RuneCountInString(s) > n || plain.Text(s) != s {
		t.Errorf("not clean or over %d runes: %q", n, s)
	}
	var open []string
	z := html.NewTokenizer(strings.NewReader(s))
	for {
		switch z.Next() {
		case html.ErrorToken:
			if len(open) > 0 {
				t.Errorf("%v is left open in %q", open, s)
			}
			return
		case html.TextToken:
			if strings.ContainsAny(string(z.Raw()), "<>") {
				t.Errorf("text %q in %q", z.Raw(), s)
			}
		case html.StartTagToken:
			token := z.Token()
			safe := false
			for _, e := range safeElements {
				safe = safe || e == token.Data
			}
			if !safe {
				t.Errorf("element %q in %q", token.Data, s)
			}
			for _, a := range token.Attr {
				switch a.Key {
				case "href":
					if a.Val != linkAddress(a.Val) || a.Val == "" {
						t.Errorf("link to %q in %q", a.Val, s)
					}
				case "rel", "colspan", "rowspan", "start":
				default:
					t.Errorf("attribute %q in %q", a.Key, s)
				}
			}
			if token.Data == "a" && attr(token.Attr, "rel") != "nofollow noreferrer" {
				t.Errorf("a link passes on where it was read: %q", s)
			}
			if !isVoid(token.Data) {
				open = append(open, token.Data)
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			if len(open) == 0 || open[len(open)-1] != string(name) {
				t.Fatalf("</%s> in %q, where %v is open", name, s, open)
			}
			open = open[:len(open)-1]
		default:
			t.Errorf("%q in %q", z.Raw(), s)
		}
	}
}

func TestSanitizeIsCutWellFormed(t *testing.T) {
	doc := `<p>Dear <b>Bob &amp; Eve</b>,</p><ul><li>one <a href="https://example.org/">two</a></li><li>three &lt;&lt;&lt;</li></ul><table><tr><td>four</td><td>cafe&#769;</td></tr></table><hr>`
	whole, _, cut := Sanitize(nil, doc, 10_000)
	if cut {
		t.Fatal("the whole is cut")
	}
	n := utf8.RuneCountInString(whole)
	for i := -1; i < n; i++ {
		got, _, cut := Sanitize(nil, doc, i)
		if !cut {
			t.Errorf("%d of %d runes are not cut: %q", i, n, got)
		}
		checkSafe(t, got, max(i, 0))
	}
	if got, _, cut := Sanitize(nil, doc, n); got != whole || cut {
		t.Errorf("%d runes: %q, %v, want %q", n, got, cut, whole)
	}
}

func FuzzSanitize(f *testing.F) {
	for _, c := range readCases[visibleCase](f, "testdata/visible.json") {
		f.Add([]byte(c.HTML), 100)
	}
	f.Add([]byte(`<a href="https://example.org/">a</a><table><p>b<math><mi><style><!--</style>`), 60)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		n = min(max(n, 0), 5000)
		got, _, cut := Sanitize(nil, string(b), n)
		checkSafe(t, got, n)
		if whole, _, _ := Sanitize(nil, string(b), 1_000_000); !cut && got != whole {
			t.Errorf("%q is not cut, but the whole is %q", got, whole)
		}
	})
}
