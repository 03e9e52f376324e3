package visible

import "strings"

// selector is a compound selector, which is about one element, and what stands
// to the left of it. Every condition of it must hold.
type selector struct {
	tag     string // in lower case, "" for any
	id      string
	classes []string
	attrs   []attrTest
	pseudos []pseudo
	left    *selector
	how     byte   // how left relates to this one: ' ', '>', '+' or '~'
	weight  uint64 // specificity, of the whole
}

// Specificities: browsers count to 255 in each place.
const (
	weightID    = 1 << 16
	weightClass = 1 << 8
	weightTag   = 1
)

// addWeights adds two specificities without carrying over.
func addWeights(a, b uint64) uint64 {
	var sum uint64
	for shift := 0; shift <= 16; shift += 8 {
		sum |= min(a>>shift&0xff+b>>shift&0xff, 0xff) << shift
	}
	return sum
}

// attrTest is a condition on an attribute. op is "" when it need only be there.
type attrTest struct {
	name, value string
	op          byte
	fold        bool // case does not count
}

// selectorContext is what selectors mean where they stand.
type selectorContext struct {
	parents  []*selector
	weight   uint64          // of the heaviest of them
	scoping  bool            // parents are what :scope and & mean, and nothing is relative to them
	prefixes map[string]bool // of namespaces, and whether it is that of HTML
	foreign  bool
	depth    int
	has      bool // in :has, where selectors are relative to the element
	anyhow   bool // what is invalid is left out of a list
	inside   bool // in a pseudo-class, where no pseudo-elements are
}

// parseSelectors parses a list of selectors. The truth is no for an invalid list,
// and doubtful for one that not every browser takes for valid.
func parseSelectors(toks []token, c selectorContext) ([]*selector, truth) {
	const deepest = 50
	if c.depth++; c.depth > deepest {
		return []*selector{{pseudos: []pseudo{{kind: isUnknown}}}}, doubtful
	}
	var list []*selector
	sure := yes
	for _, one := range splitTokens(toks, ",") {
		p := selectorParser{toks: trimTokens(one), context: c, sure: yes}
		if s := p.complex(); s != nil {
			sure = min(sure, p.sure)
			list = append(list, s)
		} else if !c.anyhow {
			return nil, no
		}
	}
	return list, sure
}

type selectorParser struct {
	toks    []token
	context selectorContext
	parent  bool // & was used
	ended   bool // a pseudo-element was
	sure    truth
}

func (p *selectorParser) peek() token {
	if len(p.toks) == 0 {
		return token{}
	}
	return p.toks[0]
}

func (p *selectorParser) take() token {
	t := p.peek()
	if len(p.toks) > 0 {
		p.toks = p.toks[1:]
	}
	return t
}

func (p *selectorParser) space() bool {
	found := false
	for p.peek().kind == tokenSpace {
		p.take()
		found = true
	}
	return found
}

// combinator reads what stands between two compound selectors, 0 for nothing.
func (p *selectorParser) combinator() byte {
	space := p.space()
	for _, mark := range []string{">", "+", "~"} {
		if p.peek().is(mark) {
			p.take()
			p.space()
			return mark[0]
		}
	}
	if space {
		return ' '
	}
	return 0
}

// complex reads a whole selector, nil for an invalid one.
func (p *selectorParser) complex() *selector {
	nested := p.context.parents != nil && !p.context.scoping
	var s *selector
	how := p.combinator()
	if how != 0 {
		switch {
		case p.context.has:
			s = &selector{pseudos: []pseudo{{kind: isAnchor}}}
		case nested, p.context.scoping && !p.context.inside:
			s = p.ampersand()
		default:
			return nil
		}
	} else if p.context.has {
		s, how = &selector{pseudos: []pseudo{{kind: isAnchor}}}, ' '
	}
	relative := how != 0
	first := (*selector)(nil)
	for {
		c := p.compound()
		if c == nil {
			return nil
		}
		if first == nil {
			first = c
		}
		if s != nil {
			c.left, c.how = s, how
			c.weight = addWeights(c.weight, s.weight)
		}
		s = c
		if len(p.toks) == 0 {
			break
		}
		if how = p.combinator(); how == 0 || p.ended {
			return nil
		}
	}
	if nested && !relative && !p.parent {
		first.left, first.how = p.ampersand(), ' '
		for c := s; ; c = c.left {
			c.weight = addWeights(c.weight, first.left.weight)
			if c == first {
				break
			}
		}
	}
	return s
}

// ampersand is what & means: the selectors of the rule around.
func (p *selectorParser) ampersand() *selector {
	p.parent = true
	s := &selector{}
	s.add(p.parentPseudo())
	return s
}

func (p *selectorParser) parentPseudo() (pseudo, uint64) {
	if p.context.parents == nil {
		return pseudo{kind: isRoot}, 0
	}
	return pseudo{kind: isAny, list: p.context.parents}, p.context.weight
}

func (s *selector) add(one pseudo, weight uint64) {
	s.pseudos = append(s.pseudos, one)
	s.weight = addWeights(s.weight, weight)
}

func heaviest(list []*selector) uint64 {
	var w uint64
	for _, s := range list {
		w = max(w, s.weight)
	}
	return w
}

// never reports whether no element matches, whatever it is.
func (s *selector) never() bool {
	for ; s != nil; s = s.left {
		for _, p := range s.pseudos {
			if p.kind == isNever {
				return true
			}
		}
	}
	return false
}

// compound reads a compound selector, nil for an invalid one or none.
func (p *selectorParser) compound() *selector {
	s := &selector{}
	foreign := p.context.foreign
	n := len(p.toks)
	if !p.name(s, &foreign) {
		return nil
	}
	for len(p.toks) > 0 {
		t := p.peek()
		if p.ended && !t.is(":") {
			return nil
		}
		switch {
		case t.kind == tokenHash && t.name:
			p.take()
			if s.id == "" {
				s.id = t.text
			} else {
				s.attrs = append(s.attrs, attrTest{name: "id", value: t.text, op: '='})
			}
			s.weight = addWeights(s.weight, weightID)
			continue
		case t.is("."):
			p.take()
			if t = p.take(); t.kind != tokenIdent {
				return nil
			}
			s.classes = append(s.classes, t.text)
			s.weight = addWeights(s.weight, weightClass)
			continue
		case t.is("["):
			end := blockEnd(p.toks, 0)
			test, ok := p.attribute(p.toks[1:end])
			if !ok {
				return nil
			}
			p.toks = p.toks[min(end+1, len(p.toks)):]
			if test.name == "" {
				s.add(pseudo{}, 0)
			} else {
				s.attrs = append(s.attrs, test)
			}
			s.weight = addWeights(s.weight, weightClass)
			continue
		case t.is("&"):
			p.take()
			p.parent = true
			s.add(p.parentPseudo())
			continue
		case t.is(":"):
			p.take()
			if !p.pseudo(s) {
				return nil
			}
			continue
		}
		break
	}
	if len(p.toks) == n {
		return nil
	}
	if foreign {
		s.add(pseudo{}, 0)
	}
	return s
}

// name reads the tag of a compound selector if it has one, and its namespace.
func (p *selectorParser) name(s *selector, foreign *bool) bool {
	named := func(t token) bool { return t.kind == tokenIdent || t.is("*") }
	t := p.peek()
	if len(p.toks) > 1 && (named(t) && p.toks[1].is("|") || t.is("|")) && !p.toks[1].is("=") {
		rest := p.toks[1:]
		if !t.is("|") {
			rest = p.toks[2:]
		}
		if len(rest) == 0 || !named(rest[0]) {
			return false
		}
		switch {
		case t.is("*"):
			*foreign = false
		case t.is("|"):
			*foreign = true
		default:
			html, known := p.context.prefixes[t.text]
			if !known {
				return false
			}
			*foreign = !html
		}
		p.toks = rest
		t = p.peek()
	}
	if named(t) {
		p.take()
		if t.kind == tokenIdent {
			s.tag = strings.ToLower(t.text)
			s.weight = weightTag
		}
	}
	return true
}

// foldedAttributes are those whose values HTML compares without regard to case.
var foldedAttributes = setOf("accept accept-charset align alink axis bgcolor charset checked clear codetype color compact declare defer dir direction disabled enctype face frame hreflang http-equiv lang language link media method multiple nohref noresize noshade nowrap readonly rel rev rules scope scrolling selected shape target text type valign valuetype vlink")

func setOf(words string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		set[w] = true
	}
	return set
}

// attribute reads what stands in brackets. A test without a name is one that no
// attribute of HTML meets.
func (p *selectorParser) attribute(toks []token) (attrTest, bool) {
	in := selectorParser{toks: toks}
	in.space()
	t := in.take()
	foreign := false
	if t.is("|") || in.peek().is("|") && len(in.toks) > 1 && !in.toks[1].is("=") {
		if !t.is("|") {
			if !t.is("*") && t.kind != tokenIdent {
				return attrTest{}, false
			}
			if _, known := p.context.prefixes[t.text]; !t.is("*") && !known {
				return attrTest{}, false
			}
			foreign = !t.is("*")
			in.take()
		}
		t = in.take()
	}
	if t.kind != tokenIdent {
		return attrTest{}, false
	}
	test := attrTest{name: strings.ToLower(t.text)}
	test.fold = foldedAttributes[test.name]
	in.space()
	if op := in.take(); op.kind != tokenEnd {
		test.op = '='
		if !op.is("=") {
			if op.kind != tokenMark || !strings.Contains("~|^$*", op.text) || !in.take().is("=") {
				return attrTest{}, false
			}
			test.op = op.text[0]
		}
		in.space()
		v := in.take()
		if v.kind != tokenIdent && v.kind != tokenString {
			return attrTest{}, false
		}
		test.value = v.text
		in.space()
		switch flag := in.take(); {
		case flag.kind == tokenEnd:
		case flag.word() == "i":
			test.fold = true
		case flag.word() == "s": // which not every browser knows
			test.fold = false
			p.sure = doubtful
		default:
			return attrTest{}, false
		}
		in.space()
	}
	if foreign {
		test.name = ""
	}
	return test, len(in.toks) == 0
}
