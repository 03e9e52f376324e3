package visible

import (
	"strings"
)

// Bounds of a style sheet, which no sheet that a person wrote comes near. A
// sheet beyond them cannot be judged, and then nothing of its document is shown.
const (
	maxCSSDepth    = 100     // blocks in blocks, and brackets in a selector
	maxValueTokens = 2000    // of one declaration
	maxCSSEntries  = 200_000 // selectors
)

// truth says whether something holds: a rule applies, a selector matches. What
// cannot be known, such as how wide a container is, is doubtful. A doubtful rule
// counts where it hides and does not count where it shows.
type truth uint8

const (
	no truth = iota
	doubtful
	yes
)

// layer is a cascade layer (CSS Cascading Level 5 section 6.4); the layers in it
// come before what stands in it directly.
type layer struct {
	kids  []*layer
	named map[string]*layer
	rank  uint64
}

func (l *layer) child(name string) *layer {
	if k := l.named[name]; k != nil {
		return k
	}
	k := new(layer)
	l.kids = append(l.kids, k)
	if name != "" {
		if l.named == nil {
			l.named = map[string]*layer{}
		}
		l.named[name] = k
	}
	return k
}

// number gives every layer its rank and returns the next free one.
func (l *layer) number(next uint64) uint64 {
	for _, k := range l.kids {
		next = k.number(next)
	}
	l.rank = next
	return next + 1
}

// rule is a block of declarations.
type rule struct {
	decls []declaration
	layer *layer
	order uint64
	sure  truth // never no
}

// entry is one selector of a rule.
type entry struct {
	selector *selector
	rule     *rule
}

// registered is a custom property that @property describes.
type registered struct {
	initial  []token
	set      bool // initial has a value
	inherits bool
}

// sheet holds the rules of a document, by the id, class or tag, in lower case,
// that an element must have for a selector to match.
type sheet struct {
	ids, classes, tags map[string][]entry
	others             []entry
	top                layer
	layers             uint64
	order              uint64
	entries            int
	registered         map[string]registered
	frames             map[string][]declaration // how animations leave an element
	beyond             bool                     // it passed a bound
	inline             map[string][]declaration // style attributes, by their text
	title              string                   // of the first sheet that has one; other titles are alternatives
}

func newSheet() *sheet {
	return &sheet{ids: map[string][]entry{}, classes: map[string][]entry{}, tags: map[string][]entry{},
		registered: map[string]registered{}, frames: map[string][]declaration{}, inline: map[string][]declaration{}}
}

// addBlock reads one style block that is the content of an element with the given
// attributes.
func (sh *sheet) addBlock(css, kind, media, title string) {
	if k := strings.ToLower(strings.TrimSpace(kind)); k != "" && k != "text/css" {
		return
	}
	if title != "" {
		if sh.title == "" {
			sh.title = title
		} else if sh.title != title {
			return
		}
	}
	sure := mediaList(tokensOf(media))
	if sure == no {
		return
	}
	p := &cssParser{lexer: newLexer(css), sheet: sh, imports: true}
	p.rules(scope{layer: &sh.top, sure: sure}, true)
}

// done is called when every block is read.
func (sh *sheet) done() { sh.layers = sh.top.number(0) }

// scope is where a rule stands.
type scope struct {
	layer   *layer
	sure    truth
	parents []*selector // of the rule around it; nil outside of rules
	weight  uint64      // of the heaviest of them
	scoping bool        // they are the roots of an @scope
	depth   int
}

// cssParser reads a style sheet by CSS Syntax Level 3 section 5, with the rules
// in rules of CSS Nesting.
type cssParser struct {
	lexer
	sheet    *sheet
	imports  bool // an import may still come
	started  bool // a namespace may not come any more
	imported int  // how many imports it is in
	prefixes map[string]bool
	foreign  bool // selectors without a prefix are about another language than HTML
}

// rules reads rules up to the end, or to the brace that closes the block.
func (p *cssParser) rules(sc scope, top bool) {
	for {
		here := p.pos
		switch t := p.next(); {
		case t.kind == tokenEnd:
			return
		case t.kind == tokenSpace, top && (t.kind == tokenCDO || t.kind == tokenCDC):
		case !top && t.is("}"):
			return
		case t.kind == tokenAt:
			p.atRule(t.text, sc)
		default:
			p.imports, p.started = false, true
			p.pos = here
			p.qualified(sc, top)
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
			return toks, ""
		case t.is("{"), semicolon && t.is(";"), brace && t.is("}"):
			return toks, t.text
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

var openBrace = token{kind: tokenMark, text: "{"}

// skipBlock skips a block behind its brace.
func (p *cssParser) skipBlock() { p.within(openBrace, nil) }

// qualified reads a rule with a selector.
func (p *cssParser) qualified(sc scope, top bool) {
	nested := sc.parents != nil
	toks, end := p.prelude(nested, !top)
	if end != "{" {
		if end == "}" {
			p.pos-- // of the block around it
		}
		return
	}
	toks = trimTokens(toks)
	if len(toks) > 1 && strings.HasPrefix(toks[0].text, "--") && toks[0].kind == tokenIdent {
		if i := trimTokens(toks[1:]); len(i) > 0 && i[0].is(":") { // what looks like a custom property is no rule
			p.skipBlock()
			return
		}
	}
	list, sure := parseSelectors(toks, p.selectorContext(sc))
	if sure == no {
		p.skipBlock()
		return
	}
	sc.sure = min(sc.sure, sure)
	sc.parents, sc.weight, sc.scoping = list, heaviest(list), false
	p.block(sc)
}

func (p *cssParser) selectorContext(sc scope) selectorContext {
	return selectorContext{parents: sc.parents, weight: sc.weight, scoping: sc.scoping, prefixes: p.prefixes, foreign: p.foreign}
}

// scopeRoots returns what :scope and & mean in an @scope: any element where its
// prelude does not say it.
func (p *cssParser) scopeRoots(toks []token, sc scope) []*selector {
	if parts := partsOf(toks); len(parts) > 0 && parts[0].is("(") {
		if roots, sure := parseSelectors(parts[0].args, p.selectorContext(sc)); sure != no {
			return roots
		}
	}
	return []*selector{{}}
}

// block reads the content of a rule: declarations and rules.
func (p *cssParser) block(sc scope) {
	if sc.depth++; sc.depth > maxCSSDepth {
		p.sheet.beyond = true
		p.skipBlock()
		return
	}
	var decls []declaration
	flush := func() {
		p.sheet.add(sc, decls)
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
			p.atRule(t.text, sc)
		default:
			p.pos = here
			found, ok := p.declaration(true)
			if ok {
				decls = append(decls, found...)
				continue
			}
			p.pos = here
			flush()
			p.qualified(sc, false)
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
	if custom {
		key = name.text
	}
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
	keep := valid && (custom || isProperty(key))
	var toks []token
	count := 0
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
		first := len(toks)
		if keep {
			toks = append(toks, t)
		}
		if t.opens() != "" {
			if keep {
				toks = p.within(t, toks)
				for _, in := range toks[first:] {
					valid = valid && in.kind != tokenBad
				}
			} else {
				p.within(t, nil)
			}
		}
		if count = len(toks); count > maxValueTokens {
			p.sheet.beyond = true
			keep, toks = false, nil
		}
	}
	if !keep || !valid {
		return nil, true
	}
	return parseDeclaration(key, toks), true
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

// add puts a rule where the elements will find it that it may be about.
func (sh *sheet) add(sc scope, decls []declaration) {
	sh.order++
	if len(decls) == 0 || sc.parents == nil {
		return
	}
	r := &rule{decls: decls, layer: sc.layer, order: sh.order, sure: sc.sure}
	for _, s := range sc.parents {
		if sh.entries++; sh.entries > maxCSSEntries {
			sh.beyond = true
			return
		}
		e := entry{selector: s, rule: r}
		switch {
		case s.never():
		case s.id != "":
			key := strings.ToLower(s.id)
			sh.ids[key] = append(sh.ids[key], e)
		case len(s.classes) > 0:
			key := strings.ToLower(s.classes[0])
			sh.classes[key] = append(sh.classes[key], e)
		case s.tag != "":
			sh.tags[s.tag] = append(sh.tags[s.tag], e)
		default:
			sh.others = append(sh.others, e)
		}
	}
}
