package visible

import (
	"encoding/hex"
	"math"
	"strings"

	"github.com/lucasb-eyer/go-colorful"
	"golang.org/x/image/colornames"
)

// color is a colour of the screen. The zero value is one that is not known.
type color struct {
	r, g, b uint8
	alpha   float64 // 0 cannot be seen, 1 lets nothing through
	known   bool
	current bool // the colour of the text
}

func rgb(v uint32) color {
	return color{r: uint8(v >> 16), g: uint8(v >> 8), b: uint8(v), alpha: 1, known: true}
}

// clear reports whether a colour cannot be seen on anything.
func (c color) clear() bool { return c.known && c.alpha <= 0.02 }

// opaque reports whether a colour is known and hides what is behind it.
func (c color) opaque() bool { return c.known && c.alpha >= 0.999 }

// over returns the colour that is seen where c is on an opaque ground.
func (c color) over(ground color) color {
	if !c.known || !ground.known {
		return color{}
	}
	mix := func(a, b uint8) uint8 { return uint8(math.Round(float64(a)*c.alpha + float64(b)*(1-c.alpha))) }
	return color{r: mix(c.r, ground.r), g: mix(c.g, ground.g), b: mix(c.b, ground.b), alpha: 1, known: true}
}

// hiddenOn reports whether letters of a colour cannot be told by eye from a ground.
func (c color) hiddenOn(ground color) bool {
	const step = 3
	diff := func(a, b uint8) bool { return max(int(a)-int(b), int(b)-int(a)) <= step }
	switch {
	case !c.known:
		return false
	case c.clear():
		return true
	}
	o := c.over(ground)
	return ground.opaque() && diff(o.r, ground.r) && diff(o.g, ground.g) && diff(o.b, ground.b)
}

// parseColor reads a colour (CSS Color Level 4): names, hexadecimal digits, rgb()
// and hsl(). ok is false for any other. The colours of the system are not known, but
// for those of paper and text.
func parseColor(t token) (one color, ok bool) {
	switch t.kind {
	case tokenIdent:
		return namedColor(t.word())
	case tokenHash:
		return hexColor(t.text)
	case tokenFunction:
		return colorFunction(strings.TrimSuffix(t.calls(), "a"), t.args)
	}
	return color{}, false
}

var systemColors = setOf("accentcolor accentcolortext activetext buttonborder buttonface buttontext field fieldtext graytext highlight highlighttext linktext mark marktext selecteditem selecteditemtext visitedtext activeborder activecaption appworkspace background buttonhighlight buttonshadow captiontext inactiveborder inactivecaption inactivecaptiontext infobackground infotext menu menutext scrollbar threeddarkshadow threedface threedhighlight threedlightshadow threedshadow windowframe -webkit-link -webkit-text -webkit-activelink -webkit-focus-ring-color")

func namedColor(name string) (color, bool) {
	switch name {
	case "transparent":
		return color{known: true}, true
	case "currentcolor":
		return color{current: true}, true
	case "canvas", "window":
		return rgb(0xffffff), true
	case "canvastext", "windowtext":
		return rgb(0), true
	case "rebeccapurple":
		return rgb(0x663399), true
	}
	if c, ok := colornames.Map[name]; ok {
		return color{r: c.R, g: c.G, b: c.B, alpha: 1, known: true}, true
	}
	return color{}, systemColors[name]
}

// hexColor reads the digits of a colour.
func hexColor(digits string) (color, bool) {
	if len(digits) == 3 || len(digits) == 4 {
		var long []byte
		for i := range len(digits) {
			long = append(long, digits[i], digits[i])
		}
		digits = string(long)
	}
	b, err := hex.DecodeString(digits)
	if err != nil || len(b) != 3 && len(b) != 4 {
		return color{}, false
	}
	c := color{r: b[0], g: b[1], b: b[2], alpha: 1, known: true}
	if len(b) == 4 {
		c.alpha = float64(b[3]) / 255
	}
	return c, true
}

// colorFunction reads the arguments of rgb() or hsl(), with commas or without.
func colorFunction(name string, args []token) (color, bool) {
	var n []float64
	for _, t := range args {
		v := t.n
		switch {
		case t.is(","), t.is("/"):
			continue
		case t.kind != tokenNumber && t.kind != tokenPercent && (t.unit != "deg" || name != "hsl" || len(n) > 0):
			return color{}, false
		case t.kind == tokenPercent && name == "rgb" && len(n) < 3:
			v *= 2.55
		case t.kind == tokenPercent, name == "hsl" && (len(n) == 1 || len(n) == 2):
			v /= 100
		}
		n = append(n, v)
	}
	if len(n) != 3 && len(n) != 4 || name != "rgb" && name != "hsl" {
		return color{}, false
	}
	part := func(v float64) uint8 { return uint8(math.Round(min(max(v, 0), 255))) }
	c := color{r: part(n[0]), g: part(n[1]), b: part(n[2]), alpha: 1, known: true}
	if name == "hsl" {
		hue := math.Mod(math.Mod(n[0], 360)+360, 360)
		c.r, c.g, c.b = colorful.Hsl(hue, min(max(n[1], 0), 1), min(max(n[2], 0), 1)).Clamped().RGB255()
	}
	if len(n) == 4 {
		c.alpha = min(max(n[3], 0), 1)
	}
	return c, true
}
