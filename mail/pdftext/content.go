package pdftext

import (
	"math"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

const (
	maxStates    = 256
	maxFormDepth = 12
	maxForms     = 5_000   // drawn on one page
	maxFragments = 200_000 // of one page
	maxGlyphs    = 2_000_000
	// Glyphs smaller than this, in points, are not meant to be read.
	minSize = 0.5
)

// matrix is a transformation, in the order in which operators take it.
type matrix [6]float64

var identity = matrix{1, 0, 0, 1, 0, 0}

// mul returns the transformation that applies m first.
func (m matrix) mul(n matrix) matrix {
	return matrix{
		m[0]*n[0] + m[1]*n[2], m[0]*n[1] + m[1]*n[3],
		m[2]*n[0] + m[3]*n[2], m[2]*n[1] + m[3]*n[3],
		m[4]*n[0] + m[5]*n[2] + n[4], m[4]*n[1] + m[5]*n[3] + n[5],
	}
}

// state is the part of the graphics state that text depends on (ISO 32000-1
// section 9.3).
type state struct {
	ctm                                 matrix
	font                                *face
	size, charSpace, wordSpace, stretch float64
	leading, rise                       float64
	invisible                           bool
}

// reader reads the text of one document.
type reader struct {
	doc   *document
	faces map[int]*face // by object number
}

// canvas collects the text of one page.
type canvas struct {
	*reader
	box       *rectangle
	fragments []fragment
	images    bool
	forms     int
	glyphs    int
}

// fragment is text on one line without a gap.
type fragment struct {
	x, end, y float64 // of the base line, turned so that it runs to the right
	size      float64
	text      []byte
	turn      int // quarter turns of the base line
	invisible bool
}

// draw runs a content stream.
func (c *canvas) draw(data []byte, resources types.Dict, ctm matrix, depth int) {
	g := state{ctm: ctm, stretch: 1}
	var saved []state
	tm, line := identity, identity
	move := func(x, y float64) {
		line = matrix{1, 0, 0, 1, x, y}.mul(line)
		tm = line
	}
	s := scanner{b: data}
	var args []operand
	for {
		o, ok := s.next()
		if !ok || c.doc.err != nil {
			return
		}
		if o.kind != operator {
			if len(args) < maxOperands {
				args = append(args, o)
			}
			continue
		}
		switch o.s {
		case "q":
			if len(saved) < maxStates {
				saved = append(saved, g)
			}
		case "Q":
			if n := len(saved); n > 0 {
				g, saved = saved[n-1], saved[:n-1]
			}
		case "cm":
			if m, ok := matrixOf(args); ok {
				g.ctm = m.mul(g.ctm)
			}
		case "BT":
			tm, line = identity, identity
		case "Tm":
			if m, ok := matrixOf(args); ok {
				tm, line = m, m
			}
		case "Td":
			move(arg(args, 0), arg(args, 1))
		case "TD":
			g.leading = -arg(args, 1)
			move(arg(args, 0), arg(args, 1))
		case "T*":
			move(0, -g.leading)
		case "TL":
			g.leading = arg(args, 0)
		case "Tc":
			g.charSpace = arg(args, 0)
		case "Tw":
			g.wordSpace = arg(args, 0)
		case "Tz":
			g.stretch = arg(args, 0) / 100
		case "Ts":
			g.rise = arg(args, 0)
		case "Tr":
			mode := arg(args, 0)
			g.invisible = mode == 3 || mode == 7
		case "Tf":
			if len(args) > 0 {
				g.font = c.fontNamed(resources, args[0].s)
				g.size = arg(args, 1)
			}
		case "Tj", "TJ":
			tm = c.show(&g, tm, args)
		case "'":
			move(0, -g.leading)
			tm = c.show(&g, tm, args)
		case "\"":
			g.wordSpace, g.charSpace = arg(args, 0), arg(args, 1)
			move(0, -g.leading)
			if len(args) > 2 {
				tm = c.show(&g, tm, args[2:])
			}
		case "Do":
			if len(args) > 0 {
				c.object(c.lookup(resources, "XObject", args[0].s), resources, g.ctm, depth)
			}
		case "ID":
			c.images = true
			s.skipInlineImage()
		}
		args = args[:0]
	}
}

// show draws strings and moves by numbers, as the operands of TJ, and returns
// the position of the next glyph.
func (c *canvas) show(g *state, tm matrix, items []operand) matrix {
	if g.font == nil {
		g.font = c.fallback()
	}
	for _, item := range items {
		switch item.kind {
		case number:
			tm = matrix{1, 0, 0, 1, -item.n / 1000 * g.size * g.stretch, 0}.mul(tm)
		case text:
			g.font.glyphs(item.s, func(gl glyph) {
				advance := gl.width*g.size + g.charSpace
				if gl.space {
					advance += g.wordSpace
				}
				next := matrix{1, 0, 0, 1, advance * g.stretch, 0}.mul(tm)
				c.place(g, tm, next, gl.text)
				tm = next
			})
		}
	}
	return tm
}

// place puts the text of a glyph onto the page, between two text matrices.
func (c *canvas) place(g *state, from, to matrix, text string) {
	if c.glyphs++; text == "" || c.glyphs > maxGlyphs {
		return
	}
	a := matrix{1, 0, 0, 1, 0, g.rise}.mul(from).mul(g.ctm)
	b := matrix{1, 0, 0, 1, 0, g.rise}.mul(to).mul(g.ctm)
	if c.box != nil && !c.box.holds(a[4], a[5]) {
		return
	}
	size := math.Abs(g.size) * math.Hypot(a[2], a[3])
	if !(size >= minSize && size < 1e6) || math.IsNaN(a[4]+a[5]+b[4]+b[5]) || math.Abs(a[4])+math.Abs(a[5]) > 1e7 {
		return
	}
	direction := math.Copysign(1, g.size)
	turn := (int(math.Round(math.Atan2(a[1]*direction, a[0]*direction)/(math.Pi/2))) + 4) % 4
	x, y := turned(a[4], a[5], turn)
	end, _ := turned(b[4], b[5], turn)
	if n := len(c.fragments); n > 0 {
		if last := &c.fragments[n-1]; last.turn == turn && last.invisible == g.invisible && math.Abs(last.y-y) < 0.05*size &&
			math.Abs(last.size-size) < 0.05*size {
			switch gap := (x - last.end) / size; {
			case text == " " && gap < -0.1:
				return // it is under a ligature, for copying text from the page
			case gap >= -0.3 && gap < wordGap:
				last.text = append(last.text, text...)
				last.end = max(end, last.end)
				return
			case gap >= wordGap && gap < cellGap:
				last.text = append(append(last.text, ' '), text...)
				last.end = end
				return
			}
		}
	}
	if len(c.fragments) < maxFragments {
		c.fragments = append(c.fragments, fragment{x, end, y, size, []byte(text), turn, g.invisible})
	}
}

// turned returns the position of a point when the page is turned back by quarters.
func turned(x, y float64, quarters int) (float64, float64) {
	switch quarters {
	case 1:
		return y, -x
	case 2:
		return -x, -y
	case 3:
		return -y, x
	}
	return x, y
}

// object draws an external object: a form, which is a content stream of its own,
// or an image, of which only the presence matters.
func (c *canvas) object(o types.Object, inherited types.Dict, ctm matrix, depth int) {
	dict := c.doc.dict(o)
	switch c.doc.name(dict["Subtype"]) {
	case "Image":
		c.images = true
		return
	case "Form":
	default:
		return
	}
	if c.forms++; depth >= maxFormDepth || c.forms > maxForms {
		return
	}
	data, dict := c.doc.stream(o)
	if m := c.doc.numbers(dict["Matrix"], 6); m != nil {
		ctm = matrix(m).mul(ctm)
	}
	resources := c.doc.dict(dict["Resources"])
	if resources == nil {
		resources = inherited
	}
	c.draw(data, resources, ctm, depth+1)
}

// annotation draws a filled field or a note of the page.
func (c *canvas) annotation(o types.Object) {
	const hidden = 1<<1 | 1<<5 // hidden, or not to be viewed (ISO 32000-1 table 165)
	dict := c.doc.dict(o)
	if flags, _ := c.doc.number(dict["F"]); int(flags)&hidden != 0 {
		return
	}
	appearance := c.doc.dict(dict["AP"])["N"]
	if _, ok := c.doc.resolve(appearance).(types.StreamDict); !ok {
		appearance = c.doc.dict(appearance)[c.doc.name(dict["AS"])]
	}
	rect, form := c.doc.rectangle(dict["Rect"]), c.doc.dict(appearance)
	if rect == nil || form == nil {
		return
	}
	m := identity
	if box := c.doc.rectangle(form["BBox"]); box != nil {
		m[4], m[5] = rect.x0-box.x0, rect.y0-box.y0
	}
	c.object(appearance, nil, m, 0)
}

// lookup finds a named resource.
func (c *canvas) lookup(resources types.Dict, kind, name string) types.Object {
	return c.doc.dict(resources[kind])[name]
}

func (c *canvas) fontNamed(resources types.Dict, name string) *face {
	o := c.lookup(resources, "Font", name)
	ref, shared := o.(types.IndirectRef)
	if shared {
		if f := c.faces[int(ref.ObjectNumber)]; f != nil {
			return f
		}
	}
	dict := c.doc.dict(o)
	if dict == nil {
		return c.fallback()
	}
	f := c.newFace(dict)
	if shared {
		c.faces[int(ref.ObjectNumber)] = f
	}
	return f
}

// fallback returns the font for text whose font is missing.
func (c *canvas) fallback() *face {
	const number = -1 // not the number of any object
	if c.faces[number] == nil {
		c.faces[number] = c.newFace(nil)
	}
	return c.faces[number]
}

func arg(args []operand, i int) float64 {
	if i < len(args) {
		return args[i].n
	}
	return 0
}

func matrixOf(args []operand) (m matrix, ok bool) {
	if len(args) != len(m) {
		return m, false
	}
	for i := range m {
		m[i] = args[i].n
	}
	return m, true
}
