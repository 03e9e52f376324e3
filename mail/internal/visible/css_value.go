package visible

import "strings"

// property is one that decides whether a person sees something.
type property uint8

const (
	custom property = iota // one whose name begins with two dashes
	display
	visibility
	contentVisibility
	opacity
	filter
	fontSize
	lineHeight
	letterSpacing
	width
	height
	minWidth
	minHeight
	maxWidth
	maxHeight
	overflowX
	overflowY
	textIndent
	msoHide
	clip
	clipPath
	mask
	position
	float
	left
	top
	right
	bottom
	transform
	translate
	scale
	rotate
	zoom
	backface
	marginLeft
	marginTop
	paddingLeft
	paddingRight
	paddingBottom
	colorText
	textFill
	textShadow
	textSecurity
	backgroundColor
	backgroundImage
	backgroundClip
	whiteSpace
	content
	animationName
	animationFill
	animationCount
	properties // how many there are
)

// value is what was declared: a keyword, in lower case, or components that are
// judged when the font and the ground of the element are known.
type value struct {
	word  string
	parts []part
	color color
	hides bool // whatever else is said, nothing can be seen
	image bool // a picture or a gradient
}

// isWide reports whether a keyword is one that every property takes.
func isWide(word string) bool {
	switch word {
	case "initial", "inherit", "unset", "revert", "revert-layer":
		return true
	}
	return false
}

// declaration is a property with its value.
type declaration struct {
	prop      property
	important bool
	quirk     bool // valid in some mail programs only, such as a length without a unit
	value     value
	later     *substitution // the value, while it depends on custom properties
	name      string        // of a custom property
	tokens    []token       // of a custom property
}

// substitution is a declaration whose value is known when its variables are.
type substitution struct {
	name   string // in lower case
	tokens []token
}

// grammar reads the value of a property. The truth is no when it is not valid,
// and doubtful when not every mail program takes it for valid.
type grammar func(parts []part) (value, truth)

// one is a property with the grammar of its values.
type one struct {
	prop property
	read grammar
}

func isProperty(name string) bool {
	if _, ok := longhands[name]; ok {
		return true
	}
	_, ok := shorthands[name]
	return ok
}

// parseDeclaration parses the tokens behind the colon: nothing when they are not
// valid. The name is in lower case, but for that of a custom property.
func parseDeclaration(name string, toks []token) []declaration {
	toks = trimTokens(toks)
	important := false
	if n := len(toks); n > 1 && toks[n-1].word() == "important" {
		if rest := trimTokens(toks[:n-1]); len(rest) > 0 && rest[len(rest)-1].is("!") {
			toks = trimTokens(rest[:len(rest)-1])
			important = true
		}
	}
	if strings.HasPrefix(name, "--") {
		return []declaration{{prop: custom, important: important, name: name, tokens: toks}}
	}
	if len(toks) == 0 {
		return nil
	}
	short, isShort := shorthands[name]
	long := longhands[name]
	sets := short.sets
	if !isShort {
		sets = []property{long.prop}
	}
	all := make([]declaration, len(sets))
	for i, p := range sets {
		all[i] = declaration{prop: p, important: important}
	}
	switch depends, ok := hasVariables(toks); {
	case depends && !ok:
		return nil
	case depends:
		later := &substitution{name: name, tokens: toks}
		for i := range all {
			all[i].later = later
		}
		return all
	}
	parts := partsOf(toks)
	if word := parts[0].word(); len(parts) == 1 && isWide(word) {
		for i := range all {
			all[i].value.word = word
		}
		return all
	}
	if isShort {
		values, sure := short.read(parts)
		if sure == no {
			return nil
		}
		for i := range all {
			all[i].value, all[i].quirk = values[i], sure == doubtful
		}
		return all
	}
	v, sure := long.read(parts)
	if sure == no {
		return nil
	}
	all[0].value, all[0].quirk = v, sure == doubtful
	return all
}

// hasVariables reports whether a value depends on what is known later only, and
// whether it does so in a valid way.
func hasVariables(toks []token) (depends, ok bool) {
	ok = true
	for i, t := range toks {
		switch t.calls() {
		case "var":
			depends = true
			args := trimTokens(toks[i+1 : min(blockEnd(toks, i), len(toks))])
			if len(args) == 0 || args[0].kind != tokenIdent || !strings.HasPrefix(args[0].text, "--") {
				ok = false
			} else if rest := trimTokens(args[1:]); len(rest) > 0 && !rest[0].is(",") {
				ok = false
			}
		case "env", "attr", "if":
			depends = true
		}
	}
	return depends, ok
}

// words is the grammar of a property that takes one of some keywords.
func words(list string) grammar {
	set := setOf(list)
	return func(parts []part) (value, truth) {
		w := parts[0].word()
		return value{word: w}, truthOf(len(parts) == 1 && set[w])
	}
}

// nominal is used to see what kind of quantity something is.
var nominal = metric{font: normalFont, root: normalFont, base: screenWidth}

// size is the grammar of a property that takes a length, or one of some keywords.
// Options: "-" for negative ones, "%" for percentages, "n" for numbers.
func size(options, keywords string) grammar {
	set := setOf(keywords)
	return func(parts []part) (value, truth) {
		if len(parts) != 1 {
			return value{}, no
		}
		if w := parts[0].word(); set[w] {
			return value{word: w}, yes
		}
		if parts[0].calls() == "fit-content" && set["fit-content"] {
			return value{word: "fit-content"}, yes
		}
		return value{parts: parts}, sizeOf(parts[0], options)
	}
}

func sizeOf(p part, options string) truth {
	q, ok := evaluate(p, nominal, 0)
	switch {
	case !ok, q.n < 0 && p.kind != tokenFunction && !strings.Contains(options, "-"):
		return no
	case q.kind == 'l', q.kind == 'p' && strings.Contains(options, "%"), q.kind == 'n' && strings.Contains(options, "n"):
		return yes
	case p.kind == tokenNumber && q.n == 0:
		return yes
	case p.kind == tokenNumber: // pixels, where a letter is shown as it is
		return doubtful
	}
	return no
}

// ratio is the grammar of a number or a percentage.
func ratio(parts []part) (value, truth) {
	if len(parts) != 1 {
		return value{}, no
	}
	q, ok := evaluate(parts[0], nominal, 0)
	return value{parts: parts}, truthOf(ok && (q.kind == 'n' || q.kind == 'p'))
}

// ratioOf returns a number, or a percentage as a part of one.
func ratioOf(p part) (float64, bool) {
	q, ok := evaluate(p, nominal, 0)
	if q.kind == 'p' {
		q.n /= 100
	}
	return q.n, ok && (q.kind == 'n' || q.kind == 'p')
}
