package visible

import (
	"io"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Bounds of what is given to the parser. It opens unclosed formatting again in
// every block and merges the attributes of repeated body tags, so that a short
// document can ask for gigabytes.
const (
	maxTreeNodes  = 600_000
	maxTreeRoots  = 8   // html and body tags
	maxAttributes = 100 // of one tag
)

// stepsFor bounds the work of matching and cascading for a document of some
// length: far more than any letter needs that a person wrote.
func stepsFor(length int) int { return 2_000_000 + 32*length }

// openHTML makes a tree of a document and reads its style sheets. What stands
// behind the place where the tree would become too large or too deep is not in it,
// and cut says so; style sheets there still count where they hide.
func openHTML(s string) (p *page, root *html.Node, cut bool) {
	s, cut = bounded(s)
	whole := s
	ends := affordable(s)
	end := ends[len(ends)-1]
	for slack := chunkSize; slack < 4*MaxBytes; slack *= 4 {
		chunks := &chunkReader{s: s[:end]}
		var err error
		// It fails on more open elements than a person ever wrote.
		if root, err = html.ParseWithOptions(chunks, html.ParseOptionEnableScripting(false)); err == nil {
			break
		}
		root = nil
		i, _ := slices.BinarySearch(ends, chunks.read-slack)
		end = ends[max(i-1, 0)]
	}
	if root == nil {
		root, end = &html.Node{Type: html.DocumentNode}, 0
	}
	p = &page{sheet: newSheet(), matcher: matcher{steps: stepsFor(len(s))}, nodes: map[*html.Node]*treeElement{}}
	p.gather(root, nil)
	if end < len(whole) {
		p.laterSheets(whole[end:])
		cut = true
	}
	p.root = rootStyle()
	return p, root, cut
}

// chunkSize is how many bytes the parser gets at a time, so that it is known about
// where it fails.
const chunkSize = 256

type chunkReader struct {
	s    string
	read int
}

func (c *chunkReader) Read(b []byte) (int, error) {
	if c.read == len(c.s) {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), chunkSize)], c.s[c.read:])
	c.read += n
	return n, nil
}

// affordable returns where the tokens of a document begin, up to where a tree of it
// would become too large, and its end if it does not. The
// parser opens formatting again that was not closed by its own end tag, in the
// element where it began; of equal tags it keeps three open at most, and it opens
// what it keeps once for each token at worst.
func affordable(s string) []int {
	z := html.NewTokenizer(strings.NewReader(s))
	limit := min(20_000+4*len(s), maxTreeNodes)
	var open []string
	formatted := map[string]bool{} // tags of formatting
	var pos, nodes, roots, within, loose int
	drawing := false
	starts := []int{0}
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			return append(starts, len(s))
		}
		starts = append(starts, pos)
		length := len(z.Raw())
		raw := string(z.Raw()[:min(length, 100)])
		switch kind {
		case html.StartTagToken, html.SelfClosingTagToken:
			name, more := z.TagName()
			tag := atom.Lookup(name)
			for n := 0; more; n++ {
				if _, _, more = z.TagAttr(); n > maxAttributes {
					return starts
				}
			}
			switch tag {
			case atom.Html, atom.Body:
				if roots++; roots > maxTreeRoots {
					return starts
				}
			case atom.Noscript:
				z.NextIsNotRawText()
			case atom.Svg, atom.Math:
				drawing = true
			case atom.Frameset: // in it the parser reads other tags than are seen here
				return starts
			case atom.Style, atom.Script, atom.Title, atom.Textarea, atom.Iframe, atom.Noembed, atom.Noframes, atom.Xmp, atom.Plaintext:
				if drawing { // where the parser may read tags that are text here
					z.NextIsNotRawText()
					loose++
				}
			}
			if isVoid(string(name)) {
				break
			}
			open = append(open, string(name))
			if isBlock(string(name)) || tag == atom.P || tag == atom.Td || tag == atom.Th {
				loose, within = loose+within, 0 // it may end what formatting is in
			}
			if isFormatting(tag) {
				within++
				if len(formatted) < maxTreeNodes/1000 {
					formatted[raw] = true
				}
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			last := len(open) - 1
			switch {
			case last >= 0 && open[last] == string(name):
				open = open[:last]
				if isFormatting(atom.Lookup(name)) {
					within = max(within-1, 0)
				}
			case slices.Contains(open[max(0, len(open)-maxAttributes):], string(name)):
				// All that is open may stay open longer than it seems.
				loose, within, open = loose+within, 0, open[:0]
			}
		}
		if nodes += 1 + min(loose, 3*len(formatted)); nodes > limit {
			return starts
		}
		pos += length
	}
}

// gather reads the elements and the style sheets in a node.
func (p *page) gather(n *html.Node, around *treeElement) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type != html.ElementNode {
			continue
		}
		e := newTreeElement(c.Data, c.Attr)
		p.nodes[c] = e
		if around != nil {
			e.parent, e.before = around, around.last
			if e.before != nil {
				e.before.after = e
			}
			around.last = e
		}
		p.styleSheet(c)
		if c.Data != "template" {
			p.gather(c, e)
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
		p.sheet.addBlock(css.String(), n.Attr)
	case n.Data == "link" && n.Namespace == "":
		if strings.Contains(strings.ToLower(attr(n.Attr, "rel")), "stylesheet") && holdsSheet(attr(n.Attr, "href")) {
			p.sheet.beyond = true
		}
	}
}

// laterSheets reads the style sheets of what is not in the tree.
func (p *page) laterSheets(s string) {
	p.sheet.later = true
	z := html.NewTokenizer(strings.NewReader(s))
	var style *html.Node
	for {
		switch z.Next() {
		case html.ErrorToken:
			return
		case html.TextToken:
			if style != nil {
				style.AppendChild(&html.Node{Type: html.TextNode, Data: string(z.Text())})
				p.styleSheet(style)
			}
			style = nil
		case html.StartTagToken, html.SelfClosingTagToken:
			style = nil
			if t := z.Token(); t.DataAtom == atom.Style || t.DataAtom == atom.Link {
				n := &html.Node{Type: html.ElementNode, Data: t.Data, Attr: t.Attr[:min(len(t.Attr), maxAttributes)]}
				if t.DataAtom == atom.Style {
					style = n
				} else {
					p.styleSheet(n)
				}
			}
		}
	}
}

func isFormatting(tag atom.Atom) bool {
	switch tag {
	case atom.B, atom.Big, atom.Code, atom.Em, atom.Font, atom.I, atom.Nobr, atom.S, atom.Small, atom.Strike, atom.Strong, atom.Tt, atom.U:
		return true
	}
	return false
}

func isVoid(tag string) bool {
	switch tag {
	case "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr":
		return true
	}
	return false
}
