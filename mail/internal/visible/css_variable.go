package visible

import (
	"strings"

	"golang.org/x/net/html"
)

// variables are the custom properties of an element: its own, and those of the
// elements around it.
type variables struct {
	around *variables
	own    map[string][]token // a nil value hides that of an element around
}

// maxExpansion bounds what substituting variables makes of one value, in tokens.
const maxExpansion = 4 * maxValueTokens

// expander substitutes what a value depends on, for one element.
type expander struct {
	sheet *sheet
	vars  *variables
	attrs []html.Attribute
	left  *int // tokens that may still be made
	steps *int
	own   map[string][]token // custom properties of the element, not substituted yet
	busy  map[string]bool    // those that are being substituted
	done  map[string][]token // those that were; a nil value stands for none
}

// lookup returns a custom property.
func (x *expander) lookup(name string) ([]token, bool) {
	if toks, ok := x.own[name]; ok {
		return x.resolve(name, toks)
	}
	r, known := x.sheet.registered[name]
	for v := x.vars; v != nil; v = v.around {
		*x.steps--
		if toks, ok := v.own[name]; ok {
			if toks != nil {
				return toks, true
			}
			break
		}
	}
	return r.initial, known && r.set
}

// resolve substitutes a custom property of the element itself. One that depends
// on itself has no value.
func (x *expander) resolve(name string, toks []token) ([]token, bool) {
	const deepest = 1000
	if done, ok := x.done[name]; ok {
		return done, done != nil
	}
	*x.steps -= 8
	if x.busy[name] || len(x.busy) > deepest || *x.left < 0 || *x.steps < 0 {
		return nil, false
	}
	x.busy[name] = true
	out, ok := x.substitute(name, toks)
	delete(x.busy, name)
	if out == nil && ok {
		out = []token{}
	}
	if !ok {
		out = nil
	}
	x.done[name] = out
	return out, ok
}

func (x *expander) substitute(name string, toks []token) ([]token, bool) {
	switch w := trimTokens(toks); {
	case len(w) == 1 && w[0].word() == "initial":
		r := x.sheet.registered[name]
		return r.initial, r.set
	case len(w) == 1 && isWide(w[0].word()):
		saved := x.own
		x.own = nil
		defer func() { x.own = saved }()
		return x.lookup(name)
	}
	return x.expand(toks, 0)
}

// define substitutes the custom properties that are declared for an element and
// returns all that hold for it.
func (x *expander) define(own map[string][]token) *variables {
	v := &variables{around: x.vars, own: make(map[string][]token, len(own))}
	x.own, x.busy, x.done = own, map[string]bool{}, v.own
	for name, toks := range own {
		x.resolve(name, toks)
	}
	x.own = nil
	return v
}

// expand substitutes var(), env() and attr(). ok is false when the value then is
// invalid.
func (x *expander) expand(toks []token, depth int) (out []token, ok bool) {
	const deepest = maxValueTokens
	if depth > deepest {
		return nil, false
	}
	for i := 0; i < len(toks); i++ {
		t := toks[i]
		switch t.calls() {
		case "var", "env", "attr":
			end := blockEnd(toks, i)
			args := toks[i+1 : end]
			i = end
			in, ok := x.reference(t.calls(), args, depth+1)
			if !ok {
				return nil, false
			}
			out = append(out, in...)
			*x.left -= len(in)
		case "if":
			return nil, false
		default:
			out = append(out, t)
			*x.left--
		}
		if *x.left < 0 {
			return nil, false
		}
	}
	return out, true
}

// reference returns what one function stands for, or else what it falls back to.
func (x *expander) reference(function string, args []token, depth int) ([]token, bool) {
	*x.steps -= 1 + len(args)/4
	first, fallback, found := args, []token(nil), false
	for i := 0; i < len(args); i++ {
		if args[i].opens() != "" {
			i = blockEnd(args, i)
		} else if args[i].is(",") {
			first, fallback, found = args[:i], args[i+1:], true
			break
		}
	}
	parts := partsOf(first)
	if len(parts) == 0 || parts[0].kind != tokenIdent {
		return nil, false
	}
	switch function {
	case "var":
		if toks, ok := x.lookup(parts[0].text); ok {
			return toks, true
		}
	case "env":
		if strings.HasPrefix(parts[0].text, "safe-area-inset-") {
			return []token{{kind: tokenDimension, text: "px"}}, true
		}
	case "attr":
		for _, a := range x.attrs {
			if a.Key == strings.ToLower(parts[0].text) && a.Namespace == "" {
				return attributeTokens(a.Val, parts[1:]), true
			}
		}
	}
	if !found {
		return nil, false
	}
	return x.expand(fallback, depth)
}

// attributeTokens reads the value of an attribute as attr() wants it.
func attributeTokens(s string, as []part) []token {
	if len(as) == 0 {
		return []token{{kind: tokenString, text: s}}
	}
	toks := trimTokens(tokensOf(s[:min(len(s), maxValueTokens)]))
	if unit := as[0].word(); unit != "" && unit != "raw-string" && unit != "number" && len(toks) == 1 && toks[0].kind == tokenNumber {
		toks[0].kind, toks[0].text = tokenDimension, unit
	} else if as[0].is("%") && len(toks) == 1 && toks[0].kind == tokenNumber {
		toks[0].kind = tokenPercent
	}
	return toks
}

// branches returns the values that if() in a declaration chooses among, which
// here are not judged.
func branches(toks []token) [][]token {
	var all [][]token
	for i := 0; i < len(toks); i++ {
		if toks[i].calls() != "if" {
			continue
		}
		end := blockEnd(toks, i)
		for _, clause := range splitTokens(toks[i+1:end], ";") {
			for j := 0; j < len(clause); j++ {
				if clause[j].opens() != "" {
					j = blockEnd(clause, j)
				} else if clause[j].is(":") {
					all = append(all, clause[j+1:])
					break
				}
			}
		}
		i = end
	}
	return all
}
