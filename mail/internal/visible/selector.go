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
	sure    truth  // doubtful where a part of the whole is exotic
	never   bool   // no element matches the whole: it is about a state or a pseudo-element
}

// Specificities: browsers count to 255 in each place. An exotic selector may be as
// specific as any.
const (
	weightID    = 1 << 16
	weightClass = 1 << 8
	weightTag   = 1
	weightMost  = 0xffffff
)

// addWeights adds two specificities without carrying over.
func addWeights(a, b uint64) uint64 {
	var sum uint64
	for shift := 0; shift <= 16; shift += 8 {
		sum |= min(a>>shift&0xff+b>>shift&0xff, 0xff) << shift
	}
	return sum
}

// attrTest is a condition on an attribute. op is 0 when it need only be there.
type attrTest struct {
	name, value string
	op          byte
	fold        bool // case does not count
}

// pseudo is a pseudo-class that is judged exactly.
type pseudo struct {
	kind pseudoKind
	list []*selector // of isNot
}

type pseudoKind uint8

const (
	isNot pseudoKind = iota
	isRoot
	isLink
	isChecked
	isFirst
	isLast
)

// parseSelectors parses a list of selectors. The truth is no for an invalid list,
// and doubtful for one that not every browser takes for valid.
func parseSelectors(toks []token, relative bool, depth int) ([]*selector, truth) {
	const deepest = 50
	if depth > deepest {
		return nil, doubtful
	}
	var list []*selector
	sure := yes
	for i, t := range toks {
		if t.is("|") && !(i+1 < len(toks) && toks[i+1].is("=")) { // a namespace, which no letter needs
			return []*selector{{sure: doubtful, weight: weightMost}}, doubtful
		}
	}
	for _, one := range splitTokens(toks) {
		p := selectorParser{toks: trimTokens(one), depth: depth, sure: yes}
		s := p.complex(relative)
		if s == nil {
			return nil, no
		}
		sure = min(sure, p.sure)
		list = append(list, s)
	}
	return list, sure
}

type selectorParser struct {
	toks  []token
	depth int
	ended bool  // a pseudo-element was read
	sure  truth // whether the list is valid everywhere
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

// complex reads a whole selector, nil for an invalid one. Of a relative one only
// what stands behind its first combinator counts.
func (p *selectorParser) complex(relative bool) *selector {
	how := p.combinator()
	if how != 0 && !relative {
		return nil
	}
	var s *selector
	for {
		c := p.compound()
		if c == nil {
			return nil
		}
		if s != nil {
			c.left, c.how = s, how
			c.weight = addWeights(c.weight, s.weight)
			c.sure, c.never = min(c.sure, s.sure), c.never || s.never
		}
		s = c
		if len(p.toks) == 0 {
			break
		}
		if how = p.combinator(); how == 0 || p.ended {
			return nil
		}
	}
	if s.sure == doubtful {
		s.weight = weightMost
	}
	return s
}

// compound reads a compound selector, nil for an invalid one or none.
func (p *selectorParser) compound() *selector {
	s := &selector{sure: yes}
	n := len(p.toks)
	if t := p.peek(); t.kind == tokenIdent || t.is("*") {
		p.take()
		if t.kind == tokenIdent {
			s.tag, s.weight = strings.ToLower(t.text), weightTag
		}
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
			p.take()
			in := selectorParser{}
			if in.toks, p.toks = inside(p.toks, t.span); !in.attribute(s) {
				return nil
			}
			continue
		case t.is("&"): // exotic: it may be any element
			p.take()
			s.sure = doubtful
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
	return s
}

func setOf(words string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		set[w] = true
	}
	return set
}

// attribute reads what stands in brackets, and reports whether that is valid.
func (p *selectorParser) attribute(s *selector) bool {
	p.space()
	t := p.take()
	if t.kind != tokenIdent {
		return false
	}
	test := attrTest{name: strings.ToLower(t.text)}
	p.space()
	if op := p.take(); op.kind != tokenEnd {
		test.op = '='
		if !op.is("=") {
			if op.kind != tokenMark || !strings.Contains("~|^$*", op.text) || !p.take().is("=") {
				return false
			}
			test.op = op.text[0]
		}
		p.space()
		v := p.take()
		if v.kind != tokenIdent && v.kind != tokenString {
			return false
		}
		test.value = v.text
		p.space()
		switch flag := p.take(); flag.word() {
		case "i":
			test.fold = true
		case "s":
			s.sure = doubtful
		default:
			if flag.kind != tokenEnd {
				return false
			}
		}
		p.space()
	}
	s.attrs = append(s.attrs, test)
	s.weight = addWeights(s.weight, weightClass)
	return len(p.toks) == 0
}

var (
	// states are pseudo-classes that hold for no element of a letter that is only
	// looked at.
	states         = setOf("hover focus active visited target focus-within focus-visible autofill fullscreen")
	exactPseudos   = map[string]pseudoKind{"root": isRoot, "link": isLink, "any-link": isLink, "checked": isChecked, "first-child": isFirst, "last-child": isLast}
	pseudoElements = setOf("before after first-line first-letter marker selection placeholder backdrop file-selector-button cue")
)

// pseudo reads a pseudo-class or a pseudo-element behind its first colon, and
// reports whether it is valid.
func (p *selectorParser) pseudo(s *selector) bool {
	element := p.peek().is(":")
	if element {
		p.take()
	}
	t := p.take()
	name := strings.ToLower(t.text)
	var args []token
	if t.kind == tokenFunction {
		args, p.toks = inside(p.toks, t.span)
	} else if t.kind != tokenIdent {
		return false
	}
	s.weight = addWeights(s.weight, weightClass)
	if strings.HasPrefix(name, "-ms-") || strings.HasPrefix(name, "-o-") || strings.HasPrefix(name, "-moz-") {
		return false // no reader but Outlook and old programs takes it for valid
	}
	kind, exact := exactPseudos[name]
	switch {
	case element || t.kind == tokenIdent && (name == "before" || name == "after" || name == "first-line" || name == "first-letter"):
		p.ended, s.never = true, true
		if !pseudoElements[name] && !strings.HasPrefix(name, "-webkit-") {
			p.sure = doubtful
		}
	case t.kind == tokenIdent && states[name]:
		if !p.ended {
			s.never = true
		}
	case t.kind == tokenIdent && exact:
		s.pseudos = append(s.pseudos, pseudo{kind: kind})
	case name == "not" && t.kind == tokenFunction:
		list, sure := parseSelectors(args, false, p.depth+1)
		if sure == no {
			return false
		}
		s.sure = min(s.sure, sure)
		var weight uint64
		for _, l := range list {
			weight = max(weight, l.weight)
		}
		s.weight = addWeights(s.weight-weightClass, weight)
		s.pseudos = append(s.pseudos, pseudo{kind: isNot, list: list})
	default: // exotic: it may hold for any element
		s.sure, p.sure = doubtful, doubtful
	}
	return true
}
