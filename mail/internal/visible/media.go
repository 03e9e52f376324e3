package visible

import "strings"

// The screen of the person that a document is judged for: a desktop in light
// colours. What only a phone or a dark screen shows says the same again.
const (
	screenWidth  = 1280 // pixels
	screenHeight = 800
)

// mediaList reports whether one of a list of media queries holds (Media Queries
// Level 4). An empty list does.
func mediaList(toks []token) truth {
	toks = trimTokens(toks)
	if len(toks) == 0 {
		return yes
	}
	best := no
	for _, query := range splitTokens(toks, ",") {
		best = max(best, mediaQuery(componentsOf(query)))
	}
	return best
}

func mediaQuery(parts []component) truth {
	negated := false
	if len(parts) > 1 && (parts[0].word() == "not" || parts[0].word() == "only") && parts[1].kind == tokenIdent {
		negated = parts[0].word() == "not"
		parts = parts[1:]
	}
	sure := yes
	if len(parts) > 0 && parts[0].kind == tokenIdent && parts[0].word() != "not" {
		switch w := parts[0].word(); w {
		case "all", "screen":
		case "and", "or", "only", "layer":
			return no // not valid
		default:
			sure = no
		}
		if parts = parts[1:]; len(parts) > 0 {
			if parts[0].word() != "and" || len(parts) == 1 {
				return no
			}
			sure = min(sure, mediaCondition(parts[1:], false))
		}
	} else {
		sure = mediaCondition(parts, true)
	}
	if negated {
		return yes - sure
	}
	return sure
}

// mediaCondition reads conditions in brackets that "and", "or" or "not" join. What
// is not valid does not hold.
func mediaCondition(parts []component, or bool) truth {
	if len(parts) == 2 && parts[0].word() == "not" && parts[1].is("(") {
		return yes - mediaFeature(parts[1].args)
	}
	if len(parts)%2 == 0 {
		return no
	}
	sure := no
	for i, p := range parts {
		switch {
		case i%2 == 1:
			if w := p.word(); w != "and" && (w != "or" || !or) || w != parts[1].word() {
				return no
			}
		case !p.is("("):
			return no
		case i == 0:
			sure = mediaFeature(p.args)
		case parts[1].word() == "and":
			sure = min(sure, mediaFeature(p.args))
		default:
			sure = max(sure, mediaFeature(p.args))
		}
	}
	return sure
}

// mediaFeature judges what stands in brackets: width and height, the direction
// in which the screen is longer, and its colours. Anything else is doubtful.
func mediaFeature(toks []token) truth {
	parts := componentsOf(toks)
	switch {
	case len(parts) == 0, strings.HasPrefix(parts[0].word(), "-ms-"):
		return no
	case parts[0].is("("), parts[0].word() == "not":
		return mediaCondition(parts, true)
	case parts[0].kind == tokenIdent && len(parts) == 3 && parts[1].is(":"):
		return plainFeature(parts[0].word(), parts[2])
	case len(parts) > 2:
		return rangeFeature(parts)
	}
	return doubtful
}

// screenSize returns how large the screen is in a direction, or 0.
func screenSize(feature string) float64 {
	switch strings.TrimPrefix(feature, "device-") {
	case "width":
		return screenWidth
	case "height":
		return screenHeight
	}
	return 0
}

func plainFeature(name string, value component) truth {
	feature := strings.TrimPrefix(strings.TrimPrefix(name, "min-"), "max-")
	switch {
	case name == "prefers-color-scheme":
		return truthOf(value.word() == "light")
	case name == "orientation":
		return truthOf(value.word() == "landscape")
	case screenSize(feature) == 0:
		return doubtful
	}
	size := screenSize(feature)
	px, sure := mediaLength(value)
	if sure != yes {
		return sure
	}
	switch {
	case strings.HasPrefix(name, "min-"):
		return truthOf(size >= px)
	case strings.HasPrefix(name, "max-"):
		return truthOf(size <= px)
	}
	return truthOf(size == px)
}

// mediaLength returns a length in pixels. One with a function in it is doubtful,
// and so is a number without a unit, which not every program takes.
func mediaLength(c component) (float64, truth) {
	v, sure := length("-", "")([]component{c})
	if sure == no {
		return 0, no
	}
	return v.pixels(normalFont, normalFont, screenWidth), sure
}

// rangeFeature judges conditions such as (400px <= width < 800px).
func rangeFeature(parts []component) truth {
	var sides [][]component
	var signs []string
	from := 0
	for i := 0; i < len(parts); i++ {
		if parts[i].is("<") || parts[i].is(">") || parts[i].is("=") {
			sides = append(sides, parts[from:i])
			sign := parts[i].text
			if i+1 < len(parts) && sign != "=" && parts[i+1].is("=") {
				i++
			}
			signs = append(signs, sign)
			from = i + 1
		}
	}
	if sides = append(sides, parts[from:]); len(sides) < 2 || len(sides) > 3 {
		return doubtful
	}
	var n []float64
	for _, side := range sides {
		if len(side) != 1 {
			return doubtful
		}
		if size := screenSize(side[0].word()); size > 0 {
			n = append(n, size)
			continue
		}
		px, sure := mediaLength(side[0])
		if sure != yes {
			return doubtful
		}
		n = append(n, px)
	}
	holds := true
	for i, sign := range signs {
		a, b := n[i], n[i+1]
		holds = holds && (sign == "<" && a <= b || sign == ">" && a >= b || sign == "=" && a == b)
	}
	return truthOf(holds)
}
