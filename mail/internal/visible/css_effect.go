package visible

import (
	"math"
	"strings"
)

func readIndent(parts []part) (value, truth) {
	v := value{}
	sure := no
	for _, p := range parts {
		if w := p.word(); w == "hanging" || w == "each-line" {
			continue
		}
		if sure != no {
			return v, no
		}
		if v, sure = size("-%", "")([]part{p}); sure == no {
			return v, no
		}
	}
	if len(parts) > 1 {
		sure = min(sure, doubtful)
	}
	return v, sure
}

func readWhiteSpace(parts []part) (value, truth) {
	v := value{word: parts[0].word()}
	for _, p := range parts {
		switch w := p.word(); w {
		case "pre", "pre-wrap", "pre-line", "break-spaces", "preserve", "preserve-breaks", "preserve-spaces", "-moz-pre-wrap":
			v.word = "pre"
		case "normal", "nowrap", "collapse", "wrap":
		default:
			return v, no
		}
	}
	return v, yes
}

func readArea(parts []part) (value, truth) {
	v := value{word: "border-box"}
	for _, p := range parts {
		switch w := p.word(); w {
		case "text":
			v.word = w
		case "border-box", "padding-box", "content-box", "border-area", "border", "padding", "content":
		default:
			if !p.is(",") {
				return v, no
			}
		}
	}
	return v, yes
}

// readContent knows only whether a picture takes the place of the content.
func readContent(parts []part) (value, truth) {
	for _, p := range parts {
		if isImage(p) {
			return value{image: true}, yes
		}
	}
	return value{}, truthOf(parts[0].kind == tokenString || parts[0].kind == tokenIdent || parts[0].kind == tokenFunction)
}

// readMask reads the shorthand, of which only the picture counts.
func readMask(parts []part) (value, truth) {
	var v value
	for i, p := range parts {
		if isImage(p) {
			one, _ := readImages(parts[i : i+1])
			one.hides = one.hides && (!v.image || v.hides)
			v = one
		}
	}
	return v, yes
}

// readShadow finds the colour in the shadow of a text, if it is one in which the
// text can be read: sharp, and close to it.
func readShadow(parts []part) (value, truth) {
	if len(parts) == 1 && parts[0].word() == "none" {
		return value{word: "none"}, yes
	}
	const near = 3 // pixels
	var v value
	for _, layer := range splitParts(parts) {
		var c color
		lengths, legible := 0, true
		for _, p := range layer {
			if one, ok := parseColor(p); ok {
				c = one
				continue
			}
			if sizeOf(p, "-") == no {
				return v, no
			}
			q, _ := evaluate(p, nominal, 0)
			legible = legible && math.Abs(q.n) <= near
			lengths++
		}
		if lengths < 2 || lengths > 3 {
			return v, no
		}
		if legible && c.known && !c.clear() && !v.color.known {
			v.color = c
		}
	}
	return v, yes
}

// splitParts splits components at the commas.
func splitParts(parts []part) [][]part {
	var all [][]part
	start := 0
	for i, p := range parts {
		if p.is(",") {
			all = append(all, parts[start:i])
			start = i + 1
		}
	}
	return append(all, parts[start:])
}

func readZoom(parts []part) (value, truth) {
	if len(parts) == 1 && (parts[0].word() == "normal" || parts[0].word() == "reset") {
		return value{word: "normal"}, yes
	}
	v, sure := ratio(parts)
	if sure == yes && parts[0].n < 0 {
		sure = no
	}
	return v, sure
}

// readFilter multiplies what filters leave to be seen; a blur or a lack of
// contrast can leave nothing.
func readFilter(parts []part) (value, truth) {
	if len(parts) == 1 && (parts[0].word() == "none" || parts[0].kind == tokenURL) {
		return value{word: "none"}, yes
	}
	const illegible = 12 // pixels
	v := value{}
	for _, p := range parts {
		name := p.calls()
		args := partsOf(p.args)
		amount, ok := 1.0, true
		if len(args) == 1 && name != "blur" && name != "hue-rotate" && name != "drop-shadow" && name != "url" {
			amount, ok = ratioOf(args[0])
		}
		switch name {
		case "opacity", "contrast":
			v.hides = v.hides || amount <= 0.05
		case "blur":
			if len(args) == 1 {
				q, good := evaluate(args[0], nominal, 0)
				ok = good && (q.kind == 'l' || q.n == 0)
				v.hides = v.hides || q.n >= illegible
			}
		case "brightness", "grayscale", "hue-rotate", "invert", "saturate", "sepia", "drop-shadow", "url":
		default:
			return v, no
		}
		if !ok || amount < 0 {
			return v, no
		}
	}
	return v, yes
}

func readNames(parts []part) (value, truth) {
	for _, p := range parts {
		if p.kind != tokenIdent && p.kind != tokenString && !p.is(",") {
			return value{}, no
		}
	}
	return value{parts: parts}, yes
}

// readList reads a list of keywords, numbers or both; a 0 among the words allows
// numbers.
func readList(list string) grammar {
	set := setOf(list)
	return func(parts []part) (value, truth) {
		for _, p := range parts {
			if !p.is(",") && !set[p.word()] && (!set["0"] || p.kind != tokenNumber) {
				return value{}, no
			}
		}
		return value{word: parts[0].word(), parts: parts}, yes
	}
}

// readAnimation reads the shorthand: the names, and how the first one ends.
func readAnimation(parts []part) ([]value, truth) {
	name, fill, count := value{}, value{word: "none"}, value{}
	for _, p := range parts {
		w := p.word()
		switch {
		case p.kind == tokenString:
			name.parts = append(name.parts, p)
		case p.is(","), p.kind == tokenNumber, p.kind == tokenDimension, p.kind == tokenFunction:
		case w == "infinite":
			count.word = w
		case w == "forwards" || w == "both":
			fill.word = w
		case w == "none" || w == "backwards" || w == "running" || w == "paused" || w == "normal" || w == "reverse" || strings.HasPrefix(w, "alternate") || strings.HasPrefix(w, "ease") || w == "linear" || w == "step-start" || w == "step-end":
		case w != "":
			name.parts = append(name.parts, p)
		default:
			return nil, no
		}
	}
	return []value{name, fill, count}, yes
}
