package visible

import (
	"regexp"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/net/html"

	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail/internal/quoted"
)

var metaCharset = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)<meta[^>]{0,200}charset\s{0,8}=\s{0,8}["']?\s{0,8}([a-z0-9_:.-]{1,40})`)
})

// Charset returns the charset that a document gives itself, which it does
// at its beginning; "" when it does not.
func Charset(b []byte) string {
	const window = 2 << 10
	if m := metaCharset().FindSubmatch(b[:min(len(b), window)]); m != nil {
		return string(m[1])
	}
	return ""
}

// Lines renders a document as the text that a person would see: tidy lines, as far
// as they hold little more than maxRunes runes. hidden counts the characters that
// a person would not see, white space aside, and cut says that the end was not
// reached.
//
// Blocks are separated by line ends, lists have markers, a table has a row per line
// with " | " between its cells, quotations are lines of a depth, and a link is
// followed by its address where the text does not say it. Scripts, styles and
// comments are left out and not counted.
//
// The common ways to hide are judged as a browser does on a desktop, 1280 by 800
// pixels in light colours, with the mouse elsewhere: display, visibility, opacity,
// sizes, colours and position, the selectors of CSS 2 with those of
// attributes, and @media. What is exotic is doubtful: custom properties, functions
// that compute, layers, containers, nesting, most pseudo-classes, transforms,
// clipping, animations. It counts where it hides and not where it shows. The same holds where
// mail programs differ, as in lengths without a unit and names that differ in case.
// A box of any kind without a size hides its content if it cuts that off. Content that
// only Outlook hides is shown, and so is content that a click opens. Not judged are
// elements on top of others, text that a box of some height cuts off, text that a style
// sheet itself holds, and fonts.
//
// At most MaxBytes are read, and of those no more than makes a tree of reasonable size; if
// the rest of those may hold style sheets, there is no text. The text ends where judging
// takes more work than for any mail that a person wrote.
//
// w bounds the work of a command, nil that of this document alone.
func Lines(w *Work, s string, maxRunes int) (lines []quoted.Line, hidden int, cut bool) {
	r := newRenderer(max(maxRunes, 0) + spare)
	hidden, cut, judged := w.show(s, r)
	if !judged {
		return stripped(s, max(maxRunes, 0)), 0, true
	}
	return quoted.Tidy(quoted.LaidOut(string(r.frames[0].out)), 1), hidden, cut
}

// spare is how many runes are rendered beyond those that were asked for, so that
// a cut finds the end of a character.
const spare = 64

// writer takes the text that a person sees of a document, in order.
type writer interface {
	begin(n *html.Node, st style)
	end(n *html.Node)
	text(s string, pre bool) // white space counts if pre
	image(alt string)        // without white space around it, "" for none
	isFull() bool            // nothing more is taken
}

// show gives a writer the text that a person sees of a node, in order.
func (p *page) show(n *html.Node, st style, to writer) {
	switch n.Type {
	case html.TextNode:
		if st.visible() {
			to.text(n.Data, st.pre)
		} else {
			p.hidden += characters(n.Data)
		}
	case html.ElementNode:
		if isDropped(n) {
			return
		}
		if st = p.compute(st, n); st.gone {
			p.hidden += textIn(n)
			return
		}
		to.begin(n, st)
		defer to.end(n)
		switch n.Data {
		case "img":
			if st.shown() && !st.small && !isTiny(attr(n.Attr, "width")) && !isTiny(attr(n.Attr, "height")) { // that counts its readers
				to.image(strings.TrimSpace(attr(n.Attr, "alt")))
			}
		case "input":
			if kind := strings.ToLower(attr(n.Attr, "type")); st.visible() && (kind == "submit" || kind == "button" || kind == "reset") {
				to.text(attr(n.Attr, "value"), false)
			}
		}
	}
	for c := n.FirstChild; c != nil && !to.isFull() && !p.exhausted(); c = c.NextSibling {
		p.show(c, st, to)
	}
}

// textIn counts the characters in a node that would be seen if nothing hid them.
func textIn(n *html.Node) int {
	count := 0
	if n.Type == html.TextNode {
		count = characters(n.Data)
	}
	for c := range n.ChildNodes() {
		if !isDropped(c) {
			count += textIn(c)
		}
	}
	return count
}

// characters counts those of a text that have an appearance.
func characters(s string) int {
	n := 0
	for _, c := range s {
		if !unicode.IsSpace(c) && !plain.Unseen(c) {
			n++
		}
	}
	return n
}

// isDropped reports whether a node is an element that holds nothing for a reader.
func isDropped(n *html.Node) bool {
	switch n.Data {
	case "script", "style", "head", "template", "title", "noembed", "noframes", "iframe", "svg", "math", "audio", "video", "canvas", "datalist", "object", "progress", "meter", "embed", "map", "frameset":
		return n.Type == html.ElementNode
	}
	return false
}

func isBlock(tag string) bool {
	switch tag {
	case "address", "article", "aside", "body", "caption", "center", "dd", "details", "dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "hr", "legend", "li", "main", "menu", "nav", "section", "summary", "tr", "table", "ul", "ol", "pre", "blockquote", "h1", "h2", "h3", "h4", "h5", "h6":
		return true
	}
	return false
}
