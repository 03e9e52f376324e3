package visible

import "math"

// motion is what transforms do to a box, roughly: how much smaller they make it,
// and how far they move it.
type motion struct {
	x, y   float64 // factors of its width and height
	dx, dy float64 // pixels
	px     float64 // of its own width
	back   bool    // its back is to be seen
}

var still = motion{x: 1, y: 1}

// then returns one motion followed by another.
func (a motion) then(b motion) motion {
	return motion{a.x * b.x, a.y * b.y, a.dx + b.dx, a.dy + b.dy, a.px + b.px, a.back != b.back}
}

func readTransform(parts []part) (value, truth) {
	if len(parts) == 1 && parts[0].word() == "none" {
		return value{}, yes
	}
	_, ok := transformed(parts, nominal)
	return value{parts: parts}, truthOf(ok)
}

// transformed judges a list of transform functions.
func transformed(parts []part, m metric) (motion, bool) {
	all := still
	for _, p := range parts {
		var n []quantity
		for _, arg := range splitTokens(p.args, ",") {
			one := partsOf(arg)
			if len(one) != 1 {
				return all, false
			}
			if one[0].word() == "none" && p.calls() == "perspective" {
				n = append(n, quantity{0, 'l'})
				continue
			}
			q, ok := evaluate(one[0], m, 0)
			if !ok {
				return all, false
			}
			n = append(n, q)
		}
		one, ok := transformation(p.calls(), n)
		if !ok {
			return all, false
		}
		all = all.then(one)
	}
	return all, true
}

func transformation(name string, n []quantity) (motion, bool) {
	out := still
	if len(n) == 0 {
		return out, false
	}
	kinds := func(least, most int, allowed string) bool {
		for _, q := range n {
			good := q.n == 0 && q.kind == 'n'
			for i := range len(allowed) {
				good = good || q.kind == allowed[i]
			}
			if !good {
				return false
			}
		}
		return len(n) >= least && len(n) <= most
	}
	factor := func(i int) float64 {
		if n[i].kind == 'p' {
			return n[i].n / 100
		}
		return n[i].n
	}
	move := func(i int) {
		if n[i].kind == 'p' {
			out.px = n[i].n / 100
		} else {
			out.dx = n[i].n
		}
	}
	down := func(i int) {
		if n[i].kind != 'p' {
			out.dy = n[i].n
		}
	}
	ok := false
	switch name {
	case "translate":
		if ok = kinds(1, 2, "lp"); ok {
			move(0)
			if len(n) == 2 {
				down(1)
			}
		}
	case "translate3d":
		if ok = kinds(3, 3, "lp"); ok {
			move(0)
			down(1)
		}
	case "translatex":
		if ok = kinds(1, 1, "lp"); ok {
			move(0)
		}
	case "translatey":
		if ok = kinds(1, 1, "lp"); ok {
			down(0)
		}
	case "translatez", "perspective":
		ok = kinds(1, 1, "l")
	case "scale":
		if ok = kinds(1, 2, "np"); ok {
			out.x, out.y = factor(0), factor(len(n)-1)
		}
	case "scale3d":
		if ok = kinds(3, 3, "np"); ok {
			out.x, out.y = factor(0), factor(1)
		}
	case "scalex":
		if ok = kinds(1, 1, "np"); ok {
			out.x = factor(0)
		}
	case "scaley":
		if ok = kinds(1, 1, "np"); ok {
			out.y = factor(0)
		}
	case "scalez":
		ok = kinds(1, 1, "np")
	case "rotate", "rotatez":
		ok = kinds(1, 1, "a")
	case "rotatex", "rotatey":
		if ok = kinds(1, 1, "a"); ok {
			c := math.Cos(n[0].n)
			out.back = c < 0
			if name == "rotatex" {
				out.y = c
			} else {
				out.x = c
			}
		}
	case "rotate3d":
		if ok = len(n) == 4 && (n[3].kind == 'a' || n[3].n == 0); ok {
			c := math.Cos(n[3].n)
			switch {
			case n[0].n != 0 && n[1].n == 0 && n[2].n == 0:
				out.y, out.back = c, c < 0
			case n[0].n == 0 && n[1].n != 0 && n[2].n == 0:
				out.x, out.back = c, c < 0
			}
		}
	case "skew", "skewx", "skewy":
		ok = kinds(1, 2, "a")
	case "matrix":
		if ok = kinds(6, 6, "n"); ok {
			out = fromMatrix(n[0].n, n[1].n, n[2].n, n[3].n)
			out.dx, out.dy = n[4].n, n[5].n
		}
	case "matrix3d":
		if ok = kinds(16, 16, "n"); ok {
			out = fromMatrix(n[0].n, n[1].n, n[4].n, n[5].n)
			if w := n[15].n; w != 0 {
				out.x, out.y = out.x/w, out.y/w
			}
			out.dx, out.dy = n[12].n, n[13].n
		}
	}
	return out, ok
}

// fromMatrix finds how much a matrix shrinks a box: a unit square has its area
// left, and each side its length.
func fromMatrix(a, b, c, d float64) motion {
	x := math.Hypot(a, b)
	if x == 0 {
		return motion{}
	}
	return motion{x: x, y: math.Abs(a*d-b*c) / x}
}

func readTranslate(parts []part) (value, truth) {
	if len(parts) == 1 && parts[0].word() == "none" {
		return value{}, yes
	}
	_, ok := translated(parts, nominal)
	return value{parts: parts}, truthOf(ok)
}

func translated(parts []part, m metric) (motion, bool) {
	n, ok := quantities(parts, m)
	if !ok || len(n) > 3 {
		return still, false
	}
	return transformation("translate", n[:min(len(n), 2)])
}

func readScale(parts []part) (value, truth) {
	if len(parts) == 1 && parts[0].word() == "none" {
		return value{}, yes
	}
	_, ok := scaled(parts, nominal)
	return value{parts: parts}, truthOf(ok)
}

func scaled(parts []part, m metric) (motion, bool) {
	n, ok := quantities(parts, m)
	if !ok || len(n) > 3 {
		return still, false
	}
	return transformation("scale", n[:min(len(n), 2)])
}

func quantities(parts []part, m metric) ([]quantity, bool) {
	var n []quantity
	for _, p := range parts {
		q, ok := evaluate(p, m, 0)
		if !ok {
			return nil, false
		}
		n = append(n, q)
	}
	return n, true
}

func readRotate(parts []part) (value, truth) {
	if len(parts) == 1 && parts[0].word() == "none" {
		return value{}, yes
	}
	_, ok := rotated(parts, nominal)
	return value{parts: parts}, truthOf(ok)
}

// rotated judges "45deg", "x 45deg" and "1 0 0 45deg".
func rotated(parts []part, m metric) (motion, bool) {
	axis := "rotate"
	var n []quantity
	for _, p := range parts {
		switch w := p.word(); w {
		case "x", "y", "z":
			if axis != "rotate" {
				return still, false
			}
			axis += w
			continue
		}
		q, ok := evaluate(p, m, 0)
		if !ok {
			return still, false
		}
		n = append(n, q)
	}
	if len(n) == 4 && axis == "rotate" {
		axis = "rotate3d"
	}
	return transformation(axis, n)
}

// readClip reads the rectangle of old.
func readClip(parts []part) (value, truth) {
	if len(parts) == 1 && parts[0].word() == "auto" {
		return value{}, yes
	}
	if len(parts) != 1 || parts[0].calls() != "rect" {
		return value{}, no
	}
	var n [4]float64
	var edges [4]bool
	i := 0
	for _, p := range partsOf(parts[0].args) {
		if p.is(",") {
			continue
		}
		if i == 4 {
			return value{}, no
		}
		if p.word() != "auto" {
			q, ok := evaluate(p, nominal, 0)
			if !ok || q.kind != 'l' && q.n != 0 {
				return value{}, no
			}
			n[i], edges[i] = q.n, true
		}
		i++
	}
	if i != 4 {
		return value{}, no
	}
	high := edges[2] && n[2]-n[0] <= 1
	wide := edges[1] && n[1]-n[3] <= 1
	return value{hides: high || wide}, yes
}

// readClipPath reads a basic shape (CSS Shapes Level 1) and judges whether it
// leaves anything. Shapes in pixels are measured on a box of 1280 by 800.
func readClipPath(parts []part) (value, truth) {
	for _, p := range parts {
		switch p.word() {
		case "none", "border-box", "padding-box", "content-box", "margin-box", "fill-box", "stroke-box", "view-box":
			continue
		}
		if p.kind == tokenURL || p.calls() == "url" {
			return value{}, yes
		}
		hides, ok := emptyShape(p.calls(), p.args)
		return value{hides: hides}, truthOf(ok)
	}
	return value{}, truthOf(len(parts) > 0)
}

func emptyShape(name string, args []token) (empty, ok bool) {
	const least = 1 // pixels
	wide := metric{font: normalFont, root: normalFont, base: screenWidth}
	high := metric{font: normalFont, root: normalFont, base: screenHeight}
	length := func(p part, m metric) (float64, bool) {
		q, ok := evaluate(p, m, 0)
		if q.kind == 'p' {
			q.n *= m.base / 100
		}
		return q.n, ok && (q.kind == 'l' || q.kind == 'p' || q.n == 0)
	}
	parts := partsOf(args)
	switch name {
	case "inset", "rect", "xywh":
		var n []float64
		for _, p := range parts {
			if p.word() == "round" {
				break
			}
			m := high
			if name == "xywh" && len(n)%2 == 0 || name != "xywh" && len(n)%2 == 1 {
				m = wide
			}
			v, ok := length(p, m)
			if !ok {
				if p.word() != "auto" || name != "rect" {
					return false, false
				}
				v = []float64{0, screenWidth, screenHeight, 0}[min(len(n), 3)]
			}
			n = append(n, v)
		}
		if len(n) == 0 || len(n) > 4 || name != "inset" && len(n) != 4 {
			return false, false
		}
		switch name {
		case "xywh":
			return n[2] < least || n[3] < least, true
		case "rect":
			return n[1]-n[3] < least || n[2]-n[0] < least, true
		}
		if len(n) == 1 && parts[0].kind == tokenPercent {
			return n[0] >= 0.49*screenHeight, true
		}
		t := n[0]
		r, b := n[min(1, len(n)-1)], n[0]
		if len(n) > 2 {
			b = n[2]
		}
		l := r
		if len(n) > 3 {
			l = n[3]
		}
		if len(n) == 1 {
			r, l = t, t
		}
		return t+b > screenHeight-4 || l+r > screenWidth-4, true
	case "circle", "ellipse":
		radii := 0
		for _, p := range parts {
			if p.word() == "at" {
				break
			}
			radii++
			if w := p.word(); w == "closest-side" || w == "farthest-side" || w == "closest-corner" || w == "farthest-corner" {
				continue
			}
			v, ok := length(p, high)
			if !ok || v < 0 {
				return false, false
			}
			empty = empty || v <= least
		}
		return empty, radii <= 2
	case "polygon":
		return emptyPolygon(args, length)
	case "path", "shape":
		return false, true
	}
	return false, false
}

// emptyPolygon reports whether a polygon has no area.
func emptyPolygon(args []token, length func(part, metric) (float64, bool)) (empty, ok bool) {
	var x, y []float64
	for i, corner := range splitTokens(args, ",") {
		parts := partsOf(corner)
		if i == 0 && len(parts) == 1 && parts[0].kind == tokenIdent {
			continue // how it is filled
		}
		if len(parts) != 2 {
			return false, false
		}
		v, ok1 := length(parts[0], metric{font: normalFont, root: normalFont, base: screenWidth})
		w, ok2 := length(parts[1], metric{font: normalFont, root: normalFont, base: screenHeight})
		if !ok1 || !ok2 {
			return false, false
		}
		x, y = append(x, v), append(y, w)
	}
	if len(x) == 0 {
		return false, false
	}
	var area float64
	for i := range x {
		j := (i + 1) % len(x)
		area += x[i]*y[j] - x[j]*y[i]
	}
	return math.Abs(area) < 20, true
}
