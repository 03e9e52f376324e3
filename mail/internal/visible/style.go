package visible

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// style is what of the computed style of an element decides whether its text
// is seen.
type style struct {
	gone      bool // not shown, and nothing in it can be
	invisible bool // visibility; an element in it can be visible again
	tiny      bool // at most one pixel wide or high
	pre       bool // white space is kept
	flex      bool // what is in it are boxes
	flat      bool // in a box that is as high as its lines, and cuts off what is higher
	lost      bool // its ground is not known, and may be of the colour of the text
	kind      boxKind
	font      float64
	zoom      float64
	alpha     float64 // what opacity leaves
	x, y      float64 // pixels that it is moved to the right and down
	indent    float64 // text-indent
	spacing   float64 // letter-spacing, in pixels
	line      float64 // line-height, in pixels, or in sizes of the font where it is negative
	color     color   // unknown until something says it
	ground    color   // of the background, as far as it is one colour
	picture   []color // of a gradient that is on the ground
}

const (
	normalFont = 16  // pixels
	leastFont  = 3   // pixels; nobody reads letters below that
	farAway    = 500 // pixels beyond an edge
	farOff     = 5000
)

// rootStyle is what the outermost element inherits: paper is white.
func rootStyle() style {
	return style{font: normalFont, zoom: 1, alpha: 1, line: -1.2, ground: rgb(0xffffff)}
}

// plainStyle is of text that stands for something that is seen.
var plainStyle = style{font: normalFont, zoom: 1, alpha: 1, line: -1.2}

// shown reports whether an image in the element is seen.
func (s *style) shown() bool {
	return !s.gone && !s.invisible && s.x > -farAway && s.x < farOff && s.y > -farAway && s.y < farOff
}

// visible reports whether text in the element is seen.
func (s *style) visible() bool {
	lineHeight := s.line
	if lineHeight < 0 {
		lineHeight *= -s.font
	}
	switch {
	case !s.shown(), s.lost, s.font*s.zoom < leastFont, s.spacing <= -0.6*s.font, s.flat && lineHeight <= 1:
		return false
	case s.indent <= -300 || s.indent >= farAway || s.x+s.indent <= -farAway:
		return false
	}
	return !s.color.hiddenOn(s.ground) && !slices.ContainsFunc(s.picture, s.color.hiddenOn)
}

// candidate is a declaration that may win, and its rank in the cascade (CSS
// Cascading Level 5 section 6): origin and importance, specificity, order.
type candidate struct {
	rank uint64
	decl *declaration
}

// The tiers of the cascade.
const (
	tierAttributes = iota
	tierSheets
	tierInline
	tierImportant // is added to the two before
)

func rank(tier int, important bool, weight, order uint64) uint64 {
	if important {
		tier += tierImportant
	}
	return uint64(tier)<<60 | weight<<32 | order
}

// page is what is needed to tell what of a document a person would see.
type page struct {
	sheet   *sheet
	matcher matcher
	nodes   map[*html.Node]*treeElement
	root    style // what the outermost element inherits
	// Of the element whose style is computed:
	around style
	font   float64
	best   [properties]candidate
	doubts []candidate
	hinted []declaration
}

// spent reports whether judging the document took more work than is allowed.
func (p *page) spent() bool { return p.matcher.steps < 0 || p.sheet.beyond }

// offer takes a declaration into account.
func (p *page) offer(d *declaration, rank uint64, sure truth) {
	p.matcher.steps--
	if sure == doubtful || d.doubt {
		if d.important { // layers count in the other direction then
			rank = 1<<64 - 1
		}
		p.doubts = append(p.doubts, candidate{rank, d})
	} else if old := &p.best[d.prop]; old.decl == nil || rank >= old.rank {
		*old = candidate{rank, d}
	}
}

// collect offers everything that is declared for an element.
func (p *page) collect(n *treeElement) {
	clear(p.best[:])
	p.doubts = p.doubts[:0]
	p.hints(n)
	for i := range p.hinted {
		p.offer(&p.hinted[i], rank(tierAttributes, false, 0, 0), yes)
	}
	p.try(p.sheet.tags[n.tag], n)
	for i, class := range n.classes {
		if !slices.ContainsFunc(n.classes[:min(i, 32)], func(before string) bool { return strings.EqualFold(before, class) }) {
			p.try(p.sheet.classes[strings.ToLower(class)], n)
		}
	}
	if n.id != "" {
		p.try(p.sheet.ids[strings.ToLower(n.id)], n)
	}
	p.try(p.sheet.others, n)
	if css := attr(n.attrs, "style"); css != "" {
		decls := p.sheet.inlineDeclarations(css)
		for i := range decls {
			p.offer(&decls[i], rank(tierInline, decls[i].important, 0, decls[i].order), yes)
		}
	}
}

// try offers the declarations of the rules that an element matches.
func (p *page) try(rules []styleRule, n *treeElement) {
	for i := range rules {
		if p.matcher.steps < 0 {
			return
		}
		r := &rules[i]
		sure := min(p.matcher.match(r.selector, n), r.sure)
		if sure == no {
			continue
		}
		for j := range r.decls {
			d := &r.decls[j]
			p.offer(d, rank(tierSheets, d.important, r.selector.weight, d.order), sure)
		}
	}
}

// settle decides about the doubtful declarations: the one with the highest rank
// that hides wins over what is sure.
func (p *page) settle() {
	for _, one := range p.doubts {
		prop := one.decl.prop
		if best := p.best[prop]; (best.decl == nil || one.rank >= best.rank) && p.hides(prop, one.decl.value) {
			p.best[prop] = one
		}
	}
}

// value returns the value of a property, and whether one is declared that is not
// to inherit or to be as ever.
func (p *page) value(prop property) (cssValue, bool) {
	d := p.best[prop].decl
	if d == nil || isWide(d.value.word) {
		return cssValue{}, false
	}
	return d.value, true
}

// word returns the keyword that a property has, "" for none.
func (p *page) word(prop property) string {
	v, _ := p.value(prop)
	return v.word
}

// initial reports whether a property that is inherited is not to be.
func (p *page) initial(prop property) bool {
	d := p.best[prop].decl
	return d != nil && d.value.word == "initial"
}

// length returns the length in pixels that a property has, when it has one.
func (p *page) length(prop property) (float64, bool) {
	v, ok := p.value(prop)
	if !ok || v.word != "" {
		return 0, false
	}
	return p.pixels(prop, v), true
}

func (p *page) pixels(prop property, v cssValue) float64 {
	base := float64(screenWidth)
	switch prop {
	case top, bottom:
		base = screenHeight
	case height, maxHeight:
		base = 0 // of a box that is as high as what is in it, which then counts as none
		if v.unit == "%" && v.n > 0 {
			return screenHeight
		}
	case lineHeight:
		base = p.font
	}
	return v.pixels(p.font, p.root.font, base)
}

// compute returns the style of an element from the one around it, its attributes
// and the style sheets.
func (p *page) compute(around style, node *html.Node) style {
	if around.gone {
		return around
	}
	n := p.nodes[node]
	s := around
	s.tiny, s.flex = false, false
	p.around, p.font = around, around.font
	p.collect(n)
	p.settle()
	p.setFont(&s, n)
	p.setText(&s, n)
	p.setColors(&s, n)
	p.setBox(&s, n)
	s.gone = s.gone || p.spent()
	if n.tag == "html" {
		p.root.font = s.font
	}
	return s
}

// hints are what attributes say about looks; any rule weighs more.
func (p *page) hints(n *treeElement) {
	p.hinted = p.hinted[:0]
	hint := func(prop property, v cssValue) { p.hinted = append(p.hinted, declaration{prop: prop, value: v}) }
	for _, a := range n.attrs {
		c, ok := color{}, false
		switch {
		case a.Namespace != "":
		case a.Key == "bgcolor", a.Key == "color" && n.tag == "font", a.Key == "text" && n.tag == "body":
			c, ok = attributeColor(a.Val)
		case a.Key == "background" && a.Val != "":
			hint(backgroundImage, cssValue{image: true})
		}
		if ok && a.Key == "bgcolor" {
			hint(backgroundColor, cssValue{color: c})
		} else if ok {
			hint(colorText, cssValue{color: c})
		}
	}
}

// attributeColor reads a colour of HTML, which may lack its hash.
func attributeColor(s string) (color, bool) {
	s = strings.ToLower(strings.TrimSpace(s))
	if c, ok := namedColor(s); ok {
		return c, s != "transparent"
	}
	c, ok := hexColor(strings.TrimPrefix(s, "#"))
	return c, ok || s != "" // browsers make one of anything
}

// tagSizes are what elements make of the size of the font around them.
var tagSizes = map[string]float64{"small": 1 / 1.2, "sub": 1 / 1.2, "sup": 1 / 1.2, "big": 1.2, "rt": 0.5, "h1": 2, "h2": 1.5}

func (p *page) setFont(s *style, n *treeElement) {
	v, ok := p.value(fontSize)
	switch {
	case ok:
		s.font = p.fontPixels(v)
	case p.initial(fontSize):
		s.font = normalFont
	case p.best[fontSize].decl == nil:
		switch {
		case tagSizes[n.tag] != 0:
			s.font *= tagSizes[n.tag]
		case isControl(n.tag), n.tag == "font" && strings.TrimSpace(attr(n.attrs, "size")) != "":
			s.font = normalFont
		}
	}
	p.font = s.font
}

func (p *page) fontPixels(v cssValue) float64 {
	around := p.around.font
	switch {
	case v.word == "smaller":
		return around / 1.2
	case v.word == "larger":
		return around * 1.2
	case v.word != "":
		return fontWords[v.word]
	}
	return v.pixels(around, p.root.font, around)
}

// isControl reports whether browsers give an element looks of its own.
func isControl(tag string) bool {
	return tag == "button" || tag == "input" || tag == "select" || tag == "textarea"
}

// setText sets what else elements inherit of the looks of text.
func (p *page) setText(s *style, n *treeElement) {
	if v, ok := p.value(visibility); ok {
		s.invisible = v.word != "visible"
	} else if p.initial(visibility) {
		s.invisible = false
	}
	v, ok := p.value(lineHeight)
	switch {
	case ok && v.word == "" && v.unit == "":
		s.line = -v.n
	case ok && v.word == "":
		s.line = p.pixels(lineHeight, v)
	case ok, p.initial(lineHeight), p.best[lineHeight].decl == nil && isControl(n.tag):
		s.line = -1.2
	}
	for _, one := range []struct {
		prop property
		to   *float64
	}{{letterSpacing, &s.spacing}, {textIndent, &s.indent}} {
		if v, ok := p.value(one.prop); ok {
			*one.to = p.pixels(one.prop, v)
		} else if p.initial(one.prop) || p.best[one.prop].decl == nil && isControl(n.tag) {
			*one.to = 0
		}
	}
	switch word := p.word(whiteSpace); {
	case word != "":
		s.pre = strings.HasPrefix(word, "pre") || word == "break-spaces"
	case p.initial(whiteSpace):
		s.pre = false
	case p.best[whiteSpace].decl == nil && (n.tag == "pre" || n.tag == "textarea" || n.tag == "xmp" || n.tag == "listing" || n.tag == "plaintext"):
		s.pre = true
	}
}

// setColors sets the colours of the text and of what is behind it.
func (p *page) setColors(s *style, n *treeElement) {
	if v, ok := p.value(colorText); ok && !v.color.current {
		s.color = v.color
	} else if p.initial(colorText) {
		s.color = rgb(0)
	} else if p.best[colorText].decl == nil && (isControl(n.tag) || n.tag == "mark" || n.tag == "a" && hasAttr(n.attrs, "href")) {
		s.color = color{} // which is for the mail program to say
	}
	if isControl(n.tag) || n.tag == "mark" {
		s.ground, s.picture, s.lost = color{}, nil, false
	}
	if v, ok := p.value(backgroundColor); ok {
		c := v.color
		if c.current {
			c = s.color
		}
		switch {
		case v.worst:
			s.lost = true
		case c.clear():
		case !c.known || c.opaque():
			s.ground, s.picture, s.lost = c, nil, false
		default:
			s.ground = c.over(s.ground)
		}
	}
	if v, ok := p.value(backgroundImage); ok && v.worst {
		s.lost = true
	} else if ok && v.image && (len(v.colors) == 0 || slices.ContainsFunc(v.colors, func(c color) bool { return !c.clear() })) {
		s.ground, s.picture = color{}, v.colors
	}
}

func hasAttr(attrs []html.Attribute, name string) bool {
	return slices.ContainsFunc(attrs, func(a html.Attribute) bool { return a.Key == name && a.Namespace == "" })
}
