package visible

import (
	"regexp"
	"strings"
)

// The screen for which a document is judged: a desktop in light colours. Text that is shown
// only on a phone or a dark screen repeats text of the desktop.
const (
	screenWidth  = 1280 // pixels
	screenHeight = 800
)

// mediaList reports whether one of a list of media queries holds (Media Queries
// Level 4). An empty list does.
func mediaList(toks []token) truth {
	if len(toks) == 0 {
		return yes
	}
	best := no
	for _, query := range splitTokens(toks) {
		best = max(best, mediaQuery(query))
	}
	return best
}

// The forms of a query, with a letter for each part: n and o for not and only, t for a
// type, a for and, c for a condition. Others are doubtful, or not valid.
var mediaForm = regexp.MustCompile(`\A(?:[no]?t|c)(?:ac)*\z`)

func mediaQuery(query []token) truth {
	if len(query) > mostParts {
		return doubtful
	}
	form, holds := "", yes
	for _, t := range query {
		switch w := t.word(); {
		case t.is("("):
			form += "c"
			holds = min(holds, mediaFeature(t.args))
		case t.kind != tokenIdent:
			return no
		case w == "and":
			form += "a"
		case w == "not" || w == "only":
			form += w[:1]
		case w == "or" || w == "layer": // no types
			form += "-"
		default:
			form += "t"
			holds = min(holds, truthOf(w == "all" || w == "screen"))
		}
	}
	switch {
	case !mediaForm.MatchString(form):
		return doubtful
	case form == "nt":
		return yes - holds
	case form[0] == 'n':
		return doubtful
	}
	return holds
}

// mediaFeature judges the feature in brackets: width and height, orientation, and colours.
// Anything else is doubtful, and so is a length that not every program accepts.
func mediaFeature(args []token) truth {
	if len(args) > 0 && strings.HasPrefix(args[0].word(), "-ms-") {
		return no
	}
	if len(args) != 3 || !args[1].is(":") {
		return doubtful
	}
	var size float64
	name, value := args[0].word(), args[2]
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
	v, sure := length("-", "")([]token{value})
	px := v.pixels(normalFont, normalFont, 0)
	switch {
	case sure != yes:
		return doubtful
	case strings.HasPrefix(name, "min-"):
		return truthOf(size >= px)
	case strings.HasPrefix(name, "max-"):
		return truthOf(size <= px)
	}
	return truthOf(size == px)
}
