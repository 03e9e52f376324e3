package visible

import (
	"strings"

	"golang.org/x/net/html"
)

// treeElement is an element as selectors see it.
type treeElement struct {
	tag, id              string
	classes              []string
	attrs                []html.Attribute
	parent, before       *treeElement
	first, last, after   *treeElement // child elements, and the next sibling
	index, kids          int          // which child it is, from 1; how many it has
	typeIndex, typeCount int          // the same among siblings with its name
	content              bool         // it has children that are elements or text
}

func newTreeElement(tag string, attrs []html.Attribute) *treeElement {
	n := &treeElement{tag: tag, attrs: attrs, id: attr(attrs, "id")}
	if classes := attr(attrs, "class"); classes != "" {
		n.classes = strings.FieldsFunc(classes, func(r rune) bool { return r == ' ' || r == '\t' || r == '\n' || r == '\r' || r == '\f' })
	}
	return n
}

// matcher matches selectors and counts what that costs.
type matcher struct {
	steps int // that are left; below zero nothing matches
	// Without a tree only an element itself is known, and which names are in the
	// document. What else a selector asks for may then hold whenever every name in
	// it is somewhere.
	names  map[string]bool
	anchor *treeElement
}

// How a match failed: for this element, for every sibling of it, or wherever in
// the document it is tried from here on.
type failure uint8

const (
	here failure = iota
	siblings
	everywhere
)

// match reports whether an element matches a selector.
func (m *matcher) match(s *selector, n *treeElement) truth {
	t, _ := m.complex(s, n)
	return t
}

// complex goes through a selector from right to left and looks for the nearest
// element that can be the one to the left. It stops as soon as going on would be
// in vain.
func (m *matcher) complex(s *selector, n *treeElement) (truth, failure) {
	t := m.compound(s, n)
	if t == no {
		return no, here
	}
	if s.left == nil {
		return t, here
	}
	if m.names != nil {
		if m.exists(s.left) {
			return doubtful, here
		}
		return no, everywhere
	}
	switch s.how {
	case '>':
		if n.parent == nil {
			return no, everywhere
		}
		l, f := m.complex(s.left, n.parent)
		if l == no && f != everywhere {
			f = siblings
		}
		return min(t, l), f
	case '+':
		if n.before == nil {
			return no, siblings
		}
		l, f := m.complex(s.left, n.before)
		return min(t, l), f
	case '~':
		for b := n.before; b != nil; b = b.before {
			if l, f := m.complex(s.left, b); l != no || f != here {
				return min(t, l), f
			}
		}
		return no, siblings
	}
	for p := n.parent; p != nil; p = p.parent {
		if l, f := m.complex(s.left, p); l != no || f == everywhere {
			return min(t, l), f
		}
	}
	return no, everywhere
}

// exists reports whether the names in a selector are all in the document.
func (m *matcher) exists(s *selector) bool {
	for ; s != nil; s = s.left {
		if m.steps--; m.steps < 0 {
			return false
		}
		if s.tag != "" && !m.names[s.tag] || s.id != "" && !m.names["#"+strings.ToLower(s.id)] {
			return false
		}
		for _, c := range s.classes {
			if !m.names["."+strings.ToLower(c)] {
				return false
			}
		}
		for _, a := range s.attrs {
			if !m.names["["+a.name] {
				return false
			}
		}
		for _, p := range s.pseudos {
			if p.kind == isNever || p.kind == isAny && !m.anyExists(p.list) {
				return false
			}
		}
	}
	return true
}

func (m *matcher) anyExists(list []*selector) bool {
	for _, s := range list {
		if m.exists(s) {
			return true
		}
	}
	return false
}

// compound reports whether an element meets the conditions of one compound
// selector. Names that differ in case only are doubtful: whether it counts
// depends on the page that a mail program puts a letter in.
func (m *matcher) compound(s *selector, n *treeElement) truth {
	if m.steps--; m.steps < 0 {
		return no
	}
	if s.tag != "" && s.tag != n.tag {
		return no
	}
	t := yes
	if s.id != "" {
		if t = sameName(s.id, n.id); t == no {
			return no
		}
	}
	for _, c := range s.classes {
		found := no
		for _, have := range n.classes {
			m.steps--
			if found = max(found, sameName(c, have)); found == yes {
				break
			}
		}
		if found == no {
			return no
		}
		t = min(t, found)
	}
	for i := range s.attrs {
		if !m.holds(&s.attrs[i], n) {
			return no
		}
	}
	for i := range s.pseudos {
		if t = min(t, m.pseudo(&s.pseudos[i], n)); t == no {
			return no
		}
	}
	return t
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

func (m *matcher) holds(a *attrTest, n *treeElement) bool {
	have, found := "", false
	m.steps -= len(n.attrs)
	for _, one := range n.attrs {
		if one.Key == a.name && one.Namespace == "" {
			have, found = one.Val, true
			break
		}
	}
	if !found || a.op == 0 {
		return found
	}
	want := a.value
	m.steps -= len(have) / 8
	if a.fold {
		have, want = strings.ToLower(have), strings.ToLower(want)
	}
	switch a.op {
	case '=':
		return have == want
	case '|':
		return have == want || strings.HasPrefix(have, want+"-")
	case '~':
		for word := range strings.FieldsSeq(have) {
			if word == want {
				return true
			}
		}
		return false
	case '^':
		return want != "" && strings.HasPrefix(have, want)
	case '$':
		return want != "" && strings.HasSuffix(have, want)
	}
	return want != "" && strings.Contains(have, want)
}

// any reports whether an element matches one of a list.
func (m *matcher) any(list []*selector, n *treeElement) truth {
	best := no
	for _, s := range list {
		if best = max(best, m.match(s, n)); best == yes {
			break
		}
	}
	return best
}

func (m *matcher) pseudo(p *pseudo, n *treeElement) truth {
	switch p.kind {
	case isAlways:
		return yes
	case isUnknown:
		return doubtful
	case isAny:
		return m.any(p.list, n)
	case isNot:
		return yes - m.any(p.list, n)
	case isAnchor:
		return truthOf(n == m.anchor)
	case isLink:
		return truthOf((n.tag == "a" || n.tag == "area") && n.has("href"))
	case isChecked:
		return truthOf(n.tag == "input" && n.has("checked") || n.tag == "option" && n.has("selected"))
	case isDisabled, isEnabled, isRequired, isOptional:
		return m.control(p.kind, n)
	case isOpen:
		return truthOf((n.tag == "details" || n.tag == "dialog") && n.has("open"))
	case isNever:
		return no
	}
	if p.kind == isRoot {
		return truthOf(n.tag == "html" && n.parent == nil)
	}
	if m.names != nil { // what follows needs the tree
		return doubtful
	}
	switch p.kind {
	case isEmpty:
		return truthOf(!n.content)
	case isNth, isNthLast:
		return m.nth(p, n)
	case isNthType:
		return truthOf(isOfForm(n.typeIndex, p.a, p.b))
	case isNthLastType:
		return truthOf(isOfForm(n.typeCount-n.typeIndex+1, p.a, p.b))
	case isLang:
		for ; n != nil; n = n.parent {
			m.steps--
			if lang := strings.ToLower(attr(n.attrs, "lang")); lang != "" {
				return truthOf(lang == p.name || strings.HasPrefix(lang, p.name+"-"))
			}
		}
		return doubtful
	case isHas:
		return m.has(p, n)
	}
	return no
}

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

func (n *treeElement) has(name string) bool {
	for _, a := range n.attrs {
		if a.Key == name && a.Namespace == "" {
			return true
		}
	}
	return false
}

func (m *matcher) control(kind pseudoKind, n *treeElement) truth {
	switch n.tag {
	case "input", "select", "textarea":
		switch kind {
		case isRequired:
			return truthOf(n.has("required"))
		case isOptional:
			return truthOf(!n.has("required"))
		}
	case "button", "option", "optgroup", "fieldset":
		if kind == isRequired || kind == isOptional {
			return no
		}
	default:
		return no
	}
	switch {
	case n.has("disabled"):
		return truthOf(kind == isDisabled)
	case n.parent == nil || n.parent.tag == "body":
		return truthOf(kind == isEnabled)
	}
	return doubtful // a fieldset around it may be disabled
}

// nth reports whether an element is the wanted one among its siblings, or among
// those that match a list.
func (m *matcher) nth(p *pseudo, n *treeElement) truth {
	kids := 1
	if n.parent != nil {
		kids = n.parent.kids
	}
	if p.list == nil {
		if p.kind == isNthLast {
			return truthOf(isOfForm(kids-n.index+1, p.a, p.b))
		}
		return truthOf(isOfForm(n.index, p.a, p.b))
	}
	if t := m.any(p.list, n); t != yes {
		return t
	}
	place := 0
	for b := n; b != nil && m.steps >= 0; {
		switch m.any(p.list, b) {
		case yes:
			place++
		case doubtful:
			return doubtful
		}
		if p.kind == isNthLast {
			b = b.after
		} else {
			b = b.before
		}
	}
	return truthOf(isOfForm(place, p.a, p.b))
}

// isOfForm reports whether i is a*n+b for an n that is not negative.
func isOfForm(i, a, b int) bool {
	if a == 0 {
		return i == b
	}
	return (i-b)%a == 0 && (i-b)/a >= 0
}

// has reports whether an element has what a selector relative to it describes:
// among what is in it, or what follows it.
func (m *matcher) has(p *pseudo, n *treeElement) truth {
	around := m.anchor
	m.anchor = n
	defer func() { m.anchor = around }()
	best := no
	for _, s := range p.list {
		first := s
		for first.left.left != nil {
			first = first.left
		}
		from := n.first
		if first.how == '+' || first.how == '~' {
			from = n.after
		}
		for ; from != nil && best != yes && m.steps >= 0; from = from.after {
			best = max(best, m.within(s, from))
		}
	}
	return best
}

// within looks for a match in an element and what is in it.
func (m *matcher) within(s *selector, n *treeElement) truth {
	best := m.match(s, n)
	for c := n.first; c != nil && best != yes && m.steps >= 0; c = c.after {
		best = max(best, m.within(s, c))
	}
	return best
}
