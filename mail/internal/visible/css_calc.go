package visible

import "math"

// metric is what relative lengths are measured by, in pixels.
type metric struct {
	font, root float64 // sizes of the fonts of the element and of the document
	base       float64 // what a percentage is of
}

// quantity is a number with its kind: 'n' for a plain one, 'l' for a length in
// pixels, 'p' for a percentage that is no length, 'a' for an angle in radians,
// 't' for a time in seconds.
type quantity struct {
	n    float64
	kind byte
}

// lengthUnits are lengths in pixels on the screen of html_css_media.go.
var lengthUnits = map[string]float64{
	"px": 1, "pt": 4.0 / 3, "pc": 16, "cm": 96 / 2.54, "mm": 96 / 25.4, "q": 96 / 101.6, "in": 96,
	"vw": screenWidth / 100., "vh": screenHeight / 100., "vmin": screenHeight / 100., "vmax": screenWidth / 100., "vi": screenWidth / 100., "vb": screenHeight / 100.,
	"svw": screenWidth / 100., "svh": screenHeight / 100., "lvw": screenWidth / 100., "lvh": screenHeight / 100., "dvw": screenWidth / 100., "dvh": screenHeight / 100.,
	"svi": screenWidth / 100., "lvi": screenWidth / 100., "dvi": screenWidth / 100., "svb": screenHeight / 100., "lvb": screenHeight / 100., "dvb": screenHeight / 100.,
	"svmin": screenHeight / 100., "lvmin": screenHeight / 100., "dvmin": screenHeight / 100., "svmax": screenWidth / 100., "lvmax": screenWidth / 100., "dvmax": screenWidth / 100.,
	"cqw": screenWidth / 100., "cqh": screenHeight / 100., "cqi": screenWidth / 100., "cqb": screenHeight / 100., "cqmin": screenHeight / 100., "cqmax": screenWidth / 100.,
}

// fontUnits are lengths in sizes of the font.
var fontUnits = map[string]float64{"em": 1, "ex": 0.5, "ch": 0.5, "cap": 0.7, "ic": 1, "lh": 1.2}

var rootUnits = map[string]float64{"rem": 1, "rex": 0.5, "rch": 0.5, "rcap": 0.7, "ric": 1, "rlh": 1.2}

var angleUnits = map[string]float64{"deg": math.Pi / 180, "grad": math.Pi / 200, "rad": 1, "turn": 2 * math.Pi}

// evaluate returns what a component is worth.
func evaluate(p part, m metric, depth int) (quantity, bool) {
	const deepest = maxCSSDepth
	switch p.kind {
	case tokenNumber:
		return quantity{p.n, 'n'}, true
	case tokenPercent:
		return quantity{p.n, 'p'}, true
	case tokenDimension:
		if u, ok := lengthUnits[p.text]; ok {
			return quantity{p.n * u, 'l'}, true
		}
		if u, ok := fontUnits[p.text]; ok {
			return quantity{p.n * u * m.font, 'l'}, true
		}
		if u, ok := rootUnits[p.text]; ok {
			return quantity{p.n * u * m.root, 'l'}, true
		}
		if u, ok := angleUnits[p.text]; ok {
			return quantity{p.n * u, 'a'}, true
		}
		switch p.text {
		case "s":
			return quantity{p.n, 't'}, true
		case "ms":
			return quantity{p.n / 1000, 't'}, true
		}
		return quantity{}, false
	case tokenIdent:
		if depth > 0 {
			switch p.word() {
			case "e":
				return quantity{math.E, 'n'}, true
			case "pi":
				return quantity{math.Pi, 'n'}, true
			case "infinity":
				return quantity{1e9, 'n'}, true
			case "-infinity":
				return quantity{-1e9, 'n'}, true
			case "nan":
				return quantity{0, 'n'}, true
			}
		}
		return quantity{}, false
	}
	if depth > deepest {
		return quantity{}, false
	}
	if p.is("(") && depth > 0 {
		return sum(p.args, m, depth+1)
	}
	if p.kind != tokenFunction {
		return quantity{}, false
	}
	return mathFunction(p.calls(), p.args, m, depth+1)
}

// mathFunction evaluates calc() and its kin (CSS Values Level 4 section 10).
func mathFunction(name string, toks []token, m metric, depth int) (quantity, bool) {
	switch name {
	case "calc", "-webkit-calc", "-moz-calc":
		return sum(toks, m, depth)
	case "min", "max", "clamp", "hypot", "round", "mod", "rem", "abs", "sign", "sin", "cos", "tan", "sqrt", "pow", "exp":
	default:
		return quantity{}, false
	}
	var args []quantity
	how := ""
	for i, one := range splitTokens(toks, ",") {
		one = trimTokens(one)
		if len(one) == 1 && i == 0 && name == "round" && one[0].kind == tokenIdent {
			how = one[0].word()
			continue
		}
		q, ok := quantity{[]float64{-1e9, 0, 1e9}[min(i, 2)], 0}, true
		if name != "clamp" || len(one) != 1 || one[0].word() != "none" {
			q, ok = sum(one, m, depth)
		}
		if !ok {
			return quantity{}, false
		}
		args = append(args, q)
	}
	if !oneKind(args, m) && name != "pow" {
		return quantity{}, false
	}
	return apply(name, how, args)
}

// oneKind makes quantities of one kind, if they can be: those without one take
// that of the others.
func oneKind(args []quantity, m metric) bool {
	var kind byte
	for _, a := range args {
		if a.kind != 0 && (kind == 0 || a.kind == 'l') {
			kind = a.kind
		}
	}
	for i, a := range args {
		switch {
		case a.kind == 0:
			args[i].kind = kind
		case a.kind == 'p' && kind == 'l':
			args[i] = quantity{a.n / 100 * m.base, 'l'}
		case a.kind != kind:
			return false
		}
	}
	return kind != 0
}

func apply(name, how string, args []quantity) (quantity, bool) {
	first := args[0]
	out := first
	switch {
	case name == "min":
		for _, a := range args {
			out.n = min(out.n, a.n)
		}
	case name == "max":
		for _, a := range args {
			out.n = max(out.n, a.n)
		}
	case name == "clamp" && len(args) == 3:
		out.n = max(args[0].n, min(args[1].n, args[2].n))
	case name == "hypot":
		out.n = 0
		for _, a := range args {
			out.n = math.Hypot(out.n, a.n)
		}
	case name == "round":
		step := 1.0
		if len(args) == 2 {
			step = args[1].n
		}
		if step == 0 {
			return quantity{}, false
		}
		round := map[string]func(float64) float64{"": math.Round, "nearest": math.Round, "up": math.Ceil, "down": math.Floor, "to-zero": math.Trunc}[how]
		if round == nil {
			return quantity{}, false
		}
		out.n = round(first.n/step) * step
	case (name == "mod" || name == "rem") && len(args) == 2 && args[1].n != 0:
		out.n = math.Mod(first.n, args[1].n)
		if name == "mod" && out.n*args[1].n < 0 {
			out.n += args[1].n
		}
	case name == "pow" && len(args) == 2:
		out.n = math.Pow(first.n, args[1].n)
	case len(args) > 1:
		return quantity{}, false
	case name == "abs":
		out.n = math.Abs(first.n)
	case name == "sign":
		out = quantity{float64(compareSign(first.n)), 'n'}
	case name == "sqrt":
		out.n = math.Sqrt(max(first.n, 0))
	case name == "exp":
		out.n = math.Exp(first.n)
	default:
		f := map[string]func(float64) float64{"sin": math.Sin, "cos": math.Cos, "tan": math.Tan}[name]
		if f == nil {
			return quantity{}, false
		}
		out = quantity{f(first.n), 'n'}
	}
	if math.IsNaN(out.n) {
		out.n = 0
	}
	out.n = max(min(out.n, 1e9), -1e9)
	return out, true
}

func compareSign(n float64) int {
	switch {
	case n > 0:
		return 1
	case n < 0:
		return -1
	}
	return 0
}

// alike makes two quantities of one kind: a percentage beside a length is one.
func alike(a, b quantity, m metric) (quantity, quantity, bool) {
	if a.kind == b.kind {
		return a, b, true
	}
	if a.kind == 'p' && b.kind == 'l' {
		return quantity{a.n / 100 * m.base, 'l'}, b, true
	}
	if a.kind == 'l' && b.kind == 'p' {
		return a, quantity{b.n / 100 * m.base, 'l'}, true
	}
	return a, b, false
}

// sum evaluates what is in calc().
func sum(toks []token, m metric, depth int) (quantity, bool) {
	parts := partsOf(toks)
	i := 0
	product := func() (quantity, bool) {
		if i >= len(parts) {
			return quantity{}, false
		}
		q, ok := evaluate(parts[i], m, depth)
		i++
		for ok && i+1 < len(parts) && (parts[i].is("*") || parts[i].is("/")) {
			o, good := evaluate(parts[i+1], m, depth)
			switch {
			case !good:
				return quantity{}, false
			case parts[i].is("/") && o.kind == 'n' && o.n != 0:
				q.n /= o.n
			case parts[i].is("/") && o.kind == 'n':
				q.n = math.Copysign(1e9, q.n)
			case parts[i].is("/") && o.kind == q.kind && o.n != 0:
				q = quantity{q.n / o.n, 'n'}
			case parts[i].is("*") && o.kind == 'n':
				q.n *= o.n
			case parts[i].is("*") && q.kind == 'n':
				q = quantity{q.n * o.n, o.kind}
			default:
				return quantity{}, false
			}
			i += 2
		}
		return q, ok
	}
	total, ok := product()
	for ok && i < len(parts) {
		sign := 1.0
		switch {
		case parts[i].is("-"):
			sign = -1
		case !parts[i].is("+"):
			return quantity{}, false
		}
		i++
		var next quantity
		if next, ok = product(); !ok {
			return quantity{}, false
		}
		var same bool
		if total, next, same = alike(total, next, m); !same {
			return quantity{}, false
		}
		total.n += sign * next.n
	}
	total.n = max(min(total.n, 1e9), -1e9)
	return total, ok
}
