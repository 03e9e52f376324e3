package visible

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// selector is a compound selector, whose conditions must all hold for an element, and the
// selector to the left of it.
type selector struct {
	tag, id, class string // that an element must have, in lower case; "" for any
	conditions     []condition
	left           *selector
	combinator     byte   // how left relates to this one: ' ', '>', '+' or '~'
	weight         uint64 // specificity, of the whole
	parts          int    // of the whole
	sure           truth  // doubtful where a part of the whole is exotic
	never          bool   // no element matches the whole: it asks for a state or a pseudo-element
}

// condition judges one simple selector for an element.
type condition func(m *matcher, n *html.Node) truth

// Specificities. Browsers count to 255 in each place; a selector with so many parts is
// exotic. An exotic selector may be as specific as any.
const (
	weightID    = 1 << 16
	weightClass = 1 << 8
	weightTag   = 1
	weightMost  = 1<<24 - 1
	mostParts   = 200
)

func (s *selector) add(weight uint64, c condition) {
	s.weight += weight
	s.parts++
	s.conditions = append(s.conditions, c)
}

// parseSelectors parses a list of selectors. The truth is no for an invalid list, and
// doubtful for one with an exotic part, which not every browser may take for valid. A
// combinator before a selector, which nested rules may have, is ignored. In an inner list
// no pseudo-element is valid.
func parseSelectors(toks []token, inner bool) (list []*selector, sure truth) {
	if namespaced(toks) {
		return []*selector{exoticSelector()}, doubtful
	}
	sure = yes
	for _, one := range splitTokens(toks) {
		p := selectorParser{toks: one, sure: yes}
		s := p.complex()
		if s == nil {
			return nil, no
		}
		if sure = min(sure, p.sure); p.ended && inner {
			sure = doubtful
		}
		list = append(list, s)
	}
	return list, sure
}

// namespaced reports whether a selector names a namespace, which no mail needs.
func namespaced(toks []token) bool {
	for i, t := range toks {
		if t.is("|") && (i+1 == len(toks) || !toks[i+1].is("=")) {
			return true
		}
	}
	return false
}

// exoticSelector may match any element.
func exoticSelector() *selector { return &selector{sure: doubtful, weight: weightMost} }

type selectorParser struct {
	toks  []token
	fresh bool  // a combinator was read, so white space before the next token does not count
	ended bool  // a pseudo-element was read, so nothing may follow but a state
	sure  truth // whether the list is valid everywhere
}

// peek returns the next token of a compound selector, of kind tokenEnd at its end.
func (p *selectorParser) peek() token {
	if len(p.toks) == 0 || p.toks[0].spaced && !p.fresh {
		return token{}
	}
	return p.toks[0]
}

func (p *selectorParser) take() token {
	t := p.peek()
	if t.kind != tokenEnd {
		p.toks, p.fresh = p.toks[1:], false
	}
	return t
}

// combinator reads the combinator between two compound selectors; 0 at the end.
func (p *selectorParser) combinator() (how byte) {
	if t := p.toks[0]; t.is(">") || t.is("+") || t.is("~") {
		p.toks, how = p.toks[1:], t.text[0]
	} else if t.spaced {
		how = ' '
	}
	p.fresh = true
	return how
}

// complex reads a whole selector, nil for an invalid one.
func (p *selectorParser) complex() *selector {
	if len(p.toks) > 0 && p.combinator() > ' ' {
		p.sure = doubtful // valid in nested rules only
	}
	s := p.compound()
	for s != nil && len(p.toks) > 0 {
		how := p.combinator()
		c := p.compound()
		if how == 0 || c == nil {
			return nil
		}
		c.left, c.combinator = s, how
		c.weight, c.parts = c.weight+s.weight, c.parts+s.parts
		c.sure, c.never = min(c.sure, s.sure), c.never || s.never
		s = c
	}
	switch {
	case s == nil:
	case s.parts > mostParts:
		return exoticSelector()
	case s.sure == doubtful:
		s.weight = weightMost
	}
	return s
}

// compound reads a compound selector, nil for an invalid one or none.
func (p *selectorParser) compound() *selector {
	s := &selector{sure: yes}
	before := len(p.toks)
	for first := true; ; first = false {
		t := p.peek()
		if p.ended && t.kind != tokenEnd && !t.is(":") {
			return nil
		}
		switch {
		case first && t.is("*"):
			p.take()
		case first && t.kind == tokenIdent:
			s.tag = p.take().word()
			s.add(weightTag, func(_ *matcher, n *html.Node) truth { return truthOf(n.Data == s.tag) })
		case t.kind == tokenHash && t.id:
			s.id = strings.ToLower(p.take().text)
			s.add(weightID, func(_ *matcher, n *html.Node) truth { return sameName(t.text, attr(n.Attr, "id")) })
		case t.is("."):
			p.take()
			class := p.take()
			if class.kind != tokenIdent {
				return nil
			}
			s.class = class.word()
			s.add(weightClass, func(m *matcher, n *html.Node) truth { return m.hasClass(class.text, n) })
		case t.is("["):
			if !s.attribute(p.take().args) {
				return nil
			}
		case t.is("&"): // exotic: it may be any element
			p.take()
			s.sure = doubtful
		case t.is(":"):
			p.take()
			if !p.pseudo(s) {
				return nil
			}
		case len(p.toks) == before:
			return nil
		default:
			return s
		}
	}
}

// attribute reads an attribute selector's content in square brackets, and reports whether it
// is valid.
func (s *selector) attribute(args []token) bool {
	if namespaced(args) {
		s.sure = doubtful
		return true
	}
	if len(args) == 0 || args[0].kind != tokenIdent {
		return false
	}
	name, op, value, fold := args[0].word(), "", "", false
	if args = args[1:]; len(args) > 0 {
		if len(args) > 1 && args[1].is("=") && !args[1].spaced && args[0].kind == tokenMark && strings.Contains("~|^$*", args[0].text) {
			op, args = args[0].text, args[1:]
		}
		if len(args) < 2 || len(args) > 3 || !args[0].is("=") || args[1].kind != tokenIdent && args[1].kind != tokenString {
			return false
		}
		op, value = op+"=", args[1].text
		if len(args) == 3 {
			fold = args[2].word() == "i"
			if args[2].word() == "s" {
				s.sure = doubtful
			} else if !fold {
				return false
			}
		}
	}
	compare := comparisons[op]
	// Of many attributes browsers compare the value without regard to case.
	s.add(weightClass, func(m *matcher, n *html.Node) truth {
		m.steps -= len(n.Attr)
		if !hasAttr(n.Attr, name) {
			return no
		}
		have := attr(n.Attr, name)
		m.steps -= len(have) / 8
		switch {
		case compare(have, value):
			return yes
		case !compare(strings.ToLower(have), strings.ToLower(value)):
			return no
		case fold:
			return yes
		}
		return doubtful
	})
	return true
}

var comparisons = map[string]func(have, want string) bool{
	"":   func(_, _ string) bool { return true },
	"=":  func(have, want string) bool { return have == want },
	"|=": func(have, want string) bool { return have == want || strings.HasPrefix(have, want+"-") },
	"~=": func(have, want string) bool { return slices.Contains(strings.FieldsFunc(have, isHTMLSpace), want) },
	"^=": func(have, want string) bool { return want != "" && strings.HasPrefix(have, want) },
	"$=": func(have, want string) bool { return want != "" && strings.HasSuffix(have, want) },
	"*=": func(have, want string) bool { return want != "" && strings.Contains(have, want) },
}

var (
	// states are pseudo-classes that hold for no element while a person only looks at a
	// mail.
	states         = setOf("hover focus active visited target focus-within focus-visible autofill fullscreen")
	pseudoElements = setOf("before after first-line first-letter marker selection placeholder backdrop file-selector-button cue")
	oldElements    = setOf("before after first-line first-letter") // one colon is enough
)

// exactPseudos are the pseudo-classes that are judged.
var exactPseudos = map[string]condition{
	"link": isLink, "any-link": isLink,
	"root":        func(_ *matcher, n *html.Node) truth { return truthOf(parent(n) == nil) },
	"first-child": func(m *matcher, n *html.Node) truth { return truthOf(m.before(n) == nil) },
	"last-child":  func(m *matcher, n *html.Node) truth { return truthOf(m.after(n) == nil) },
	"checked": func(_ *matcher, n *html.Node) truth {
		kind := strings.ToLower(attr(n.Attr, "type"))
		switch isChecked := n.Data == "input" && hasAttr(n.Attr, "checked"); {
		case isChecked && kind == "checkbox":
			return yes
		case isChecked && kind == "radio", n.Data == "option": // others may be chosen instead
			return doubtful
		}
		return no
	},
}

// isLink is the condition of :link and :any-link; no link is visited.
func isLink(_ *matcher, n *html.Node) truth {
	return truthOf((n.Data == "a" || n.Data == "area") && hasAttr(n.Attr, "href"))
}

// pseudo reads a pseudo-class or a pseudo-element behind its first colon, and
// reports whether it is valid.
func (p *selectorParser) pseudo(s *selector) bool {
	element := p.peek().is(":")
	if element {
		p.take()
	}
	t := p.take()
	name := t.word() + t.calls()
	if name == "" || strings.HasPrefix(name, "-ms-") || strings.HasPrefix(name, "-o-") || strings.HasPrefix(name, "-moz-") {
		return false // valid only in Outlook and old programs
	}
	switch {
	case p.ended: // not valid behind every pseudo-element
		p.sure = doubtful
	case element || oldElements[t.word()]:
		p.ended, s.never = true, true
		if !pseudoElements[t.word()] && !strings.HasPrefix(t.word(), "-webkit-") {
			p.sure = doubtful
		}
	case states[t.word()]:
		s.never = true
	case exactPseudos[t.word()] != nil:
		s.add(weightClass, exactPseudos[t.word()])
	case t.calls() == "not":
		list, sure := parseSelectors(t.args, true)
		if sure == no {
			return false
		}
		s.sure, p.sure = min(s.sure, sure), min(p.sure, sure)
		heaviest := &selector{}
		for _, l := range list {
			if l.weight >= heaviest.weight {
				heaviest = l
			}
		}
		s.parts += heaviest.parts
		s.add(heaviest.weight, func(m *matcher, n *html.Node) truth {
			best := no
			for _, l := range list {
				if !l.never {
					best = max(best, m.match(l, n))
				}
			}
			return yes - best
		})
	default: // exotic: it may hold for any element, and a browser may refuse the list for it
		s.sure, p.sure = doubtful, doubtful
	}
	return true
}

// matcher matches selectors and counts what that costs.
type matcher struct {
	steps int // that are left; below zero nothing matches
}

// match judges a selector for an element, from right to left, with every element that the
// selector to the left may mean.
func (m *matcher) match(s *selector, n *html.Node) truth {
	sure := s.sure
	for i := 0; i < len(s.conditions) && sure != no; i++ {
		m.steps--
		sure = min(sure, s.conditions[i](m, n))
	}
	if m.steps--; m.steps < 0 {
		return no
	}
	if sure == no || s.left == nil {
		return sure
	}
	next := parent
	if s.combinator == '+' || s.combinator == '~' {
		next = m.before
	}
	best := no
	for n = next(n); n != nil && best < sure && m.steps >= 0; n = next(n) {
		best = max(best, min(sure, m.match(s.left, n)))
		if s.combinator == '>' || s.combinator == '+' {
			break
		}
	}
	return best
}

// hasClass reports whether an element has a class. Names that differ only in case are
// doubtful: whether they are the same depends on the page that a mail program puts a mail in.
func (m *matcher) hasClass(want string, n *html.Node) truth {
	classes, best := attr(n.Attr, "class"), no
	m.steps -= len(classes) / 8
	for have := range strings.FieldsFuncSeq(classes, isHTMLSpace) {
		best = max(best, sameName(want, have))
	}
	return best
}

func sameName(a, b string) truth {
	switch {
	case a == b:
		return yes
	case len(a) == len(b) && strings.EqualFold(a, b):
		return doubtful
	}
	return no
}

func isHTMLSpace(r rune) bool { return r == ' ' || r == '\t' || r == '\n' || r == '\r' || r == '\f' }

// parent, before and after return the next element in a direction, nil for none.
func parent(n *html.Node) *html.Node {
	if n.Parent == nil || n.Parent.Type != html.ElementNode {
		return nil
	}
	return n.Parent
}

func (m *matcher) before(n *html.Node) *html.Node {
	for n = n.PrevSibling; n != nil && n.Type != html.ElementNode; n = n.PrevSibling {
		m.steps--
	}
	return n
}

func (m *matcher) after(n *html.Node) *html.Node {
	for n = n.NextSibling; n != nil && n.Type != html.ElementNode; n = n.NextSibling {
		m.steps--
	}
	return n
}
