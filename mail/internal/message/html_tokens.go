package message

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Bounds of what is given to the parser that makes a tree. It opens unclosed
// formatting again in every block and merges the attributes of repeated body
// tags, so that a short document can ask for gigabytes.
const (
	maxTreeNodes  = 300_000
	maxTreeRoots  = 8   // html and body tags
	maxAttributes = 100 // of one tag
)

// scanHTML reads the tags of a document once: it returns the rules of its style
// blocks and whether a tree of it would be of a reasonable size.
func scanHTML(s string) (sh *sheet, treeable bool) {
	sh = newSheet()
	z := html.NewTokenizer(strings.NewReader(s))
	tokens, formats, roots, css := 0, 0, 0, 0
	distinct := map[string]bool{}
	treeable = true
	inStyle := false
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			break
		}
		tokens++
		if kind == html.TextToken && inStyle && css < maxCSS {
			text := z.Text()
			text = text[:min(len(text), maxCSS-css)]
			css += len(text)
			sh.addBlock(string(text))
		}
		inStyle = false
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		raw := z.Raw()
		name, more := z.TagName()
		tag := atom.Lookup(name)
		if isFormatting(tag) && tag != atom.A { // a link ends the one before
			formats++
			if len(distinct) < maxTreeNodes/1000 {
				distinct[string(raw[:min(len(raw), 100)])] = true
			}
		}
		switch tag {
		case atom.Html, atom.Body:
			roots++
		case atom.Noscript:
			z.NextIsNotRawText()
		case atom.Svg, atom.Math, atom.Select, atom.Frameset:
			treeable = false // in them the parser reads other tags than are seen here
		}
		inStyle = tag == atom.Style
		for n := 0; more; n++ {
			var key, value []byte
			key, value, more = z.TagAttr()
			if n > maxAttributes {
				treeable = false
				break
			}
			if inStyle && string(key) == "media" && !anyScreen(strings.ToLower(string(value))) {
				inStyle = false
			}
		}
	}
	// Of equal tags the parser keeps three open at most, and opens what it
	// keeps once for each token at worst.
	again := min(formats, 3*len(distinct))
	return sh, treeable && roots <= maxTreeRoots && tokens*(1+again) <= maxTreeNodes
}

// maxOpen is how many elements tokens has open; those above it are not opened.
const maxOpen = 512

// tokens renders without a tree, in time linear in the document. It follows the
// rules of the HTML standard for which tags end which as far as they decide
// what is inside a hidden element.
func (r *renderer) tokens(s string) {
	z := html.NewTokenizer(strings.NewReader(s))
	deep := map[string]int{} // elements that were not opened
	for !r.full {
		switch z.Next() {
		case html.ErrorToken:
			return
		case html.TextToken:
			r.text(string(z.Text()))
		case html.StartTagToken, html.SelfClosingTagToken:
			t := startTag(z)
			if t.tag == "noscript" || r.count["svg"]+r.count["math"] > 0 {
				z.NextIsNotRawText()
			}
			if t.tag == "html" || t.tag == "head" || t.tag == "body" && r.count["body"] > 0 {
				continue // open all along, or often left open
			}
			r.implyEnds(t.tag)
			if len(r.open) >= maxOpen && !isVoid(t.tag) {
				deep[t.tag]++
				continue
			}
			r.push(t.tag, t.attrs)
			if isVoid(t.tag) {
				r.pop()
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			tag := string(name)
			switch {
			case tag == "html" || tag == "body":
			case tag == "br": // as browsers read it
				r.push(tag, nil)
				r.pop()
			case deep[tag] > 0:
				deep[tag]--
			case r.count[tag] > 0:
				r.endTag(tag)
			}
		}
	}
}

type tagToken struct {
	tag   string
	attrs []html.Attribute
}

// startTag returns a tag without the attributes that are too many.
func startTag(z *html.Tokenizer) tagToken {
	name, more := z.TagName()
	t := tagToken{tag: string(name)}
	for more && len(t.attrs) < maxAttributes {
		var key, value []byte
		key, value, more = z.TagAttr()
		t.attrs = append(t.attrs, html.Attribute{Key: string(key), Val: string(value)})
	}
	return t
}

// implyEnds closes what a start tag ends without saying so.
func (r *renderer) implyEnds(tag string) {
	switch tag {
	case "li":
		r.closeWithin("li", "ul", "ol", "menu", "dir")
	case "dt", "dd":
		r.closeWithin("dt", "dl")
		r.closeWithin("dd", "dl")
	case "td", "th":
		r.closeWithin("td", "tr")
		r.closeWithin("th", "tr")
	case "tr":
		r.closeWithin("tr", "tbody", "thead", "tfoot")
	case "tbody", "thead", "tfoot":
		r.closeWithin("tbody")
		r.closeWithin("thead")
		r.closeWithin("tfoot")
	case "option":
		r.closeWithin("option", "select")
	case "a":
		if r.count["a"] > 0 {
			r.endTag("a")
		}
	}
	if tag == "p" || isBlock(tag) && tag != "tr" && tag != "body" && tag != "caption" {
		r.closeWithin("p")
	}
}

// closeWithin closes the innermost element of a name, unless a table or one of
// some elements is between it and here.
func (r *renderer) closeWithin(tag string, limits ...string) {
	if r.count[tag] == 0 {
		return
	}
	for i := len(r.open) - 1; i >= 0; i-- {
		name := r.open[i].tag
		if name == tag {
			r.closeAt(i)
			return
		}
		if name == "table" || isCell(name) && tag != "tr" && tag != "tbody" && tag != "thead" && tag != "tfoot" {
			return
		}
		for _, limit := range limits {
			if name == limit {
				return
			}
		}
	}
}

// endTag closes the innermost element of a name if the tag reaches it.
func (r *renderer) endTag(tag string) {
	for i := len(r.open) - 1; i >= 0; i-- {
		name := r.open[i].tag
		if name == tag {
			switch {
			case !isFormatting(atom.Lookup([]byte(tag))), i == len(r.open)-1:
				r.closeAt(i)
			default:
				r.unformat(i)
			}
			return
		}
		switch {
		case isTablePart(tag): // ends whatever is in the same table
			if name == "table" {
				return
			}
		case name == "table" || isCell(name) || name == "caption":
			return
		case isBlock(tag) || tag == "p" || isDropped(tag):
		case isFormatting(atom.Lookup([]byte(tag))):
		case isBlock(name) || name == "p" || isDropped(name):
			return // an inline end tag does not reach out of a block
		}
	}
}

// closeAt closes the element at an index and what is in it. Formatting that was
// not closed goes on behind it, except behind a cell or a table.
func (r *renderer) closeAt(i int) {
	const most = 16
	var again []element
	name := r.open[i].tag
	for len(r.open) > i {
		e := r.open[len(r.open)-1]
		if len(r.open)-1 > i && isFormatting(atom.Lookup([]byte(e.tag))) && len(again) < most {
			again = append(again, e)
		}
		r.pop()
	}
	if isTablePart(name) || name == "table" || name == "caption" {
		return
	}
	for n := len(again) - 1; n >= 0; n-- {
		if len(r.open) < maxOpen {
			r.reopen(again[n])
		}
	}
}

// reopen continues a formatting element in another block.
func (r *renderer) reopen(e element) {
	attrs := e.attrs
	if e.tag == "a" { // its address stands where it was
		attrs = nil
		for _, a := range e.attrs {
			if a.Key != "href" {
				attrs = append(attrs, a)
			}
		}
	}
	r.push(e.tag, attrs)
}

// unformat ends the formatting element at an index, but not the blocks in it.
func (r *renderer) unformat(i int) {
	for _, e := range r.open[i+1:] {
		if isBlock(e.tag) || e.tag == "p" || isTablePart(e.tag) || isDropped(e.tag) {
			e := &r.open[i]
			if !e.drop {
				e.href = "" // its text may be in another frame by now
				r.end(e)
			}
			r.count[e.tag]--
			r.open = append(r.open[:i], r.open[i+1:]...)
			return
		}
	}
	r.closeAt(i)
}

func isFormatting(tag atom.Atom) bool {
	switch tag {
	case atom.A, atom.B, atom.Big, atom.Code, atom.Em, atom.Font, atom.I, atom.Nobr, atom.S, atom.Small, atom.Strike, atom.Strong, atom.Tt, atom.U:
		return true
	}
	return false
}

func isCell(tag string) bool { return tag == "td" || tag == "th" }

func isTablePart(tag string) bool {
	switch tag {
	case "table", "td", "th", "tr", "tbody", "thead", "tfoot":
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
