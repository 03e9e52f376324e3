package visible

import (
	"encoding/base64"
	"net/url"
	"strings"

	"golang.org/x/net/html"
)

// page is what is needed to tell what of a document a person would see.
type page struct {
	sheet   *sheet
	matcher matcher
	cascade cascade
	nodes   map[*html.Node]*treeElement // of a tree; nil without one
	root    style                       // what the outermost element inherits
	metric  metric                      // of the element whose style is computed
	around  style
	vars    *variables
	attrs   []html.Attribute
	hinted  []declaration
	body    []html.Attribute // of a document without a tree
}

// stepsFor bounds the work of matching and cascading for a document of some
// length: far more than any letter needs that a person wrote.
func stepsFor(length int) int { return 2_000_000 + 32*length }

// newPage returns the page of a tree.
func newPage(root *html.Node, length int) *page {
	p := &page{sheet: newSheet(), matcher: matcher{steps: stepsFor(length)}, nodes: map[*html.Node]*treeElement{}}
	p.gather(root, nil)
	p.sheet.done()
	p.root = rootStyle()
	return p
}

// gather numbers the elements and reads the style sheets in a node.
func (p *page) gather(n *html.Node, around *treeElement) {
	var types map[string]int
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch c.Type {
		case html.TextNode:
			if around != nil && c.Data != "" {
				around.content = true
			}
			continue
		case html.ElementNode:
		default:
			continue
		}
		e := newTreeElement(c.Data, c.Attr)
		p.nodes[c] = e
		if around != nil {
			around.content = true
			around.kids++
			e.parent, e.before, e.index = around, around.last, around.kids
			if e.before != nil {
				e.before.after = e
			} else {
				around.first = e
			}
			around.last = e
			if types == nil {
				types = map[string]int{}
			}
			types[e.tag]++
			e.typeIndex = types[e.tag]
		} else {
			e.index, e.typeIndex, e.typeCount = 1, 1, 1
		}
		p.styleSheet(c)
		if c.Data != "template" {
			p.gather(c, e)
		}
	}
	if around != nil {
		for k := around.first; k != nil; k = k.after {
			k.typeCount = types[k.tag]
		}
	}
}

// styleSheet reads the style sheet that an element is.
func (p *page) styleSheet(n *html.Node) {
	switch {
	case n.Data == "style" && (n.Namespace == "" || n.Namespace == "svg"):
		var css strings.Builder
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			if c.Type == html.TextNode {
				css.WriteString(c.Data)
			}
		}
		p.sheet.addBlock(css.String(), attr(n.Attr, "type"), attr(n.Attr, "media"), attr(n.Attr, "title"))
	case n.Data == "link" && n.Namespace == "":
		p.sheet.addLink(n.Attr)
	}
}

// addLink reads a style sheet that a link itself holds.
func (sh *sheet) addLink(attrs []html.Attribute) {
	here, alternate := false, false
	for word := range strings.FieldsSeq(strings.ToLower(attr(attrs, "rel"))) {
		here = here || word == "stylesheet"
		alternate = alternate || word == "alternate"
	}
	if !here || alternate || hasAttr(attrs, "disabled") {
		return
	}
	if css, ok := dataSheet(attr(attrs, "href")); ok {
		sh.addBlock(css, attr(attrs, "type"), attr(attrs, "media"), attr(attrs, "title"))
	}
}

// dataSheet returns the style sheet in a data address (RFC 2397).
func dataSheet(address string) (css string, ok bool) {
	address = strings.TrimSpace(address)
	if len(address) < len("data:") || !strings.EqualFold(address[:len("data:")], "data:") {
		return "", false
	}
	kind, data, ok := strings.Cut(address[len("data:"):], ",")
	if !ok || !strings.HasPrefix(strings.ToLower(strings.TrimSpace(kind)), "text/css") {
		return "", false
	}
	data, _, _ = strings.Cut(data, "#")
	text, err := url.PathUnescape(data)
	if err != nil {
		text = data
	}
	if strings.HasSuffix(strings.ToLower(strings.TrimSpace(kind)), "base64") {
		b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.Join(strings.Fields(text), ""), "="))
		if err != nil {
			return "", false
		}
		text = string(b)
	}
	return strings.ToValidUTF8(text, "\uFFFD"), true
}

// newFlatPage returns the page of a document of which no tree is made.
func newFlatPage(s string) *page {
	p := &page{sheet: newSheet(), matcher: matcher{steps: stepsFor(len(s)), names: map[string]bool{}}}
	for _, tag := range []string{"html", "head", "body", "p", "tbody", "tr", "colgroup", "br", "img"} {
		p.matcher.names[tag] = true // the parser may make them up
	}
	z := html.NewTokenizer(strings.NewReader(s))
	var open []html.Attribute
	inStyle := false
	whole := map[string][]html.Attribute{} // attributes of the elements around everything
	for {
		kind := z.Next()
		switch kind {
		case html.ErrorToken:
			p.sheet.done()
			p.root = rootStyle()
			p.root = p.compute(p.root, nil, "html", whole["html"])
			p.body = whole["body"]
			return p
		case html.TextToken:
			if inStyle {
				p.sheet.addBlock(string(z.Text()), attr(open, "type"), attr(open, "media"), attr(open, "title"))
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			t := startTag(z)
			if t.tag == "noscript" {
				z.NextIsNotRawText()
			}
			p.note(t)
			switch t.tag {
			case "link":
				p.sheet.addLink(t.attrs)
			case "html", "body":
				if _, later := whole[t.tag]; !later {
					whole[t.tag] = t.attrs
				}
			}
			inStyle, open = t.tag == "style", t.attrs
			continue
		}
		inStyle = false
	}
}

// note remembers the names in a tag.
func (p *page) note(t tagToken) {
	names := p.matcher.names
	names[t.tag] = true
	for _, a := range t.attrs {
		names["["+a.Key] = true
		switch a.Key {
		case "id":
			names["#"+strings.ToLower(a.Val)] = true
		case "class":
			for class := range strings.FieldsSeq(strings.ToLower(a.Val)) {
				names["."+class] = true
			}
		}
	}
}

// spent reports whether judging the document took more work than is allowed.
func (p *page) spent() bool { return p.matcher.steps < 0 || p.sheet.beyond }

// element returns an element as selectors see it.
func (p *page) element(n *html.Node, tag string, attrs []html.Attribute) *treeElement {
	if e := p.nodes[n]; e != nil {
		return e
	}
	return newTreeElement(tag, attrs)
}
