package visible

import (
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

// candidate is a declaration with its rank in the cascade (CSS Cascading Level 5
// section 6): origin and importance, specificity, order.
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

func rank(tier int, d *declaration, weight uint64) uint64 {
	if d.important {
		tier += tierImportant
	}
	return uint64(tier)<<60 | weight<<32 | d.order
}

// page computes the styles of a document, element by element from the outside in.
type page struct {
	matcher
	sheet  sheet
	root   style // the style that the outermost element inherits
	hidden int   // characters that a person would not see
	work   *Work // of the command; nil for none
	nodes  int   // looked at
	// Of the element whose style is computed:
	around style
	font   float64
	best   []candidate // by property
	doubts []candidate
}

// exhausted reports whether judging the document took more work than is allowed.
func (p *page) exhausted() bool {
	if p.nodes++; p.nodes%64 == 0 && p.work.ended() {
		p.steps = -1
	}
	return p.steps < 0 || p.sheet.tooLarge
}

// offer takes declarations into account.
func (p *page) offer(decls []declaration, tier int, weight uint64, sure truth) {
	for i := range decls {
		p.steps--
		d := &decls[i]
		one := candidate{rank(tier, d, weight), d}
		if sure == doubtful || d.doubt {
			if d.important { // layers count in the other direction then
				one.rank = 1<<64 - 1
			}
			p.doubts = append(p.doubts, one)
		} else if old := p.best[d.prop]; old.decl == nil || one.rank >= old.rank {
			p.best[d.prop] = one
		}
	}
}

// collect offers everything that is declared for an element.
func (p *page) collect(n *html.Node) {
	clear(p.best)
	p.doubts = p.doubts[:0]
	p.offer(hints(n), tierAttributes, 0, yes)
	p.offerRules("", n)
	p.offerRules(n.Data, n)
	for class := range strings.FieldsFuncSeq(attr(n.Attr, "class"), isHTMLSpace) {
		p.offerRules("."+strings.ToLower(class), n)
	}
	if id := attr(n.Attr, "id"); id != "" {
		p.offerRules("#"+strings.ToLower(id), n)
	}
	if css := attr(n.Attr, "style"); css != "" {
		p.offer(p.sheet.inlineDeclarations(css), tierInline, 0, yes)
	}
}

// offerRules offers the declarations of the rules under a key that an element matches.
func (p *page) offerRules(key string, n *html.Node) {
	for _, r := range p.sheet.rules[key] {
		if p.steps < 0 {
			return
		}
		if sure := min(p.match(r.selector, n), r.sure); sure != no {
			p.offer(r.decls, tierSheets, r.selector.weight, sure)
		}
	}
}

// settle decides about the doubtful declarations: one that hides replaces the sure one by
// the worst value. Its own value could show again what another property moved away.
func (p *page) settle() {
	for prop, v := range p.doubtful {
		if p.hides(prop, v) {
			p.best[prop].decl = &declaration{prop: prop, value: worst(prop)}
		}
		for _, move := range []property{left, top} {
			if prop == position && p.movedFar(move) { // which a position may take back
				p.best[move].decl = &declaration{prop: move, value: worst(move)}
			}
		}
	}
}

// movedFar reports whether a property surely moves the element far to the right or down.
func (p *page) movedFar(prop property) bool {
	px, ok := p.length(prop)
	return ok && rules[prop].high == movedFar && px >= movedFar
}

// doubtful yields the doubtful values that may count in place of the sure ones.
func (p *page) doubtful(yield func(property, cssValue) bool) {
	for _, one := range p.doubts {
		if one.rank >= p.best[one.decl.prop].rank && !yield(one.decl.prop, one.decl.value) {
			return
		}
	}
}

// hides reports whether a value is one that hides, or helps to.
func (p *page) hides(prop property, v cssValue) bool {
	rule := rules[prop]
	switch {
	case p.movedFar(prop): // without this another property may move the element away
		return true
	case isWide(v.word): // it may undo what is sure
		judged := rule.hiding != "" || rule.low < rule.high
		return judged && p.best[prop].decl != nil && (v.word == "revert" || rule.inherited && v.word != "initial")
	case v.worst:
		return true
	case v.word != "":
		return slices.Contains(strings.Fields(rule.hiding), v.word)
	}
	px := p.pixels(prop, v)
	return rule.low < rule.high && (px <= rule.low || px >= rule.high)
}

// value returns the value that is declared for a property. ok is false when there is
// none, or only "inherit", "initial" and the like.
func (p *page) value(prop property) (v cssValue, ok bool) {
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

// initial reports whether a property takes its initial value instead of being inherited:
// because it is declared so, or because nothing is declared and browsers do so for the
// element.
func (p *page) initial(prop property, byBrowser bool) bool {
	d := p.best[prop].decl
	return d != nil && d.value.word == "initial" || d == nil && byBrowser
}

// length returns the declared length of a property in pixels. ok is false when there is
// none.
func (p *page) length(prop property) (px float64, ok bool) {
	v, ok := p.value(prop)
	if !ok || v.word != "" {
		return 0, false
	}
	return p.pixels(prop, v), true
}

// atMost reports whether a property has a length of at most so many pixels.
func (p *page) atMost(prop property, limit float64) bool {
	px, ok := p.length(prop)
	return ok && px <= limit
}

func (p *page) pixels(prop property, v cssValue) float64 {
	base := float64(screenWidth)
	switch prop {
	case top, bottom:
		base = screenHeight
	case height, maxHeight:
		base = 0 // a box that is as high as its content counts as having no height
		if v.unit == "%" && v.n > 0 {
			return screenHeight
		}
	case lineHeight:
		base = p.font
		if v.unit == "" {
			return v.n * base
		}
	}
	return v.pixels(p.font, p.root.font, base)
}

// compute returns the style of an element from the one around it, its attributes
// and the style sheets.
func (p *page) compute(around style, n *html.Node) style {
	s := around
	s.small = false
	p.around, p.font = around, around.font
	p.collect(n)
	p.setFont(&s, n)
	p.settle()
	p.setText(&s, n)
	p.setColors(&s, n)
	p.setBox(&s, n)
	s.gone = s.gone || p.exhausted()
	if n.Data == "html" {
		p.root.font, p.root.least = s.font, s.least
	}
	return s
}

// hints returns the declarations that attributes such as bgcolor stand for; any rule
// weighs more.
func hints(n *html.Node) (all []declaration) {
	for _, a := range n.Attr {
		hint := declaration{prop: colorText}
		switch {
		case a.Namespace != "" || a.Val == "":
			continue
		case a.Key == "background":
			hint = declaration{prop: backgroundImage, value: cssValue{image: true}}
		case a.Key == "bgcolor":
			hint.prop = backgroundColor
		case a.Key == "color" && n.Data == "font", a.Key == "text" && n.Data == "body":
		default:
			continue
		}
		if hint.prop != backgroundImage {
			hint.value.color = attributeColor(a.Val)
		}
		if !hint.value.color.clear() {
			all = append(all, hint)
		}
	}
	return all
}

// attributeColor reads a colour of HTML, whose hash may be missing. Browsers make a
// colour of any text, so a value that is not read here is unknown.
func attributeColor(s string) color {
	s = strings.ToLower(strings.TrimSpace(s))
	c, ok := namedColor(s)
	if !ok {
		c, _ = hexColor(strings.TrimPrefix(s, "#"))
	}
	return c
}

// tagSizes are the factors by which elements change the size of the font.
var tagSizes = map[string]float64{"small": 1 / 1.2, "sub": 1 / 1.2, "sup": 1 / 1.2, "big": 1.2, "rt": 0.5, "h1": 2, "h2": 1.5}

// isControl reports whether an element is a control, which inherits little.
func isControl(tag string) bool {
	return tag == "button" || tag == "input" || tag == "select" || tag == "textarea"
}

// setFont sets the size of the font, and the smallest that it may have.
func (p *page) setFont(s *style, n *html.Node) {
	sure := cssValue{word: "inherit"}
	if v, ok := p.value(fontSize); ok {
		sure = v
	} else if p.initial(fontSize, isControl(n.Data) || n.Data == "font" && strings.TrimSpace(attr(n.Attr, "size")) != "") {
		sure = px(normalFont)
	} else if p.best[fontSize].decl == nil && tagSizes[n.Data] != 0 {
		sure = cssValue{n: tagSizes[n.Data], unit: "em"}
	}
	s.font = sure.fontSize(p.around.font, p.root.font)
	s.least = sure.fontSize(p.around.least, p.root.least)
	for prop, v := range p.doubtful {
		if prop == fontSize {
			s.least = min(s.least, v.fontSize(p.around.least, p.root.least))
		}
	}
	p.font = s.font
}

// fontSize returns a size of the font in pixels.
func (v cssValue) fontSize(around, root float64) float64 {
	switch {
	case v.word == "smaller":
		return around / 1.2
	case v.word == "larger":
		return around * 1.2
	case v.word == "initial":
		return normalFont
	case isWide(v.word):
		return around
	case v.word != "":
		return fontWords[v.word]
	}
	return v.pixels(around, root, around)
}

// setText sets the inherited properties of text, without colours and size.
func (p *page) setText(s *style, n *html.Node) {
	control := isControl(n.Data)
	if v, ok := p.value(visibility); ok {
		s.invisible = v.word != "visible"
	} else if p.initial(visibility, false) {
		s.invisible = false
	}
	if v, ok := p.value(lineHeight); ok && v.word == "" && v.unit == "" {
		s.line = -v.n
	} else if ok && v.word == "" {
		s.line = p.pixels(lineHeight, v)
	} else if ok || p.initial(lineHeight, control) {
		s.line = -1.2
	}
	setLength := func(to *float64, prop property) {
		if v, ok := p.value(prop); ok {
			*to = p.pixels(prop, v)
		} else if p.initial(prop, control) {
			*to = 0
		}
	}
	setLength(&s.spacing, letterSpacing)
	setLength(&s.indent, textIndent)
	if word := p.word(whiteSpace); word != "" {
		s.pre = strings.HasPrefix(word, "pre") || word == "break-spaces"
	} else if p.initial(whiteSpace, false) {
		s.pre = false
	} else if p.best[whiteSpace].decl == nil && slices.Contains([]string{"pre", "textarea", "xmp", "listing", "plaintext"}, n.Data) {
		s.pre = true
	}
}

// mostColors bounds the colours that one text and its ground may have. Where doubtful
// ones make more, nothing is shown.
const mostColors = 100

// setColors sets the colours of text and background.
func (p *page) setColors(s *style, n *html.Node) {
	painted := isControl(n.Data) || n.Data == "mark"
	if v, ok := p.value(colorText); ok && !v.color.current {
		s.color, s.inks = v.color, nil
	} else if p.initial(colorText, false) {
		s.color, s.inks = rgb(0), nil
	} else if p.best[colorText].decl == nil && (painted || n.Data == "a" && hasAttr(n.Attr, "href")) {
		s.color, s.inks = color{}, nil // the mail program chooses it
	}
	if painted {
		s.ground, s.picture, s.groundUnknown = color{}, nil, false
	}
	if v, ok := p.value(backgroundColor); ok {
		c := v.color
		if c.current {
			c = s.color
		}
		switch {
		case v.worst:
			s.groundUnknown = true
		case c.clear():
		case !c.known || c.opaque():
			s.ground, s.picture, s.groundUnknown = c, nil, false
		default:
			all := s.behind(c)
			s.ground, s.picture = all[0], all[1:]
		}
	}
	below := s.ground
	if v, ok := p.value(backgroundImage); ok && v.worst {
		s.groundUnknown = true
	} else if ok && v.image && slices.ContainsFunc(v.colors, func(c color) bool { return !c.clear() }) { // mail programs load no picture unasked
		s.ground, s.picture = color{}, v.colors
	}
	for prop, v := range p.doubtful {
		switch {
		case prop == colorText && (v.color.current || isWide(v.word) && v.word != "initial"):
			s.inks = add(add(s.inks, p.around.color), p.around.inks...)
		case prop == colorText && v.word == "initial":
			s.inks = add(s.inks, rgb(0))
		case prop == colorText:
			s.inks = add(s.inks, v.color)
		case prop == backgroundColor && v.color.current:
			s.groundUnknown = true
		case prop == backgroundColor && isWide(v.word):
			s.picture = add(s.picture, p.around.behind(color{known: true})...)
		case prop == backgroundColor:
			s.picture = add(s.picture, p.around.behind(v.color)...)
		case prop == backgroundImage && v.image:
			s.picture = add(s.picture, v.colors...)
		case prop == backgroundImage:
			s.picture = add(s.picture, below)
		}
		if len(s.inks)+len(s.picture) > mostColors {
			s.inks, s.picture, s.groundUnknown = []color{{known: true}}, nil, true
			break
		}
	}
	p.steps -= len(s.picture)
}

// setBox sets the kind of box and whether anything of it can be seen.
func (p *page) setBox(s *style, n *html.Node) {
	word := p.word(display)
	s.kind = displayKinds[word]
	if d := p.best[display].decl; word == "" {
		if s.kind = browserDisplay(n); s.kind == noBox && d != nil && d.value.word != "revert" {
			s.kind = inlineBox
		}
	}
	alpha := 1.0
	if v, ok := p.value(opacity); ok {
		alpha = v.n
	}
	s.alpha *= min(max(alpha, 0), 1)
	place := p.word(position)
	s.gone = s.kind == noBox || s.alpha <= 0.05
	for prop := exoticFirst; int(prop) < len(rules); prop++ {
		s.gone = s.gone || p.word(prop) == "hides"
	}
	if place != "" && place != "static" {
		p.move(s, left, right, &s.x)
		p.move(s, top, bottom, &s.y)
	}
	p.move(s, marginLeft, marginLeft, &s.x)
	y := s.y
	p.move(s, marginTop, marginTop, &s.y)
	if y < 0 && (s.kind == inlineBox || s.kind == cellBox) { // margins do not move these boxes back
		s.y = min(s.y, y)
	}
	p.measure(s)
}

// move adds to a position how far an element is moved in one direction, by its distance
// from the near edge, or else from the opposite one.
func (p *page) move(s *style, near, across property, to *float64) {
	if px, ok := p.length(near); ok {
		*to += px
	} else if px, _ := p.length(across); px <= -farAway || px >= farAway {
		s.gone = true
	}
}

// measure judges the size of a box and what overflow cuts off. Browsers ignore sizes of
// some kinds of boxes; here a size of nothing hides in each of them.
func (p *page) measure(s *style) {
	low := p.atMost(height, 1) || p.atMost(maxHeight, 1)
	narrow := p.atMost(width, 1) || p.atMost(maxWidth, 1)
	s.small = p.atMost(width, 1) || p.atMost(height, 1)
	x, y := p.word(overflowX), p.word(overflowY)
	scrolls := x != "" && x != "visible" && x != "clip" || y != "" && y != "visible" && y != "clip" // in both directions then
	cutX, cutY := scrolls || x == "clip", scrolls || y == "clip"
	if cutY && low || cutX && narrow || p.atMost(maxHeight, 0) {
		s.gone = true
	}
	grows, sized := p.length(height)
	s.flat = (s.flat || cutY) && !(sized && grows > 1 && s.kind != inlineBox)
}

// isTiny reports whether a length in HTML is at most one pixel.
func isTiny(s string) bool {
	n, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(s), "px"), 64)
	return err == nil && n >= 0 && n <= 1
}
