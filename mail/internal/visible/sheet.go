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
		p := &cssParser{lexer: newLexer(css), sheet: sh}
		p.rules(place{sure: sure}, true)
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
	lexer
	sheet   *sheet
	foreign bool // names of tags may be about another language than HTML
}

// rules reads rules up to the end, or to the brace that closes the block.
func (p *cssParser) rules(at place, top bool) {
	if at.depth++; at.depth > maxCSSDepth {
		p.sheet.beyond = true
		p.pos = len(p.s)
		return
	}
	for {
		here := p.pos
		switch t := p.next(); {
		case t.kind == tokenEnd:
			return
		case t.kind == tokenSpace, top && (t.kind == tokenCDO || t.kind == tokenCDC):
		case !top && t.is("}"):
			return
		case t.kind == tokenAt:
			p.atRule(t.text, at)
		default:
			p.pos = here
			p.qualified(at, top)
		}
	}
}

// prelude reads what stands before a block. It returns the mark that ended it:
// "{", "}", ";", or "" at the end of the sheet.
func (p *cssParser) prelude(semicolon, brace bool) (toks []token, end string) {
	for {
		t := p.next()
		switch {
		case t.kind == tokenEnd:
			return trimTokens(toks), ""
		case t.is("{"), semicolon && t.is(";"), brace && t.is("}"):
			return trimTokens(toks), t.text
		}
		toks = append(toks, t)
		if t.opens() != "" {
			toks = p.within(t, toks)
		}
	}
}

// within reads up to the bracket that closes one that was just read, and appends
// what it reads to toks unless that is nil.
func (p *cssParser) within(open token, toks []token) []token {
	stack := []string{open.opens()}
	for len(stack) > 0 {
		t := p.next()
		if t.kind == tokenEnd {
			break
		}
		if toks != nil {
			toks = append(toks, t)
		}
		if c := t.opens(); c != "" {
			stack = append(stack, c)
		} else if t.kind == tokenMark && t.text == stack[len(stack)-1] {
			stack = stack[:len(stack)-1]
		}
	}
	return toks
}

// skipBlock skips a block behind its brace.
func (p *cssParser) skipBlock() { p.within(token{kind: tokenMark, text: "{"}, nil) }

// atRule reads a rule behind its name.
func (p *cssParser) atRule(name string, at place) {
	toks, end := p.prelude(true, at.depth > 1)
	if end != "{" {
		if end == "}" {
			p.pos-- // of the block around it
		}
		for _, t := range toks {
			if name == "import" && holdsSheet(t.text) {
				p.sheet.beyond = true
			}
		}
		p.foreign = p.foreign || name == "namespace" && len(toks) > 0 && toks[0].kind != tokenIdent
		return
	}
	inner := at
	switch name {
	case "media":
		inner.sure = min(at.sure, mediaList(toks))
		if at.parents != nil {
			inner.sure = min(inner.sure, doubtful)
		}
	case "layer", "container", "supports", "starting-style", "scope":
		inner.sure = min(at.sure, doubtful)
		inner.scoped = at.scoped || name == "scope"
	case "keyframes", "-webkit-keyframes":
		p.keyframes(toks)
		return
	default: // fonts, pages and what is not known
		inner.sure = no
	}
	switch {
	case inner.sure == no:
		p.skipBlock()
	case inner.parents != nil:
		p.block(inner)
	default:
		p.rules(inner, false)
	}
}

// keyframes reads what an animation does. Any of its frames may be the one that a
// person sees.
func (p *cssParser) keyframes(name []token) {
	frames := &cssParser{lexer: p.lexer, sheet: newSheet()}
	frames.rules(place{sure: yes, parents: []*selector{}}, false)
	p.pos = frames.pos
	p.sheet.beyond = p.sheet.beyond || frames.sheet.beyond
	if len(name) == 1 {
		p.sheet.frames[name[0].text] = append(p.sheet.frames[name[0].text], frames.sheet.frames[""]...)
	}
}

// qualified reads a rule with a selector.
func (p *cssParser) qualified(at place, top bool) {
	toks, end := p.prelude(at.parents != nil, !top)
	if end != "{" {
		if end == "}" {
			p.pos-- // of the block around it
		}
		return
	}
	if len(toks) > 1 && strings.HasPrefix(toks[0].text, "--") && toks[0].kind == tokenIdent {
		if rest := trimTokens(toks[1:]); len(rest) > 0 && rest[0].is(":") { // what looks like a custom property is no rule
			p.skipBlock()
			return
		}
	}
	if at.parents != nil && len(at.parents) == 0 { // a frame of an animation
		p.block(at)
		return
	}
	list, sure := parseSelectors(toks, at.scoped || at.parents != nil, 0)
	if sure == no {
		p.skipBlock()
		return
	}
	if p.foreign || at.parents != nil {
		sure = doubtful
	}
	at.sure, at.parents = min(at.sure, sure), list
	p.block(at)
}

// block reads the content of a rule: declarations and rules.
func (p *cssParser) block(at place) {
	if at.depth++; at.depth > maxCSSDepth {
		p.sheet.beyond = true
		p.pos = len(p.s)
		return
	}
	var decls []declaration
	flush := func() {
		p.sheet.add(at, decls)
		decls = nil
	}
	for {
		here := p.pos
		switch t := p.next(); {
		case t.kind == tokenEnd, t.is("}"):
			flush()
			return
		case t.kind == tokenSpace, t.is(";"):
		case t.kind == tokenAt:
			flush()
			p.atRule(t.text, at)
		default:
			p.pos = here
			found, ok := p.declaration(true)
			if ok {
				decls = append(decls, found...)
				continue
			}
			p.pos = here
			flush()
			p.qualified(at, false)
		}
	}
}

// declaration reads up to the semicolon, or the brace that ends the block, and
// reports whether that is no rule. What is invalid or of no interest gives
// nothing.
func (p *cssParser) declaration(block bool) (decls []declaration, ok bool) {
	start := p.pos
	name := p.next()
	custom := name.kind == tokenIdent && strings.HasPrefix(name.text, "--")
	key := strings.ToLower(name.text)
	colon := p.next()
	if colon.kind == tokenSpace {
		colon = p.next()
	}
	valid := name.kind == tokenIdent && colon.is(":")
	if !valid {
		p.pos = start
		if block && (name.kind != tokenIdent || !colon.is(";") && !colon.is("}")) {
			return nil, false
		}
	}
	keep := valid && isProperty(key)
	var toks []token
	for {
		here := p.pos
		t := p.next()
		if t.kind == tokenEnd || t.is(";") {
			break
		}
		if block && t.is("}") {
			p.pos = here
			break
		}
		if block && t.is("{") && !custom {
			return nil, false
		}
		if t.kind == tokenBad || t.closes() {
			valid = false
		}
		if !keep {
			if t.opens() != "" {
				p.within(t, nil)
			}
			continue
		}
		first := len(toks)
		toks = append(toks, t)
		if t.opens() != "" {
			toks = p.within(t, toks)
			for _, in := range toks[first:] {
				valid = valid && in.kind != tokenBad
			}
		}
		if len(toks) > maxValueTokens {
			p.sheet.beyond = true
			keep = false
		}
	}
	if !keep || !valid {
		return nil, true
	}
	decls = parseDeclaration(key, trimTokens(toks))
	for i := range decls {
		p.sheet.declared++
		decls[i].order = p.sheet.declared
	}
	return decls, true
}

// inlineDeclarations reads a style attribute. It knows no rules.
func (sh *sheet) inlineDeclarations(css string) []declaration {
	if d, ok := sh.inline[css]; ok {
		return d
	}
	p := &cssParser{lexer: newLexer(css), sheet: sh}
	var all []declaration
	for {
		here := p.pos
		t := p.next()
		if t.kind == tokenEnd {
			break
		}
		if t.kind == tokenSpace || t.is(";") {
			continue
		}
		p.pos = here
		found, _ := p.declaration(false)
		all = append(all, found...)
	}
	sh.inline[css] = all
	return all
}

// add puts declarations where the elements will find them that they may be about.
func (sh *sheet) add(at place, decls []declaration) {
	if len(decls) == 0 || at.parents == nil {
		return
	}
	if len(at.parents) == 0 { // a frame of an animation
		sh.frames[""] = append(sh.frames[""], decls...)
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
