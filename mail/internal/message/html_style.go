package message

import (
	"iter"
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

// property is one that decides whether a person sees something.
type property int

const (
	display property = iota
	visibility
	opacity
	filter
	fontSize
	fontShorthand
	width
	height
	maxWidth
	maxHeight
	overflow
	overflowX
	overflowY
	textIndent
	msoHide
	clip
	clipPath
	position
	left
	top
	right
	bottom
	transform
	marginLeft
	marginTop
	colorText
	background
	backgroundColor
	backgroundImage
	whiteSpace
	properties // how many there are
)

var propertyNames = map[string]property{
	"display": display, "visibility": visibility, "opacity": opacity, "filter": filter,
	"font-size": fontSize, "font": fontShorthand, "width": width, "height": height,
	"max-width": maxWidth, "max-height": maxHeight, "overflow": overflow,
	"overflow-x": overflowX, "overflow-y": overflowY, "text-indent": textIndent,
	"mso-hide": msoHide, "clip": clip, "clip-path": clipPath, "-webkit-clip-path": clipPath,
	"position": position, "left": left, "top": top, "right": right, "bottom": bottom,
	"transform": transform, "-webkit-transform": transform, "margin-left": marginLeft,
	"margin-top": marginTop, "color": colorText, "background": background,
	"background-color": backgroundColor, "background-image": backgroundImage,
	"white-space": whiteSpace,
}

// declarations are the values that win for an element or a selector, in lower
// case. The greater weight wins: importance, then specificity, then order.
type declarations [properties]struct {
	value  string
	weight uint64
}

func (d *declarations) set(p property, value string, weight uint64) {
	if weight >= d[p].weight {
		d[p].value, d[p].weight = value, weight
	}
}

// merge adds the declarations of a rule under its specificity.
func (d *declarations) merge(other *declarations, specificity uint64) {
	for p := range other {
		if other[p].weight > 0 {
			d.set(property(p), other[p].value, other[p].weight+specificity<<40)
		}
	}
}

// The weights: an order below 1<<40, a specificity above it, importance above
// every specificity.
const (
	important   = uint64(1) << 60
	ofTag       = uint64(1)
	ofClass     = uint64(2)
	ofTagClass  = uint64(3)
	ofID        = uint64(4)
	ofTagID     = uint64(5)
	ofAttribute = uint64(6)
)

// add parses the declarations of a block, and reports whether any matters.
func (d *declarations) add(css string, order uint64) bool {
	found := false
	for one := range splitDeclarations(css) {
		name, value, ok := strings.Cut(one, ":")
		if !ok {
			continue
		}
		p, known := propertyNames[strings.ToLower(strings.TrimSpace(unescapeCSS(name)))]
		if !known {
			continue
		}
		value = strings.ToLower(strings.TrimSpace(unescapeCSS(value)))
		weight := order
		if i := strings.LastIndexByte(value, '!'); i >= 0 && strings.TrimSpace(value[i+1:]) == "important" {
			value = strings.TrimSpace(value[:i])
			weight |= important
		}
		d.set(p, value, weight)
		found = true
	}
	return found
}

// splitDeclarations splits at the semicolons outside quotes and parentheses, or
// at every one where those are not closed.
func splitDeclarations(css string) iter.Seq[string] {
	return func(yield func(string) bool) {
		quote, depth, start := byte(0), 0, 0
		for i := range len(css) {
			switch c := css[i]; {
			case quote != 0:
				if c == quote {
					quote = 0
				}
			case c == '"' || c == '\'':
				quote = c
			case c == '(':
				depth++
			case c == ')':
				depth = max(0, depth-1)
			case c == ';' && depth == 0:
				if !yield(css[start:i]) {
					return
				}
				start = i + 1
			}
		}
		rest := css[start:]
		if quote == 0 && depth == 0 {
			yield(rest)
			return
		}
		for one := range strings.SplitSeq(rest, ";") {
			if !yield(one) {
				return
			}
		}
	}
}

// unescapeCSS resolves the hexadecimal and single-character escapes of CSS.
func unescapeCSS(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			out.WriteByte(s[i])
			continue
		}
		end := i + 1
		for end < len(s) && end < i+7 && strings.IndexByte("0123456789abcdefABCDEF", s[end]) >= 0 {
			end++
		}
		if code, err := strconv.ParseUint(s[i+1:end], 16, 32); err == nil {
			out.WriteRune(rune(min(code, 0x10FFFF)))
			if end < len(s) && (s[end] == ' ' || s[end] == '\t' || s[end] == '\n') {
				end++
			}
			i = end - 1
		}
	}
	return out.String()
}

// style is what of the computed style of an element decides whether its text
// is seen.
type style struct {
	gone      bool    // not shown, and nothing in it can be
	invisible bool    // visibility; an element in it can be visible again
	tiny      bool    // at most one pixel wide or high
	font      float64 // size in pixels
	color     color   // unknown until something says it
	ground    color   // of the background, as far as it is one colour
	pre       bool    // white space is kept
}

// shown reports whether an image in the element is seen.
func (s *style) shown() bool { return !s.gone && !s.invisible }

// visible reports whether text in the element is seen.
func (s *style) visible() bool {
	return s.shown() && s.font > 1 && !s.color.clear && !(s.color.known && s.ground.known && s.color.near(s.ground))
}

const normalFont = 16 // pixels

// rootStyle is what the outermost element inherits: paper is white, unless the
// style sheet may paint it in a way that is not understood.
func rootStyle(sheet *sheet) style {
	s := style{font: normalFont}
	if !sheet.paints["body"] && !sheet.paints["html"] && !sheet.paints["*"] {
		s.ground = color{r: 255, g: 255, b: 255, known: true}
	}
	return s
}

// compute returns the style of an element from the one around it, its
// attributes and the style sheet.
func (sh *sheet) compute(parent style, tag string, attrs []html.Attribute) style {
	s := parent
	s.tiny = false
	var d declarations
	presentation(&d, &s, tag, attrs)
	sh.apply(&d, tag, attr(attrs, "class"), attr(attrs, "id"))
	if inline := attr(attrs, "style"); inline != "" {
		var own declarations
		if own.add(stripComments(inline), 1) {
			d.merge(&own, ofAttribute)
		}
	}
	s.inherit(&d, parent)
	s.gone = parent.gone || s.gone || hides(&d, tag)
	s.tiny = atMost(d[width].value, 1) || atMost(d[height].value, 1)
	return s
}

// presentation takes what attributes and elements say about looks; any rule
// weighs more.
func presentation(d *declarations, s *style, tag string, attrs []html.Attribute) {
	for _, a := range attrs {
		switch a.Key {
		case "hidden":
			s.gone = s.gone || !strings.EqualFold(a.Val, "until-found")
		case "bgcolor":
			d.set(backgroundColor, hexColor(a.Val), 1)
		case "background":
			if a.Val != "" {
				d.set(backgroundImage, "url()", 1)
			}
		case "color":
			if tag == "font" {
				d.set(colorText, hexColor(a.Val), 1)
			}
		case "text":
			if tag == "body" {
				d.set(colorText, hexColor(a.Val), 1)
			}
		case "open":
			if tag == "dialog" {
				d.set(display, "block", 1)
			}
		}
	}
	switch tag {
	case "dialog":
		s.gone = s.gone || d[display].weight == 0
	case "a": // links have a colour of their own
		s.color = color{}
	case "pre", "textarea":
		s.pre = true
	}
}

// hexColor accepts the colours of HTML, which may lack their hash.
func hexColor(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	if _, err := strconv.ParseUint(s, 16, 32); err == nil && (len(s) == 6 || len(s) == 3) {
		return "#" + s
	}
	return s
}

// inherit sets what an element has from its parent unless it says otherwise.
func (s *style) inherit(d *declarations, parent style) {
	switch d[visibility].value {
	case "hidden", "collapse":
		s.invisible = true
	case "visible", "initial", "unset":
		s.invisible = d[visibility].value == "unset" && parent.invisible
	}
	size := d[fontSize].value
	if d[fontShorthand].weight > d[fontSize].weight {
		size = shorthandSize(d[fontShorthand].value)
	}
	if px, ok := fontPixels(size, parent.font); ok {
		s.font = px
	}
	if v := d[colorText].value; v != "" && v != "inherit" {
		s.color = parseColor(v)
	} else if v == "inherit" {
		s.color = parent.color
	}
	ground, weight := d[backgroundColor].value, d[backgroundColor].weight
	if d[background].weight > weight {
		ground, weight = d[background].value, d[background].weight
	}
	switch {
	case ground == "":
	case strings.Contains(ground, "(") && !strings.Contains(ground, "rgb") && !strings.Contains(ground, "hsl"):
		s.ground = color{} // an image or a gradient
	case strings.Contains(ground, "url("):
		s.ground = color{}
	default:
		if c, ok := groundColor(ground); ok {
			s.ground = c
		}
	}
	if image := d[backgroundImage]; image.weight >= weight && strings.Contains(image.value, "(") {
		s.ground = color{}
	}
	switch v := d[whiteSpace].value; {
	case strings.HasPrefix(v, "pre"), v == "break-spaces":
		s.pre = true
	case v == "normal", v == "nowrap", v == "initial":
		s.pre = false
	}
}

// hides reports whether declarations take an element and all in it out of sight.
func hides(d *declarations, tag string) bool {
	if v := d[display].value; v == "none" {
		return true
	}
	if d[msoHide].value == "all" && tag != "a" {
		// Buttons that Outlook draws in its own way are links with mso-hide,
		// which everyone else sees.
		return true
	}
	if v, ok := fraction(d[opacity].value); ok && v <= 0.01 {
		return true
	}
	if v := strings.ReplaceAll(d[filter].value, " ", ""); strings.Contains(v, "opacity(0)") || strings.Contains(v, "opacity(0%)") || strings.Contains(v, "alpha(opacity=0)") {
		return true
	}
	if v := strings.ReplaceAll(d[transform].value, " ", ""); strings.Contains(v, "scale(0)") || strings.Contains(v, "scale(0,0)") {
		return true
	}
	if atMost(d[maxHeight].value, 0) || atMost(d[maxWidth].value, 0) && clips(d) {
		return true
	}
	if clips(d) && (atMost(d[width].value, 1) || atMost(d[height].value, 1) || atMost(d[maxHeight].value, 1)) {
		return true
	}
	if farOff(d[textIndent].value) || farOff(d[marginLeft].value) || farOff(d[marginTop].value) {
		return true
	}
	if pos := d[position].value; pos == "absolute" || pos == "fixed" {
		for _, side := range []property{left, top, right, bottom} {
			if farOff(d[side].value) {
				return true
			}
		}
		if rect, ok := strings.CutPrefix(d[clip].value, "rect("); ok && emptyRect(strings.TrimSuffix(rect, ")")) {
			return true
		}
	}
	if inset, ok := strings.CutPrefix(d[clipPath].value, "inset("); ok {
		if v, ok := fraction(strings.TrimRight(inset, ") ")); ok && v >= 0.5 && strings.Contains(inset, "%") {
			return true
		}
	}
	return strings.HasPrefix(d[clipPath].value, "circle(0")
}

func clips(d *declarations) bool {
	for _, p := range []property{overflow, overflowX, overflowY} {
		if v := d[p].value; strings.HasPrefix(v, "hidden") || strings.HasPrefix(v, "clip") {
			return true
		}
	}
	return false
}

// emptyRect reports whether the four sides of a clip leave at most a pixel.
func emptyRect(sides string) bool {
	f := strings.FieldsFunc(sides, func(r rune) bool { return r == ',' || r == ' ' })
	if len(f) != 4 {
		return false
	}
	var v [4]float64
	for i := range f {
		n, ok := pixels(f[i], normalFont)
		if !ok {
			return false
		}
		v[i] = n
	}
	return v[1]-v[3] <= 1 || v[2]-v[0] <= 1
}

// atMost reports whether a length is given and not above a number of pixels.
func atMost(s string, limit float64) bool {
	v, ok := pixels(s, normalFont)
	return ok && v >= 0 && v <= limit
}

// farOff reports whether a length moves something off any screen.
func farOff(s string) bool {
	v, ok := pixels(s, normalFont)
	if strings.HasSuffix(s, "%") {
		return ok && v <= -100
	}
	return ok && (v <= -500 || v >= 5000)
}
