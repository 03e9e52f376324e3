package visible

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/postern-mail/postern/internal/plain"
)

// Each document holds SEEN where a person would read it and SECRET where a
// person would not. An instruction in the second place must not reach an agent,
// a sentence in the first must not be lost.
var hiddenText = []struct {
	name, html string
}{
	// Elements that are not shown.
	{"comment", `SEEN<!-- SECRET -->`},
	{"comment that is never closed", `SEEN<!-- SECRET`},
	{"comment of Outlook", `SEEN<!--[if mso]><p>SECRET</p><![endif]-->`},
	{"content for everyone but Outlook", `<!--[if !mso]><!-->SEEN<!--<![endif]-->`},
	{"script", `SEEN<script>"</p>SECRET"</script>`},
	{"style", `SEEN<style>SECRET{}</style>`},
	{"title", `<title>SECRET</title>SEEN`},
	{"head", `<head><title>x</title><meta content="SECRET"></head><body>SEEN`},
	{"template", `<template><p>SECRET</p></template>SEEN`},
	{"text without scripting is shown", `<noscript>SEEN</noscript>`},
	{"frames", `<iframe>SECRET</iframe><noframes>SECRET</noframes><noembed>SECRET</noembed>SEEN`},
	{"a closed dialog", `<dialog>SECRET</dialog><dialog open>SEEN</dialog>`},
	{"drawing", `<svg><text>SECRET</text><title>SECRET</title></svg>SEEN`},
	{"hidden input", `<input type=hidden value=SECRET>SEEN`},
	{"attributes", `<p title="SECRET" data-x="SECRET" aria-label="SECRET">SEEN</p>`},
	{"tracking pixel", `<img alt=SECRET width=1 height=1 src="https://example.org/t">SEEN`},
	{"image without a size", `<img alt=SEEN src="https://example.org/t">`},
	{"aria-hidden hides nothing from the eye", `<p aria-hidden=true>SEEN</p>`},

	// Inline style.
	{"hidden attribute", `<p hidden>SECRET</p>SEEN`},
	{"hidden attribute with a value", `<p hidden=false>SECRET</p>SEEN`},
	{"display none", `<div style="display:none">SECRET</div>SEEN`},
	{"display none in odd writing", `<div STYLE=" Color:red ;DISPLAY : NONE ! important ">SECRET</div>SEEN`},
	{"display none behind a comment", `<div style="/* x */display:/**/none">SECRET</div>SEEN`},
	{"display none with an escape", `<div style="d\69splay:n\6fne">SECRET</div>SEEN`},
	{"display none by character references", `<div style="display&#58;&#110;one">SECRET</div>SEEN`},
	{"display none behind a broken declaration", `<div style="x;:;=;display:none">SECRET</div>SEEN`},
	{"the first of two style attributes counts", `<div style="display:none" style="display:block">SECRET</div>SEEN`},
	{"the last of two declarations counts", `<div style="display:block;display:none">SECRET</div><div style="display:none;display:block">SEEN</div>`},
	{"an important declaration counts", `<div style="display:none!important;display:block">SECRET</div>SEEN`},
	{"display none cannot be undone inside", `<div style="display:none"><p style="display:block">SECRET</p></div>SEEN`},
	{"visibility hidden", `<div style="visibility:hidden">SECRET<p style="visibility:visible">SEEN</p></div>`},
	{"visibility collapse", `<div style="visibility:collapse">SECRET</div>SEEN`},
	{"opacity", `<div style="opacity:0"><b style="opacity:1">SECRET</b></div>SEEN`},
	{"opacity close to nothing", `<div style="opacity:.001">SECRET</div><div style="opacity:0.0">SECRET</div><div style="opacity:0%">SECRET</div>SEEN`},
	{"half opacity is seen", `<div style="opacity:.5">SEEN</div>`},
	{"font size zero", `<div style="font-size:0">SECRET<b style="font-size:14px">SEEN</b></div>`},
	{"font size one pixel", `<div style="font-size:1px">SECRET</div><div style="font-size:0.1pt">SECRET</div><div style="font-size:0em">SECRET</div>SEEN`},
	{"font size one percent", `<div style="font-size:1%">SECRET</div>SEEN`},
	{"font shorthand", `<div style="font:0/0 a">SECRET</div><div style="font:bold 1px Arial">SECRET</div><div style="font:bold 12px/1 Arial">SEEN</div>`},
	{"font size in parts of a small one", `<div style="font-size:1px"><b style="font-size:100%">SECRET</b><b style="font-size:1em">SECRET</b></div>SEEN`},
	{"height zero", `<div style="height:0;overflow:hidden">SECRET</div>SEEN`},
	{"height zero without overflow is seen", `<div style="height:0">SEEN</div>`},
	{"width one pixel", `<div style="width:1px;overflow:hidden">SECRET</div>SEEN`},
	{"max-height zero", `<div style="max-height:0">SECRET</div><div style="max-height:0px;overflow:hidden">SECRET</div>SEEN`},
	{"what only Outlook hides is seen", `<div style="mso-hide:all">SEEN</div><table><tr><td style="mso-hide:all"><a href="https://x.example/">SEEN</a></td></tr></table>`},
	{"off the screen", `<div style="position:absolute;left:-9999px">SECRET</div><div style="position:fixed;top:-5000px">SECRET</div>SEEN`},
	{"indented off the screen", `<div style="text-indent:-9999px">SECRET</div>SEEN`},
	{"clipped away", `<div style="position:absolute;clip:rect(0,0,0,0)">SECRET</div><div style="position:absolute;clip: rect(1px 1px 1px 1px)">SECRET</div>SEEN`},
	{"clip path", `<div style="clip-path:inset(100%)">SECRET</div><div style="clip-path:circle(0)">SECRET</div>SEEN`},
	{"scaled to nothing", `<div style="transform: scale( 0 )">SECRET</div>SEEN`},

	// Colours.
	{"white on white", `<body bgcolor=white><font color=#ffffff>SECRET</font><font color=black>SEEN</font>`},
	{"white on the page", `<span style="color:#fff">SECRET</span>SEEN`},
	{"nearly white on the page", `<span style="color:#fefefe">SECRET</span>SEEN`},
	{"white in other words", `<i style="color:rgb(255,255,255)">SECRET</i><i style="color:rgba(255, 255, 255, 1)">SECRET</i><i style="color:rgb(100%,100%,100%)">SECRET</i><i style="color:WHITE">SECRET</i>SEEN`},
	{"hue and lightness", `<i style="color:hsl(0,0%,100%)">SECRET</i>SEEN`},
	{"transparent", `<i style="color:transparent">SECRET</i><i style="color:rgba(0,0,0,0)">SECRET</i><i style="color:#0000">SECRET</i>SEEN`},
	{"black on black", `<table><tr><td bgcolor="#000000"><font color="#000000">SECRET</font><font color=white>SEEN</font></td></table>`},
	{"same as the background around it", `<div style="background:#123456"><div><p style="color:#123456">SECRET</p></div><p style="color:white">SEEN</p></div>`},
	{"same as its own background", `<p style="color:red;background-color:red">SECRET</p>SEEN`},
	{"white on an image is seen", `<div style="background:url(x.png)"><p style="color:#fff">SEEN</p></div>`},
	{"white on an image in an attribute is seen", `<table><tr><td background="x.png"><p style="color:#fff">SEEN</p></td></tr></table>`},
	{"white on a dark ground is seen", `<table bgcolor="#333333"><tr><td style="color:#ffffff">SEEN</td></tr></table>`},
	{"white on a rule's dark ground is seen", `<style>.dark{background-color:#222}</style><div class="dark"><p style="color:#fff">SEEN</p></div>`},
	{"white on a compound rule's dark ground is seen", `<style>.foot td{background-color:#222}</style><table class=foot><tr><td style="color:#fff">SEEN</td></tr></table>`},
	{"a dark rule about something else paints nothing", `<style>.foot .x{background-color:#222}</style><p style="color:#fff">SECRET</p>SEEN`},
	{"a dark rule for phones paints nothing", `<style>@media (max-width:600px){p{background:#222}}</style><p style="color:#fff">SECRET</p>SEEN`},

	// Style blocks.
	{"class", `<style>.h{display:none}</style><p class="a h b">SECRET</p>SEEN`},
	{"id", `<style>#h{display:none}</style><p id=h>SECRET</p>SEEN`},
	{"tag", `<style>em{display:none}</style><em>SECRET</em>SEEN`},
	{"tag with a class", `<style>p.h{display:none}</style><p class=h>SECRET</p><div class=h>SEEN</div>`},
	{"list of selectors", `<style>.a, .h , #c{display:none}</style><p class=h>SECRET</p>SEEN`},
	{"style block behind its text", `<p class=h>SECRET</p>SEEN<style>.h{display:none}</style>`},
	{"comment in a style block", `<style>/* } */.h/**/{/*;*/display:none}</style><p class=h>SECRET</p>SEEN`},
	{"style block in a comment", `<style><!-- .h{display:none} --></style><p class=h>SECRET</p>SEEN`},
	{"style block behind an import", `<style>@import url(x.css);.h{display:none}</style><p class=h>SECRET</p>SEEN`},
	{"style block for screens", `<style>@media screen{.h{display:none}}</style><p class=h>SECRET</p>SEEN`},
	{"style block for phones and paper", `<style>@media print{.h{display:none}}@media (max-width:600px){.h{display:none}}</style><p class=h>SEEN</p>`},
	{"style block that is never closed", `<style>.h{display:none</style><p class=h>SECRET</p>SEEN`},
	{"inline style undoes a rule", `<style>.h{display:none}</style><p class=h style="display:block">SEEN</p>`},
	{"an important rule is not undone", `<style>.h{display:none!important}</style><p class=h style="display:block">SECRET</p>SEEN`},
	{"the later rule counts", `<style>.h{display:none}.h{display:block}</style><p class=h>SEEN</p>`},
	{"several style blocks", `<style>.x{color:red}</style><style>.h{display:none}</style><p class=h>SECRET</p>SEEN`},

	// Tags that do not match.
	{"hidden element that is never closed", `SEEN<div style="display:none">SECRET`},
	{"end tag that closes nothing", `SEEN<div style="display:none">SECRET</span></p></b>SECRET</div>SEEN`},
	{"formatting closed around a hidden block", `SEEN<b><div style="display:none">SECRET</b>SECRET</div>`},
	{"span closed around a hidden block", `SEEN<span><div style="display:none">SECRET</span>SECRET</div>`},
	{"hidden formatting goes on behind its paragraph", `SEEN<p><font style="display:none">SECRET</p>SECRET`},
	{"a paragraph ends at a block", `<p style="display:none">SECRET<div>SEEN</div>`},
	{"an item ends at the next", `<ul><li style="display:none">SECRET<li>SEEN</ul>`},
	{"a cell ends at the next", `<table><tr><td style="display:none">SECRET<td>SEEN</table>`},
	{"a row ends at the next", `<table><tr style="display:none"><td>SECRET<tr><td>SEEN</table>`},
	{"a void element opens nothing", `<br style="display:none">SEEN<hr hidden>SEEN<img style="display:none" alt=SECRET>SEEN`},
	{"a slash closes nothing but a void element", `SEEN<div style="display:none"/>SECRET</div>`},
	{"text behind the end of the document", `<html><body>x</body></html>SEEN`},

	// Links.
	{"link of a hidden text", `<a href="https://SECRET.example" style="display:none">SECRET</a>SEEN`},
	{"link without a text", `<a href="https://SECRET.example"></a>SEEN`},
	{"link to a script", `<a href="javascript:SECRET">SEEN</a><a href="data:text/html,SECRET">x</a><a href=" java&#10;script:SECRET">x</a>`},
	{"link elsewhere than its text says", `<a href="https://SEEN.example/">https://bank.example/</a>`},
}

func TestTextShowsWhatAPersonSees(t *testing.T) {
	for _, tc := range hiddenText {
		t.Run(tc.name, func(t *testing.T) {
			got := Text(tc.html, 1000)
			if strings.Contains(got, "SECRET") {
				t.Errorf("Text(%s) shows what is hidden: %q", tc.html, got)
			}
			if seen := strings.Contains(tc.html, "SEEN"); seen && !strings.Contains(got, "SEEN") {
				t.Errorf("Text(%s) loses what is seen: %q", tc.html, got)
			}
		})
	}
}

// The same documents, each among so many open elements that a parser that makes
// a tree refuses them.
func TestTextHidesTheSameInDeepNesting(t *testing.T) {
	for _, tc := range hiddenText {
		if strings.Contains(tc.html, "<body") || strings.Contains(tc.html, "<head") {
			continue
		}
		t.Run(tc.name, func(t *testing.T) {
			deep := tc.html + "</style></script></div></table>" + strings.Repeat("<div>", 600)
			if got := Text(deep, 1000); strings.Contains(got, "SECRET") {
				t.Errorf("Text(%s) shows what is hidden: %q", tc.html, got)
			}
		})
	}
}

// Characters that nobody sees do not pass by way of character references.
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
	for _, tc := range hiddenText {
		f.Add([]byte(tc.html), 100)
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
