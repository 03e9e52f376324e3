package visible

import "strings"

// property is one that decides whether a person sees something.
type property uint8

const (
	display property = iota
	visibility
	opacity
	zoom
	fontSize
	lineHeight
	letterSpacing
	width
	height
	maxWidth
	maxHeight
	overflowX
	overflowY
	textIndent
	position
	float
	left
	top
	right
	bottom
	marginLeft
	marginTop
	colorText
	backgroundColor
	backgroundImage
	whiteSpace
	clip
	animation
	exoticFirst // and one for each of exoticNames
)

// exoticNames are the properties that hide whatever they say, unless that is to do
// nothing.
var exoticNames = [...]string{"-webkit-text-fill-color", "background-clip", "-webkit-background-clip", "content", "content-visibility", "contain", "-webkit-text-security",
	"transform", "-webkit-transform", "translate", "scale", "rotate", "clip-path", "-webkit-clip-path", "mask", "-webkit-mask", "mask-image", "-webkit-mask-image",
	"filter", "-webkit-filter", "offset-path", "offset", "all"}

const properties = exoticFirst + property(len(exoticNames)) // how many there are

// cssValue is what was declared: a keyword in lower case, a quantity, or colours.
type cssValue struct {
	word   string
	n      float64
	unit   string  // of n: "px", "em", "rem", "%", or "" for a number
	color  color   // of the text or the ground
	colors []color // of a gradient
	image  bool    // a picture or a gradient
	worst  bool    // it was exotic, and stands for what hides most
}

// declaration is a property with its value.
type declaration struct {
	prop      property
	important bool
	doubt     bool // valid in some mail programs only, or exotic
	value     cssValue
	order     uint64
}

// grammar reads the value of a property. The truth is no when it is not valid,
// and doubtful when not every mail program takes it for valid, or it is exotic.
type grammar func(parts []component) (cssValue, truth)

// inherited reports whether elements have a property from those around them when
// nothing else is said.
func (p property) inherited() bool {
	switch p {
	case visibility, fontSize, lineHeight, letterSpacing, textIndent, colorText, whiteSpace:
		return true
	}
	return false
}

// worst returns the value of a property that hides, or helps to.
func worst(p property) cssValue {
	v := cssValue{worst: true}
	switch p {
	case display:
		v.word = "none"
	case visibility, overflowX, overflowY:
		v.word = "hidden"
	case letterSpacing, textIndent, left, top, marginLeft, marginTop:
		v.n, v.unit = -9999, "px"
	case right, bottom:
		v.n, v.unit = 9999, "px"
	case position:
		v.word = "absolute"
	case float:
		v.word = "left"
	case colorText:
		v.color = color{known: true}
	case backgroundColor, backgroundImage, opacity, zoom, whiteSpace:
	case fontSize, lineHeight, width, height, maxWidth, maxHeight:
		v.unit = "px"
	default:
		v.word = "hides"
	}
	return v
}

const sizeWords = "auto none normal min-content max-content fit-content stretch -webkit-fill-available -moz-available"

var (
	displayWords   = words("none contents block inline inline-block flow-root list-item table inline-table table-row-group table-header-group table-footer-group table-row table-cell table-column-group table-column table-caption flex inline-flex grid inline-grid -webkit-box -webkit-inline-box -webkit-flex -webkit-inline-flex")
	readOverflow   = words("visible hidden clip scroll auto overlay -webkit-paged-x -webkit-paged-y")
	readOffset     = length("-%", "auto")
	readExtent     = length("%", sizeWords)
	readFontSize   = length("%", "xx-small x-small small medium large x-large xx-large xxx-large smaller larger")
	readLineHeight = length("%n", "normal")
	// knownFunctions are read, or belong to Internet Explorer.
	knownFunctions = setOf("rgb rgba hsl hsla from to color-stop alpha")
	nothing        = setOf("none normal visible auto currentcolor border-box padding-box content-box")
)

// longhand is a property with one value of its own.
type longhand struct {
	prop property
	read grammar
}

// longhands are the properties with one value of their own, by every name they
// have. Those that depend on the direction of writing are taken as for English.
var longhands = func() map[string]longhand {
	all := map[string]longhand{}
	for names, one := range map[string]longhand{
		"display":                         {display, displayWords},
		"visibility":                      {visibility, words("visible hidden collapse")},
		"opacity -webkit-opacity":         {opacity, ratio},
		"zoom":                            {zoom, ratio},
		"font-size":                       {fontSize, readFontSize},
		"line-height":                     {lineHeight, readLineHeight},
		"letter-spacing":                  {letterSpacing, length("-", "normal")},
		"width inline-size":               {width, readExtent},
		"height block-size":               {height, readExtent},
		"max-width max-inline-size":       {maxWidth, readExtent},
		"max-height max-block-size":       {maxHeight, readExtent},
		"overflow-x overflow-inline":      {overflowX, readOverflow},
		"overflow-y overflow-block":       {overflowY, readOverflow},
		"text-indent":                     {textIndent, length("-%", "")},
		"position":                        {position, words("static relative absolute fixed sticky -webkit-sticky")},
		"float":                           {float, words("none left right inline-start inline-end")},
		"left inset-inline-start":         {left, readOffset},
		"right inset-inline-end":          {right, readOffset},
		"top inset-block-start":           {top, readOffset},
		"bottom inset-block-end":          {bottom, readOffset},
		"margin-left margin-inline-start": {marginLeft, readOffset},
		"margin-top margin-block-start":   {marginTop, readOffset},
		"color":                           {colorText, readColor},
		"background-color":                {backgroundColor, readColor},
		"background-image":                {backgroundImage, readImages},
		"white-space":                     {whiteSpace, words("normal nowrap pre pre-wrap pre-line break-spaces")},
		"clip":                            {clip, readClip},
		"animation-name animation -webkit-animation-name -webkit-animation": {animation, readAnimation},
	} {
		for name := range strings.FieldsSeq(names) {
			all[name] = one
		}
	}
	for i, name := range exoticNames {
		all[name] = longhand{exoticFirst + property(i), exotic}
	}
	return all
}()

// shorthands are the properties that set others, with those that they set.
var shorthands = map[string]struct {
	sets []property
	read func(parts []component) ([]cssValue, truth)
}{
	"font":          {[]property{fontSize, lineHeight}, readFont},
	"overflow":      {[]property{overflowX, overflowY}, sides(readOverflow, 2, 0, 1)},
	"margin":        {[]property{marginTop, marginLeft}, sides(readOffset, 4, 0, 3)},
	"margin-inline": {[]property{marginLeft}, sides(readOffset, 2, 0)},
	"margin-block":  {[]property{marginTop}, sides(readOffset, 2, 0)},
	"inset":         {[]property{top, right, bottom, left}, sides(readOffset, 4, 0, 1, 2, 3)},
	"inset-inline":  {[]property{left, right}, sides(readOffset, 2, 0, 1)},
	"inset-block":   {[]property{top, bottom}, sides(readOffset, 2, 0, 1)},
	"background":    {[]property{backgroundColor, backgroundImage}, readBackground},
}

func isProperty(name string) bool {
	if _, ok := longhands[name]; ok {
		return true
	}
	_, ok := shorthands[name]
	return ok
}

// isWide reports whether a keyword is one that every property takes.
func isWide(word string) bool {
	return word == "initial" || word == "inherit" || word == "unset" || word == "revert"
}

// parseDeclaration parses the tokens behind the colon: nothing when they are not
// valid. The name is in lower case.
func parseDeclaration(name string, toks []token) []declaration {
	important := false
	if n := len(toks); n > 1 && toks[n-1].word() == "important" {
		if rest := trimTokens(toks[:n-1]); len(rest) > 0 && rest[len(rest)-1].is("!") {
			toks, important = trimTokens(rest[:len(rest)-1]), true
		}
	}
	parts := componentsOf(toks)
	if len(parts) == 0 {
		return nil
	}
	long := longhands[name]
	short, isShort := shorthands[name]
	props := short.sets
	if !isShort {
		props = []property{long.prop}
	}
	values := make([]cssValue, len(props))
	sure := yes
	switch word := parts[0].word(); {
	case len(parts) == 1 && isWide(word) && name != "all":
		for i := range values {
			values[i].word = word
		}
	case isShort:
		values, sure = short.read(parts)
	default:
		values[0], sure = long.read(parts)
	}
	if sure != yes && (substitutes(toks) || (props[0] == colorText || props[0] == backgroundColor) && parts[0].kind == tokenFunction) {
		values, sure = make([]cssValue, len(props)), doubtful
		for i, p := range props {
			values[i] = worst(p)
		}
	}
	if sure == no {
		return nil
	}
	all := make([]declaration, len(props))
	for i, p := range props {
		all[i] = declaration{prop: p, important: important, value: values[i], doubt: sure == doubtful}
		if values[i].word == "inherit" && !p.inherited() && p != display && p != backgroundColor && p != backgroundImage {
			all[i].value, all[i].doubt = worst(p), true
		}
	}
	return all
}

// substitutes reports whether a value holds a function whose result is not worked
// out here, or a unit of that kind.
func substitutes(toks []token) bool {
	for _, t := range toks {
		switch name := t.calls(); {
		case t.kind == tokenDimension && exoticUnits[t.text]:
			return true
		case name != "" && !isImage(t) && !knownFunctions[name]:
			return true
		}
	}
	return false
}

// words is the grammar of a property that takes one of some keywords.
func words(list string) grammar {
	set := setOf(list)
	return func(parts []component) (cssValue, truth) {
		w := parts[0].word()
		return cssValue{word: w}, truthOf(len(parts) == 1 && set[w])
	}
}

// exotic is the grammar of a property that hides unless it says to do nothing.
func exotic(parts []component) (cssValue, truth) {
	if nothing[parts[0].word()] && len(parts) == 1 {
		return cssValue{word: "none"}, yes
	}
	for _, c := range parts {
		if c.word() == "progid" || c.calls() == "alpha" { // of Internet Explorer
			return cssValue{}, no
		}
	}
	return cssValue{word: "hides"}, yes
}

// readAnimation finds the names of animations: every word may be one.
func readAnimation(parts []component) (cssValue, truth) {
	var names []string
	for _, c := range parts {
		if c.kind == tokenIdent || c.kind == tokenString {
			names = append(names, c.text)
		}
	}
	return cssValue{word: strings.Join(names, " ")}, yes
}

// readClip reads rect(top, right, bottom, left), in which nothing is left to see
// where an edge is at most a pixel behind the one across.
func readClip(parts []component) (cssValue, truth) {
	if len(parts) != 1 {
		return cssValue{}, no
	}
	if parts[0].calls() != "rect" {
		return cssValue{word: "none"}, truthOf(parts[0].word() == "auto")
	}
	var edges []cssValue
	for _, c := range componentsOf(parts[0].args) {
		if c.is(",") {
			continue
		}
		v, sure := readOffset([]component{c})
		if sure == no || v.unit == "%" {
			return cssValue{}, no
		}
		edges = append(edges, v)
	}
	if len(edges) != 4 {
		return cssValue{}, no
	}
	px := func(i int) float64 { return edges[i].pixels(normalFont, normalFont, 0) }
	closed := func(from, to int) bool { return edges[to].word != "auto" && px(to)-px(from) <= 1 }
	if closed(0, 2) || closed(3, 1) || edges[0].word != "auto" && px(0) > 500 || edges[3].word != "auto" && px(3) > 500 {
		return cssValue{word: "hides"}, yes
	}
	return cssValue{word: "none"}, yes
}
