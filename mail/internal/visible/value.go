package visible

import (
	"strconv"
	"strings"
)

// pixelsOf holds the units that are the same everywhere, in pixels.
var pixelsOf = map[string]float64{
	"px": 1, "pt": 4. / 3, "pc": 16, "in": 96, "cm": 96 / 2.54, "mm": 96 / 25.4, "q": 96 / 101.6,
	"vw": screenWidth / 100., "vh": screenHeight / 100., "vi": screenWidth / 100., "vb": screenHeight / 100., "vmin": screenHeight / 100., "vmax": screenWidth / 100.,
}

// fontUnits are those that depend on the font, in parts of its size.
var fontUnits = map[string]float64{"em": 1, "ex": 0.5, "ch": 0.5, "cap": 0.7, "ic": 1, "lh": 1.2}

var exoticUnits = setOf("cqw cqh cqi cqb cqmin cqmax rlh rcap ric rex rch")

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

// length is the grammar of a property that takes a length, or one of some
// keywords. Options: "-" for negative ones, "%" for percentages, "n" for numbers.
func length(options, keywords string) grammar {
	set := setOf(keywords)
	return func(parts []component) (cssValue, truth) {
		c := parts[0]
		if len(parts) != 1 {
			return cssValue{}, no
		}
		if set[c.word()] {
			return cssValue{word: c.word()}, yes
		}
		v := cssValue{n: c.n, unit: "px"}
		sure := yes
		switch c.kind {
		case tokenFunction:
			return v, doubtful
		case tokenNumber:
			if strings.Contains(options, "n") {
				v.unit = ""
			} else if c.n != 0 { // pixels, where a letter is shown as it is
				sure = doubtful
			}
		case tokenPercent:
			if v.unit = "%"; !strings.Contains(options, "%") {
				return v, no
			}
		case tokenDimension:
			unit := c.text
			if len(unit) > 2 && strings.ContainsRune("dls", rune(unit[0])) && strings.HasPrefix(unit[1:], "v") { // dvh, lvh, svh
				unit = unit[1:]
			}
			switch {
			case pixelsOf[unit] != 0:
				v.n *= pixelsOf[unit]
			case fontUnits[unit] != 0:
				v.n, v.unit = v.n*fontUnits[unit], "em"
			case unit == "rem":
				v.unit = unit
			case exoticUnits[unit]:
				return v, doubtful
			default:
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

// ratio is the grammar of a number or a percentage.
func ratio(parts []component) (cssValue, truth) {
	switch c := parts[0]; {
	case len(parts) != 1:
	case c.kind == tokenNumber:
		return cssValue{n: c.n}, yes
	case c.kind == tokenPercent:
		return cssValue{n: c.n / 100}, yes
	case c.word() == "normal" || c.word() == "reset":
		return cssValue{n: 1}, yes
	case c.kind == tokenFunction:
		return cssValue{}, doubtful
	}
	return cssValue{}, no
}

var fontWords = map[string]float64{"xx-small": 9, "x-small": 10, "small": 13, "medium": 16, "large": 18, "x-large": 24, "xx-large": 32, "xxx-large": 48}

var fontStyles = setOf("normal italic oblique bold bolder lighter small-caps condensed expanded")

// readFont reads the font shorthand: its size, and the height of a line.
func readFont(parts []component) ([]cssValue, truth) {
	for i, c := range parts {
		if fontStyles[c.word()] || c.kind == tokenNumber && c.n >= 1 && c.n <= 1000 { // a weight
			continue
		}
		size, sure := readFontSize(parts[i : i+1])
		if sure != yes || i > 4 {
			return nil, no
		}
		line := cssValue{word: "normal"}
		rest := parts[i+1:]
		if len(rest) > 1 && rest[0].is("/") {
			if line, sure = readLineHeight(rest[1:2]); sure != yes {
				return nil, no
			}
			rest = rest[2:]
		}
		return []cssValue{size, line}, truthOf(isFamily(rest))
	}
	return nil, no
}

// isFamily reports whether components name fonts.
func isFamily(parts []component) bool {
	due := true
	for _, c := range parts {
		switch {
		case c.is(",") && !due:
			due = true
		case c.kind == tokenIdent, c.kind == tokenString && due:
			due = false
		default:
			return false
		}
	}
	return !due
}

// readColor reads a colour. Where a letter is shown as it is, it may lack its hash.
func readColor(parts []component) (cssValue, truth) {
	if len(parts) != 1 {
		return cssValue{}, no
	}
	if c, ok := parseColor(parts[0]); ok {
		return cssValue{color: c}, yes
	}
	text := parts[0].text
	if parts[0].kind == tokenDimension {
		text = strconv.FormatFloat(parts[0].n, 'f', -1, 64) + text
	}
	c, ok := hexColor(text)
	if ok = ok && parts[0].kind != tokenHash && (len(text) == 3 || len(text) == 6); ok {
		return cssValue{color: c}, doubtful
	}
	return cssValue{}, no
}

func isImage(t token) bool {
	if t.kind == tokenURL {
		return true
	}
	name := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(t.calls(), "-webkit-"), "-moz-"), "repeating-")
	switch name {
	case "url", "linear-gradient", "radial-gradient", "conic-gradient", "image-set", "gradient":
		return true
	}
	return false
}

// readImages reads a list of pictures. Of gradients it keeps the colours.
func readImages(parts []component) (cssValue, truth) {
	var v cssValue
	for i, c := range parts {
		switch {
		case i%2 == 1:
			if !c.is(",") {
				return v, no
			}
		case c.word() == "none":
		case isImage(c.token):
			found := colorsIn(c, 2)
			if strings.HasSuffix(c.calls(), "gradient") && len(found) < 2 || substitutes(c.args) {
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
func colorsIn(c component, depth int) []color {
	var all []color
	for _, part := range componentsOf(c.args) {
		if one, ok := parseColor(part); ok {
			all = append(all, one)
		} else if depth > 0 {
			all = append(all, colorsIn(part, depth-1)...)
		}
	}
	return all
}

var backgroundWords = setOf("none repeat repeat-x repeat-y no-repeat space round scroll fixed local left right top bottom center auto cover contain border-box padding-box content-box")

// readBackground reads the shorthand: colour and pictures.
func readBackground(parts []component) ([]cssValue, truth) {
	ground, image := cssValue{color: color{known: true}}, cssValue{}
	painted := false
	for _, c := range parts {
		one, isColor := parseColor(c)
		_, isLength := readOffset([]component{c})
		switch {
		case c.is(","):
			if painted {
				return nil, no // only the last layer has a colour
			}
		case isImage(c.token):
			v, sure := readImages([]component{c})
			if sure != yes {
				return nil, no
			}
			image.image = true
			image.colors = append(image.colors, v.colors...)
		case isColor && !painted:
			ground.color, painted = one, true
		case c.is("/"), backgroundWords[c.word()], isLength == yes:
		case len(parts) == 1:
			v, quirk := readColor(parts)
			return []cssValue{v, image}, quirk
		default:
			return nil, no
		}
	}
	return []cssValue{ground, image}, yes
}

// sides reads one value for each of some sides, as few as say it, and keeps those
// at some places.
func sides(read grammar, most int, places ...int) func(parts []component) ([]cssValue, truth) {
	return func(parts []component) ([]cssValue, truth) {
		if len(parts) > most {
			return nil, no
		}
		all := make([]cssValue, 4)
		sure := yes
		for i := range parts {
			one, s := read(parts[i : i+1])
			all[i], sure = one, min(sure, s)
		}
		switch len(parts) {
		case 1:
			all[1], all[2], all[3] = all[0], all[0], all[0]
		case 2:
			all[2], all[3] = all[0], all[1]
		case 3:
			all[3] = all[1]
		}
		kept := make([]cssValue, len(places))
		for i, at := range places {
			kept[i] = all[at]
		}
		return kept, sure
	}
}
