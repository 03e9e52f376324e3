package visible

import (
	"strings"

	"golang.org/x/net/html"
)

// Bounds of a style sheet, which no sheet that a person wrote comes near. A
// sheet beyond them cannot be judged, and then nothing of its document is shown.
const (
	maxCSSDepth    = 100     // blocks in blocks, and brackets in a selector
	maxValueTokens = 2000    // of one declaration
	maxSelectors   = 200_000 // of all rules
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

// sheet holds the rules of a document, by the id, class or tag, in lower case,
// that an element must have for a selector to match.
type sheet struct {
	ids, classes, tags map[string][]styleRule
	others             []styleRule
	frames             map[string][]declaration // what the frames of animations say
	inline             map[string][]declaration // style attributes, by their text
	declared           uint64                   // declarations so far
	selectors          int
	beyond             bool   // it passed a bound
	later              bool   // what is read from here on stands behind what is shown
	title              string // of the first block that has one; other titles are alternatives
}

func newSheet() *sheet {
	return &sheet{ids: map[string][]styleRule{}, classes: map[string][]styleRule{}, tags: map[string][]styleRule{},
		frames: map[string][]declaration{}, inline: map[string][]declaration{}}
}

// addBlock reads one style block that is the content of an element with the given
// attributes.
func (sh *sheet) addBlock(css string, attrs []html.Attribute) {
	if kind := strings.ToLower(strings.TrimSpace(attr(attrs, "type"))); kind != "" && kind != "text/css" {
		return
	}
	if title := attr(attrs, "title"); title != "" {
		if sh.title == "" {
			sh.title = title
		} else if sh.title != title {
			return
		}
	}
	sure := mediaList(tokensOf(attr(attrs, "media")))
	if sh.later {
		sure = min(sure, doubtful)
	}
	if sure != no {
		p := &cssParser{sheet: sh}
		p.rules(tokensOf(css), place{sure: sure}, true)
	}
}

// holdsSheet reports whether an address holds a style sheet itself. No letter that
// a person wrote has one, so it is not read.
func holdsSheet(address string) bool {
	address = strings.TrimSpace(address)
	return len(address) >= len("data:") && strings.EqualFold(address[:len("data:")], "data:")
}

// place is where a rule stands.
type place struct {
	sure    truth
	parents []*selector // of the rule around; nil outside of rules
	scoped  bool        // in @scope, where selectors may be relative
	depth   int
}

// cssParser reads a style sheet by CSS Syntax Level 3 section 5, with the rules
// in rules of CSS Nesting.
type cssParser struct {
	sheet   *sheet
	foreign bool // names of tags may be about another language than HTML
}

// deeper reports whether one more block in blocks is not too deep.
func (p *cssParser) deeper(at *place) bool {
	at.depth++
	p.sheet.beyond = p.sheet.beyond || at.depth > maxCSSDepth
	return at.depth <= maxCSSDepth
}

// rules reads rules.
func (p *cssParser) rules(toks []token, at place, top bool) {
	if !p.deeper(&at) {
		return
	}
	for len(toks) > 0 {
		switch t := toks[0]; {
		case t.kind == tokenSpace, top && (t.kind == tokenCDO || t.kind == tokenCDC):
			toks = toks[1:]
		case t.kind == tokenAt:
			toks = p.atRule(t.text, toks[1:], at)
		default:
			prelude, mark, rest := cut(toks, "{")
			if mark == "" {
				return
			}
			toks = p.qualified(prelude, rest, toks[len(prelude)].span, at)
		}
	}
}

// atRule reads a rule behind its name and returns what follows it.
func (p *cssParser) atRule(name string, toks []token, at place) []token {
	prelude, mark, rest := cut(toks, ";", "{")
	words := trimTokens(prelude)
	if mark != "{" {
		for _, t := range words {
			if name == "import" && holdsSheet(t.text) {
				p.sheet.beyond = true
			}
		}
		p.foreign = p.foreign || name == "namespace" && len(words) > 0 && words[0].kind != tokenIdent
		return rest
	}
	body, rest := inside(rest, toks[len(prelude)].span)
	switch name {
	case "media":
		at.sure = min(at.sure, mediaList(words))
		if at.parents != nil {
			at.sure = min(at.sure, doubtful)
		}
	case "layer", "container", "supports", "starting-style", "scope":
		at.sure = min(at.sure, doubtful)
		at.scoped = at.scoped || name == "scope"
	case "keyframes", "-webkit-keyframes":
		p.keyframes(words, body)
		return rest
	default: // fonts, pages and what is not known
		return rest
	}
	switch {
	case at.sure == no:
	case at.parents != nil:
		p.block(body, at)
	default:
		p.rules(body, at, false)
	}
	return rest
}

// keyframes reads what an animation does. Any of its frames may be the one that a
// person sees.
func (p *cssParser) keyframes(name, body []token) {
	for _, frame := range componentsOf(body) {
		if frame.is("{") && len(name) == 1 {
			key := name[0].text
			p.sheet.frames[key] = append(p.sheet.frames[key], p.sheet.declarations(frame.args)...)
		}
	}
}

// qualified reads a rule with a selector and returns what follows it. rest stands
// behind the brace of the rule, whose span is given.
func (p *cssParser) qualified(prelude, rest []token, span int, at place) []token {
	body, rest := inside(rest, span)
	prelude = trimTokens(prelude)
	if len(prelude) > 1 && strings.HasPrefix(prelude[0].text, "--") && prelude[0].kind == tokenIdent && trimTokens(prelude[1:])[0].is(":") {
		return rest // what looks like a custom property is no rule
	}
	list, sure := parseSelectors(prelude, at.scoped || at.parents != nil, 0)
	if sure == no {
		return rest
	}
	if p.foreign || at.parents != nil {
		sure = doubtful
	}
	at.sure, at.parents = min(at.sure, sure), list
	p.block(body, at)
	return rest
}

// block reads the content of a rule: declarations and rules.
func (p *cssParser) block(toks []token, at place) {
	if !p.deeper(&at) {
		return
	}
	var decls []declaration
	for len(toks) > 0 {
		switch t := toks[0]; {
		case t.kind == tokenSpace, t.is(";"):
			toks = toks[1:]
			continue
		case t.kind == tokenAt:
			toks = p.atRule(t.text, toks[1:], at)
			continue
		}
		before, mark, rest := cut(toks, ";", "{")
		if custom := toks[0].kind == tokenIdent && strings.HasPrefix(toks[0].text, "--"); mark == "{" && custom {
			before, _, rest = cut(toks, ";")
		} else if mark == "{" {
			toks = p.qualified(before, rest, toks[len(before)].span, at)
			continue
		}
		decls = append(decls, p.sheet.declaration(before)...)
		toks = rest
	}
	p.sheet.add(at, decls)
}

// declaration reads a declaration. What is invalid or of no interest gives nothing.
func (sh *sheet) declaration(toks []token) []declaration {
	toks = trimTokens(toks)
	if len(toks) == 0 || toks[0].kind != tokenIdent {
		return nil
	}
	name := strings.ToLower(toks[0].text)
	value := trimTokens(toks[1:])
	if len(value) == 0 || !value[0].is(":") || !isProperty(name) {
		return nil
	}
	value = trimTokens(value[1:])
	if len(value) > maxValueTokens {
		sh.beyond = true
		return nil
	}
	for i := 0; i < len(value); i++ {
		if value[i].kind == tokenBad || value[i].is("{") || value[i].closes() {
			return nil
		}
		for _, t := range value[i+1 : min(i+1+value[i].span, len(value))] {
			if t.kind == tokenBad {
				return nil
			}
		}
		i += value[i].span
	}
	decls := parseDeclaration(name, value)
	for i := range decls {
		sh.declared++
		decls[i].order = sh.declared
	}
	return decls
}

// declarations reads declarations where there are no rules.
func (sh *sheet) declarations(toks []token) []declaration {
	var all []declaration
	for len(toks) > 0 {
		var one []token
		one, _, toks = cut(toks, ";")
		all = append(all, sh.declaration(one)...)
	}
	return all
}

// inlineDeclarations reads a style attribute.
func (sh *sheet) inlineDeclarations(css string) []declaration {
	d, ok := sh.inline[css]
	if !ok {
		d = sh.declarations(tokensOf(css))
		sh.inline[css] = d
	}
	return d
}

// add puts declarations where the elements will find them that they may be about.
func (sh *sheet) add(at place, decls []declaration) {
	if len(decls) == 0 || at.parents == nil {
		return
	}
	for _, s := range at.parents {
		if sh.selectors++; sh.selectors > maxSelectors {
			sh.beyond = true
			return
		}
		r := styleRule{selector: s, decls: decls, sure: min(at.sure, s.sure)}
		switch {
		case s.never:
		case s.id != "":
			key := strings.ToLower(s.id)
			sh.ids[key] = append(sh.ids[key], r)
		case len(s.classes) > 0:
			key := strings.ToLower(s.classes[0])
			sh.classes[key] = append(sh.classes[key], r)
		case s.tag != "":
			sh.tags[s.tag] = append(sh.tags[s.tag], r)
		default:
			sh.others = append(sh.others, r)
		}
	}
}
