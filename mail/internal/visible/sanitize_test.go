package visible

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/postern-mail/postern/internal/plain"
)

func TestSanitize(t *testing.T) {
	const rel = ` rel="nofollow noreferrer"`
	for _, tc := range []struct{ name, in, want string }{
		{"text", "<p>Hello <b>Bob</b></p>", "<p>Hello <b>Bob</b></p>"},
		{"document", "<!doctype html><html><head><title>x</title><meta charset=utf-8></head><body bgcolor=red>Hello</body></html>", "Hello"},
		{"no HTML", "a & b < c", "a &amp; b &lt; c"},
		{"attributes", `<p id=a class=b style="color:red" onclick="x()" data-a=1 title="t" dir=rtl>a</p>`, "<p>a</p>"},
		{"link", `<a href="https://example.org/a?b=c&d=e;f=%20g" target=_blank ping="https://evil.example">a</a>`, `<a href="https://example.org/a?b=c&amp;d=e;f=%20g"` + rel + `>a</a>`},
		{"link to an address", `<a href="mailto:ann@example.org?subject=a%20b">a</a>`, `<a href="mailto:ann@example.org?subject=a%20b"` + rel + `>a</a>`},
		{"links keep their own address", `<a href="//x.example/">a</a><a href="https://example.org/?a;b">b</a><a href="https://[::bad/">c</a><a href="http://example.org/?c d">d</a>`,
			`a<a href="https://example.org/?a;b"` + rel + `>b</a>c<a href="http://example.org/?cd"` + rel + `>d</a>`},
		{"link to a script", `<a href="javascript:x()">a</a><a href=" java&#10;script:x()">b</a><a href="data:text/html,x">c</a><a href="vbscript:x">d</a><a href="cid:a">e</a><a href="/a">f</a>`, "abcdef"},
		{"link that forges its number", `<a href="javascript:x()" title="0">a</a><a title="0">b</a><a href="https://example.org/" title="7">c</a>`, `ab<a href="https://example.org/"` + rel + `>c</a>`},
		{"script", "a<script>x()</script><style>p{}</style><noscript>b</noscript>", "ab"},
		{"images", `<img src="https://example.org/t.png" alt="Our logo"><img src="https://example.org/1.gif" width=1 height=1 alt=x><img src=cid:a>a`, " Our logo a"},
		{"forms", `<form action="https://evil.example"><input name=a value=b><button>c</button><input type=submit value="Send"><textarea>d</textarea></form>f`, "<div>cSend<div>d</div></div>f"},
		{"lists of choices and drawings", "a<select><option>b</select><svg><image href=x /><text>y</text></svg>", "a<div>b</div>"},
		{"text in elements of old", "<xmp><b>a</b></xmp><section>b</section><plaintext><i>c", "<pre>&lt;b&gt;a&lt;/b&gt;</pre><div>b</div><pre>&lt;i&gt;c</pre>"},
		{"frames and objects", `<iframe src=x>a</iframe><object data=x>b</object><embed src=x><video src=x>c</video><base href="https://evil.example/"><link rel=stylesheet href=x>d`, "d"},
		{"comments", "a<!-- x --><!--[if mso]>y<![endif]-->b<![CDATA[z]]>", "ab"},
		{"list", `<ol start=3 type=a><li value=9>a<li>b</ol>`, `<ol start="3"><li>a</li><li>b</li></ol>`},
		{"table", `<table width=100% border=0><tr><th colspan=2 style="x">a</th></tr><tr><td></td><td rowspan="x">b</td></tr></table>`, `<table><tbody><tr><th colspan="2">a</th></tr><tr><td></td><td>b</td></tr></tbody></table>`},
		{"empty elements", "<p></p><div><span> </span></div><p>a</p>", "<p>a</p>"},
		{"white space", "<p>a\n\t\n  b&nbsp; c</p>\n\n\n<pre>d\n  e</pre>", "<p>a b\u00A0 c</p> <pre>d\n  e</pre>"},
		{"characters nobody sees", `<p>a&#8238;b&#x200B;c</p><a href="https://example.org/&#8238;x">d</a>`, `<p>abc</p><a href="https://example.org/x"` + rel + `>d</a>`},
		{"escapes stay", "<p>&lt;script&gt;x()&lt;/script&gt; &amp;lt; &quot;</p>", "<p>&lt;script&gt;x()&lt;/script&gt; &amp;lt; &#34;</p>"},
		{"unclosed", "<b><i>a<p>b", "<b><i>a<p>b</p></i></b>"},
		{"hidden", `<p style="display:none">x</p><span style="font-size:0">y</span><i style="color:#fff">z</i><b style="visibility:hidden">v<u style="visibility:visible">a</u></b>`, "<b><u>a</u></b>"},
		{"hidden rules and tables", `<div style="display:none"><hr><br><table><tr><td></td></tr></table></div>a`, "a"},
		{"hidden by a class", `<style>.h{display:none}</style><p class=h>x</p><p>a</p>`, "<p>a</p>"},
		{"nothing", "", ""},
		{"nothing to see", "<style>p{}</style><div hidden>x</div>", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, _, cut := Sanitize(tc.in, 10_000); got != tc.want || cut {
				t.Errorf("%q, %v, want %q", got, cut, tc.want)
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
	whole, _, cut := Sanitize(doc, 10_000)
	if cut {
		t.Fatal("the whole is cut")
	}
	n := utf8.RuneCountInString(whole)
	for i := -1; i < n; i++ {
		got, _, cut := Sanitize(doc, i)
		if !cut {
			t.Errorf("%d of %d runes are not cut: %q", i, n, got)
		}
		checkSafe(t, got, max(i, 0))
	}
	if got, _, cut := Sanitize(doc, n); got != whole || cut {
		t.Errorf("%d runes: %q, %v, want %q", n, got, cut, whole)
	}
}

func TestSanitizeOfBombs(t *testing.T) {
	const most = 3000 // bytes of memory for one of HTML
	for _, tc := range bombs {
		t.Run(tc.name, func(t *testing.T) {
			cost := func(size int) uint64 {
				doc := bomb(tc.front, tc.unit, size)
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				got, _, _ := Sanitize(string(doc), 20_000)
				runtime.ReadMemStats(&after)
				checkSafe(t, got, 20_000)
				return (after.TotalAlloc - before.TotalAlloc) / uint64(len(doc))
			}
			short, long := cost(15_000), cost(60_000)
			if long > most || long > 2*short+50 {
				t.Errorf("a byte costs %d in a short document and %d in one four times as long", short, long)
			}
		})
	}
}

func FuzzSanitize(f *testing.F) {
	for _, c := range readCases[visibleCase](f, "testdata/visible.json") {
		f.Add([]byte(c.HTML), 100)
	}
	f.Add([]byte(`<a href="https://example.org/">a</a><table><p>b<math><mi><style><!--</style>`), 60)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		n = min(max(n, 0), 5000)
		got, _, cut := Sanitize(string(b), n)
		checkSafe(t, got, n)
		if whole, _, _ := Sanitize(string(b), 1_000_000); !cut && got != whole {
			t.Errorf("%q is not cut, but the whole is %q", got, whole)
		}
	})
}

func BenchmarkSanitize(b *testing.B) {
	var doc strings.Builder
	for i := range 500 {
		fmt.Fprintf(&doc, `<table><tr><td style="color:#333;padding:3px"><p class=x>Row %d of <a href="https://example.org/%d">a letter</a></p></td></tr></table>`, i, i)
	}
	raw := []byte(doc.String())
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		Sanitize(string(raw), 20_000)
	}
}
