package visible

import (
	"regexp"
	"strings"

	"golang.org/x/net/html"

	"github.com/postern-mail/postern/mail/internal/quoted"
)

// Text renders an HTML document as the text that a person would see, at
// most maxRunes runes of it. Blocks are separated by line ends, lists have
// markers, a table has a row per line with " | " between its cells, quotations and
// other history begin with "> " as in Text, and a link is followed by its address where the text does not
// say it. Scripts, styles, comments and everything a person would not see are
// left out: hidden and invisible elements, text too small or of the colour of
// what it stands on.
//
// Style sheets count as in a browser on a desktop, 1280 by 800 pixels in light
// colours, with the mouse elsewhere: selectors, nesting, conditions, layers,
// specificity, importance and custom properties. Where mail programs differ, as
// in lengths without a unit, names that differ in case, and containers, a
// declaration counts if it hides and does not if it shows. Not judged are
// elements on top of others, text that a box of some height cuts off, text that
// a style sheet itself holds, and fonts; what a click opens is shown.
//
// At most 2 MiB are read. What is behind them is not shown, and no rule there
// makes anything shown that is hidden before them; nor does one hide, so a
// result that was cut may hold text that the whole hides. A document that is too
// large or too deep for a tree is read without one: then a selector counts as soon
// as its last part matches and every name in the others is somewhere in the
// document, which may hide too much and never too little. Where judging takes
// more work than any letter does that a person wrote, the text ends.
func Text(s string, maxRunes int) string {
	lines, cut := Lines(s, max(maxRunes, MaxBytes/8))
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

// Lines returns the tidy lines of s, as far as they hold little more than
// maxRunes runes, and whether it stopped before the end.
func Lines(s string, maxRunes int) ([]quoted.Line, bool) {
	s, cut := bounded(s)
	p, root := openHTML(s)
	if p.spent() {
		return nil, true
	}
	r := newRenderer(p, max(maxRunes, 0)+spare)
	if root != nil {
		r.tree(root)
	} else {
		r.tokens(s)
	}
	return quoted.Tidy(quoted.LaidOut(r.finish()), 1), r.full || cut
}

// openHTML reads the style sheets of a document, and makes a tree of it where
// that costs no more than it should; root is nil otherwise. When the page is spent,
// the style sheets cannot be judged.
func openHTML(s string) (p *page, root *html.Node) {
	if treeable(s) {
		// It fails on more open elements than a person ever wrote.
		root, _ = html.ParseWithOptions(strings.NewReader(s), html.ParseOptionEnableScripting(false))
	}
	if root == nil {
		return newFlatPage(s), nil
	}
	return newPage(root, len(s)), root
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
	attrs []html.Attribute
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
}

// frame is a run of text that is laid out by itself and then put into the frame
// around it.
type frame struct {
	out   []byte
	lines int  // line ends due before the next text
	space bool // a space is due before the next text
}

func newRenderer(p *page, maxRunes int) *renderer {
	return &renderer{page: p, left: maxRunes, frames: make([]frame, 1, 8), count: map[string]int{}}
}

func (r *renderer) tree(n *html.Node) {
	switch n.Type {
	case html.TextNode:
		r.text(n.Data)
	case html.ElementNode:
		if r.full {
			return
		}
		if r.push(n, n.Data, n.Attr) {
			for c := n.FirstChild; c != nil && !r.full; c = c.NextSibling {
				r.tree(c)
			}
		}
		r.pop()
	case html.DocumentNode:
		for c := n.FirstChild; c != nil && !r.full; c = c.NextSibling {
			r.tree(c)
		}
	}
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
func (r *renderer) lineEnds(tag string) int {
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
	if isBlock(tag) || tag == "option" || tag == "optgroup" {
		return 1
	}
	return 0
}

// push opens an element, which is nil unless it is in a tree, and reports whether
// anything in it can be seen.
func (r *renderer) push(n *html.Node, tag string, attrs []html.Attribute) bool {
	parent := r.page.root
	drop := isDropped(tag)
	if i := len(r.open); i > 0 {
		parent = r.open[i-1].style
		drop = drop || r.open[i-1].drop
	}
	e := element{tag: tag, attrs: attrs, drop: drop}
	if !drop {
		e.style = r.page.compute(parent, n, tag, attrs)
		e.drop = e.style.gone
		r.full = r.full || r.page.spent()
	}
	r.count[tag]++
	r.open = append(r.open, e)
	if e.drop {
		return false
	}
	r.begin(&r.open[len(r.open)-1], attrs)
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
func (r *renderer) finish() string {
	for len(r.open) > 0 {
		r.pop()
	}
	return string(r.frames[0].out)
}

func attr(attrs []html.Attribute, name string) string {
	for _, a := range attrs {
		if a.Key == name && a.Namespace == "" {
			return a.Val
		}
	}
	return ""
}
