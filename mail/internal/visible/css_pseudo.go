package visible

import (
	"regexp"
	"strconv"
	"strings"
)

// pseudo is a pseudo-class.
type pseudo struct {
	kind pseudoKind
	name string
	list []*selector
	a, b int // of an+b
}

type pseudoKind uint8

const (
	isNever pseudoKind = iota // in a document at rest, as for :hover and ::before
	isAlways
	isUnknown // it depends on what is not known
	isAny     // :is, :where and &
	isNot
	isHas
	isAnchor // the element that a selector in :has is about
	isRoot
	isEmpty
	isNth // with a list: among those that match it
	isNthLast
	isNthType
	isNthLastType
	isLink
	isChecked
	isDisabled
	isEnabled
	isRequired
	isOptional
	isOpen
	isLang
)

// plainPseudos are the pseudo-classes without arguments.
var plainPseudos = map[string]pseudo{
	"root": {kind: isRoot}, "scope": {kind: isRoot}, "empty": {kind: isEmpty},
	"first-child": {kind: isNth, b: 1}, "last-child": {kind: isNthLast, b: 1},
	"first-of-type": {kind: isNthType, b: 1}, "last-of-type": {kind: isNthLastType, b: 1},
	"link": {kind: isLink}, "any-link": {kind: isLink}, "-webkit-any-link": {kind: isLink}, "-moz-any-link": {kind: isLink},
	"checked": {kind: isChecked}, "disabled": {kind: isDisabled}, "enabled": {kind: isEnabled},
	"required": {kind: isRequired}, "optional": {kind: isOptional}, "open": {kind: isOpen},
	"defined": {kind: isAlways},
	"hover":   {}, "active": {}, "focus": {}, "focus-visible": {}, "focus-within": {}, "visited": {}, "target": {}, "target-within": {}, "target-current": {},
	"host": {}, "fullscreen": {}, "-webkit-full-screen": {}, "-moz-full-screen": {}, "modal": {}, "popover-open": {}, "picture-in-picture": {},
	"autofill": {}, "-webkit-autofill": {}, "user-valid": {}, "user-invalid": {}, "playing": {}, "paused": {}, "buffering": {}, "seeking": {},
	"stalled": {}, "muted": {}, "volume-locked": {}, "xr-overlay": {}, "active-view-transition": {}, "blank": {}, "interest-source": {}, "interest-target": {},
	"first": {}, "left": {}, "right": {},
	"default": {kind: isUnknown}, "indeterminate": {kind: isUnknown}, "valid": {kind: isUnknown}, "invalid": {kind: isUnknown},
	"in-range": {kind: isUnknown}, "out-of-range": {kind: isUnknown}, "read-only": {kind: isUnknown}, "read-write": {kind: isUnknown},
	"placeholder-shown": {kind: isUnknown}, "-moz-placeholder": {kind: isUnknown}, "-moz-focusring": {},
}

// pseudoElements may stand at the end of a selector, which then is about no
// element. The first four may have a single colon.
var pseudoElements = strings.Fields("before after first-line first-letter marker selection placeholder backdrop target-text spelling-error grammar-error file-selector-button cue details-content highlight part slotted view-transition view-transition-group view-transition-image-pair view-transition-new view-transition-old scroll-marker scroll-marker-group scroll-button column checkmark picker picker-icon search-text")

// pseudo reads what stands behind a colon.
func (p *selectorParser) pseudo(s *selector) bool {
	element := p.peek().is(":")
	if element {
		p.take()
	}
	t := p.peek()
	name := t.word()
	var args []token
	if t.kind == tokenFunction {
		name = t.calls()
		end := blockEnd(p.toks, 0)
		args = p.toks[1:end]
		p.toks = p.toks[min(end+1, len(p.toks)):]
	} else {
		p.take()
	}
	if name == "" {
		return false
	}
	for i, e := range pseudoElements {
		if name == e && (element || i < 4) {
			p.ended = true
			s.add(pseudo{}, weightTag)
			return !p.context.inside
		}
	}
	if element {
		if p.context.inside {
			return false
		}
		p.ended = true
		s.add(pseudo{}, weightTag)
		if strings.HasPrefix(name, "-moz-") {
			p.sure = doubtful
			return true
		}
		return strings.HasPrefix(name, "-webkit-")
	}
	if t.kind == tokenIdent {
		return p.plain(s, name)
	}
	return !p.ended && p.functional(s, name, args)
}

func (p *selectorParser) plain(s *selector, name string) bool {
	one, ok := plainPseudos[name]
	switch {
	case name == "only-child":
		s.add(pseudo{kind: isNth, b: 1}, 0)
		one, ok = pseudo{kind: isNthLast, b: 1}, true
	case name == "only-of-type":
		s.add(pseudo{kind: isNthType, b: 1}, 0)
		one, ok = pseudo{kind: isNthLastType, b: 1}, true
	case name == "scope" && p.context.scoping:
		one, _ = p.parentPseudo()
	case !ok && strings.HasPrefix(name, "-moz-"):
		p.sure = doubtful
		one, ok = pseudo{kind: isUnknown}, true
	case p.ended: // what a pseudo-element is in
		ok = true
	}
	one.name = name
	s.add(one, weightClass)
	return ok
}

func (p *selectorParser) functional(s *selector, name string, args []token) bool {
	inner := p.context
	inner.depth++
	inner.inside = true
	one := pseudo{name: name, kind: isAny}
	weight := uint64(0)
	sure := yes
	parse := func() bool {
		// Selectors in a pseudo-class are not relative to the rule around it, but
		// may speak of it.
		if !inner.has && inner.parents != nil {
			inner.scoping = true
		}
		one.list, sure = parseSelectors(args, inner)
		p.sure = min(p.sure, max(sure, doubtful))
		p.parent = p.parent || mentions(args, "&")
		return sure != no
	}
	switch name {
	case "is", "where", "-webkit-any", "-moz-any", "matches":
		inner.anyhow, inner.has = true, false
		if !parse() {
			return false
		}
		if name != "where" {
			weight = heaviest(one.list)
		}
		if name != "is" && name != "where" {
			p.sure = doubtful
		}
	case "not":
		one.kind = isNot
		inner.anyhow, inner.has = false, false
		if !parse() {
			return false
		}
		weight = heaviest(one.list)
	case "has":
		one.kind = isHas
		inner.anyhow = false
		if inner.has {
			return false
		}
		inner.has = true
		if !parse() {
			return false
		}
		weight = heaviest(one.list)
	case "nth-child", "nth-last-child", "nth-of-type", "nth-last-of-type":
		one.kind = map[string]pseudoKind{"nth-child": isNth, "nth-last-child": isNthLast, "nth-of-type": isNthType, "nth-last-of-type": isNthLastType}[name]
		weight = weightClass
		of := -1
		for i, t := range args {
			if t.word() == "of" && one.kind <= isNthLast {
				of = i
				break
			}
		}
		count := args
		if of >= 0 {
			count = args[:of]
			args = args[of+1:]
			inner.anyhow, inner.has = false, false
			if !parse() {
				return false
			}
			weight = addWeights(weight, heaviest(one.list))
		}
		var ok bool
		if one.a, one.b, ok = parseNth(count); !ok {
			return false
		}
	case "lang":
		one.kind, weight = isLang, weightClass
		parts := partsOf(args)
		if len(parts) == 0 || parts[0].kind != tokenIdent && parts[0].kind != tokenString {
			return false
		}
		if one.name = strings.ToLower(parts[0].text); len(parts) > 1 {
			one.kind = isUnknown
		}
	case "dir":
		one.kind, weight = isUnknown, weightClass
	case "host", "host-context", "state", "active-view-transition-type", "current":
		one.kind, weight = isNever, weightClass
	default:
		if !strings.HasPrefix(name, "-moz-") {
			return false
		}
		p.sure = doubtful
		one.kind, weight = isUnknown, weightClass
	}
	s.add(one, weight)
	return true
}

// mentions reports whether a mark is among tokens.
func mentions(toks []token, mark string) bool {
	for _, t := range toks {
		if t.is(mark) {
			return true
		}
	}
	return false
}

var nthForm = regexp.MustCompile(`\A(?:([+-]?\d*)n(?:\s*([+-])\s*(\d+))?|([+-]?\d+))\z`)

// parseNth parses an+b.
func parseNth(toks []token) (a, b int, ok bool) {
	var text strings.Builder
	for _, t := range trimTokens(toks) {
		switch t.kind {
		case tokenDimension:
			text.WriteString(strconv.FormatFloat(t.n, 'f', 0, 64) + t.text)
			ok = ok || !t.name
		case tokenIdent, tokenNumber, tokenSpace, tokenMark:
			text.WriteString(strings.ToLower(t.text))
		default:
			return 0, 0, false
		}
	}
	switch text.String() {
	case "odd":
		return 2, 1, true
	case "even":
		return 2, 0, true
	}
	m := nthForm.FindStringSubmatch(text.String())
	if m == nil || ok {
		return 0, 0, false
	}
	const most = 1e6
	if m[4] != "" {
		b, _ = strconv.Atoi(m[4])
		return 0, max(min(b, most), -most), true
	}
	switch m[1] {
	case "", "+":
		a = 1
	case "-":
		a = -1
	default:
		a, _ = strconv.Atoi(m[1])
	}
	b, _ = strconv.Atoi(m[2] + m[3])
	return max(min(a, most), -most), max(min(b, most), -most), true
}
