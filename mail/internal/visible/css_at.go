package visible

import "strings"

// atRule reads a rule behind its name.
func (p *cssParser) atRule(name string, sc scope) {
	toks, end := p.prelude(true, sc.depth > 0)
	if end == "}" {
		p.pos--
	}
	toks = trimTokens(toks)
	switch {
	case name == "import", name == "charset", name == "layer" && end != "{":
	case name == "namespace":
		defer func() { p.imports = false }()
	default:
		p.imports, p.started = false, true
	}
	if end != "{" {
		switch name {
		case "layer":
			for _, one := range splitTokens(toks, ",") {
				layerNamed(sc.layer, one)
			}
		case "import":
			if p.imports && sc.depth == 0 {
				p.importSheet(toks, sc)
			}
		case "namespace":
			if !p.started {
				p.namespace(toks)
			}
		}
		return
	}
	inner := sc
	switch name {
	case "media":
		inner.sure = min(sc.sure, mediaList(toks))
	case "supports":
		inner.sure = min(sc.sure, supports(toks))
	case "container", "starting-style":
		inner.sure = min(sc.sure, doubtful)
	case "scope":
		inner.sure = min(sc.sure, doubtful)
		inner.parents, inner.scoping = p.scopeRoots(toks, sc), true
		inner.weight = 0 // :scope counts as a class, & as nothing
	case "layer":
		for i, t := range toks {
			if dot := i%2 == 1; dot && !t.is(".") || !dot && t.kind != tokenIdent {
				inner.sure = no
			} else if isWide(t.word()) { // which not every browser takes for a name
				inner.sure = min(inner.sure, doubtful)
			}
		}
		if inner.sure != no {
			inner.layer = layerNamed(sc.layer, toks)
		}
	case "keyframes", "-webkit-keyframes", "-moz-keyframes":
		p.keyframes(toks)
		return
	case "property":
		p.property(toks)
		return
	default: // fonts, pages and what is not known
		inner.sure = no
	}
	if inner.sure == no {
		p.skipBlock()
		return
	}
	if inner.parents != nil {
		p.block(inner)
		return
	}
	if inner.depth++; inner.depth > maxCSSDepth {
		p.sheet.beyond = true
		p.skipBlock()
		return
	}
	p.rules(inner, false)
}

// layerNamed returns the layer in another that a name such as "a.b" means, a new
// one for no name.
func layerNamed(l *layer, toks []token) *layer {
	toks = trimTokens(toks)
	if len(toks) == 0 {
		return l.child("")
	}
	names := 0
	for _, t := range toks {
		if t.kind == tokenIdent && names < maxCSSDepth {
			l = l.child(t.text)
			names++
		}
	}
	return l
}

// importSheet reads a style sheet that the import itself holds; what would have
// to be fetched is not there. Its layer takes its place in the order in any case.
func (p *cssParser) importSheet(toks []token, sc scope) {
	parts := partsOf(toks)
	if len(parts) == 0 {
		return
	}
	address := ""
	switch first := parts[0]; {
	case first.kind == tokenString, first.kind == tokenURL:
		address = first.text
	case first.calls() == "url" && len(first.args) > 0 && first.args[0].kind == tokenString:
		address = first.args[0].text
	default:
		return
	}
	parts = parts[1:]
	rest := toks[1:]
	if toks[0].kind == tokenFunction {
		rest = toks[min(blockEnd(toks, 0)+1, len(toks)):]
	}
	cut := func() {
		parts = parts[1:]
		rest = trimTokens(rest)
		if rest[0].opens() != "" {
			rest = rest[min(blockEnd(rest, 0)+1, len(rest)):]
		} else {
			rest = rest[1:]
		}
	}
	if len(parts) > 0 && (parts[0].word() == "layer" || parts[0].calls() == "layer") {
		sc.layer = layerNamed(sc.layer, parts[0].args)
		cut()
	}
	if len(parts) > 0 && parts[0].calls() == "supports" {
		args := parts[0].args
		if v := supports(args); v != no {
			sc.sure = min(sc.sure, v)
		} else {
			sc.sure = min(sc.sure, supportsDeclaration(args))
		}
		cut()
	}
	sc.sure = min(sc.sure, mediaList(rest))
	css, ok := dataSheet(address)
	if !ok || sc.sure == no {
		return
	}
	in := &cssParser{lexer: newLexer(css), sheet: p.sheet, imports: true, imported: p.imported + 1}
	if in.imported > maxCSSDepth {
		p.sheet.beyond = true
		return
	}
	in.rules(sc, true)
}

// namespace notes which prefixes of selectors mean HTML.
func (p *cssParser) namespace(toks []token) {
	const xhtml = "http://www.w3.org/1999/xhtml"
	parts := partsOf(toks)
	prefix := ""
	if len(parts) == 2 && parts[0].kind == tokenIdent {
		prefix = parts[0].text
		parts = parts[1:]
	}
	if len(parts) != 1 {
		return
	}
	uri := parts[0].text
	if len(parts[0].args) > 0 {
		uri = parts[0].args[0].text
	}
	if prefix == "" {
		p.foreign = uri != xhtml
		return
	}
	if p.prefixes == nil {
		p.prefixes = map[string]bool{}
	}
	p.prefixes[prefix] = uri == xhtml
}

// keyframes keeps how an animation leaves an element.
func (p *cssParser) keyframes(toks []token) {
	toks = trimTokens(toks)
	var last []declaration
	for {
		t := p.next()
		if t.kind == tokenEnd || t.is("}") {
			break
		}
		if t.kind == tokenSpace {
			continue
		}
		ends := false
		for !t.is("{") && !t.is("}") && t.kind != tokenEnd {
			ends = ends || t.word() == "to" || t.kind == tokenPercent && t.n == 100
			t = p.next()
		}
		if !t.is("{") {
			break
		}
		decls := p.frame()
		if ends {
			last = append(last, decls...)
		}
	}
	if len(toks) == 1 && (toks[0].kind == tokenIdent || toks[0].kind == tokenString) {
		p.sheet.frames[toks[0].text] = last
	}
}

// frame reads a block of declarations that do not know importance.
func (p *cssParser) frame() []declaration {
	var all []declaration
	for {
		here := p.pos
		t := p.next()
		switch {
		case t.kind == tokenEnd, t.is("}"):
			return all
		case t.kind == tokenSpace, t.is(";"):
			continue
		case t.is("{"):
			p.skipBlock()
			continue
		}
		p.pos = here
		found, ok := p.declaration(true)
		if !ok {
			p.pos = here
			if _, end := p.prelude(true, true); end == "{" {
				p.skipBlock()
			} else if end == "}" {
				p.pos--
			}
		}
		for _, d := range found {
			if !d.important && d.prop != custom {
				all = append(all, d)
			}
		}
	}
}

// property reads the description of a custom property.
func (p *cssParser) property(toks []token) {
	var r registered
	syntax, inherits := false, false
	for {
		t := p.next()
		if t.kind == tokenEnd || t.is("}") {
			break
		}
		if t.kind != tokenIdent {
			continue
		}
		var value []token
		for v := p.next(); v.kind != tokenEnd; v = p.next() {
			if v.is("}") {
				p.pos--
				break
			}
			if v.is(";") {
				break
			}
			if value = append(value, v); v.opens() != "" {
				value = p.within(v, value)
			}
		}
		if len(value) == 0 || len(value) > maxValueTokens {
			continue
		}
		if value = trimTokens(value); len(value) == 0 || !value[0].is(":") {
			continue
		}
		value = trimTokens(value[1:])
		switch strings.ToLower(t.text) {
		case "syntax":
			syntax = len(value) == 1 && value[0].kind == tokenString
		case "inherits":
			if len(value) == 1 {
				r.inherits = value[0].word() == "true"
				inherits = r.inherits || value[0].word() == "false"
			}
		case "initial-value":
			r.initial, r.set = value, true
		}
	}
	if syntax && inherits && len(toks) == 1 && strings.HasPrefix(toks[0].text, "--") {
		p.sheet.registered[toks[0].text] = r
	}
}
