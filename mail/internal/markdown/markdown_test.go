package markdown

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/postern-mail/postern/internal/testmain"
)

func TestHTML(t *testing.T) {
	for _, c := range testmain.Table[struct {
		Name, Text string
		Quoted     int
		Want       string
	}](t, "testdata/cases/html.txt") {
		t.Run(c.Name, func(t *testing.T) {
			got, err := HTML(c.Text, c.Quoted)
			if want := before + c.Want + behind; err != nil || got != want {
				t.Fatalf("got %v\n%s\nwant\n%s", err, got, want)
			}
			if quoted, ok := Made(c.Text, got); !ok || quoted != c.Quoted {
				t.Errorf("not recognized, with %d lines quoted", quoted)
			}
			for _, other := range [][2]string{{c.Text + "x", got}, {c.Text, got + " "}, {c.Text, strings.Replace(got, "body", "body bgcolor=red", 1)}} {
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
