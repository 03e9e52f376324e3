package visible

import (
	"cmp"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// rank is the place of a declaration in the cascade (CSS Cascading Level 5
// section 6): first its origin, importance and layer, then its specificity, then
// its order.
type rank struct{ tier, weight, order uint64 }

func (a rank) compare(b rank) int {
	return cmp.Or(cmp.Compare(a.tier, b.tier), cmp.Compare(a.weight, b.weight), cmp.Compare(a.order, b.order))
}

// The lowest tiers. Then come the layers, what is in no layer, style attributes,
// animations; then the same from important declarations, where layers count in
// the other direction.
const (
	tierBrowser = iota
	tierAttributes
	tierSheets
)

func (sh *sheet) tier(l *layer, important bool) uint64 {
	if important {
		return tierSheets + sh.layers + 2 + sh.layers - l.rank
	}
	return tierSheets + l.rank
}

func (sh *sheet) inlineTier(important bool) uint64 {
	if important {
		return tierSheets + 2*sh.layers + 3
	}
	return tierSheets + sh.layers
}

func (sh *sheet) animationTier() uint64 { return tierSheets + sh.layers + 1 }

// candidate is a declaration that may win.
type candidate struct {
	rank
	decl *declaration
}

// cascade finds out which declarations win for one element. It is used again for
// the next.
type cascade struct {
	best    [properties]candidate
	doubts  []candidate // which hold or not
	all     []candidate // that hold
	customs map[string]candidate
}

func (c *cascade) reset() {
	clear(c.best[:])
	c.doubts, c.all = c.doubts[:0], c.all[:0]
	clear(c.customs)
}

// offer takes a declaration into account.
func (c *cascade) offer(d *declaration, r rank, sure truth) {
	one := candidate{r, d}
	switch {
	case sure == no:
	case d.prop == custom:
		if c.customs == nil {
			c.customs = map[string]candidate{}
		}
		// Which of the values a doubtful rule gives a variable cannot be known.
		if old, ok := c.customs[d.name]; sure == yes && (!ok || r.compare(old.rank) >= 0) {
			c.customs[d.name] = one
		}
	case sure == doubtful || d.quirk:
		c.doubts = append(c.doubts, one)
	default:
		c.all = append(c.all, one)
		if old := &c.best[d.prop]; old.decl == nil || r.compare(old.rank) >= 0 {
			*old = one
		}
	}
}

// collect offers everything that is declared for an element.
func (p *page) collect(n *treeElement, tag string, attrs []html.Attribute) {
	c := &p.cascade
	c.reset()
	for i := range p.hints(tag, attrs) {
		c.offer(&p.hinted[i], rank{tier: tierAttributes}, yes)
	}
	p.collectRules(n)
	inline := ""
	for _, a := range attrs {
		if a.Key == "style" && a.Namespace == "" {
			inline = a.Val
			break
		}
	}
	if inline != "" {
		decls := p.sheet.inlineDeclarations(inline)
		p.matcher.steps -= len(decls)
		for i := range decls {
			c.offer(&decls[i], rank{tier: p.sheet.inlineTier(decls[i].important), order: uint64(i)}, yes)
		}
	}
}

func (p *page) collectRules(n *treeElement) {
	p.try(p.sheet.tags[n.tag], n)
	for i, class := range n.classes {
		key := strings.ToLower(class)
		if !slices.ContainsFunc(n.classes[:min(i, 32)], func(before string) bool { return strings.EqualFold(before, class) }) {
			p.try(p.sheet.classes[key], n)
		}
	}
	if n.id != "" {
		p.try(p.sheet.ids[strings.ToLower(n.id)], n)
	}
	p.try(p.sheet.others, n)
}

// try offers the declarations of the rules that an element matches.
func (p *page) try(entries []entry, n *treeElement) {
	for i := range entries {
		if p.matcher.steps < 0 {
			return
		}
		e := &entries[i]
		sure := min(p.matcher.match(e.selector, n), e.rule.sure)
		if sure == no {
			continue
		}
		p.matcher.steps -= len(e.rule.decls)
		for j := range e.rule.decls {
			d := &e.rule.decls[j]
			p.cascade.offer(d, rank{p.sheet.tier(e.rule.layer, d.important), e.selector.weight, e.rule.order<<20 + uint64(j)}, sure)
		}
	}
}

// settle decides about the doubtful declarations: the one with the highest rank
// that hides wins over what is sure.
func (p *page) settle(hides func(property, value) bool) {
	c := &p.cascade
	if len(c.doubts) == 0 {
		return
	}
	slices.SortStableFunc(c.doubts, func(a, b candidate) int { return -a.compare(b.rank) })
	var done [properties]bool
	for _, one := range c.doubts {
		prop := one.decl.prop
		if done[prop] || c.best[prop].decl != nil && one.compare(c.best[prop].rank) < 0 {
			continue
		}
		if v, ok := p.valueOf(one.decl); ok && hides(prop, v) {
			c.best[prop] = one
			done[prop] = true
		}
	}
}

// valueOf returns the value of a declaration with its variables substituted. ok
// is false when that makes it invalid: then it is as if it said "unset".
func (p *page) valueOf(d *declaration) (value, bool) {
	if d.later == nil {
		return d.value, true
	}
	left := maxExpansion
	x := expander{sheet: p.sheet, vars: p.vars, attrs: p.attrs, left: &left, steps: &p.matcher.steps}
	toks, ok := x.expand(d.later.tokens, 0)
	p.matcher.steps -= 8 * (maxExpansion - left)
	if !ok {
		for _, one := range branches(d.later.tokens) {
			if v, ok := valueFor(d.prop, parseDeclaration(d.later.name, one)); ok && p.hiding(d.prop, v) {
				return v, true
			}
		}
		return value{}, false
	}
	return valueFor(d.prop, parseDeclaration(d.later.name, toks))
}

func valueFor(prop property, decls []declaration) (value, bool) {
	for _, d := range decls {
		if d.prop == prop && d.later == nil {
			return d.value, true
		}
	}
	return value{}, false
}

// inheritsOf reports whether elements have a property from those around them when
// nothing else is said.
func inheritsOf(prop property) bool {
	switch prop {
	case visibility, fontSize, lineHeight, letterSpacing, textIndent, colorText, textFill, textShadow, textSecurity, whiteSpace:
		return true
	}
	return false
}

// Sources of a value.
type source uint8

const (
	absent  source = iota // nothing is declared
	given                 // a value is
	inherit               // that of the element around
	initial
)

// winner returns the value of a property.
func (p *page) winner(prop property) (value, source) {
	one := p.cascade.best[prop]
	for tries := 0; one.decl != nil && tries < 100; tries++ {
		v, ok := p.valueOf(one.decl)
		switch {
		case !ok:
			v.word = "unset"
		case !isWide(v.word):
			return v, given
		}
		switch v.word {
		case "inherit":
			return v, inherit
		case "initial":
			return v, initial
		case "unset":
			if inheritsOf(prop) {
				return v, inherit
			}
			return v, initial
		case "revert":
			return v, absent
		}
		one = p.below(prop, one.tier)
	}
	return value{}, absent
}

// below returns the best declaration of a property in the layers below a tier.
func (p *page) below(prop property, tier uint64) candidate {
	layers := p.sheet.layers
	if tier == p.sheet.inlineTier(true) {
		tier = p.sheet.inlineTier(false)
	} else if tier > p.sheet.animationTier() { // the layer of important declarations
		tier = tierSheets + tierSheets + 2*layers + 2 - tier
	}
	var best candidate
	p.matcher.steps -= len(p.cascade.all)
	for _, one := range p.cascade.all {
		if one.decl.prop == prop && one.tier < tier && (best.decl == nil || one.compare(best.rank) >= 0) {
			best = one
		}
	}
	return best
}
