package visible

import (
	"regexp"
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

// treeable reads the tags of a document once and reports whether a tree of it
// would be of a reasonable size.
func treeable(s string) bool {
	z := html.NewTokenizer(strings.NewReader(s))
	tokens, roots, drawings := 0, 0, 0
	var f formatting
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			break
		}
		tokens++
		if kind == html.EndTagToken {
			name, _ := z.TagName()
			f.end(string(name))
		}
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		raw := z.Raw()
		raw = raw[:min(len(raw), 100)]
		name, more := z.TagName()
		tag := atom.Lookup(name)
		switch tag {
		case atom.Html, atom.Body:
			roots++
		case atom.Noscript:
			z.NextIsNotRawText()
		case atom.Svg, atom.Math:
			drawings++
		case atom.Frameset:
			return false // in it the parser reads other tags than are seen here
		case atom.Style, atom.Script, atom.Title, atom.Textarea, atom.Iframe, atom.Noembed, atom.Noframes, atom.Xmp, atom.Plaintext:
			if drawings > 0 { // where the parser may read tags that are text here
				tokens = max(tokens, 2*strings.Count(s, "<"))
				f.all, f.loose = f.all+tokens, f.loose+len(formattingTags.FindAllStringIndex(s, maxTreeNodes))
			}
		}
		f.start(string(name), tag, raw)
		for n := 0; more; n++ {
			if n > maxAttributes {
				return false
			}
			_, _, more = z.TagAttr()
		}
		if tokens > maxTreeNodes || f.all+tokens > 1000*maxTreeNodes {
			return false
		}
	}
	return roots <= maxTreeRoots && f.cheap(tokens)
}

var formattingTags = regexp.MustCompile(`(?i)<(?:b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)[\s/>]`)

// formatting estimates how many formatting elements the parser opens again: those
// that were not closed by their own end tag, in the element where they began.
type formatting struct {
	open     []string // names of the elements that are
	count    map[string]int
	closing  []int // which of them are formatting that may still close well
	all      int
	loose    int
	distinct map[string]bool
}

func (f *formatting) start(name string, tag atom.Atom, raw []byte) {
	if isVoid(name) {
		return
	}
	if f.count == nil {
		f.count, f.distinct = map[string]int{}, map[string]bool{}
	}
	f.open = append(f.open, name)
	f.count[name]++
	if isFormatting(tag) && tag != atom.A { // a link ends the one before
		f.all++
		f.closing = append(f.closing, len(f.open)-1)
		if len(f.distinct) < maxTreeNodes/1000 {
			f.distinct[string(raw)] = true
		}
	}
}

// end closes an element. When its tag is not what closes the innermost one, all
// formatting that is open may stay open longer than it seems.
func (f *formatting) end(name string) {
	top := len(f.open) - 1
	if top < 0 || f.open[top] != name {
		f.loose += len(f.closing)
		f.closing = f.closing[:0]
	}
	if f.count[name] == 0 {
		return
	}
	for closed := false; !closed; top-- {
		f.count[f.open[top]]--
		closed = f.open[top] == name
		f.open = f.open[:top]
	}
	if n := len(f.closing); n > 0 && f.closing[n-1] >= len(f.open) {
		f.closing = f.closing[:n-1]
	}
}

// cheap reports whether a tree of so many tokens is of a reasonable size: surely
// by what is known of the parser, and not much above that by its worst case. Of
// equal tags it keeps three open at most, and opens what it keeps once for each
// token at worst.
func (f *formatting) cheap(tokens int) bool {
	const worse = 5
	f.end("") // nothing else is closed
	most := 3 * len(f.distinct)
	return tokens*(1+min(f.loose, most)) <= maxTreeNodes && tokens*(1+min(f.all, most)) <= worse*maxTreeNodes
}

// maxOpen is how many elements tokens has open, with all that belongs to them.
// Of those in them only the style is kept; there may be maxDeep. Text in more
// elements than that, which no person can have meant to be read, ends the text.
const (
	maxOpen = 512
	maxDeep = 4096
)

// deepElement is one of the elements in the innermost open one.
type deepElement struct {
	tag   string
	style style
	drop  bool
}

// deepElements are those that are open.
type deepElements struct {
	open  []deepElement
	count map[string]int
}

func (d *deepElements) top() *deepElement {
	if n := len(d.open); n > 0 {
		return &d.open[n-1]
	}
	return nil
}

// end closes the innermost element of a name and reports whether there was one.
func (d *deepElements) end(tag string) bool {
	if d.count[tag] == 0 {
		return false
	}
	for closed := false; !closed; {
		e := d.top()
		closed = e.tag == tag
		d.count[e.tag]--
		d.open = d.open[:len(d.open)-1]
	}
	return true
}

// tokens renders without a tree, in time linear in the document. It follows the
// rules of the HTML standard for which tags end which as far as they decide
// what is inside a hidden element.
func (r *renderer) tokens(s string) {
	z := html.NewTokenizer(strings.NewReader(s))
	deep := deepElements{count: map[string]int{}}
	r.push(nil, "body", r.page.body)
	for !r.full {
		switch z.Next() {
		case html.ErrorToken:
			return
		case html.TextToken:
			if e := deep.top(); e == nil {
				r.text(string(z.Text()))
			} else if !e.drop {
				r.write(string(z.Text()), &e.style)
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			t := startTag(z)
			if t.tag == "noscript" || r.count["svg"]+r.count["math"] > 0 {
				z.NextIsNotRawText()
			}
			if t.tag == "html" || t.tag == "head" || t.tag == "body" {
				continue // open all along, or often left open
			}
			r.startTag(t, &deep)
		case html.EndTagToken:
			name, _ := z.TagName()
			r.closeTag(string(name), &deep)
		}
	}
}

func (r *renderer) startTag(t tagToken, deep *deepElements) {
	around := deep.top()
	if around == nil {
		r.implyEnds(t.tag)
	}
	if len(r.open) < maxOpen && around == nil || isVoid(t.tag) && (around == nil || !around.drop && around.style.visible()) {
		r.push(nil, t.tag, t.attrs)
		if isVoid(t.tag) {
			r.pop()
		}
		return
	}
	if isVoid(t.tag) {
		return
	}
	if len(deep.open) >= maxDeep {
		r.full = true
		return
	}
	innermost := r.open[len(r.open)-1]
	e := deepElement{tag: t.tag, style: innermost.style, drop: innermost.drop}
	if around != nil {
		e.style, e.drop = around.style, around.drop
	}
	if e.drop = e.drop || isDropped(t.tag); !e.drop {
		e.style = r.page.compute(e.style, nil, t.tag, t.attrs)
		e.drop = e.style.gone
		r.full = r.full || r.page.spent()
	}
	deep.open = append(deep.open, e)
	deep.count[t.tag]++
}

func (r *renderer) closeTag(tag string, deep *deepElements) {
	within := len(deep.open) > 0
	switch {
	case tag == "html" || tag == "body":
	case tag == "br": // as browsers read it
		if e := deep.top(); e == nil || !e.drop {
			r.push(nil, tag, nil)
			r.pop()
		}
	case within && (deep.end(tag) || isFormatting(atom.Lookup([]byte(tag)))):
	case r.count[tag] > 0:
		n := len(r.open)
		r.endTag(tag)
		if within && len(r.open) < n { // and all that was in it
			*deep = deepElements{count: map[string]int{}}
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
	r.push(nil, e.tag, attrs)
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
