package visible

import "strings"

// The screen for which style sheets are judged: a desktop with a mouse, in light
// colours.
const (
	screenWidth  = 1280
	screenHeight = 800
)

// verdict is the set of what a condition may turn out to be: conditions on
// features that do not exist are neither true nor false (Media Queries Level 4
// section 3.1), and some things cannot be known.
type verdict uint8

const (
	canBeFalse verdict = 1 << iota
	canBeTrue
	canBeUndefined
)

func verdictOf(b bool) verdict {
	if b {
		return canBeTrue
	}
	return canBeFalse
}

// not swaps true and false.
func (v verdict) not() verdict {
	return v&canBeUndefined | v&canBeFalse<<1 | v&canBeTrue>>1
}

// and holds for two conditions when both do.
func (v verdict) and(o verdict) verdict {
	out := (v | o) & canBeFalse
	if v&canBeTrue != 0 {
		out |= o & (canBeTrue | canBeUndefined)
	}
	if o&canBeTrue != 0 {
		out |= v & (canBeTrue | canBeUndefined)
	}
	return out | v&o&canBeUndefined
}

func (v verdict) or(o verdict) verdict { return v.not().and(o.not()).not() }

// truth is what the condition is in the end, where undefined is false.
func (v verdict) truth() truth {
	switch {
	case v == canBeTrue:
		return yes
	case v&canBeTrue != 0:
		return doubtful
	}
	return no
}

// mediaList judges a list of media queries; an empty one holds.
func mediaList(toks []token) truth {
	if toks = trimTokens(toks); len(toks) == 0 {
		return yes
	}
	best := no
	for _, one := range splitTokens(toks, ",") {
		best = max(best, mediaQuery(partsOf(one)).truth())
	}
	return best
}

// mediaQuery judges one query; an invalid one does not hold.
func mediaQuery(parts []part) verdict {
	if len(parts) == 0 {
		return canBeTrue // as in "screen,", which browsers accept
	}
	if v, ok := condition(parts, 0, mediaFeature); ok {
		return v
	}
	negated := false
	switch parts[0].word() {
	case "not":
		negated = true
		parts = parts[1:]
	case "only":
		parts = parts[1:]
	}
	if len(parts) == 0 {
		return canBeFalse
	}
	kind := parts[0].word()
	switch kind {
	case "", "and", "or", "not", "only", "layer":
		return canBeFalse
	}
	v := verdictOf(kind == "all" || kind == "screen")
	if parts = parts[1:]; len(parts) > 0 {
		if parts[0].word() != "and" {
			return canBeFalse
		}
		for i, p := range parts {
			if p.word() == "or" && i > 0 {
				return canBeFalse
			}
		}
		rest, ok := condition(parts[1:], 0, mediaFeature)
		if !ok {
			return canBeFalse
		}
		v = v.and(rest)
	}
	if negated {
		return v.not()
	}
	return v
}

// condition judges tests that are joined by not, and, or. ok is false when that
// is not their form.
func condition(parts []part, depth int, test func(part) verdict) (v verdict, ok bool) {
	if len(parts) == 0 {
		return 0, false
	}
	if depth > maxCSSDepth {
		return canBeTrue | canBeFalse, true
	}
	one := func(p part) (verdict, bool) {
		switch {
		case p.is("("):
			if v, ok := condition(partsOf(p.args), depth+1, test); ok {
				return v, true
			}
			return test(p), true
		case p.kind == tokenFunction:
			return test(p), p.calls() != "and" && p.calls() != "or" && p.calls() != "not"
		}
		return 0, false
	}
	if parts[0].word() == "not" {
		if len(parts) != 2 {
			return 0, false
		}
		v, ok = one(parts[1])
		return v.not(), ok
	}
	if v, ok = one(parts[0]); !ok {
		return 0, false
	}
	join := ""
	for i := 1; i < len(parts); i += 2 {
		word := parts[i].word()
		if word != "and" && word != "or" || join != "" && word != join || i+1 == len(parts) {
			return 0, false
		}
		join = word
		next, ok := one(parts[i+1])
		if !ok {
			return 0, false
		}
		if word == "and" {
			v = v.and(next)
		} else {
			v = v.or(next)
		}
	}
	return v, true
}

// mediaNumbers are the features with sizes; those of the kind 'n' are numbers.
var mediaNumbers = map[string]struct {
	n    float64
	kind byte
}{
	"width": {screenWidth, 'l'}, "height": {screenHeight, 'l'}, "device-width": {screenWidth, 'l'}, "device-height": {screenHeight, 'l'},
	"aspect-ratio": {float64(screenWidth) / screenHeight, 'n'}, "device-aspect-ratio": {float64(screenWidth) / screenHeight, 'n'},
	"color": {8, 'n'}, "color-index": {0, 'n'}, "monochrome": {0, 'n'}, "grid": {0, 'n'},
	"-webkit-transform-3d": {1, 'n'}, "-webkit-transform-2d": {1, 'n'}, "-webkit-animation": {1, 'n'}, "-webkit-transition": {1, 'n'},
	"horizontal-viewport-segments": {1, 'n'}, "vertical-viewport-segments": {1, 'n'},
}

// mediaWords are the features with words. The value "?" is one of several.
var mediaWords = map[string]string{
	"orientation": "landscape", "hover": "hover", "any-hover": "hover", "pointer": "fine", "any-pointer": "fine", "update": "fast",
	"overflow-block": "scroll", "overflow-inline": "scroll", "prefers-color-scheme": "light", "prefers-reduced-motion": "no-preference",
	"prefers-contrast": "no-preference", "prefers-reduced-transparency": "no-preference", "prefers-reduced-data": "no-preference",
	"forced-colors": "none", "inverted-colors": "none", "display-mode": "browser", "dynamic-range": "standard", "video-dynamic-range": "standard",
	"scan": "progressive", "scripting": "?", "color-gamut": "?", "environment-blending": "opaque", "display-state": "?", "resizable": "?",
	"device-posture": "continuous", "shape": "rect", "nav-controls": "?",
}

// mediaFeature judges what stands in parentheses.
func mediaFeature(p part) verdict {
	if p.kind == tokenFunction {
		return canBeUndefined
	}
	parts := partsOf(p.args)
	switch {
	case len(parts) == 0:
		return canBeUndefined
	case len(parts) == 1 && parts[0].kind == tokenIdent:
		return featureIn(parts[0].word())
	case len(parts) > 2 && parts[0].kind == tokenIdent && parts[1].is(":"):
		return feature(parts[0].word(), parts[2:])
	}
	return rangeOf(parts)
}

// featureIn judges a feature without a value: whether it is there.
func featureIn(name string) verdict {
	if f, ok := mediaNumbers[name]; ok {
		return verdictOf(f.n != 0)
	}
	switch name {
	case "resolution", "-webkit-device-pixel-ratio":
		return canBeTrue
	}
	if v, ok := mediaWords[name]; ok {
		if v == "?" {
			return canBeTrue | canBeFalse
		}
		return verdictOf(v != "none" && v != "no-preference")
	}
	return canBeUndefined
}

// feature judges a feature with a value.
func feature(name string, value []part) verdict {
	if v, ok := mediaWords[name]; ok {
		if len(value) != 1 || value[0].kind != tokenIdent {
			return canBeUndefined
		}
		if v == "?" {
			return canBeTrue | canBeFalse
		}
		return verdictOf(value[0].word() == v)
	}
	op := "="
	bare := strings.TrimPrefix(name, "-webkit-")
	vendor := name[:len(name)-len(bare)]
	if strings.HasPrefix(bare, "min-") {
		op, bare = ">=", bare[4:]
	} else if strings.HasPrefix(bare, "max-") {
		op, bare = "<=", bare[4:]
	}
	if vendor != "" && bare != "device-pixel-ratio" {
		bare = vendor + bare
	}
	return compare(bare, op, value)
}

// compare judges "feature op value".
func compare(name, op string, value []part) verdict {
	want, kind, ok := mediaValue(value)
	if !ok {
		return canBeUndefined
	}
	have := 0.0
	switch f, known := mediaNumbers[name]; {
	case known && f.kind == 'l' && (kind == 'l' || kind == 'n' && want == 0):
		have = f.n
	case known && f.kind == 'n' && kind == 'n':
		have = f.n
	case name == "device-pixel-ratio" && kind == 'n', name == "resolution" && kind == 'r':
		// Screens have from one to three dots in a pixel.
		least, most := compareNumbers(1, op, want), compareNumbers(3, op, want)
		if least != most || op == "=" && want >= 1 && want <= 3 {
			return canBeTrue | canBeFalse
		}
		return verdictOf(least)
	default:
		return canBeUndefined
	}
	return verdictOf(compareNumbers(have, op, want))
}

func compareNumbers(a float64, op string, b float64) bool {
	switch op {
	case "<":
		return a < b
	case "<=":
		return a <= b
	case ">":
		return a > b
	case ">=":
		return a >= b
	}
	return a == b
}

// mediaValue reads a number, a ratio, a length or a resolution; kind is that of
// a quantity, and 'r' for dots per pixel.
func mediaValue(parts []part) (n float64, kind byte, ok bool) {
	if len(parts) == 3 && parts[1].is("/") && parts[0].kind == tokenNumber && parts[2].kind == tokenNumber && parts[2].n > 0 {
		return parts[0].n / parts[2].n, 'n', true
	}
	if len(parts) != 1 {
		return 0, 0, false
	}
	if p := parts[0]; p.kind == tokenDimension {
		switch p.text {
		case "dppx", "x":
			return p.n, 'r', true
		case "dpi":
			return p.n / 96, 'r', true
		case "dpcm":
			return p.n / 37.8, 'r', true
		}
	}
	q, ok := evaluate(parts[0], metric{font: normalFont, root: normalFont}, 0)
	return q.n, q.kind, ok
}

// rangeOf judges "width >= 1px", "1px <= width" and "1px <= width <= 2px".
func rangeOf(parts []part) verdict {
	var sides [][]part
	var ops []string
	side := []part{}
	for i := 0; i < len(parts); i++ {
		p := parts[i]
		if p.is("<") || p.is(">") || p.is("=") {
			op := p.text
			if op != "=" && i+1 < len(parts) && parts[i+1].is("=") {
				op += "="
				i++
			}
			ops = append(ops, op)
			sides = append(sides, side)
			side = nil
			continue
		}
		side = append(side, p)
	}
	sides = append(sides, side)
	name := func(i int) string {
		if len(sides[i]) == 1 {
			return sides[i][0].word()
		}
		return ""
	}
	turned := map[string]string{"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
	switch {
	case len(ops) == 1 && name(0) != "":
		return compare(name(0), ops[0], sides[1])
	case len(ops) == 1 && name(1) != "":
		return compare(name(1), turned[ops[0]], sides[0])
	case len(ops) == 2 && name(1) != "" && ops[0][0] == ops[1][0] && ops[0] != "=":
		return compare(name(1), turned[ops[0]], sides[0]).and(compare(name(1), ops[1], sides[2]))
	}
	return canBeUndefined
}

// supports judges the condition of @supports.
func supports(toks []token) truth {
	v, ok := condition(partsOf(toks), 0, supportsTest)
	if !ok {
		return no
	}
	return v.truth()
}

func verdictFrom(t truth) verdict {
	switch t {
	case yes:
		return canBeTrue
	case doubtful:
		return canBeTrue | canBeFalse
	}
	return canBeFalse
}

func supportsTest(p part) verdict {
	switch p.calls() {
	case "selector":
		_, sure := parseSelectors(p.args, selectorContext{})
		return verdictFrom(sure)
	case "font-tech", "font-format", "at-rule", "named-feature", "env":
		return canBeTrue | canBeFalse
	case "":
		return verdictFrom(supportsDeclaration(p.args))
	}
	return canBeFalse
}

// commonProperties are some that every browser knows and that hide nothing.
var commonProperties = setOf("align-items align-content align-self aspect-ratio backdrop-filter border border-radius bottom box-shadow box-sizing break-inside caret-color color-scheme column-count column-gap contain container-type cursor direction flex flex-direction flex-wrap float font-family font-feature-settings font-variation-settings font-weight gap grid grid-area grid-auto-flow grid-column grid-row grid-template grid-template-areas grid-template-columns grid-template-rows hyphens image-rendering isolation justify-content justify-items justify-self list-style mix-blend-mode object-fit object-position order outline overflow-wrap overscroll-behavior perspective place-items place-content pointer-events resize row-gap scroll-behavior scroll-snap-type shape-outside table-layout tab-size text-align text-decoration text-overflow text-transform text-wrap touch-action transition user-select vertical-align will-change word-break writing-mode z-index")

// supportsDeclaration judges a declaration in @supports: whether browsers know it.
func supportsDeclaration(toks []token) truth {
	toks = trimTokens(toks)
	if len(toks) == 0 || toks[0].kind != tokenIdent {
		return no
	}
	rest := trimTokens(toks[1:])
	if len(rest) < 2 || !rest[0].is(":") {
		return no
	}
	name := toks[0].word()
	switch {
	case strings.HasPrefix(name, "--"), commonProperties[name]:
		return yes
	case isProperty(name):
		return truthOf(len(parseDeclaration(name, rest[1:])) > 0)
	}
	return doubtful
}
