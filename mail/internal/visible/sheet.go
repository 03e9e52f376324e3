package visible

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// Bounds of a style sheet, which no sheet that a person wrote comes near. A
// sheet beyond them cannot be judged, and then nothing of its document is shown.
const (
	maxValueTokens = 2000   // of one declaration
	maxSelectors   = 50_000 // of all rules
)

// truth says whether something holds: a rule applies, a selector matches. What is
// exotic is doubtful. A doubtful rule counts where it hides and does not count
// where it shows.
type truth uint8

const (
	no truth = iota
	doubtful
	yes
)

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

// styleRule is one selector with its declarations.
type styleRule struct {
	selector *selector
	decls    []declaration
	sure     truth // never no
}

// sheet holds the rules of a document, by what an element must have for a selector to
// match: "#id", ".class" or "tag" in lower case, "" for nothing.
type sheet struct {
	rules     map[string][]styleRule
	inline    map[string][]declaration // style attributes, by their text
	declared  uint64                   // declarations so far
	selectors int
	tooLarge  bool // it passed a bound, so nothing can be judged
	foreign   bool // a namespace is declared, so names of tags may not mean HTML
}

// tokens reads CSS; where that is nested too deeply the sheet is beyond its bounds.
func (sh *sheet) tokens(css string) []token {
	toks, ok := tokensOf(css)
	sh.tooLarge = sh.tooLarge || !ok
	return toks
}

// addBlock reads one style block that is the content of an element with the given
// attributes. Blocks with a title may be alternatives.
func (sh *sheet) addBlock(css string, attrs []html.Attribute) {
	if kind := strings.ToLower(strings.TrimSpace(attr(attrs, "type"))); kind != "" && kind != "text/css" {
		return
	}
	at := ruleContext{sure: mediaList(sh.tokens(attr(attrs, "media")))}
	if attr(attrs, "title") != "" {
		at.sure = min(at.sure, doubtful)
	}
	if at.sure == no {
		return
	}
	toks := sh.tokens(css)
	for len(toks) > 0 {
		if t := toks[0]; t.kind == tokenComment {
			toks = toks[1:]
		} else {
			toks = sh.rule(toks, at)
		}
	}
}

// holdsSheet reports whether an address holds a style sheet itself. No mail that
// a person wrote has one, so it is not read.
func holdsSheet(address string) bool {
	address = strings.TrimSpace(address)
	return len(address) >= len("data:") && strings.EqualFold(address[:len("data:")], "data:")
}

// ruleContext holds what a rule inherits from the rules around it.
type ruleContext struct {
	sure      truth
	selectors []*selector // of the rule around; nil outside of rules
}

// rule reads one rule (CSS Syntax Level 3 section 5, CSS Nesting) and returns the tokens
// behind it.
func (sh *sheet) rule(toks []token, at ruleContext) []token {
	if toks[0].kind == tokenAt {
		return sh.atRule(toks[0].text, toks[1:], at)
	}
	prelude, brace, rest := cut(toks, "{")
	if brace.kind == tokenEnd {
		return nil
	}
	if len(prelude) > 1 && strings.HasPrefix(prelude[0].text, "--") && prelude[0].kind == tokenIdent && prelude[1].is(":") {
		return rest // a line that looks like a custom property is not a rule
	}
	list, sure := parseSelectors(prelude, false)
	if sure == no {
		return rest
	}
	if sh.foreign || at.selectors != nil {
		sure = doubtful
	}
	for i := 0; i < len(list) && at.selectors != nil; i++ {
		list[i].weight = weightMost // the selectors around it count too
	}
	sh.block(brace.args, ruleContext{sure: min(at.sure, sure), selectors: list})
	return rest
}

// atRule reads an at-rule behind its name and returns the tokens behind it.
func (sh *sheet) atRule(name string, toks []token, at ruleContext) []token {
	prelude, brace, rest := cut(toks, ";{")
	switch name {
	case "media":
		at.sure = min(at.sure, mediaList(prelude))
		if at.selectors != nil {
			at.sure = min(at.sure, doubtful)
		}
	case "layer", "container", "supports", "starting-style":
		at.sure = min(at.sure, doubtful)
	case "scope":
		at = ruleContext{min(at.sure, doubtful), []*selector{exoticSelector()}}
	case "import":
		for _, t := range prelude {
			sh.tooLarge = sh.tooLarge || holdsSheet(t.text) || len(t.args) > 0 && holdsSheet(t.args[0].text)
		}
		return rest
	case "namespace":
		sh.foreign = true
		return rest
	default: // fonts, pages and unknown rules; animations are exotic where they are used
		return rest
	}
	switch {
	case at.sure == no:
	case at.selectors != nil:
		sh.block(brace.args, at)
	default:
		for in := brace.args; len(in) > 0; {
			in = sh.rule(in, at)
		}
	}
	return rest
}

// block reads the content of a rule: declarations and nested rules.
func (sh *sheet) block(toks []token, at ruleContext) {
	var decls []declaration
	for len(toks) > 0 {
		custom := toks[0].kind == tokenIdent && strings.HasPrefix(toks[0].text, "--")
		one, end, rest := cut(toks, ";{")
		switch {
		case toks[0].kind == tokenAt, end.is("{") && !custom:
			rest = sh.rule(toks, at)
		case custom:
			_, _, rest = cut(toks, ";")
		default:
			decls = append(decls, sh.declaration(one)...)
		}
		toks = rest
	}
	sh.add(at, decls)
}

// declaration reads a declaration: nothing when it is invalid or its property does not
// decide what is seen.
func (sh *sheet) declaration(toks []token) []declaration {
	if len(toks) < 3 || toks[0].kind != tokenIdent || !toks[1].is(":") {
		return nil
	}
	value := toks[2:]
	sh.tooLarge = sh.tooLarge || len(value) > maxValueTokens
	if isBad(value) || slices.ContainsFunc(value, func(t token) bool { return t.is("{") || t.is("}") || t.is(")") || t.is("]") }) {
		return nil
	}
	decls := parseDeclaration(toks[0].word(), value)
	for i := range decls {
		sh.declared++
		decls[i].order = sh.declared
	}
	return decls
}

// isBad reports whether a value holds a broken string or address.
func isBad(value []token) bool {
	return slices.ContainsFunc(value, func(t token) bool { return t.kind == tokenBad || isBad(t.args) })
}

// inlineDeclarations reads a style attribute, each different text once.
func (sh *sheet) inlineDeclarations(css string) []declaration {
	all, ok := sh.inline[css]
	if !ok {
		for rest := sh.tokens(css); len(rest) > 0; {
			var one []token
			one, _, rest = cut(rest, ";")
			all = append(all, sh.declaration(one)...)
		}
		sh.inline[css] = all
	}
	return all
}

// add files declarations under the keys of their selectors.
func (sh *sheet) add(at ruleContext, decls []declaration) {
	if len(decls) == 0 {
		return
	}
	for _, s := range at.selectors {
		if sh.selectors++; sh.selectors > maxSelectors {
			sh.tooLarge = true
			return
		}
		key := s.tag
		if s.id != "" {
			key = "#" + s.id
		} else if s.class != "" {
			key = "." + s.class
		}
		if !s.never {
			sh.rules[key] = append(sh.rules[key], styleRule{selector: s, decls: decls, sure: min(at.sure, s.sure)})
		}
	}
}
