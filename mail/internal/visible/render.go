package visible

import (
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/net/html"

	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail/internal/quoted"
)

// Text returns what Lines and quoted.Mark make of a document as a text of at most
// maxRunes runes.
func Text(s string, maxRunes int) string {
	lines, _, cut := Lines(s, max(maxRunes, MaxBytes/8))
	text, _ := quoted.Fit(quoted.Tidy(quoted.Mark(lines, quoted.Marker{Cut: cut}), 1), maxRunes)
	return text
}

var metaCharset = regexp.MustCompile(`(?i)<meta[^>]{0,200}charset\s{0,8}=\s{0,8}["']?\s{0,8}([a-z0-9_:.-]{1,40})`)

// Charset returns the charset that a document gives itself, which it does
// at its beginning; "" when it does not.
func Charset(b []byte) string {
	const window = 2 << 10
	if m := metaCharset.FindSubmatch(b[:min(len(b), window)]); m != nil {
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
// sizes, colours, clipping and position, the selectors of CSS 2 with those of
// attributes, and @media. What is exotic is doubtful: custom properties, functions
// that compute, layers, containers, nesting, most pseudo-classes, transforms. It
// counts where it hides and not where it shows. The same holds where mail programs
// differ, as in lengths without a unit and names that differ in case. What only
// Outlook hides is shown. Not judged are elements on top of others, text that a
// box of some height cuts off, text that a style sheet itself holds, and fonts;
// what a click opens is shown.
//
// MaxBytes are read, and of those as much as makes a tree of reasonable size. No
// rule behind that makes anything shown; one that hides counts as far as it is
// read. Where judging takes more work than any letter does that a person wrote,
// the text ends.
func Lines(s string, maxRunes int) (lines []quoted.Line, hidden int, cut bool) {
	p, root, cut := openHTML(s)
	r := rendererOf(p, max(maxRunes, 0)+spare)
	if p.spent() {
		return nil, textIn(root), true
	}
	r.tree(root)
	return quoted.Tidy(quoted.LaidOut(r.finish()), 1), r.hidden, r.full || cut
}

// MaxBytes is how many octets of a document are read.
const MaxBytes = 2 << 20

// bounded returns what of a document is read, and whether that is not all.
func bounded(s string) (string, bool) {
	if len(s) <= MaxBytes {
		return s, false
	}
	return strings.ToValidUTF8(s[:MaxBytes], ""), true
}

// spare is how many runes are rendered beyond those that were asked for, so that
// a cut finds the end of a character.
const spare = 64

// maxNesting bounds the lists and tables that are laid out inside one another,
// and quotations likewise; deeper ones are flat.
const maxNesting = 12

// element is an open element.
type element struct {
	tag   string
	style style
	drop  bool // neither it nor what is in it is shown
	frame bool // it has a frame of its own
	quote quoted.Kind
	href  string
	link  int // where the text of a link begins in its frame
	items int // of a list: number of the last item
	list  string
	cells []string // of a row
	data  bool     // of a table: it has header cells, so empty cells mean something
}

// renderer turns the events of a parser into text.
type renderer struct {
	page   *page
	open   []element
	count  map[string]int // open elements by name
	frames []frame
	left   int  // runes that may still be written
	full   bool // more was there than may be written
	images int  // images without a text that were seen
	quotes int  // frames that are quotations
	hidden int  // characters that a person would not see
}

// frame is a run of text that is laid out by itself and then put into the frame
// around it.
type frame struct {
	out   []byte
	lines int  // line ends due before the next text
	space bool // a space is due before the next text
}

func rendererOf(p *page, maxRunes int) *renderer {
	return &renderer{page: p, left: maxRunes, frames: make([]frame, 1, 8), count: map[string]int{}}
}

func (r *renderer) tree(n *html.Node) {
	switch n.Type {
	case html.TextNode:
		r.text(n.Data)
		return
	case html.ElementNode:
		shown := r.push(n)
		defer r.pop()
		if !shown {
			if !isDropped(n.Data) {
				r.hidden += textIn(n)
			}
			return
		}
	}
	for c := n.FirstChild; c != nil && !r.full; c = c.NextSibling {
		r.tree(c)
	}
}

// textIn counts the characters in a node that would be seen if nothing hid them.
func textIn(n *html.Node) int {
	count := 0
	if n.Type == html.TextNode {
		count = characters(n.Data)
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type != html.ElementNode || !isDropped(c.Data) {
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

// isDropped reports whether an element holds nothing for a reader.
func isDropped(tag string) bool {
	switch tag {
	case "script", "style", "head", "template", "title", "noembed", "noframes", "iframe", "svg", "math", "audio", "video", "canvas", "datalist", "object", "progress", "meter", "embed", "map", "frameset":
		return true
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

// lineEnds returns how many line ends an element puts around itself.
func (r *renderer) lineEnds(e *element) int {
	tag := e.tag
	switch e.style.kind {
	case inlineBox, inlineBlock, throughBox:
		return 0
	case cellBox:
		if !isCell(tag) { // a part of a line
			return 0
		}
	}
	switch tag {
	case "p", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre", "figure", "dl":
		return 2
	case "ul", "ol", "menu", "dir":
		if r.count["li"] > 0 { // a list in a list
			return 1
		}
		return 2
	case "table":
		if r.count["table"] > 1 {
			return 1
		}
		return 2
	}
	if e.style.kind == blockBox || isBlock(tag) {
		return 1
	}
	return 0
}

func isCell(tag string) bool { return tag == "td" || tag == "th" }

// push opens an element and reports whether anything in it can be seen.
func (r *renderer) push(n *html.Node) bool {
	parent := r.page.root
	if i := len(r.open); i > 0 {
		parent = r.open[i-1].style
	}
	e := element{tag: n.Data, drop: isDropped(n.Data)}
	if !e.drop {
		e.style = r.page.compute(parent, n)
		e.drop = e.style.gone
		r.full = r.full || r.page.spent()
	}
	r.count[e.tag]++
	r.open = append(r.open, e)
	if e.drop {
		return false
	}
	r.begin(&r.open[len(r.open)-1], n.Attr)
	return true
}

// pop closes the innermost element.
func (r *renderer) pop() {
	e := &r.open[len(r.open)-1]
	if !e.drop {
		r.end(e)
	}
	r.count[e.tag]--
	r.open = r.open[:len(r.open)-1]
}

// finish returns everything that was written.
func (r *renderer) finish() string { return string(r.frames[0].out) }

func attr(attrs []html.Attribute, name string) string {
	for _, a := range attrs {
		if a.Key == name && a.Namespace == "" {
			return a.Val
		}
	}
	return ""
}
