package pdftext

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/text/encoding/charmap"
)

// glyphNames is a line for each name: the name, a space, and the number of its
// character in hexadecimal digits. Lines that begin with # are comments.
//
//go:embed glyphs.txt
var glyphNames string

// named gives the characters of glyph names.
var named = sync.OnceValue(func() map[string]string {
	m := make(map[string]string)
	for line := range strings.Lines(glyphNames) {
		if name, number, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name != "#" {
			m[name] = character(number)
		}
	}
	return m
})

// glyphText returns the text of a glyph name, or "". An unknown name is looked up
// again without a suffix like that of a.sc.
func glyphText(name string) string {
	for _, n := range []string{name, strings.SplitN(name, ".", 2)[0]} {
		if s := numbered(n); s != "" {
			return s
		}
		if s := named()[n]; s != "" {
			return s
		}
	}
	return ""
}

// numbered reads a glyph name that holds the number of its character, as uni20AC
// and u1F600 do.
func numbered(name string) string {
	digits, ok := strings.CutPrefix(name, "uni")
	if ok {
		ok = len(digits) == 4
	} else if digits, ok = strings.CutPrefix(name, "u"); ok {
		ok = len(digits) >= 4 && len(digits) <= 6
	}
	if !ok {
		return ""
	}
	return character(digits)
}

// character returns the character of a number in hexadecimal digits, or "".
func character(digits string) string {
	n, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || n == 0 || n > 0x10ffff || n >= 0xd800 && n < 0xe000 {
		return ""
	}
	return string(rune(n))
}

// encodingTable returns the text of an encoding's 256 codes (ISO 32000-1 annex
// D): WinAnsiEncoding for a name that is not MacRomanEncoding. It also serves for
// the standard encoding of old fonts, except its quotes and ligatures.
func encodingTable(name string) (table [256]string) {
	known := charmap.Windows1252
	if name == "MacRomanEncoding" {
		known = charmap.Macintosh
	}
	for c := range table {
		table[c] = string(known.DecodeByte(byte(c)))
	}
	return table
}
