package visible

import (
	"slices"

	"golang.org/x/net/html"
)

// style is the part of an element's computed style that decides whether its text is seen.
type style struct {
	gone          bool // not shown, and nothing in it can be
	invisible     bool // visibility; an element in it can be visible again
	small         bool // at most one pixel wide or high
	pre           bool // white space is kept
	flat          bool // in a box that is as high as its lines, and cuts off what is higher
	groundUnknown bool // the ground behind it may have the colour of the text
	kind          boxKind
	font          float64
	least         float64 // the smallest size that the font may have
	alpha         float64 // the product of its opacity and those around it
	x, y          float64 // pixels that it is moved to the right and down
	indent        float64 // text-indent
	spacing       float64 // letter-spacing, in pixels
	line          float64 // line-height, in pixels, or in sizes of the font where it is negative
	color         color   // unknown until something says it
	ground        color   // of the background, as far as it is one colour
	inks          []color // colours of text that are doubtful
	picture       []color // of a gradient that is on the ground, and grounds that are doubtful
}

const (
	normalFont = 16  // pixels
	leastFont  = 3   // pixels; smaller letters cannot be read
	farAway    = 500 // pixels beyond an edge
	farOff     = 5000
)

// rootStyle is the style that the outermost element inherits: paper is white.
func rootStyle() style {
	return style{font: normalFont, least: normalFont, alpha: 1, line: -1.2, ground: rgb(0xffffff)}
}

// shown reports whether an image in the element can be seen.
func (s *style) shown() bool {
	return !s.gone && !s.invisible && s.x > -farAway && s.x < farOff && s.y > -farAway && s.y < farOff
}

// visible reports whether text in the element can be seen.
func (s *style) visible() bool {
	lineHeight := s.line
	if lineHeight < 0 {
		lineHeight *= -s.least
	}
	switch {
	case !s.shown(), s.groundUnknown, s.least < leastFont, s.spacing <= -0.6*s.least, s.flat && lineHeight <= 1:
		return false
	case s.indent <= -300 || s.indent >= farAway || s.x+s.indent <= -farAway:
		return false
	}
	return !s.hides(s.color) && !slices.ContainsFunc(s.inks, s.hides)
}

// hides reports whether a colour of text cannot be told from what may be behind it.
func (s *style) hides(ink color) bool {
	return ink.hiddenOn(s.ground) || slices.ContainsFunc(s.picture, ink.hiddenOn)
}

// behind returns every ground that may be behind the text where a colour is painted.
func (s *style) behind(c color) []color {
	all := []color{c.over(s.ground)}
	for _, ground := range s.picture {
		all = add(all, c.over(ground))
	}
	return all
}

// add adds colours to a list that others may hold too.
func add(list []color, more ...color) []color {
	for _, c := range more {
		if !slices.Contains(list, c) {
			list = append(slices.Clip(list), c)
		}
	}
	return list
}

// boxKind is the kind of a box, which decides about line ends around it.
type boxKind uint8

const (
	noBox boxKind = iota
	inlineBox
	inlineBlock
	blockBox
	cellBox
)

// displayKinds are the keywords of display.
var displayKinds = map[string]boxKind{
	"none": noBox, "table-column": noBox, "table-column-group": noBox,
	"inline": inlineBox, "contents": inlineBox, "inline-block": inlineBlock, "inline-table": inlineBlock,
	"inline-flex": inlineBlock, "inline-grid": inlineBlock, "-webkit-inline-box": inlineBlock, "-webkit-inline-flex": inlineBlock,
	"block": blockBox, "flow-root": blockBox, "list-item": blockBox, "flex": blockBox, "grid": blockBox, "-webkit-box": blockBox, "-webkit-flex": blockBox,
	"table": blockBox, "table-row": blockBox, "table-row-group": blockBox, "table-header-group": blockBox, "table-footer-group": blockBox, "table-caption": blockBox,
	"table-cell": cellBox,
}

func readDisplay(parts []token) (cssValue, truth) {
	_, known := displayKinds[parts[0].word()]
	return keyword(parts[0].word()), truthOf(known && len(parts) == 1)
}

// browserDisplay returns the kind of box that an element has without style sheets.
func browserDisplay(n *html.Node) boxKind {
	if hasAttr(n.Attr, "hidden") || hasAttr(n.Attr, "popover") || n.Data == "dialog" && !hasAttr(n.Attr, "open") {
		return noBox
	}
	switch n.Data {
	case "rp", "col", "colgroup":
		return noBox
	case "td", "th":
		return cellBox
	case "button", "input", "select", "textarea", "img", "marquee":
		return inlineBlock
	case "p", "html", "optgroup", "option", "listing", "xmp", "plaintext", "search", "hgroup", "tbody", "thead", "tfoot":
		return blockBox
	}
	if isBlock(n.Data) {
		return blockBox
	}
	return inlineBox
}
