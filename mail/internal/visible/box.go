package visible

import (
	"slices"
	"strconv"
	"strings"
)

// Kinds of boxes that display makes.
type boxKind uint8

const (
	noBox      boxKind = iota
	throughBox         // only what is in it makes boxes
	inlineBox
	inlineBlock
	blockBox
	tableBox // a table, a row or a group of rows, which are as large as what is in them
	cellBox
)

// browserDisplay is what browsers do when no style sheet says anything.
func browserDisplay(n *treeElement) boxKind {
	if hasAttr(n.attrs, "hidden") || hasAttr(n.attrs, "popover") || n.tag == "dialog" && !hasAttr(n.attrs, "open") {
		return noBox
	}
	switch n.tag {
	case "rp", "col", "colgroup":
		return noBox
	case "td", "th":
		return cellBox
	case "table", "tr", "tbody", "thead", "tfoot":
		return tableBox
	case "button", "input", "select", "textarea", "img", "marquee":
		return inlineBlock
	case "p", "html", "optgroup", "option", "listing", "xmp", "plaintext", "search", "hgroup":
		return blockBox
	}
	if isBlock(n.tag) {
		return blockBox
	}
	return inlineBox
}

// display returns what kind of box an element is, and whether what is in it are
// boxes, which are never parts of a line or a table.
func (p *page) display(n *treeElement, boxed bool) (kind boxKind, flex bool) {
	word := p.word(display)
	flex = strings.HasSuffix(word, "flex") || strings.HasSuffix(word, "grid") || strings.HasSuffix(word, "-box")
	switch word {
	case "":
		kind = browserDisplay(n)
		if d := p.best[display].decl; d != nil && d.value.word != "revert" && kind == noBox {
			kind = inlineBox
		}
	case "none", "table-column", "table-column-group":
		kind = noBox
	case "contents":
		return throughBox, p.around.flex
	case "inline":
		kind = inlineBox
	case "table", "inline-table", "table-row", "table-row-group", "table-header-group", "table-footer-group":
		kind = tableBox
	case "table-cell":
		kind = cellBox
	default:
		kind = blockBox
		if strings.Contains(word, "inline") {
			kind = inlineBlock
		}
	}
	if boxed && kind != noBox {
		kind = blockBox
	}
	return kind, flex
}

// setBox decides whether anything of the box of an element is left to see.
func (p *page) setBox(s *style, n *treeElement) {
	place := p.word(position)
	loose := place == "absolute" || place == "fixed"
	boxed := loose || p.around.flex || p.word(float) != "" && p.word(float) != "none"
	s.kind, s.flex = p.display(n, boxed)
	if s.kind == noBox {
		s.gone = true
		return
	}
	if s.kind == throughBox {
		return
	}
	if v, ok := p.value(opacity); ok {
		s.alpha *= min(max(v.n, 0), 1)
	}
	if v, ok := p.value(zoom); ok {
		s.zoom *= v.n
	}
	s.gone = s.alpha <= 0.05 || s.zoom <= 0.001 || p.exotic() || loose && p.word(clip) == "hides"
	p.move(s, place)
	p.measure(s, n)
	s.kind, _ = p.display(n, false) // for how it stands in its line
}

// exotic reports whether the element is hidden by what is not judged exactly.
func (p *page) exotic() bool {
	for prop := exoticFirst; prop < properties; prop++ {
		if p.word(prop) == "hides" {
			return true
		}
	}
	return p.animated(p.word(animation))
}

// animated reports whether a frame of one of some animations hides the element.
func (p *page) animated(names string) bool {
	for name := range strings.FieldsSeq(names) {
		frames := p.sheet.frames[name]
		p.matcher.steps -= len(frames)
		if slices.ContainsFunc(frames, func(d declaration) bool { return d.prop != animation && p.hides(d.prop, d.value) }) {
			return true
		}
	}
	return names == "hides"
}

// move adds up where the element is moved.
func (p *page) move(s *style, place string) {
	add := func(to *float64, prop property) bool {
		px, ok := p.length(prop)
		*to += px
		return ok
	}
	if place != "" && place != "static" {
		far := func(prop property) bool {
			px, ok := p.length(prop)
			return ok && (px <= -farAway || px >= farAway)
		}
		hasLeft, hasTop := add(&s.x, left), add(&s.y, top)
		if !hasLeft && far(right) || !hasTop && far(bottom) {
			s.gone = true
		}
	}
	add(&s.x, marginLeft)
	if s.kind != inlineBox {
		add(&s.y, marginTop)
	}
}

// measure judges the size of a box and of what it cuts off.
func (p *page) measure(s *style, n *treeElement) {
	atMost := func(prop property, limit float64) bool {
		px, ok := p.length(prop)
		return ok && px <= limit
	}
	s.tiny = atMost(width, 1) || atMost(height, 1)
	if s.kind == inlineBox || s.kind == tableBox || n.tag == "html" || n.tag == "body" { // those let the window cut
		return
	}
	x, y := p.word(overflowX), p.word(overflowY)
	cutX, cutY := x == "clip" || scrolls(x) || scrolls(y), y == "clip" || scrolls(x) || scrolls(y)
	block := s.kind != cellBox
	low := block && (atMost(height, 1) || atMost(maxHeight, 1))
	narrow := block && atMost(width, 1) || atMost(maxWidth, 1)
	if cutY && low || cutX && narrow || block && atMost(maxHeight, 0) {
		s.gone = true
	}
	grows, sized := p.length(height)
	s.flat = (s.flat || cutY) && !(sized && grows > 1)
}

// scrolls reports whether overflow makes a box that could scroll, which then cuts
// off in both directions.
func scrolls(word string) bool { return word != "" && word != "visible" && word != "clip" }

// hides reports whether a value is one that hides, or helps to.
func (p *page) hides(prop property, v cssValue) bool {
	px := p.pixels(prop, v)
	switch {
	case isWide(v.word):
		return false
	case v.worst:
		return true
	}
	switch prop {
	case display:
		return v.word == "none" || strings.HasPrefix(v.word, "table-column")
	case visibility, overflowX, overflowY:
		return v.word != "visible"
	case opacity:
		return v.n < 0.2
	case zoom:
		return v.n < 0.5
	case fontSize:
		return p.fontPixels(v) < leastFont
	case width, height, maxWidth, maxHeight:
		return v.word == "" && px <= 1
	case lineHeight:
		return v.word == "" && v.n <= 1 && v.unit != "em" && v.unit != "%" && !(v.unit == "" && v.n > 0.1)
	case letterSpacing:
		return px <= -2
	case textIndent, left, top, right, bottom, marginLeft, marginTop:
		return px <= -100 || px >= farAway
	case position:
		return v.word == "absolute" || v.word == "fixed" || v.word == "relative"
	case float:
		return v.word != "none"
	case colorText:
		ground := p.around.ground
		if b := p.best[backgroundColor].decl; b != nil && b.value.color.opaque() {
			ground = b.value.color
		}
		return v.color.hiddenOn(ground) || slices.ContainsFunc(p.around.picture, v.color.hiddenOn)
	case backgroundColor:
		ink := p.around.color
		if b := p.best[colorText].decl; b != nil && b.value.color.known {
			ink = b.value.color
		}
		return v.color.opaque() && ink.hiddenOn(v.color)
	case animation:
		return p.animated(v.word)
	}
	return v.word == "hides"
}

// tiny reports whether a length in HTML is at most one pixel.
func tiny(s string) bool {
	n, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(s), "px"), 64)
	return err == nil && n >= 0 && n <= 1
}
