package visible

import (
	"math"
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

// Kinds of boxes that display makes.
type boxKind uint8

const (
	noBox      boxKind = iota
	throughBox         // only what is in it makes boxes
	inlineBox
	blockBox
	tableBox // a table, a row or a group of rows, which are as large as what is in them
	cellBox
)

// display returns what kind of box an element is, and whether what is in it are
// boxes. A boxed element is never part of a line or a table.
func (p *page) display(tag string, attrs []html.Attribute, boxed bool) (kind boxKind, flex bool) {
	v, from := p.winner(display)
	word := v.word
	switch from {
	case absent:
		kind = p.browserDisplay(tag, attrs)
		if boxed && kind != noBox {
			kind = blockBox
		}
		return kind, false
	case inherit:
		return blockBox, p.around.flex
	case initial:
		word = "inline"
	}
	switch word {
	case "none":
		return noBox, false
	case "contents":
		return throughBox, p.around.flex
	}
	if boxed {
		return blockBox, strings.Contains(word, "flex") || strings.Contains(word, "grid") || strings.Contains(word, "-box")
	}
	switch word {
	case "table-column", "table-column-group":
		return noBox, false
	case "inline", "ruby", "ruby-text", "ruby-base", "math":
		return inlineBox, false
	case "table", "inline-table", "table-row", "table-row-group", "table-header-group", "table-footer-group":
		return tableBox, false
	case "table-cell":
		return cellBox, false
	}
	return blockBox, strings.Contains(word, "flex") || strings.Contains(word, "grid") || strings.Contains(word, "-box")
}

// browserDisplay is what browsers do when no style sheet says anything.
func (p *page) browserDisplay(tag string, attrs []html.Attribute) boxKind {
	if hasAttr(attrs, "hidden") && !strings.EqualFold(attr(attrs, "hidden"), "until-found") || hasAttr(attrs, "popover") {
		return noBox
	}
	switch tag {
	case "dialog":
		if !hasAttr(attrs, "open") {
			return noBox
		}
	case "rp", "col", "colgroup":
		return noBox
	case "td", "th":
		return cellBox
	case "table", "tr", "tbody", "thead", "tfoot":
		return tableBox
	case "p", "html", "button", "input", "select", "textarea", "img", "marquee", "optgroup", "option", "listing", "xmp", "plaintext", "search", "hgroup":
		return blockBox
	}
	if isBlock(tag) {
		return blockBox
	}
	return inlineBox
}

// box decides whether anything of the box of an element is left to see.
func (p *page) box(s *style, tag string, attrs []html.Attribute) {
	place := p.word(position)
	loose := place == "absolute" || place == "fixed"
	boxed := loose || p.around.flex || p.word(float) != "" && p.word(float) != "none"
	kind, flex := p.display(tag, attrs, boxed)
	if kind == noBox {
		s.gone = true
		return
	}
	s.flex = flex
	if kind == throughBox {
		return
	}
	if p.paints(s, tag) {
		s.gone = true
		return
	}
	p.shift(s, kind, place)
	if v, from := p.winner(zoom); from == given && v.word == "" {
		if factor, ok := ratioOf(v.parts[0]); ok {
			s.shrink *= factor
		}
	}
	if loose {
		if v, from := p.winner(clip); from == given && v.hides {
			s.gone = true
		}
	}
	p.extents(s, tag, kind)
	s.gone = s.gone || !(s.alpha > 0.05) || !(s.shrink > 0.001)
}

// paints takes what lets the whole element fade or disappear, and reports whether
// nothing is left.
func (p *page) paints(s *style, tag string) bool {
	if v, from := p.winner(opacity); from == given {
		if a, ok := ratioOf(v.parts[0]); ok {
			s.alpha *= min(max(a, 0), 1)
		}
	}
	for _, prop := range []property{filter, clipPath, mask} {
		if v, from := p.winner(prop); from == given && v.hides {
			return true
		}
	}
	if p.word(msoHide) == "all" && tag != "a" {
		// Buttons that Outlook draws in its own way are links with mso-hide,
		// which everyone else sees.
		return true
	}
	if v, from := p.winner(content); from == given && v.image && tag != "img" {
		return true
	}
	return p.animated(s)
}

// animated reports whether an animation leaves the element hidden.
func (p *page) animated(s *style) bool {
	if len(p.sheet.frames) == 0 {
		return false
	}
	v, from := p.winner(animationName)
	if from != given || p.word(animationCount) == "infinite" {
		return false
	}
	if fill := p.word(animationFill); fill != "forwards" && fill != "both" {
		return false
	}
	for _, name := range v.parts {
		p.matcher.steps -= 1 + len(p.sheet.frames[name.text])
		for _, d := range p.sheet.frames[name.text] {
			if one, ok := p.valueOf(&d); ok && p.best(d.prop).tier < p.sheet.animationTier() {
				switch d.prop {
				case display, visibility, contentVisibility, opacity, fontSize, transform, scale, clipPath, filter, maxHeight:
					if p.hiding(d.prop, one) {
						return true
					}
				}
			}
		}
	}
	return false
}

func (p *page) best(prop property) rank { return p.cascade.best[prop].rank }

// shift adds up where the element is moved, and what it shrinks to.
func (p *page) shift(s *style, kind boxKind, place string) {
	m := p.metric
	high := metric{font: m.font, root: m.root, base: screenHeight}
	add := func(to *float64, prop property, m metric, sign float64) {
		if px, ok := p.length(prop, m); ok {
			*to += sign * px
		}
	}
	switch place {
	case "relative", "absolute", "fixed", "sticky", "-webkit-sticky":
		if place == "absolute" || place == "fixed" || place == "relative" {
			_, hasLeft := p.length(left, m)
			_, hasTop := p.length(top, m)
			add(&s.x, left, m, 1)
			add(&s.y, top, high, 1)
			if !hasLeft {
				p.opposite(&s.x, right, m, place)
			}
			if !hasTop {
				p.opposite(&s.y, bottom, high, place)
			}
		}
	}
	if kind != tableBox && kind != cellBox {
		add(&s.x, marginLeft, m, 1)
		if kind != inlineBox {
			add(&s.y, marginTop, m, 1)
		}
	}
	add(&s.x, paddingLeft, m, 1)
	if kind == inlineBox {
		return
	}
	s.ownIndent = s.indent
	all := still
	for _, one := range []struct {
		prop  property
		judge func([]part, metric) (motion, bool)
	}{{transform, transformed}, {translate, translated}, {scale, scaled}, {rotate, rotated}} {
		if v, from := p.winner(one.prop); from == given && len(v.parts) > 0 {
			if moved, ok := one.judge(v.parts, m); ok {
				all = all.then(moved)
			}
		}
	}
	s.x += all.dx
	s.y += all.dy
	s.shrink *= min(math.Abs(all.x), math.Abs(all.y))
	if all.px <= -1 || all.px >= 5 || all.back && p.word(backface) == "hidden" {
		s.gone = true
	}
}

// opposite moves by an offset from the right or the bottom. Far beyond either
// edge is out of sight.
func (p *page) opposite(to *float64, prop property, m metric, place string) {
	px, ok := p.length(prop, m)
	switch {
	case !ok:
	case px <= -500:
		*to -= 5000
	case px >= 2000 || place == "relative" || place == "fixed" && px >= m.base:
		*to -= px
	}
}

// extents judges the size of a box and of what it cuts off.
func (p *page) extents(s *style, tag string, kind boxKind) {
	m := p.metric
	atMost := func(prop property, limit float64) bool {
		px, ok := p.length(prop, m)
		return ok && px <= limit
	}
	over := func(prop property, limit float64) bool {
		px, ok := p.length(prop, m)
		return ok && px > limit
	}
	s.tiny = atMost(width, 1) || atMost(height, 1)
	if kind == inlineBox {
		return
	}
	if p.word(contentVisibility) == "hidden" && kind != tableBox || p.foundOnly() && p.word(contentVisibility) == "" {
		s.gone = true
		return
	}
	if kind == tableBox || tag == "html" || tag == "body" { // those let the window cut
		return
	}
	ox, oy := p.word(overflowX), p.word(overflowY)
	cutX, cutY := cuts(ox) || scrolls(oy), cuts(oy) || scrolls(ox)
	const room = 2 // pixels of padding in which something shows
	low := (kind == blockBox && (atMost(height, 1) || atMost(maxHeight, 1))) && !over(minHeight, 1) && !over(paddingBottom, room)
	narrow := (kind == blockBox && atMost(width, 1) || atMost(maxWidth, 1)) && !over(minWidth, 1) && !over(paddingRight, room)
	if cutY && low || cutX && narrow || kind == blockBox && atMost(maxHeight, 0) && !over(minHeight, 1) && !cutY {
		s.gone = true
	}
	if cutX && s.indent >= screenWidth { // behind the right edge
		s.gone = true
	}
	grows := over(height, 1) || over(minHeight, 1) || over(paddingBottom, room)
	s.flat = cutY && !grows && s.lineHeight() <= 1 || s.flat && !grows
}

// foundOnly reports whether the element is hidden until a search finds it.
func (p *page) foundOnly() bool { return strings.EqualFold(attr(p.attrs, "hidden"), "until-found") }

// cuts reports whether overflow in one direction is cut off.
func cuts(word string) bool { return word == "clip" || scrolls(word) }

// scrolls reports whether overflow makes a box that could scroll, which then cuts
// off in both directions.
func scrolls(word string) bool {
	return word != "" && word != "visible" && word != "clip"
}

// hiding reports whether a value is one that hides, or helps to.
func (p *page) hiding(prop property, v value) bool {
	if isWide(v.word) {
		return false
	}
	low := func(limit float64) bool {
		px, ok := p.pixels(v, p.metric)
		return ok && px <= limit
	}
	switch prop {
	case display:
		return v.word == "none" || v.word == "table-column" || v.word == "table-column-group"
	case visibility:
		return v.word != "visible"
	case contentVisibility, backface:
		return v.word == "hidden"
	case opacity:
		a, ok := ratioOf(v.parts[0])
		return ok && a < 0.2
	case zoom:
		if v.word != "" {
			return false
		}
		a, ok := ratioOf(v.parts[0])
		return ok && a < 0.5
	case filter, clip, clipPath, mask:
		return v.hides
	case fontSize:
		return p.fontPixels(v) < leastFont
	case lineHeight, width, height, maxWidth, maxHeight:
		return low(1)
	case letterSpacing:
		return low(-2)
	case overflowX, overflowY:
		return v.word != "visible"
	case textIndent, left, top, right, bottom, marginLeft, marginTop:
		px, ok := p.pixels(v, p.metric)
		return ok && (px <= -100 || px >= 1000)
	case msoHide:
		return v.word == "all"
	case position:
		return v.word == "absolute" || v.word == "fixed" || v.word == "relative"
	case float:
		return v.word != "none"
	case transform, translate, scale, rotate:
		return len(v.parts) > 0
	case colorText, textFill:
		ground := p.around.ground
		if b := p.cascade.best[backgroundColor]; b.decl != nil && b.decl.value.color.opaque() {
			ground = b.decl.value.color
		}
		return v.color.hiddenOn(ground)
	case backgroundColor:
		ink := p.around.color
		if b := p.cascade.best[colorText]; b.decl != nil && b.decl.value.color.known {
			ink = b.decl.value.color
		}
		return v.color.opaque() && ink.hiddenOn(v.color)
	case textSecurity:
		return v.word != "none"
	case content:
		return v.image
	}
	return false
}

// tiny reports whether a length in HTML is at most one pixel.
func tiny(s string) bool {
	n, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(s), "px"), 64)
	return err == nil && n >= 0 && n <= 1
}
