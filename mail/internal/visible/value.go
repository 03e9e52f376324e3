package visible

import (
	"slices"
	"strings"
)

// grammar reads the value of a property. The truth is no for a value that is not valid,
// and doubtful when not every mail program takes it for valid, or it is exotic.
type grammar func(parts []token) (cssValue, truth)

// unitPixels are the sizes of absolute units and of units of the window, in pixels.
var unitPixels = map[string]float64{
	"px": 1, "pt": 4. / 3, "pc": 16, "in": 96, "cm": 96 / 2.54, "mm": 96 / 25.4, "q": 96 / 101.6,
	"vw": screenWidth / 100., "vh": screenHeight / 100., "vi": screenWidth / 100., "vb": screenHeight / 100., "vmin": screenHeight / 100., "vmax": screenWidth / 100.,
}

// fontUnits are the sizes of units that depend on the font, in sizes of the font.
var fontUnits = map[string]float64{"em": 1, "ex": 0.5, "ch": 0.5, "cap": 0.7, "ic": 1, "lh": 1.2}

var exoticUnits = setOf("cqw cqh cqi cqb cqmin cqmax rlh rcap ric rex rch dvw dvh dvi dvb dvmin dvmax lvw lvh lvi lvb lvmin lvmax svw svh svi svb svmin svmax")

func setOf(words string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		set[w] = true
	}
	return set
}

// words is the grammar of a property that takes one of some keywords.
func words(list string) grammar {
	set := setOf(list)
	return func(parts []token) (cssValue, truth) {
		w := parts[0].word()
		return keyword(w), truthOf(len(parts) == 1 && set[w])
	}
}

// exotic is the grammar of a property that hides unless its value is one of those that
// do nothing. Values for Internet Explorer are not valid.
func exotic(nothing string) grammar {
	set := setOf(nothing)
	return func(parts []token) (cssValue, truth) {
		if len(parts) == 1 && parts[0].kind != tokenString && set[strings.ToLower(parts[0].text)] {
			return keyword("none"), yes
		}
		for _, t := range parts {
			if t.word() == "progid" || t.calls() == "alpha" {
				return cssValue{}, no
			}
		}
		return keyword("hides"), yes
	}
}

// length is the grammar of a property that takes a length, or one of some
// keywords. Options: "-" for negative ones, "%" for percentages, "n" for numbers.
func length(options, keywords string) grammar {
	set := setOf(keywords)
	return func(parts []token) (cssValue, truth) {
		t := parts[0]
		v := px(t.n)
		sure := truthOf(len(parts) == 1)
		switch t.kind {
		case tokenIdent:
			return keyword(t.word()), min(sure, truthOf(set[t.word()]))
		case tokenNumber:
			if strings.Contains(options, "n") {
				v.unit = ""
			} else if t.n != 0 { // pixels, where a mail is shown as it is
				sure = min(sure, doubtful)
			}
		case tokenPercent:
			v.unit = "%"
			sure = min(sure, truthOf(strings.Contains(options, "%")))
		case tokenDimension:
			if fontUnits[t.unit] != 0 {
				v.n, v.unit = v.n*fontUnits[t.unit], "em"
			} else if t.unit == "rem" {
				v.unit = t.unit
			} else if v.n *= unitPixels[t.unit]; unitPixels[t.unit] == 0 {
				return v, no
			}
		default:
			return v, no
		}
		if v.n < 0 && !strings.Contains(options, "-") {
			return v, no
		}
		return v, sure
	}
}

// pixels returns a quantity in pixels for a font, the font of the document, and
// what percentages are parts of; 0 for a keyword.
func (v cssValue) pixels(font, root, base float64) float64 {
	switch v.unit {
	case "em":
		return v.n * font
	case "rem":
		return v.n * root
	case "%":
		return v.n * base / 100
	}
	return v.n
}

// readRatio reads a number or a percentage.
func readRatio(parts []token) (cssValue, truth) {
	switch t := parts[0]; {
	case len(parts) == 1 && t.kind == tokenNumber:
		return cssValue{n: t.n}, yes
	case len(parts) == 1 && t.kind == tokenPercent:
		return cssValue{n: t.n / 100}, yes
	}
	return cssValue{}, no
}

var (
	fontWords      = map[string]float64{"xx-small": 9, "x-small": 10, "small": 13, "medium": 16, "large": 18, "x-large": 24, "xx-large": 32, "xxx-large": 48}
	fontStyles     = setOf("normal italic oblique bold bolder lighter small-caps condensed expanded")
	readFontSize   = length("%", "xx-small x-small small medium large x-large xx-large xxx-large smaller larger")
	readLineHeight = length("%n", "normal")
)

// readFont reads the font shorthand: its size, and the height of a line.
func readFont(parts []token) ([]cssValue, truth) {
	at := slices.IndexFunc(parts, func(t token) bool {
		return !fontStyles[t.word()] && (t.kind != tokenNumber || t.n < 1 || t.n > 1000) // a weight
	})
	if at < 0 || at > 4 {
		return nil, no
	}
	size, sure := readFontSize(parts[at : at+1])
	line := keyword("normal")
	family := parts[at+1:]
	if len(family) > 1 && family[0].is("/") {
		var sureOfLine truth
		line, sureOfLine = readLineHeight(family[1:2])
		sure, family = min(sure, sureOfLine), family[2:]
	}
	due := true // the name of a font
	for _, t := range family {
		switch {
		case t.is(",") && !due:
			due = true
		case t.kind == tokenIdent, t.kind == tokenString && due:
			due = false
		default:
			return nil, no
		}
	}
	return []cssValue{size, line}, truthOf(sure == yes && !due)
}

// readColor reads a colour. Where a mail is shown as it is, the hash may be missing.
func readColor(parts []token) (cssValue, truth) {
	if len(parts) != 1 {
		return cssValue{}, no
	}
	t := parts[0]
	if c, ok := parseColor(t); ok {
		return cssValue{color: c}, yes
	}
	if c, ok := hexColor(t.text); ok && t.kind != tokenHash && (len(t.text) == 3 || len(t.text) == 6) {
		return cssValue{color: c}, doubtful
	}
	return cssValue{}, no
}

var imageFunctions = setOf("url linear-gradient radial-gradient conic-gradient image-set gradient")

func isImage(t token) bool {
	name := t.calls()
	for _, prefix := range []string{"-webkit-", "-moz-", "repeating-"} {
		name = strings.TrimPrefix(name, prefix)
	}
	return t.kind == tokenURL || imageFunctions[name]
}

// readImages reads a list of pictures. Of gradients it keeps the colours.
func readImages(parts []token) (cssValue, truth) {
	var v cssValue
	for i, t := range parts {
		switch {
		case i%2 == 1:
			if !t.is(",") {
				return v, no
			}
		case t.word() == "none":
		case isImage(t):
			found := colorsIn(t.args, 2)
			if strings.HasSuffix(t.calls(), "gradient") && len(found) < 2 || substitutes(t.args) {
				return v, doubtful
			}
			v.image, v.colors = true, append(v.colors, found...)
		default:
			return v, no
		}
	}
	return v, truthOf(len(parts)%2 == 1)
}

// colorsIn returns the colours of a gradient; from() and the like hold some too.
func colorsIn(args []token, depth int) []color {
	var all []color
	for _, t := range args {
		if one, ok := parseColor(t); ok {
			all = append(all, one)
		} else if depth > 0 {
			all = append(all, colorsIn(t.args, depth-1)...)
		}
	}
	return all
}

var backgroundWords = setOf("none repeat repeat-x repeat-y no-repeat space round scroll fixed local left right top bottom center auto cover contain border-box padding-box content-box")

// readBackground reads the shorthand: colour and pictures.
func readBackground(parts []token) ([]cssValue, truth) {
	ground, image := cssValue{color: color{known: true}}, cssValue{}
	painted := false
	for i, t := range parts {
		one, isColor := parseColor(t)
		_, isLength := readOffset(parts[i : i+1])
		switch {
		case t.is(",") && !painted: // only the last layer has a colour
		case isImage(t):
			v, sure := readImages(parts[i : i+1])
			if sure != yes {
				return nil, no
			}
			image.image, image.colors = true, append(image.colors, v.colors...)
		case isColor && !painted:
			ground.color, painted = one, true
		case t.is("/"), backgroundWords[t.word()], isLength == yes:
		default:
			v, sure := readColor(parts)
			return []cssValue{v, image}, sure
		}
	}
	return []cssValue{ground, image}, yes
}

// sides reads one value for each of some sides, as few as say it, and keeps those
// at some places.
func sides(read grammar, most int, places ...int) func(parts []token) ([]cssValue, truth) {
	return func(parts []token) ([]cssValue, truth) {
		sure := truthOf(len(parts) <= most)
		for i := range parts {
			_, one := read(parts[i : i+1])
			sure = min(sure, one)
		}
		var kept []cssValue
		for _, at := range places {
			for at >= len(parts) { // the side across, or the first
				at = max(at-2, 0)
			}
			v, _ := read(parts[at : at+1])
			kept = append(kept, v)
		}
		return kept, sure
	}
}
