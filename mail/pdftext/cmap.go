package pdftext

import (
	"slices"
	"unicode/utf16"
)

const (
	maxMapped = 1 << 17 // entries of one character map
	maxTarget = 64      // UTF-16 units one code may stand for
)

// charMap maps the codes of a font to text: its ToUnicode map (ISO 32000-1
// section 9.10.3).
type charMap struct {
	single map[code]string
	ranges []codeRange
}

// code is a character code with its length, since <41> and <0041> differ.
type code struct {
	n    uint32
	size uint8 // in bytes
}

type codeRange struct {
	size     uint8
	low, top uint32
	target   []uint16 // of low; the last unit counts up with the code
}

// parseCharMap reads a map. Codes in entries it cannot read are not mapped.
func parseCharMap(data []byte) *charMap {
	m := &charMap{single: map[code]string{}}
	s := scanner{b: data}
	var args []operand
	for {
		o, ok := s.next()
		if !ok {
			return m
		}
		if o.kind != operator {
			if len(args) < maxOperands {
				args = append(args, o)
			}
			continue
		}
		switch o.s {
		case "endbfchar":
			for ; len(args) >= 2; args = args[2:] {
				if c, ok := codeOf(args[0]); ok && len(m.single) < maxMapped {
					m.single[c] = decodeUTF16(utf16Units(args[1].s))
				}
			}
		case "endbfrange":
			for len(args) >= 3 {
				args = m.addRange(args)
			}
		}
		args = args[:0]
	}
}

// addRange reads a range of codes and its text, and returns the operands behind them.
func (m *charMap) addRange(args []operand) (rest []operand) {
	low, ok1 := codeOf(args[0])
	top, ok2 := codeOf(args[1])
	targets, rest := args[2:3], args[3:]
	list := targets[0].kind == openArray
	if list {
		end := slices.IndexFunc(rest, func(o operand) bool { return o.kind == closeArray })
		if end < 0 {
			return nil
		}
		targets, rest = rest[:end], rest[end+1:]
	}
	if !ok1 || !ok2 || low.size != top.size || low.n > top.n {
		return rest
	}
	if !list {
		if units := utf16Units(targets[0].s); len(units) > 0 && len(m.ranges) < maxMapped {
			m.ranges = append(m.ranges, codeRange{low.size, low.n, top.n, units})
		}
		return rest
	}
	for i, target := range targets {
		if uint64(low.n)+uint64(i) <= uint64(top.n) && len(m.single) < maxMapped {
			m.single[code{low.n + uint32(i), low.size}] = decodeUTF16(utf16Units(target.s))
		}
	}
	return rest
}

// lookup returns the text of a code; false when the map lacks it.
func (m *charMap) lookup(c code) (string, bool) {
	if m == nil {
		return "", false
	}
	if s, ok := m.single[c]; ok {
		return s, true
	}
	for _, r := range m.ranges {
		if r.size != c.size || c.n < r.low || c.n > r.top {
			continue
		}
		units := slices.Clone(r.target)
		last := uint32(units[len(units)-1]) + c.n - r.low
		if len(units) == 1 && last > 0xffff {
			return string(rune(last)), true // a range that leaves the first plane
		}
		units[len(units)-1] = uint16(last)
		return decodeUTF16(units), true
	}
	return "", false
}

func codeOf(o operand) (code, bool) {
	if o.kind != text || len(o.s) == 0 || len(o.s) > 4 {
		return code{}, false
	}
	c := code{size: uint8(len(o.s))}
	for _, b := range []byte(o.s) {
		c.n = c.n<<8 | uint32(b)
	}
	return c, true
}

// utf16Units reads big-endian UTF-16; a single byte is one unit.
func utf16Units(s string) []uint16 {
	if len(s) == 1 {
		return []uint16{uint16(s[0])}
	}
	var units []uint16
	for i := 0; i+1 < len(s) && len(units) < maxTarget; i += 2 {
		units = append(units, uint16(s[i])<<8|uint16(s[i+1]))
	}
	return units
}

func decodeUTF16(units []uint16) string { return string(utf16.Decode(units)) }
