package visible

import (
	"strconv"
	"strings"
)

func formatNumber(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

var displayWords = words("none contents block inline inline-block flow-root list-item table inline-table table-row-group table-header-group table-footer-group table-row table-cell table-column-group table-column table-caption flex inline-flex -webkit-flex -webkit-inline-flex grid inline-grid -webkit-box -webkit-inline-box ruby ruby-base ruby-text ruby-base-container ruby-text-container math flow run-in grid-lanes inline-grid-lanes")

func readDisplay(parts []part) (value, truth) {
	if len(parts) == 1 {
		v, sure := displayWords(parts)
		switch v.word {
		case "flow":
			v.word = "block"
		case "run-in", "ruby-base", "ruby-base-container", "ruby-text-container", "grid-lanes", "inline-grid-lanes":
			sure = min(sure, doubtful)
		}
		return v, sure
	}
	outside, inside, item := "", "", ""
	for _, p := range parts {
		into := &inside
		switch p.word() {
		case "block", "inline", "run-in":
			into = &outside
		case "list-item":
			into = &item
		case "flow", "flow-root", "table", "flex", "grid", "ruby", "math":
		default:
			return value{}, no
		}
		if *into != "" {
			return value{}, no
		}
		*into = p.word()
	}
	switch {
	case item != "" && inside != "" && inside != "flow" && inside != "flow-root":
		return value{}, no
	case item != "":
		return value{word: item}, yes
	case outside == "inline" && inside == "flow":
		return value{word: "inline"}, yes
	case outside == "inline" && (inside == "flex" || inside == "grid"):
		return value{word: "inline-" + inside}, yes
	case outside == "inline":
		return value{word: "inline-block"}, yes
	}
	return value{word: inside}, yes
}

var fontWords = map[string]float64{"xx-small": 9, "x-small": 10, "small": 13, "medium": 16, "large": 18, "x-large": 24, "xx-large": 32, "xxx-large": 48}

var readFontSize = size("%", "xx-small x-small small medium large x-large xx-large xxx-large smaller larger math")

// readFont reads the font shorthand: its size, and the height of a line.
func readFont(parts []part) ([]value, truth) {
	if len(parts) == 1 {
		switch parts[0].word() {
		case "caption", "icon", "menu", "message-box", "small-caption", "status-bar":
			return []value{{word: "medium"}, {word: "normal"}}, yes
		}
	}
	for i, p := range parts {
		if w := p.word(); w != "" && fontWords[w] == 0 && w != "smaller" && w != "larger" {
			continue
		}
		if p.kind == tokenNumber && p.n >= 1 && p.n <= 1000 { // a weight
			continue
		}
		if p.kind == tokenDimension && angleUnits[p.text] != 0 && i > 0 && parts[i-1].word() == "oblique" {
			continue
		}
		if i > 5 {
			return nil, no
		}
		for _, before := range parts[:i] {
			switch before.word() {
			case "normal", "italic", "oblique", "bold", "bolder", "lighter", "small-caps", "ultra-condensed", "extra-condensed", "condensed", "semi-condensed", "semi-expanded", "expanded", "extra-expanded", "ultra-expanded", "":
			default:
				return nil, no
			}
		}
		v, sure := readFontSize(parts[i : i+1])
		if sure != yes {
			return nil, no
		}
		line := value{word: "normal"}
		rest := parts[i+1:]
		if len(rest) > 1 && rest[0].is("/") {
			if line, sure = readLineHeight(rest[1:2]); sure != yes {
				return nil, no
			}
			rest = rest[2:]
		}
		return []value{v, line}, truthOf(isFamily(rest))
	}
	return nil, no
}

// isFamily reports whether components name fonts.
func isFamily(parts []part) bool {
	due := true
	for _, p := range parts {
		switch {
		case p.is(","):
			if due {
				return false
			}
			due = true
		case p.kind == tokenIdent, p.kind == tokenString && due:
			due = false
		default:
			return false
		}
	}
	return !due
}

var readLineHeight = size("%n", "normal")

func readColor(parts []part) (value, truth) {
	if len(parts) == 1 {
		if c, ok := parseColor(parts[0]); ok {
			return value{color: c}, yes
		}
	}
	// Where a letter is shown as it is, a colour may lack its hash.
	text := ""
	for _, p := range parts {
		switch p.kind {
		case tokenIdent, tokenNumber:
			text += p.text
		case tokenDimension:
			text += formatNumber(p.n) + p.text
		default:
			return value{}, no
		}
	}
	if len(parts) == 1 && (len(text) == 3 || len(text) == 6) {
		if c, ok := hexColor(text); ok {
			return value{color: c}, doubtful
		}
	}
	return value{}, no
}

func isImage(p part) bool {
	if p.kind == tokenURL {
		return true
	}
	name := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(p.calls(), "-webkit-"), "-moz-"), "repeating-")
	switch name {
	case "url", "linear-gradient", "radial-gradient", "conic-gradient", "image-set", "cross-fade", "element", "image", "paint", "gradient", "src":
		return true
	}
	return false
}

// readImages reads a list of pictures, of which the first is on top.
func readImages(parts []part) (value, truth) {
	var v value
	due := true
	clear := true
	for _, p := range parts {
		switch {
		case p.is(",") && !due:
			due = true
			continue
		case !due:
			return v, no
		case p.word() == "none":
		case isImage(p):
			if !v.image {
				v.color = mixed(p.args)
			}
			v.image = true
			clear = clear && p.kind == tokenFunction && paintedClear(p.args)
		default:
			return v, no
		}
		due = false
	}
	v.hides = v.image && clear
	return v, truthOf(!due)
}

// readBackground reads the shorthand: colour, pictures, and what of the element
// they cover.
func readBackground(parts []part) ([]value, truth) {
	ground, image, area := value{color: color{known: true}}, value{}, value{word: "border-box"}
	sure := yes
	painted := false
	for _, p := range parts {
		c, isColor := parseColor(p)
		switch w := p.word(); {
		case p.is(","):
			if painted {
				return nil, no // only the last layer has a colour
			}
		case p.is("/"), p.kind == tokenPercent, p.kind == tokenNumber && p.n == 0:
		case isImage(p):
			v, _ := readImages([]part{p})
			if !image.image {
				image = v
			}
		case isColor && !painted:
			ground.color, painted = c, true
		case w == "text" || w == "border-box" || w == "padding-box" || w == "content-box" || w == "border-area":
			area.word = w
		case backgroundWords[w]:
		case p.kind == tokenDimension && sizeOf(p, "-") == yes, p.kind == tokenFunction && sizeOf(p, "-%") == yes:
		case len(parts) == 1:
			v, quirk := readColor(parts)
			if quirk == no {
				return nil, no
			}
			ground, sure = v, doubtful
		default:
			return nil, no
		}
	}
	return []value{ground, image, area}, sure
}

var backgroundWords = setOf("none repeat repeat-x repeat-y no-repeat space round scroll fixed local left right top bottom center auto cover contain")

// sides splits one to four values as top, right, bottom, left.
func sides(read grammar) func(parts []part) ([]value, truth) {
	return func(parts []part) ([]value, truth) {
		if len(parts) > 4 {
			return nil, no
		}
		v := make([]value, 4)
		sure := yes
		for i := range parts {
			one, s := read(parts[i : i+1])
			v[i], sure = one, min(sure, s)
		}
		if sure == no {
			return nil, no
		}
		switch len(parts) {
		case 1:
			v[1], v[2], v[3] = v[0], v[0], v[0]
		case 2:
			v[2], v[3] = v[0], v[1]
		case 3:
			v[3] = v[1]
		}
		return v, sure
	}
}

// some keeps the values at some places of what a shorthand gives.
func some(read func(parts []part) ([]value, truth), places ...int) func(parts []part) ([]value, truth) {
	return func(parts []part) ([]value, truth) {
		all, sure := read(parts)
		if sure == no {
			return nil, no
		}
		kept := make([]value, len(places))
		for i, place := range places {
			kept[i] = all[place]
		}
		return kept, sure
	}
}

// pair reads one value or two of the same kind.
func pair(read grammar) func(parts []part) ([]value, truth) {
	return func(parts []part) ([]value, truth) {
		if len(parts) > 2 {
			return nil, no
		}
		a, sure := read(parts[:1])
		b := a
		if len(parts) == 2 {
			var s truth
			b, s = read(parts[1:])
			sure = min(sure, s)
		}
		return []value{a, b}, sure
	}
}
