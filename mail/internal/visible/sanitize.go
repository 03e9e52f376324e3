package visible

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/microcosm-cc/bluemonday"
	"golang.org/x/net/html"

	"github.com/postern-mail/postern/internal/plain"
	"golang.org/x/net/html/atom"
)

// Sanitize returns HTML that is safe to show and holds what a person would see, in
// at most maxRunes runes of markup and text; how many characters a person would
// not see; and whether there was more.
//
// What a person would not see is taken out first, by the rules of Lines,
// since the styles that hide it do not stay. What stays is formatting of text,
// lists, tables, and links to http, https and mailto that pass on neither rank
// nor referrer. Images give way to their text. Nothing in the result is fetched,
// run or sent when it is shown, and the text is cleaned. A result that was cut is
// well-formed. There is none where style sheets cannot be judged.
func Sanitize(s string, maxRunes int) (safe string, hidden int, cut bool) {
	page, root, cut := openHTML(s)
	if page.spent() {
		return "", textIn(root), true
	}
	p := &pruner{page: page, left: max(maxRunes, 0) + spare}
	p.children(root, page.root, false)
	var pruned strings.Builder
	if err := html.Render(&pruned, root); err != nil {
		return "", p.hidden, true
	}
	w := &htmlWriter{left: max(maxRunes, 0), links: p.links}
	w.document(sanitizer().Sanitize(pruned.String()))
	return w.finish(), p.hidden, cut || p.full || w.full
}

// shownElements stay as they are; of others their content stays.
var shownElements = []string{"p", "div", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre", "center",
	"b", "strong", "i", "em", "u", "s", "strike", "del", "ins", "small", "big", "sub", "sup", "code", "tt", "kbd", "samp", "var", "q", "cite", "abbr", "mark",
	"ul", "ol", "li", "dl", "dt", "dd", "table", "caption", "thead", "tbody", "tfoot", "tr", "td", "th"}

// standIn returns the element that takes the place of one that does not stay, ""
// for none. Some keep their lines apart, and of some the parser does not read what
// is in them as markup.
func standIn(tag string, kind boxKind) string {
	switch {
	case slices.Contains(shownElements, tag) || tag == "a" || tag == "html" || tag == "body":
		return ""
	case tag == "xmp" || tag == "plaintext" || tag == "listing":
		return "pre"
	case kind == blockBox || isBlock(tag) || tag == "textarea" || tag == "option" || tag == "optgroup":
		return "div"
	}
	return "span"
}

// sanitizer is the policy for what is shown: names of elements, and the
// attributes without which links and tables lose their meaning. The number in
// title is how htmlWriter finds the address as it was written, for the policy
// rewrites queries.
var sanitizer = sync.OnceValue(func() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements(shownElements...)
	p.AllowAttrs("href").OnElements("a")
	p.AllowAttrs("title").Matching(bluemonday.Integer).OnElements("a")
	p.AllowAttrs("colspan", "rowspan").Matching(bluemonday.Integer).OnElements("td", "th")
	p.AllowAttrs("start").Matching(bluemonday.Integer).OnElements("ol")
	p.AllowURLSchemes("http", "https", "mailto")
	p.RequireParseableURLs(true)
	p.AllowRelativeURLs(false)
	p.RequireNoFollowOnLinks(true)
	p.RequireNoReferrerOnLinks(true)
	return p
})

// pruner takes out of a tree what a person would not see.
type pruner struct {
	page   *page
	left   int // runes of text that may still be kept
	full   bool
	hidden int      // characters that a person would not see
	links  []string // addresses by the number that stands in title
}

// children prunes what is in a node and reports whether anything is left that
// shows. pre says whether white space counts.
func (p *pruner) children(n *html.Node, st style, pre bool) bool {
	shown := false
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		if p.full {
			n.RemoveChild(c)
		} else if p.keep(c, st, pre) {
			shown = true
		} else if c.Type != html.TextNode || !isSpace(c.Data) {
			n.RemoveChild(c)
		}
		c = next
	}
	return shown
}

// keep prunes one node and reports whether it shows anything.
func (p *pruner) keep(n *html.Node, parent style, pre bool) bool {
	switch n.Type {
	case html.TextNode:
		if !parent.visible() {
			p.hidden += characters(n.Data)
			return false
		}
		return p.text(n, pre)
	case html.ElementNode:
	default:
		return false
	}
	if isDropped(n.Data) && n.Data != "head" || n.Namespace != "" {
		return false
	}
	st := p.page.compute(parent, n)
	p.full = p.full || p.page.spent()
	if n.Data == "head" {
		return false
	}
	if st.gone {
		p.hidden += textIn(n)
		return false
	}
	switch n.Data {
	case "img":
		alt := strings.TrimSpace(attr(n.Attr, "alt"))
		if alt == "" || tiny(attr(n.Attr, "width")) || tiny(attr(n.Attr, "height")) || st.tiny || !st.shown() {
			return false
		}
		become(n, " "+alt+" ")
		return p.text(n, false)
	case "input":
		switch strings.ToLower(attr(n.Attr, "type")) {
		case "submit", "button", "reset":
			become(n, attr(n.Attr, "value"))
			return st.visible() && p.text(n, false)
		}
		return false
	case "br", "hr":
		n.Attr = nil
		return true
	case "a":
		p.link(n)
	}
	if name := standIn(n.Data, st.kind); name != "" {
		n.Data, n.DataAtom = name, atom.Lookup([]byte(name))
	}
	shown := p.children(n, st, st.pre)
	// Empty cells keep their column.
	return shown || n.Data == "td" || n.Data == "th"
}

// text cleans a text node and reports whether there is anything in it to see.
func (p *pruner) text(n *html.Node, pre bool) bool {
	s := plain.Text(n.Data)
	if !pre {
		s = collapse(s)
	}
	count := utf8.RuneCountInString(s)
	if count > p.left {
		s, _ = plain.Head(s, p.left)
		p.full = true
		count = p.left
	}
	p.left -= count
	n.Data = s
	return !isSpace(s)
}

// link leaves a link its address, or nothing.
func (p *pruner) link(n *html.Node) {
	href := plain.Text(linkAddress(attr(n.Attr, "href")))
	n.Attr = nil
	if href == "" {
		return
	}
	n.Attr = []html.Attribute{{Key: "href", Val: href}, {Key: "title", Val: strconv.Itoa(len(p.links))}}
	p.links = append(p.links, href)
}

// become makes an element a text.
func become(n *html.Node, s string) {
	*n = html.Node{Parent: n.Parent, PrevSibling: n.PrevSibling, NextSibling: n.NextSibling, Type: html.TextNode, Data: s}
}

func isSpace(s string) bool { return strings.TrimSpace(s) == "" }

// collapse makes every run of white space one space; no-break spaces stay.
func collapse(s string) string {
	var out strings.Builder
	out.Grow(len(s))
	space := false
	for _, c := range s {
		if unicode.IsSpace(c) && c != '\u00A0' {
			if !space {
				out.WriteByte(' ')
			}
			space = true
			continue
		}
		space = false
		out.WriteRune(c)
	}
	return out.String()
}

// htmlWriter writes clean, well-formed HTML of a bounded length.
type htmlWriter struct {
	out   strings.Builder
	open  []string
	left  int // runes that may still be written, less those of the end tags due
	full  bool
	links []string
}

// document copies sanitized HTML as far as it fits.
func (w *htmlWriter) document(s string) {
	z := html.NewTokenizer(strings.NewReader(s))
	for !w.full {
		switch z.Next() {
		case html.ErrorToken:
			return
		case html.TextToken:
			w.text(string(z.Text()))
		case html.StartTagToken, html.SelfClosingTagToken:
			w.start(z.Token())
		case html.EndTagToken:
			name, _ := z.TagName()
			w.end(string(name))
		}
	}
}

// start writes a start tag if there is room for it and for its end.
func (w *htmlWriter) start(t html.Token) {
	var tag strings.Builder
	tag.WriteByte('<')
	tag.WriteString(t.Data)
	for _, a := range t.Attr {
		value := plain.Text(a.Val)
		switch {
		case t.Data == "a" && a.Key == "href":
			i, err := strconv.Atoi(attr(t.Attr, "title"))
			if err != nil || i < 0 || i >= len(w.links) {
				continue
			}
			value = w.links[i]
		case t.Data == "a" && a.Key == "title":
			continue
		}
		tag.WriteString(" " + a.Key + `="` + html.EscapeString(value) + `"`)
	}
	if t.Data == "a" && !strings.Contains(tag.String(), " href=") {
		return // it leads nowhere; an end tag without a start is left out
	}
	tag.WriteByte('>')
	cost := utf8.RuneCountInString(tag.String())
	due := 0
	if !isVoid(t.Data) {
		due = len(t.Data) + len("</>")
	}
	if cost+due > w.left {
		w.full = true
		return
	}
	w.left -= cost + due
	w.out.WriteString(tag.String())
	if due > 0 {
		w.open = append(w.open, t.Data)
	}
}

// end closes an element that is open, and those in it.
func (w *htmlWriter) end(tag string) {
	for i := len(w.open) - 1; i >= 0; i-- {
		if w.open[i] == tag {
			w.closeTo(i)
			return
		}
	}
}

func (w *htmlWriter) closeTo(i int) {
	for len(w.open) > i {
		last := len(w.open) - 1
		w.out.WriteString("</" + w.open[last] + ">")
		w.open = w.open[:last]
	}
}

// text writes text, or as much of it as fits.
func (w *htmlWriter) text(s string) {
	s = plain.Text(s)
	escaped := html.EscapeString(s)
	n := utf8.RuneCountInString(escaped)
	if n <= w.left {
		w.out.WriteString(escaped)
		w.left -= n
		return
	}
	w.full = true
	// What escaping adds is not known before it is cut.
	short, _ := plain.Head(s, w.left)
	for short != "" && utf8.RuneCountInString(html.EscapeString(short)) > w.left {
		over := utf8.RuneCountInString(html.EscapeString(short)) - w.left
		short, _ = plain.Head(short, utf8.RuneCountInString(short)-(over+4)/5)
	}
	w.out.WriteString(html.EscapeString(short))
	w.left = 0
}

func (w *htmlWriter) finish() string {
	w.closeTo(0)
	return w.out.String()
}
