package visible

import (
	"math"
	"slices"
	"strings"
)

// property is one that decides whether a person sees something.
type property uint8

const (
	display property = iota
	visibility
	opacity
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
	exoticFirst // and one for each of exoticNames
)

// cssValue is a declared value: a keyword in lower case, a quantity, or colours.
type cssValue struct {
	word   string
	n      float64
	unit   string  // of n: "px", "em", "rem", "%", or "" for a number
	color  color   // of the text or the ground
	colors []color // of a gradient
	image  bool    // a picture or a gradient
	worst  bool    // it replaces an exotic value, and hides most
}

func px(n float64) cssValue        { return cssValue{n: n, unit: "px"} }
func keyword(word string) cssValue { return cssValue{word: word} }

// movedFar is by how many pixels an element is moved where that may hide it, or bring back
// what another property moves away.
const movedFar = 100

// propertyRule describes a property. Colours and sizes of the font hide in
// pairs or step by step, so they have neither words nor bounds.
type propertyRule struct {
	names     string // those that depend on the direction of writing are taken as for English
	read      grammar
	inherited bool     // elements have it from those around them when nothing is said
	hiding    string   // keywords that hide, or help to
	low, high float64  // pixels at or beyond which a quantity hides, or helps to
	worst     cssValue // the value that an exotic one is taken for; nothing brings back what it moves away
}

var (
	infinite    = math.Inf(1)
	sizeWords   = "auto none normal min-content max-content fit-content stretch -webkit-fill-available -moz-available"
	readExtent  = length("%", sizeWords)
	readOffset  = length("-%", "auto")
	scrollWords = "hidden clip scroll auto overlay -webkit-paged-x -webkit-paged-y"
)

var propertyRules = [exoticFirst]propertyRule{
	display:         {"display", readDisplay, false, "none table-column table-column-group", 0, 0, keyword("none")},
	visibility:      {"visibility", words("visible hidden collapse"), true, "hidden collapse", 0, 0, keyword("hidden")},
	opacity:         {"opacity -webkit-opacity", readRatio, false, "", 0.99, infinite, cssValue{}},
	fontSize:        {"font-size", readFontSize, true, "", 0, 0, px(0)},
	lineHeight:      {"line-height", readLineHeight, true, "", 4, infinite, px(0)},
	letterSpacing:   {"letter-spacing", length("-", "normal"), true, "", -1.7, infinite, px(-infinite)},
	width:           {"width inline-size", readExtent, false, "", 1, infinite, px(0)},
	height:          {"height block-size", readExtent, false, "", 1, infinite, px(0)},
	maxWidth:        {"max-width max-inline-size", readExtent, false, "", 1, infinite, px(0)},
	maxHeight:       {"max-height max-block-size", readExtent, false, "", 1, infinite, px(0)},
	overflowX:       {"overflow-x overflow-inline", words("visible " + scrollWords), false, scrollWords, 0, 0, keyword("hidden")},
	overflowY:       {"overflow-y overflow-block", words("visible " + scrollWords), false, scrollWords, 0, 0, keyword("hidden")},
	textIndent:      {"text-indent", length("-%", ""), true, "", -1, movedFar, px(-infinite)},
	position:        {"position", words("static relative absolute fixed sticky -webkit-sticky"), false, "relative absolute fixed sticky -webkit-sticky", 0, 0, keyword("absolute")},
	left:            {"left inset-inline-start", readOffset, false, "", -1, movedFar, px(-infinite)},
	top:             {"top inset-block-start", readOffset, false, "", -1, movedFar, px(-infinite)},
	right:           {"right inset-inline-end", readOffset, false, "", -1, movedFar, px(infinite)},
	bottom:          {"bottom inset-block-end", readOffset, false, "", -1, movedFar, px(infinite)},
	marginLeft:      {"margin-left margin-inline-start", readOffset, false, "", -1, movedFar, px(-infinite)},
	marginTop:       {"margin-top margin-block-start", readOffset, false, "", -1, movedFar, px(-infinite)},
	colorText:       {"color", readColor, true, "", 0, 0, cssValue{color: color{known: true}}},
	backgroundColor: {"background-color", readColor, false, "", 0, 0, cssValue{}},
	backgroundImage: {"background-image", readImages, false, "", 0, 0, cssValue{}},
	whiteSpace:      {"white-space", words("normal nowrap pre pre-wrap pre-line break-spaces"), true, "", 0, 0, cssValue{}},
}

// exoticNames are the properties that hide, whatever their value, by the values that do
// nothing.
var exoticNames = map[string]string{
	"none": "-webkit-text-security transform -webkit-transform translate scale rotate clip-path -webkit-clip-path contain " +
		"mask -webkit-mask mask-image -webkit-mask-image filter -webkit-filter offset-path offset " +
		"animation animation-name -webkit-animation -webkit-animation-name",
	"auto 0 0px":                         "inset inset-inline inset-block margin-inline margin-block",
	"border-box padding-box content-box": "background-clip -webkit-background-clip",
	"currentcolor":                       "-webkit-text-fill-color",
	"none normal":                        "content",
	"visible auto":                       "content-visibility",
	"auto":                               "clip",
	"1 100% normal":                      "zoom",
	"":                                   "all",
}

// longhands are the properties with one value of their own, by name. Those of
// exoticNames stand in rules behind the others.
var rules, longhands = func() ([]propertyRule, map[string]property) {
	rules, byName := propertyRules[:], map[string]property{}
	for nothing, names := range exoticNames {
		for name := range strings.FieldsSeq(names) {
			rules = append(rules, propertyRule{names: name, read: exotic(nothing), hiding: "hides", worst: keyword("hides")})
		}
	}
	for i, rule := range rules {
		for name := range strings.FieldsSeq(rule.names) {
			byName[name] = property(i)
		}
	}
	return rules, byName
}()

// shorthands are the properties that set others.
var shorthands = map[string]struct {
	sets []property
	read func(parts []token) ([]cssValue, truth)
}{
	"font":       {[]property{fontSize, lineHeight}, readFont},
	"overflow":   {[]property{overflowX, overflowY}, sides(words("visible "+scrollWords), 2, 0, 1)},
	"margin":     {[]property{marginTop, marginLeft}, sides(readOffset, 4, 0, 3)},
	"background": {[]property{backgroundColor, backgroundImage}, readBackground},
}

// declaration is a property with its value.
type declaration struct {
	prop      property
	important bool
	doubt     bool // valid in some mail programs only, or exotic
	value     cssValue
	order     uint64
}

// isWide reports whether every property takes a keyword.
func isWide(word string) bool {
	return word == "initial" || word == "inherit" || word == "unset" || word == "revert"
}

// parseDeclaration parses a property, whose name is in lower case, with the tokens
// behind the colon: nothing when they are not valid.
func parseDeclaration(name string, parts []token) []declaration {
	important := false
	if n := len(parts) - 2; n >= 0 && parts[n].is("!") && parts[n+1].word() == "important" {
		parts, important = parts[:n], true
	}
	prop, isLong := longhands[name]
	short, isShort := shorthands[name]
	if len(parts) == 0 || !isLong && !isShort {
		return nil
	}
	props := short.sets
	if isLong {
		props = []property{prop}
	}
	values := make([]cssValue, len(props))
	sure := yes
	switch word := parts[0].word(); {
	case len(parts) == 1 && isWide(word) && name != "all":
		for i, p := range props {
			values[i].word = word
			if word == "inherit" && !rules[p].inherited && p != display && p != backgroundColor && p != backgroundImage {
				sure = doubtful
				values[i] = worst(p)
			}
		}
	case isShort:
		values, sure = short.read(parts)
	default:
		values[0], sure = rules[prop].read(parts)
	}
	colored := (props[0] == colorText || props[0] == backgroundColor) && parts[0].kind == tokenFunction
	if sure != yes && (colored || substitutes(parts)) {
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
	}
	return all
}

// worst returns what an exotic value of a property is taken for.
func worst(p property) cssValue {
	v := rules[p].worst
	v.worst = true
	return v
}

// knownFunctions are read, or belong to Internet Explorer.
var knownFunctions = setOf("rgb rgba hsl hsla from to color-stop alpha")

// substitutes reports whether a value holds a function whose result is not worked
// out here, or a unit of that kind.
func substitutes(parts []token) bool {
	return slices.ContainsFunc(parts, func(t token) bool {
		return exoticUnits[t.unit] || t.kind == tokenFunction && !isImage(t) && !knownFunctions[t.calls()] || substitutes(t.args)
	})
}
