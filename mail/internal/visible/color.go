package visible

import (
	"math"
	"strconv"
	"strings"
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
// and hsl(). ok is false for any other. The colours of the system are not known.
func parseColor(c component) (one color, ok bool) {
	switch c.kind {
	case tokenIdent:
		return namedColor(c.word())
	case tokenHash:
		return hexColor(c.text)
	case tokenFunction:
		return colorFunction(c.calls(), c.args)
	}
	return color{}, false
}

func namedColor(name string) (color, bool) {
	switch name {
	case "transparent":
		return color{known: true}, true
	case "currentcolor":
		return color{current: true}, true
	}
	if v, ok := colorNames[name]; ok {
		return rgb(v), true
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
	v, err := strconv.ParseUint(digits, 16, 32)
	switch {
	case err == nil && len(digits) == 6:
		return rgb(uint32(v)), true
	case err == nil && len(digits) == 8:
		c := rgb(uint32(v >> 8))
		c.alpha = float64(v&0xff) / 255
		return c, true
	}
	return color{}, false
}

// colorFunction reads rgb() and hsl(), with commas or without.
func colorFunction(name string, args []token) (color, bool) {
	if name = strings.TrimSuffix(name, "a"); name != "rgb" && name != "hsl" {
		return color{}, false
	}
	var n []token
	for _, c := range componentsOf(args) {
		switch {
		case c.is(","), c.is("/"):
		case c.kind == tokenNumber, c.kind == tokenPercent, c.kind == tokenDimension && c.text == "deg" && len(n) == 0:
			n = append(n, c.token)
		default:
			return color{}, false
		}
	}
	if len(n) != 3 && len(n) != 4 {
		return color{}, false
	}
	c := color{alpha: 1, known: true}
	if name == "hsl" {
		c = fromHSL(n[0].n, min(max(n[1].n/100, 0), 1), min(max(n[2].n/100, 0), 1))
	} else {
		for i, into := range []*uint8{&c.r, &c.g, &c.b} {
			v := n[i].n
			if n[i].kind == tokenPercent {
				v *= 2.55
			}
			*into = uint8(math.Round(min(max(v, 0), 255)))
		}
	}
	if len(n) == 4 {
		if c.alpha = n[3].n; n[3].kind == tokenPercent {
			c.alpha /= 100
		}
		c.alpha = min(max(c.alpha, 0), 1)
	}
	return c, true
}

func fromHSL(hue, saturation, lightness float64) color {
	part := func(n float64) uint8 {
		k := math.Mod(n+hue/30, 12)
		if k < 0 {
			k += 12
		}
		a := saturation * min(lightness, 1-lightness)
		return uint8(math.Round(255 * (lightness - a*max(-1, min(k-3, 9-k, 1)))))
	}
	return color{r: part(0), g: part(8), b: part(4), alpha: 1, known: true}
}

var systemColors = setOf("accentcolor accentcolortext activetext buttonborder buttonface buttontext field fieldtext graytext highlight highlighttext linktext mark marktext selecteditem selecteditemtext visitedtext activeborder activecaption appworkspace background buttonhighlight buttonshadow captiontext inactiveborder inactivecaption inactivecaptiontext infobackground infotext menu menutext scrollbar threeddarkshadow threedface threedhighlight threedlightshadow threedshadow windowframe -webkit-link -webkit-text -webkit-activelink -webkit-focus-ring-color")

var colorNames = map[string]uint32{
	"aliceblue": 0xf0f8ff, "antiquewhite": 0xfaebd7, "aqua": 0x00ffff, "aquamarine": 0x7fffd4, "azure": 0xf0ffff,
	"beige": 0xf5f5dc, "bisque": 0xffe4c4, "black": 0x000000, "blanchedalmond": 0xffebcd, "blue": 0x0000ff,
	"blueviolet": 0x8a2be2, "brown": 0xa52a2a, "burlywood": 0xdeb887, "cadetblue": 0x5f9ea0, "chartreuse": 0x7fff00,
	"chocolate": 0xd2691e, "coral": 0xff7f50, "cornflowerblue": 0x6495ed, "cornsilk": 0xfff8dc, "crimson": 0xdc143c,
	"cyan": 0x00ffff, "darkblue": 0x00008b, "darkcyan": 0x008b8b, "darkgoldenrod": 0xb8860b, "darkgray": 0xa9a9a9,
	"darkgreen": 0x006400, "darkgrey": 0xa9a9a9, "darkkhaki": 0xbdb76b, "darkmagenta": 0x8b008b, "darkolivegreen": 0x556b2f,
	"darkorange": 0xff8c00, "darkorchid": 0x9932cc, "darkred": 0x8b0000, "darksalmon": 0xe9967a, "darkseagreen": 0x8fbc8f,
	"darkslateblue": 0x483d8b, "darkslategray": 0x2f4f4f, "darkslategrey": 0x2f4f4f, "darkturquoise": 0x00ced1,
	"darkviolet": 0x9400d3, "deeppink": 0xff1493, "deepskyblue": 0x00bfff, "dimgray": 0x696969, "dimgrey": 0x696969,
	"dodgerblue": 0x1e90ff, "firebrick": 0xb22222, "floralwhite": 0xfffaf0, "forestgreen": 0x228b22, "fuchsia": 0xff00ff,
	"gainsboro": 0xdcdcdc, "ghostwhite": 0xf8f8ff, "gold": 0xffd700, "goldenrod": 0xdaa520, "gray": 0x808080,
	"green": 0x008000, "greenyellow": 0xadff2f, "grey": 0x808080, "honeydew": 0xf0fff0, "hotpink": 0xff69b4,
	"indianred": 0xcd5c5c, "indigo": 0x4b0082, "ivory": 0xfffff0, "khaki": 0xf0e68c, "lavender": 0xe6e6fa,
	"lavenderblush": 0xfff0f5, "lawngreen": 0x7cfc00, "lemonchiffon": 0xfffacd, "lightblue": 0xadd8e6, "lightcoral": 0xf08080,
	"lightcyan": 0xe0ffff, "lightgoldenrodyellow": 0xfafad2, "lightgray": 0xd3d3d3, "lightgreen": 0x90ee90, "lightgrey": 0xd3d3d3,
	"lightpink": 0xffb6c1, "lightsalmon": 0xffa07a, "lightseagreen": 0x20b2aa, "lightskyblue": 0x87cefa, "lightslategray": 0x778899,
	"lightslategrey": 0x778899, "lightsteelblue": 0xb0c4de, "lightyellow": 0xffffe0, "lime": 0x00ff00, "limegreen": 0x32cd32,
	"linen": 0xfaf0e6, "magenta": 0xff00ff, "maroon": 0x800000, "mediumaquamarine": 0x66cdaa, "mediumblue": 0x0000cd,
	"mediumorchid": 0xba55d3, "mediumpurple": 0x9370db, "mediumseagreen": 0x3cb371, "mediumslateblue": 0x7b68ee,
	"mediumspringgreen": 0x00fa9a, "mediumturquoise": 0x48d1cc, "mediumvioletred": 0xc71585, "midnightblue": 0x191970,
	"mintcream": 0xf5fffa, "mistyrose": 0xffe4e1, "moccasin": 0xffe4b5, "navajowhite": 0xffdead, "navy": 0x000080,
	"oldlace": 0xfdf5e6, "olive": 0x808000, "olivedrab": 0x6b8e23, "orange": 0xffa500, "orangered": 0xff4500,
	"orchid": 0xda70d6, "palegoldenrod": 0xeee8aa, "palegreen": 0x98fb98, "paleturquoise": 0xafeeee, "palevioletred": 0xdb7093,
	"papayawhip": 0xffefd5, "peachpuff": 0xffdab9, "peru": 0xcd853f, "pink": 0xffc0cb, "plum": 0xdda0dd,
	"powderblue": 0xb0e0e6, "purple": 0x800080, "rebeccapurple": 0x663399, "red": 0xff0000, "rosybrown": 0xbc8f8f,
	"royalblue": 0x4169e1, "saddlebrown": 0x8b4513, "salmon": 0xfa8072, "sandybrown": 0xf4a460, "seagreen": 0x2e8b57,
	"seashell": 0xfff5ee, "sienna": 0xa0522d, "silver": 0xc0c0c0, "skyblue": 0x87ceeb, "slateblue": 0x6a5acd,
	"slategray": 0x708090, "slategrey": 0x708090, "snow": 0xfffafa, "springgreen": 0x00ff7f, "steelblue": 0x4682b4,
	"tan": 0xd2b48c, "teal": 0x008080, "thistle": 0xd8bfd8, "tomato": 0xff6347, "turquoise": 0x40e0d0,
	"violet": 0xee82ee, "wheat": 0xf5deb3, "white": 0xffffff, "whitesmoke": 0xf5f5f5, "yellow": 0xffff00, "yellowgreen": 0x9acd32,
	// Of the system, in light colours.
	"canvas": 0xffffff, "canvastext": 0x000000, "window": 0xffffff, "windowtext": 0x000000,
}
