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
	for _, query := range splitTokens(toks) {
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
	}
	return doubtful
}

// plainFeature judges a feature with a value. A length with a function in it is
// doubtful, and so is one without a unit, which not every program takes.
func plainFeature(name string, value component) truth {
	var size float64
	switch strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(name, "min-"), "max-"), "device-") {
	case "prefers-color-scheme":
		return truthOf(value.word() == "light")
	case "orientation":
		return truthOf(value.word() == "landscape")
	case "width":
		size = screenWidth
	case "height":
		size = screenHeight
	default:
		return doubtful
	}
	v, sure := length("-", "")([]component{value})
	if sure != yes {
		return sure
	}
	px := v.pixels(normalFont, normalFont, screenWidth)
	switch {
	case strings.HasPrefix(name, "min-"):
		return truthOf(size >= px)
	case strings.HasPrefix(name, "max-"):
		return truthOf(size <= px)
	}
	return truthOf(size == px)
}
