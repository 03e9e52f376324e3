package codes

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What Mask writes. The length says nothing of what was hidden.
const (
	HiddenCode = "[code hidden]"
	HiddenLink = "[link hidden]"
)

// secrets are strings to hide, in their normal form: capital ASCII letters and digits,
// without anything that stands between. Long ones are kept in pieces.
type secrets struct {
	set     map[string]struct{}
	lengths uint32 // a bit for each length
}

const piece = 16 // the longest normal form that is kept whole

// add reports whether a string can be hidden: it is long enough not to be found in every word.
func (x *secrets) add(s string) bool {
	n := string(normal(s, false).text)
	if len(n) < 4 || strings.Contains(n, breaks) {
		return false
	}
	if x.set == nil {
		x.set = map[string]struct{}{}
	}
	for end := min(piece, len(n)); ; end = min(end+piece, len(n)) {
		p := n[max(0, end-piece):end]
		x.set[p] = struct{}{}
		x.lengths |= 1 << len(p)
		if end == len(n) {
			return true
		}
	}
}

// Mask returns a string of the message with every code and secret link replaced by
// HiddenCode and HiddenLink, however it is written: split, with other digits, in
// a link, percent-encoded. A string in which nothing was found is returned as it is, and a
// second call changes nothing.
//
// Mask needs the string whole. A caller that cuts, searches or quotes a string masks
// it first, or a piece of a code is left at the cut.
func (f Found) Mask(s string) string {
	if !f.Any() {
		return s
	}
	hidden := f.secrets.in(s)
	found := hidden
	for _, l := range linksIn(s) {
		for len(found) > 0 && found[0].end <= l.start {
			found = found[1:]
		}
		link := s[l.start:l.end]
		_, secret := f.judge(link)
		if secret || len(found) > 0 && found[0].start < l.end || f.secrets.in(decoded(link)) != nil {
			hidden = append(hidden, l)
		}
	}
	if len(hidden) == 0 {
		return s
	}
	slices.SortFunc(hidden, func(a, b span) int { return a.start - b.start })
	var b strings.Builder
	at := 0
	for i := 0; i < len(hidden); {
		h := hidden[i]
		for i++; i < len(hidden) && hidden[i].start < h.end; i++ {
			h.end, h.link = max(h.end, hidden[i].end), h.link || hidden[i].link
		}
		b.WriteString(s[at:h.start])
		if at = h.end; h.link {
			b.WriteString(HiddenLink)
		} else {
			b.WriteString(HiddenCode)
		}
	}
	return b.String() + s[at:]
}

// MaskLines is Mask for each line of a text alone.
func (f Found) MaskLines(text string) string {
	if !f.Any() {
		return text
	}
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = f.Mask(lines[i])
	}
	return strings.Join(lines, "\n")
}

// in returns where the secrets stand in a string, sorted.
func (x secrets) in(s string) []span {
	if len(x.set) == 0 {
		return nil
	}
	var out []span
	for _, decode := range []bool{false, true} {
		if decode && !strings.Contains(s, "%") {
			break
		}
		n := normal(s, decode)
		for i := range n.text {
			for size := min(piece, len(n.text)-i); size >= 4; size-- {
				if x.lengths&(1<<size) == 0 {
					continue
				}
				if _, ok := x.set[string(n.text[i:i+size])]; ok {
					out = append(out, span{start: int(n.start[i]), end: int(n.end[i+size-1])})
					break
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b span) int { return a.start - b.start })
	return out
}

// form is a string in its normal form, and where each character of it stands.
type form struct {
	text       []byte
	start, end []int
}

const breaks = "\x00" // in a normal form: what no secret goes across

// normal returns the normal form of a string, percent-encoding undone or not.
func normal(s string, decode bool) form {
	var f form
	put := func(c byte, start, end int) {
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		f.text, f.start, f.end = append(f.text, c), append(f.start, start), append(f.end, end)
	}
	for i := 0; i < len(s); {
		if s[i] == '[' && (strings.HasPrefix(s[i:], HiddenCode) || strings.HasPrefix(s[i:], HiddenLink)) {
			put(breaks[0], i, i+len(HiddenCode))
			i += len(HiddenCode)
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if decode && r == '%' && i+2 < len(s) {
			hi, lo := strings.IndexByte(hex, s[i+1]|0x20), strings.IndexByte(hex, s[i+2]|0x20)
			if hi >= 0 && lo >= 0 {
				r, n = rune(hi<<4|lo), 3
			}
		}
		switch {
		case r < utf8.RuneSelf && isAlnum(r):
			put(byte(r), i, i+n)
		case r >= utf8.RuneSelf && isAlnum(r):
			for _, c := range []byte(fold(r)) {
				if c >= utf8.RuneSelf || !unicode.IsLetter(rune(c)) && !unicode.IsDigit(rune(c)) {
					c = breaks[0]
				}
				put(c, i, i+n)
			}
		}
		i += n
	}
	return f
}

const hex = "0123456789abcdef"
