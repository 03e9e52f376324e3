package visible

import (
	"strings"

	"golang.org/x/net/html"
)

// style is what of the computed style of an element decides whether its text
// is seen.
type style struct {
	gone      bool // not shown, and nothing in it can be
	invisible bool // visibility; an element in it can be visible again
	tiny      bool // at most one pixel wide or high
	secret    bool // dots stand for its letters
	pre       bool // white space is kept
	flex      bool // what is in it are boxes
	flat      bool // in a box that is as high as its lines, and cuts off what is higher
	textFill  bool // ink is not the colour of the text
	font      float64
	shrink    float64 // what scaling and zooming make of a length
	alpha     float64 // what opacity leaves
	x, y      float64 // pixels that it is moved to the right and down
	indent    float64 // text-indent, as elements in it have it
	ownIndent float64 // of the block that the text is in
	spacing   float64 // letter-spacing, in pixels
	line      float64 // line-height, in pixels, or in sizes of the font where it is negative
	color     color   // unknown until something says it
	ink       color   // with textFill, the colour of the letters
	ground    color   // of the background, as far as it is one colour
	picture   color   // the one colour of a gradient that may be on the ground
	shadow    bool    // letters have a shadow that can be seen
	vars      *variables
}

const (
	normalFont = 16 // pixels
	leastFont  = 3  // pixels; nobody reads letters below that
)

// rootStyle is what the outermost element inherits: paper is white.
func rootStyle() style {
	return style{font: normalFont, shrink: 1, alpha: 1, line: -1.2, ground: rgb(0xffffff)}
}

// plainStyle is of text that stands for something that is seen.
var plainStyle = style{font: normalFont, shrink: 1, alpha: 1, line: -1.2}

// shown reports whether an image in the element is seen.
func (s *style) shown() bool {
	return !s.gone && !s.invisible && s.alpha > 0.05 && s.shrink > 0.05 && s.near()
}

// near reports whether the element is where the screen is.
func (s *style) near() bool {
	return s.x > -500 && s.x < 5000 && s.y > -500 && s.y < 5000
}

// visible reports whether text in the element is seen.
func (s *style) visible() bool {
	if !s.shown() || s.secret || !(s.font*s.shrink >= leastFont) {
		return false
	}
	if x := s.x + s.ownIndent; x <= -500 || x >= 5000 || s.spacing <= -0.6*s.font {
		return false
	}
	if s.flat && s.lineHeight() <= 1 {
		return false
	}
	ink := s.color
	if s.textFill {
		ink = s.ink
	}
	if s.shadow {
		return true
	}
	return !ink.hiddenOn(s.ground) && !(s.picture.opaque() && ink.hiddenOn(s.picture))
}

// hiddenOn reports whether letters of a colour cannot be read on a ground.
func (c color) hiddenOn(ground color) bool {
	switch {
	case !c.known:
		return false
	case c.clear():
		return true
	}
	return ground.opaque() && c.over(ground).near(ground)
}

func (s *style) lineHeight() float64 {
	if s.line < 0 {
		return -s.line * s.font
	}
	return s.line
}

// compute returns the style of an element from the one around it, its attributes
// and the style sheets. The element n is nil for one that is not in a tree.
func (p *page) compute(around style, n *html.Node, tag string, attrs []html.Attribute) style {
	if around.gone {
		return around
	}
	s := around
	s.tiny = false
	s.flex = false
	p.attrs, p.vars, p.around = attrs, around.vars, around
	p.metric = metric{font: around.font, root: p.root.font, base: screenWidth}
	p.collect(p.element(n, tag, attrs), tag, attrs)
	p.variables(&s)
	p.settle(p.hiding)
	p.text(&s, tag, attrs)
	p.colors(&s, tag, attrs)
	p.box(&s, tag, attrs)
	s.gone = s.gone || p.spent()
	if tag == "html" {
		p.root.font = s.font
	}
	return s
}

// variables sets the custom properties that hold for the element.
func (p *page) variables(s *style) {
	customs := p.cascade.customs
	if len(customs) == 0 && (s.vars == nil || len(p.sheet.registered) == 0) {
		return
	}
	own := make(map[string][]token, len(customs))
	for name, one := range customs {
		own[name] = one.decl.tokens
	}
	p.matcher.steps -= len(p.sheet.registered)
	for name, r := range p.sheet.registered {
		if _, ok := own[name]; !ok && !r.inherits {
			own[name] = []token{{kind: tokenIdent, text: "initial"}}
		}
	}
	left := maxExpansion
	x := expander{sheet: p.sheet, vars: p.vars, attrs: p.attrs, left: &left, steps: &p.matcher.steps}
	s.vars = x.define(own)
	p.vars = s.vars
	p.matcher.steps -= 8 * (maxExpansion - left)
}

// hints returns what attributes say about looks; any rule weighs more.
func (p *page) hints(tag string, attrs []html.Attribute) []declaration {
	p.hinted = p.hinted[:0]
	hint := func(prop property, v value) { p.hinted = append(p.hinted, declaration{prop: prop, value: v}) }
	for _, a := range attrs {
		if a.Namespace != "" {
			continue
		}
		switch a.Key {
		case "bgcolor":
			if c, ok := attributeColor(a.Val); ok {
				hint(backgroundColor, value{color: c})
			}
		case "background":
			if a.Val != "" {
				hint(backgroundImage, value{image: true})
			}
		case "color", "text":
			if c, ok := attributeColor(a.Val); ok && (tag == "font" && a.Key == "color" || tag == "body" && a.Key == "text") {
				hint(colorText, value{color: c})
			}
		}
	}
	return p.hinted
}

// attributeColor reads a colour of HTML, which may lack its hash.
func attributeColor(s string) (color, bool) {
	s = strings.ToLower(strings.TrimSpace(s))
	if c, ok := namedColor(s); ok {
		return c, s != "transparent"
	}
	c, ok := hexColor(strings.TrimPrefix(s, "#"))
	if !ok && s != "" {
		return color{}, true // browsers make one of anything
	}
	return c, ok
}

// pixels returns a length in pixels.
func (p *page) pixels(v value, m metric) (float64, bool) {
	if len(v.parts) != 1 {
		return 0, false
	}
	q, ok := evaluate(v.parts[0], m, 0)
	if q.kind == 'p' {
		q.n *= m.base / 100
	}
	return q.n, ok
}

// length returns the length that a property has, when it has one.
func (p *page) length(prop property, m metric) (float64, bool) {
	v, from := p.winner(prop)
	if from != given {
		return 0, false
	}
	return p.pixels(v, m)
}

func (p *page) word(prop property) string {
	v, from := p.winner(prop)
	if from != given {
		return ""
	}
	return v.word
}

// text sets what elements inherit of the looks of text.
func (p *page) text(s *style, tag string, attrs []html.Attribute) {
	p.fontSize(s, tag, attrs)
	p.metric.font = s.font
	control := isControl(tag)
	if v, from := p.winner(visibility); from == given {
		s.invisible = v.word != "visible"
	} else if from == initial {
		s.invisible = false
	}
	byFont := metric{font: s.font, root: p.root.font, base: s.font}
	switch v, from := p.winner(lineHeight); {
	case from == given && len(v.parts) == 1:
		if q, _ := evaluate(v.parts[0], byFont, 0); q.kind == 'n' {
			s.line = -q.n
		} else if px, ok := p.pixels(v, byFont); ok {
			s.line = max(px, 0)
		}
	case from == given, from == initial, from == absent && control:
		s.line = -1.2
	}
	if px, from := p.inherited(letterSpacing, byFont, control); from {
		s.spacing = px
	}
	if px, from := p.inherited(textIndent, p.metric, control); from {
		s.indent = px
	}
	switch v, from := p.winner(whiteSpace); {
	case from == given:
		s.pre = v.word == "pre"
	case from == initial:
		s.pre = false
	case from == absent && (tag == "pre" || tag == "textarea" || tag == "xmp" || tag == "listing" || tag == "plaintext"):
		s.pre = true
	}
	switch v, from := p.winner(textSecurity); {
	case from == given:
		s.secret = v.word != "none"
	case from == initial:
		s.secret = false
	}
}

// inherited returns a length that elements have from those around them unless
// something is said, and whether it is.
func (p *page) inherited(prop property, m metric, control bool) (float64, bool) {
	v, from := p.winner(prop)
	switch {
	case from == initial, from == absent && control, from == given && v.word != "":
		return 0, true
	case from == given:
		return p.pixels(v, m)
	}
	return 0, false
}

// isControl reports whether browsers give an element looks of its own.
func isControl(tag string) bool {
	return tag == "button" || tag == "input" || tag == "select" || tag == "textarea"
}

func (p *page) fontSize(s *style, tag string, attrs []html.Attribute) {
	v, from := p.winner(fontSize)
	switch {
	case from == given:
		s.font = p.fontPixels(v)
	case from == initial:
		s.font = normalFont
	case from == absent:
		switch tag {
		case "small", "sub", "sup":
			s.font /= 1.2
		case "big":
			s.font *= 1.2
		case "rt":
			s.font /= 2
		case "h1":
			s.font *= 2
		case "h2":
			s.font *= 1.5
		case "button", "input", "select", "textarea":
			s.font = 40. / 3
		case "font":
			if strings.TrimSpace(attr(attrs, "size")) != "" {
				s.font = normalFont
			}
		}
	}
}

func (p *page) fontPixels(v value) float64 {
	around := p.around.font
	switch v.word {
	case "smaller":
		return around / 1.2
	case "larger":
		return around * 1.2
	case "":
		px, ok := p.pixels(v, metric{font: around, root: p.root.font, base: around})
		if !ok {
			return around
		}
		return max(px, 0)
	}
	if px := fontWords[v.word]; px > 0 {
		return px
	}
	return around
}

// colors sets the colours of the text and of what is behind it.
func (p *page) colors(s *style, tag string, attrs []html.Attribute) {
	switch v, from := p.winner(colorText); {
	case from == given && !v.color.current:
		s.color = v.color
	case from == initial:
		s.color = rgb(0)
	case from == absent && (isControl(tag) || tag == "mark" || tag == "a" && hasAttr(attrs, "href")):
		s.color = color{} // which is for the mail program to say
	}
	switch v, from := p.winner(textFill); {
	case from == given && v.color.current, from == initial:
		s.textFill = false
	case from == given:
		s.ink, s.textFill = v.color, true
	}
	if isControl(tag) || tag == "mark" {
		s.ground, s.picture = color{}, color{}
	}
	painted := false
	if v, from := p.winner(backgroundColor); from == given {
		c := v.color
		if c.current {
			c = s.color
		}
		switch {
		case c.clear():
		case !c.known:
			s.ground, s.picture, painted = color{}, color{}, true
		default:
			s.ground, painted = c.over(s.ground), true
			if c.opaque() {
				s.ground, s.picture = c, color{}
			}
		}
	}
	if v, from := p.winner(backgroundImage); from == given && v.image && !v.hides {
		s.ground, s.picture, painted = color{}, v.color, true
	}
	switch v, from := p.winner(textShadow); {
	case from == given:
		s.shadow = v.word == "" && !v.color.clear() && v.color.known && !v.color.hiddenOn(s.ground)
	case from == initial:
		s.shadow = false
	}
	if painted && p.word(backgroundClip) == "text" { // the background is in the letters
		s.ground = p.around.ground
		if s.color.clear() {
			s.color = color{}
		}
		if s.textFill && s.ink.clear() {
			s.ink = color{}
		}
	}
}

func hasAttr(attrs []html.Attribute, name string) bool {
	for _, a := range attrs {
		if a.Key == name && a.Namespace == "" {
			return true
		}
	}
	return false
}
