package markdown

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

func TestHTML(t *testing.T) {
	for _, c := range []struct {
		name, text string
		quoted     int
		want       string // between the body's tags
	}{
		{"nothing", "", 0, ""},
		{"what letters use", "# Plan\n\nDear **Ann**,\n*noon* ~~one~~:\n\n- `a<b`\n- [here](https://example.org/a?b=1&c=2 'title')\n", 0,
			"<h1>Plan</h1>\n<p>Dear <strong>Ann</strong>,<br>\n<em>noon</em> <del>one</del>:</p>\n<ul>\n<li><code>a&lt;b</code></li>\n<li><a href=\"https://example.org/a?b=1&amp;c=2\">here</a></li>\n</ul>\n"},
		{"a table", "|a|b|\n|-|:-:|\n|1|2|\n", 0,
			"<table>\n<thead>\n<tr>\n<th>a</th>\n<th>b</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td>1</td>\n<td>2</td>\n</tr>\n</tbody>\n</table>\n"},
		{"tags stay text", "<b>x</b> <!-- c -->\n\n<script>\nalert(1)\n</script>\n", 0,
			"<p>&lt;b&gt;x&lt;/b&gt; &lt;!-- c --&gt;</p>\n<p>&lt;script&gt;<br>\nalert(1)<br>\n&lt;/script&gt;</p>\n"},
		{"links elsewhere are their text", "[a](javascript:x) [b](JaVaScRiPt&colon;x) [c](/d) [d](//e.org) <foo:bar> [e](data:text/html,x) [f](cid:1)\n", 0,
			"<p>a b c d foo:bar e f</p>\n"},
		{"links of the web and of mail", "<HTTP://e.org> <ann@e.org> [m](mailto:ann@e.org)\n", 0,
			"<p><a href=\"HTTP://e.org\">HTTP://e.org</a> <a href=\"mailto:ann@e.org\">ann@e.org</a> <a href=\"mailto:ann@e.org\">m</a></p>\n"},
		{"an image is a link to it", "![pic](https://e.org/p.png) ![](https://e.org/q.png) ![r](r.png)\n", 0,
			"<p><a href=\"https://e.org/p.png\">pic</a> <a href=\"https://e.org/q.png\">https://e.org/q.png</a> r</p>\n"},
		{"one link for an image in a link", "[![a](https://e.org/1)](https://e.org/2)\n", 0, "<p><a href=\"https://e.org/2\">a</a></p>\n"},
		{"what is not seen, by a reference", "a&#x202e;b&#8203;c &lt;i&gt;\n", 0, "<p>abc &lt;i&gt;</p>\n"},
		{"a signature makes no heading", "Yours\n-- \nAnn  Lee\n# x\n", 0, "<p>Yours</p>\n<p>-- <br>\nAnn&nbsp; Lee<br>\n# x<br>\n</p>\n"},
		{"quoted text is no Markdown", "Yes.\n\nOn Monday [Ann](https://evil.example) wrote:\n> # x <b>\n", 2,
			"<p>Yes.</p>\n<div class=\"quoted\">\nOn Monday [Ann](https://evil.example) wrote:<br>\n&gt; # x &lt;b&gt;<br>\n</div>\n"},
		{"a quote gives the text no reference", "[a]\n\n[a]: https://evil.example\n", 1, "<p>[a]</p>\n<div class=\"quoted\">\n[a]: https://evil.example<br>\n</div>\n"},
		{"no line end at the end", "a\nb", 1, "<p>a</p>\n<div class=\"quoted\">\nb<br>\n</div>\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := HTML(c.text, c.quoted)
			if want := before + c.want + behind; err != nil || got != want {
				t.Fatalf("got %v\n%s\nwant\n%s", err, got, want)
			}
			if quoted, ok := Made(c.text, got); !ok || quoted != c.quoted {
				t.Errorf("not recognized, with %d lines quoted", quoted)
			}
			for _, other := range [][2]string{{c.text + "x", got}, {c.text, got + " "}, {c.text, strings.Replace(got, "body", "body bgcolor=red", 1)}} {
				if _, ok := Made(other[0], other[1]); ok {
					t.Errorf("%q was not made of %q", other[1], other[0])
				}
			}
		})
	}
}

// A quote is bounded by its caller, and costs what it is long.
func TestALongQuoteIsNoMarkdown(t *testing.T) {
	if document, err := HTML("Yes.\n"+strings.Repeat("> |[a](b)\n", 50_000), 50_000); err != nil || strings.Count(document, "<br>") != 50_000 {
		t.Errorf("%v, %d lines", err, strings.Count(document, "<br>"))
	}
}

func TestTextsMadeToCostMuchAreRefused(t *testing.T) {
	for _, c := range []struct {
		text string
		want error
	}{
		{strings.Repeat("a", maxBytes+1), errLong},
		{strings.Repeat("> ", 1000), errDeep},
		{strings.Repeat("1. ", 1000), errDeep},
		{strings.Repeat("*a _b ", 100) + strings.Repeat("b_ a* ", 100), errDeep},
		{strings.Repeat("|a", 2000) + "\n" + strings.Repeat("|-", 2000) + "\n" + strings.Repeat("x\n", 40_000), errWide},
		{strings.Repeat("[](", 10_000), errLinks},
		{strings.Repeat("[](", 2000), nil},
		{strings.Repeat("*a **a", 10_000), nil},
	} {
		if _, err := HTML(c.text, 0); err != c.want {
			t.Errorf("%.9q…: %v, want %v", c.text, err, c.want)
		}
	}
}

// FuzzHTML gives a parser of HTML what any text becomes: only tags that Markdown has, no
// attribute but that of a link, and of a class of ours, and nothing loaded from anywhere.
func FuzzHTML(f *testing.F) {
	for _, s := range []string{"a [b](https://c.example \"t\") ![d](http://e)", "<img src=x onerror=y>", "|a|b|\n|-|-|\n|<b>|`|`|", "```x\" onload=y\nz\n```",
		"[a]: javascript:b\n[a] ![a]", "<https://a\"onclick=b>", "&lt;b&gt; &#60;b&#62; \\<b>", "x\n-- \n<b>\n> <i>", "1. a\n   > # b\n\n\t<c>", "# h {onclick=x}", "a\u2028b\u202ec"} {
		f.Add(s, 0)
		f.Add(s, 1)
	}
	tags := strings.Fields("html body p br h1 h2 h3 h4 h5 h6 hr em strong del code pre ul ol li blockquote table thead tbody tr th td a div")
	f.Fuzz(func(t *testing.T, text string, quoted int) {
		text = strings.ToValidUTF8(text, "?")
		quoted = max(0, quoted%8)
		document, err := HTML(text, quoted)
		if err != nil {
			return
		}
		if _, ok := Made(text, document); !ok {
			t.Errorf("not recognized:\n%s", document)
		}
		z := html.NewTokenizer(strings.NewReader(document))
		divs := 0
		for z.Next() != html.ErrorToken {
			tok := z.Token()
			switch tok.Type {
			case html.TextToken, html.EndTagToken:
				continue
			case html.DoctypeToken:
				if tok.Data == "html" {
					continue
				}
			case html.StartTagToken:
				if !slices.Contains(tags, tok.Data) {
					break
				}
				if tok.Data == "div" {
					divs++
				}
				for _, a := range tok.Attr {
					switch {
					case tok.Data == "a" && a.Key == "href" && leadsOut([]byte(a.Val)):
					case tok.Data == "code" && a.Key == "class" && strings.HasPrefix(a.Val, "language-"):
					case tok.Data == "ol" && a.Key == "start", tok.Data == "div" && a.Key == "class" && a.Val == "quoted":
					default:
						t.Errorf("attribute %+v of %s in\n%s", a, tok.Data, document)
					}
				}
				continue
			}
			t.Errorf("%v in\n%s", tok, document)
		}
		if divs > 1 || divs == 1 && quoted == 0 {
			t.Errorf("%d quoted blocks in\n%s", divs, document)
		}
	})
}
