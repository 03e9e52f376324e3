package message

import (
	"strconv"
	"strings"
)

// Bounds of a style sheet; what is beyond them is not applied.
const (
	maxCSS       = 256 << 10
	maxSelectors = 4000
)

// sheet holds the rules of the style blocks of a document whose selector is a
// single tag, class or id, or a tag with one of the others.
type sheet struct {
	rules  map[string]*declarations // by selector: "p", ".note", "#top", "p.note"
	paints map[string]bool          // tags, classes and ids that a rule which is not understood may give a background
	order  uint64
}

func newSheet() *sheet {
	return &sheet{rules: map[string]*declarations{}, paints: map[string]bool{}}
}

var commentMarks = strings.NewReplacer("<!--", "", "-->", "")

// addBlock reads the text of one style block.
func (sh *sheet) addBlock(css string) {
	css = stripComments(css)
	sh.block(commentMarks.Replace(css), 0)
}

// block reads rules. Those of a media query that not every screen meets, and
// those in blocks of blocks, are left out.
func (sh *sheet) block(css string, depth int) {
	const deepest = 3
	for css != "" {
		open := strings.IndexByte(css, '{')
		if open < 0 {
			return
		}
		selector := css[:open]
		if i := strings.LastIndexByte(selector, ';'); i >= 0 { // @import and the like
			selector = selector[i+1:]
		}
		selector = strings.ToLower(strings.TrimSpace(selector))
		end := blockEnd(css, open)
		body := strings.TrimSuffix(css[open+1:end], "}")
		css = css[end:]
		if strings.HasPrefix(selector, "@") {
			if media, ok := strings.CutPrefix(selector, "@media"); ok && anyScreen(media) && depth < deepest {
				sh.block(body, depth+1)
			}
			continue
		}
		sh.rule(selector, body)
	}
}

// blockEnd returns the offset behind the brace that closes the one at open.
func blockEnd(css string, open int) int {
	depth := 0
	for i := open; i < len(css); i++ {
		switch css[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(css)
}

func anyScreen(media string) bool {
	switch strings.TrimSpace(media) {
	case "", "all", "screen", "only screen", "screen, print", "all, screen":
		return true
	}
	return false
}

func (sh *sheet) rule(selectors, body string) {
	sh.order++
	var d declarations
	if !d.add(body, sh.order) {
		return
	}
	paints := d[background].weight > 0 || d[backgroundColor].weight > 0 || d[backgroundImage].weight > 0
	for one := range strings.SplitSeq(selectors, ",") {
		one = strings.TrimSpace(one)
		if !isSimple(one) || len(sh.rules) >= maxSelectors {
			if paints && len(sh.paints) < maxSelectors {
				sh.paints[subject(one)] = true
			}
			continue
		}
		rule := sh.rules[one]
		if rule == nil {
			rule = new(declarations)
			sh.rules[one] = rule
		}
		for p := range d {
			if d[p].weight > 0 {
				rule.set(property(p), d[p].value, d[p].weight)
			}
		}
	}
}

// subject returns a tag, class or id that every element has to which a selector
// applies: "*" when there is none.
func subject(selector string) string {
	if i := strings.LastIndexAny(selector, " >+~\t\n"); i >= 0 {
		selector = selector[i+1:]
	}
	selector, _, _ = strings.Cut(selector, ":")
	selector, _, _ = strings.Cut(selector, "[")
	if i := strings.LastIndexAny(selector, ".#"); i >= 0 {
		selector = selector[i:]
	}
	if !isSimple(selector) {
		return "*"
	}
	return selector
}

// isSimple reports whether a selector is one tag, class or id, or a tag with
// one class or id.
func isSimple(s string) bool {
	marks := 0
	for i := range len(s) {
		switch c := s[i]; {
		case c == '.' || c == '#':
			marks++
		case c == '*' && len(s) == 1:
		case c == '-' || c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 0x80:
		default:
			return false
		}
	}
	return s != "" && marks <= 1 && len(s) <= 200 && !strings.HasSuffix(s, ".") && !strings.HasSuffix(s, "#")
}

// apply adds the rules that match an element.
func (sh *sheet) apply(d *declarations, tag, classes, id string) {
	if len(sh.rules) == 0 && len(sh.paints) == 0 {
		return
	}
	match := func(selector string, specificity uint64) {
		if sh.paints[selector] {
			d.set(backgroundImage, "url()", 1)
		}
		if rule := sh.rules[selector]; rule != nil {
			d.merge(rule, specificity)
		}
	}
	match("*", 0)
	match(tag, ofTag)
	for class := range strings.FieldsSeq(strings.ToLower(classes)) {
		if len(class) <= 200 {
			match("."+class, ofClass)
			match(tag+"."+class, ofTagClass)
		}
	}
	if id = strings.ToLower(strings.TrimSpace(id)); id != "" && len(id) <= 200 {
		match("#"+id, ofID)
		match(tag+"#"+id, ofTagID)
	}
}

// stripComments removes the comments of CSS; one that is not closed goes to the
// end.
func stripComments(css string) string {
	if !strings.Contains(css, "/*") {
		return css
	}
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(css, "/*")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		_, css, _ = strings.Cut(rest, "*/")
	}
}

// fraction parses a number or a percentage, which is a hundredth.
func fraction(s string) (float64, bool) {
	if p, ok := strings.CutSuffix(s, "%"); ok {
		v, err := strconv.ParseFloat(p, 64)
		return v / 100, err == nil
	}
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil
}

// units are lengths in pixels; those of the font and the screen are guesses.
var units = []struct {
	name   string
	pixels float64
}{
	{"px", 1}, {"pt", 4.0 / 3}, {"pc", 16}, {"cm", 37.8}, {"mm", 3.78}, {"in", 96}, {"vmin", 8}, {"vmax", 12}, {"vw", 12}, {"vh", 8},
}

// pixels converts a length; one without a unit is pixels, as mail programs read
// it. A percentage is no length, except none.
func pixels(s string, font float64) (float64, bool) {
	if s == "" || len(s) > 32 {
		return 0, false
	}
	scale := 1.0
	number := s
	switch {
	case strings.HasSuffix(s, "%"):
		v, err := strconv.ParseFloat(strings.TrimSuffix(s, "%"), 64)
		return v, err == nil && v <= 0
	case strings.HasSuffix(s, "rem"):
		number, scale = strings.TrimSuffix(s, "rem"), normalFont
	case strings.HasSuffix(s, "em"):
		number, scale = strings.TrimSuffix(s, "em"), font
	case strings.HasSuffix(s, "ex"), strings.HasSuffix(s, "ch"):
		number, scale = s[:len(s)-2], font/2
	default:
		for _, u := range units {
			if n, ok := strings.CutSuffix(s, u.name); ok {
				number, scale = n, u.pixels
				break
			}
		}
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	return v * scale, err == nil
}

// fontPixels returns a font size in pixels.
func fontPixels(s string, parent float64) (float64, bool) {
	switch s {
	case "", "inherit":
		return 0, false
	case "xx-small", "x-small", "small", "medium", "large", "x-large", "xx-large", "xxx-large", "initial", "smaller", "larger":
		return normalFont, true
	}
	if p, ok := strings.CutSuffix(s, "%"); ok {
		v, err := strconv.ParseFloat(p, 64)
		return parent * v / 100, err == nil && v >= 0
	}
	v, ok := pixels(s, parent)
	return v, ok && v >= 0
}

// shorthandSize finds the size in a font shorthand: "bold 12px/1.5 Arial".
func shorthandSize(s string) string {
	for word := range strings.FieldsSeq(s) {
		size, line, slash := strings.Cut(word, "/")
		if v, ok := pixels(size, normalFont); ok && (slash && line != "" || v < 100 || strings.HasSuffix(size, "px")) {
			return size
		}
		if strings.HasSuffix(size, "%") {
			return size
		}
	}
	return ""
}

// color is a colour, when it is known to be one opaque colour; clear is one
// that cannot be seen at all.
type color struct {
	r, g, b      uint8
	known, clear bool
}

// near reports whether two colours cannot be told apart by eye.
func (c color) near(o color) bool {
	const step = 3
	return diff(c.r, o.r) <= step && diff(c.g, o.g) <= step && diff(c.b, o.b) <= step
}

func diff(a, b uint8) int { return max(int(a)-int(b), int(b)-int(a)) }

var colorNames = map[string]uint32{
	"white": 0xffffff, "black": 0x000000, "red": 0xff0000, "green": 0x008000, "blue": 0x0000ff,
	"yellow": 0xffff00, "gray": 0x808080, "grey": 0x808080, "silver": 0xc0c0c0, "maroon": 0x800000,
	"navy": 0x000080, "purple": 0x800080, "teal": 0x008080, "olive": 0x808000, "lime": 0x00ff00,
	"aqua": 0x00ffff, "cyan": 0x00ffff, "fuchsia": 0xff00ff, "magenta": 0xff00ff, "orange": 0xffa500,
	"whitesmoke": 0xf5f5f5, "gainsboro": 0xdcdcdc, "lightgray": 0xd3d3d3, "lightgrey": 0xd3d3d3,
	"darkgray": 0xa9a9a9, "darkgrey": 0xa9a9a9, "dimgray": 0x696969, "snow": 0xfffafa, "ivory": 0xfffff0,
	"ghostwhite": 0xf8f8ff, "floralwhite": 0xfffaf0, "azure": 0xf0ffff, "mintcream": 0xf5fffa,
	"aliceblue": 0xf0f8ff, "seashell": 0xfff5ee, "beige": 0xf5f5dc, "linen": 0xfaf0e6, "honeydew": 0xf0fff0,
	"lightyellow": 0xffffe0, "lightblue": 0xadd8e6, "pink": 0xffc0cb, "brown": 0xa52a2a, "gold": 0xffd700,
	"darkblue": 0x00008b, "darkred": 0x8b0000, "darkgreen": 0x006400,
}

// parseColor reads a colour of CSS; one that it does not know is unknown.
func parseColor(s string) color {
	s = strings.TrimSpace(s)
	if s == "transparent" {
		return color{clear: true}
	}
	if v, ok := colorNames[s]; ok {
		return rgb(v)
	}
	if digits, ok := strings.CutPrefix(s, "#"); ok {
		if len(digits) == 3 || len(digits) == 4 {
			var long []byte
			for i := range len(digits) {
				long = append(long, digits[i], digits[i])
			}
			digits = string(long)
		}
		v, err := strconv.ParseUint(digits, 16, 32)
		switch {
		case err == nil && len(digits) == 6:
			return rgb(uint32(v))
		case err == nil && len(digits) == 8:
			return withAlpha(rgb(uint32(v>>8)), float64(v&0xff)/255)
		}
		return color{}
	}
	if args, ok := strings.CutPrefix(s, "hsl"); ok {
		return parseHSL(args)
	}
	if args, ok := strings.CutPrefix(s, "rgb"); ok {
		args = strings.Trim(strings.TrimPrefix(args, "a"), "() ")
		f := strings.FieldsFunc(args, func(r rune) bool { return r == ',' || r == ' ' || r == '/' })
		if len(f) < 3 || len(f) > 4 {
			return color{}
		}
		var v uint32
		for _, word := range f[:3] {
			n, ok := fraction(word)
			if !ok {
				return color{}
			}
			if strings.HasSuffix(word, "%") {
				n *= 255
			}
			v = v<<8 | uint32(min(max(n, 0), 255))
		}
		alpha := 1.0
		if len(f) == 4 {
			if alpha, ok = fraction(f[3]); !ok {
				return color{}
			}
		}
		return withAlpha(rgb(v), alpha)
	}
	return color{}
}

// parseHSL reads what stands behind "hsl". Only greys are worth the arithmetic:
// nobody hides text in another colour that way on a ground written otherwise.
func parseHSL(args string) color {
	args = strings.Trim(strings.TrimPrefix(args, "a"), "() ")
	f := strings.FieldsFunc(args, func(r rune) bool { return r == ',' || r == ' ' || r == '/' })
	if len(f) < 3 || len(f) > 4 {
		return color{}
	}
	saturation, ok1 := fraction(f[1])
	lightness, ok2 := fraction(f[2])
	alpha, ok3 := 1.0, true
	if len(f) == 4 {
		alpha, ok3 = fraction(f[3])
	}
	if !ok1 || !ok2 || !ok3 {
		return color{}
	}
	lightness = min(max(lightness, 0), 1)
	if saturation > 0 && lightness > 0 && lightness < 1 && alpha > 0.01 {
		return color{}
	}
	grey := uint32(lightness * 255)
	return withAlpha(rgb(grey<<16|grey<<8|grey), alpha)
}

func rgb(v uint32) color {
	return color{r: uint8(v >> 16), g: uint8(v >> 8), b: uint8(v), known: true}
}

func withAlpha(c color, alpha float64) color {
	switch {
	case alpha <= 0.01:
		return color{clear: true}
	case alpha < 1:
		return color{}
	}
	return c
}

// groundColor reads the colour of a background, which may stand among other
// words; ok is false when it leaves what is behind it to be seen.
func groundColor(s string) (c color, ok bool) {
	if strings.HasPrefix(s, "rgb") || strings.HasPrefix(s, "hsl") {
		if i := strings.IndexByte(s, ')'); i >= 0 {
			s = s[:i+1]
		}
		c = parseColor(s)
		return c, !c.clear
	}
	for word := range strings.FieldsSeq(s) {
		switch word {
		case "none", "transparent", "inherit", "initial", "unset":
			continue
		}
		if c = parseColor(word); c.known {
			return c, true
		}
		if c.clear {
			return color{}, false
		}
		if strings.HasPrefix(word, "#") {
			return color{}, true
		}
	}
	// Words such as "none", and colours that are not known by name.
	switch strings.TrimSpace(s) {
	case "none", "transparent", "inherit", "initial", "unset":
		return color{}, false
	}
	return color{}, true
}
