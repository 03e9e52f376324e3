package visible

import (
	"strings"

	"golang.org/x/net/html"
)

// treeElement is an element as selectors see it.
type treeElement struct {
	tag, id               string
	classes               []string
	attrs                 []html.Attribute
	parent, before, after *treeElement // the siblings are elements
	last                  *treeElement // child that is an element
}

func newTreeElement(tag string, attrs []html.Attribute) *treeElement {
	n := &treeElement{tag: tag, attrs: attrs, id: attr(attrs, "id")}
	if classes := attr(attrs, "class"); classes != "" {
		n.classes = strings.FieldsFunc(classes, isHTMLSpace)
	}
	return n
}

func isHTMLSpace(r rune) bool { return r == ' ' || r == '\t' || r == '\n' || r == '\r' || r == '\f' }

// matcher matches selectors and counts what that costs.
type matcher struct {
	steps int // that are left; below zero nothing matches
}

// match goes through a selector from right to left and looks for elements that can
// be the ones to the left.
func (m *matcher) match(s *selector, n *treeElement) truth {
	t := m.compound(s, n)
	if t == no || s.left == nil {
		return t
	}
	next, again := n.parent, s.how == ' '
	if s.how == '+' || s.how == '~' {
		next, again = n.before, s.how == '~'
	}
	best := no
	for next != nil && best < t && m.steps >= 0 {
		best = max(best, min(t, m.match(s.left, next)))
		switch {
		case !again:
			return best
		case s.how == '~':
			next = next.before
		default:
			next = next.parent
		}
	}
	return best
}

// compound reports whether an element meets the conditions of one compound
// selector. Names that differ in case only are doubtful: whether it counts
// depends on the page that a mail program puts a letter in.
func (m *matcher) compound(s *selector, n *treeElement) truth {
	if m.steps--; m.steps < 0 || s.tag != "" && s.tag != n.tag {
		return no
	}
	t := s.sure
	if s.id != "" {
		t = min(t, sameName(s.id, n.id))
	}
	for _, c := range s.classes {
		found := no
		for _, have := range n.classes {
			m.steps--
			if found = max(found, sameName(c, have)); found == yes {
				break
			}
		}
		if t = min(t, found); t == no {
			return no
		}
	}
	for i := range s.attrs {
		if t == no {
			break
		}
		t = min(t, m.attribute(&s.attrs[i], n))
	}
	for i := range s.pseudos {
		if t == no {
			break
		}
		t = min(t, m.pseudo(&s.pseudos[i], n))
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

// attribute reports whether an attribute is as a selector asks. Of many attributes
// browsers compare the value without regard to case, so that is doubtful.
func (m *matcher) attribute(a *attrTest, n *treeElement) truth {
	m.steps -= len(n.attrs)
	for _, one := range n.attrs {
		if one.Key != a.name || one.Namespace != "" {
			continue
		}
		m.steps -= len(one.Val) / 8
		switch {
		case a.op == 0, a.compare(one.Val, a.value):
			return yes
		case !a.compare(strings.ToLower(one.Val), strings.ToLower(a.value)):
			return no
		case a.fold:
			return yes
		}
		return doubtful
	}
	return no
}

func (a *attrTest) compare(have, want string) bool {
	switch a.op {
	case '=':
		return have == want
	case '|':
		return have == want || strings.HasPrefix(have, want+"-")
	case '~':
		for word := range strings.FieldsFuncSeq(have, isHTMLSpace) {
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

func (m *matcher) pseudo(p *pseudo, n *treeElement) truth {
	switch p.kind {
	case isNot:
		best := no
		for _, s := range p.list {
			t := no
			if !s.never {
				t = m.match(s, n)
			}
			if best = max(best, t); best == yes {
				break
			}
		}
		return yes - best
	case isRoot:
		return truthOf(n.tag == "html" && n.parent == nil)
	case isLink:
		return truthOf((n.tag == "a" || n.tag == "area") && hasAttr(n.attrs, "href"))
	case isChecked:
		return truthOf(n.tag == "input" && hasAttr(n.attrs, "checked") || n.tag == "option" && hasAttr(n.attrs, "selected"))
	case isFirst:
		return truthOf(n.before == nil)
	}
	return truthOf(n.after == nil)
}
