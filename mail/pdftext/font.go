package pdftext

import (
	"strings"
	"unicode/utf8"

	"github.com/pdfcpu/pdfcpu/pkg/font"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"
)

// glyph is one character code of a shown string.
type glyph struct {
	text  string  // may be empty: a glyph without text
	width float64 // in units of the font size
	space bool    // word spacing applies (ISO 32000-1 section 9.3.3)
}

// face holds the properties of a font that its text needs.
type face struct {
	wide    bool // codes have two bytes
	table   [256]string
	unicode *charMap
	legacy  encoding.Encoding // of the codes of a wide font; nil means glyph numbers
	widths  map[uint32]float64
	ranges  []widthRange
	width   float64 // of all other codes
	cache   map[code]string
}

type widthRange struct {
	low, top uint32
	width    float64
}

const unmapped = "\ufffd"

// Character sets of wide fonts whose codes are text already (ISO 32000-1 table
// 118), by a part of their names.
var legacyEncodings = []struct {
	part     string
	encoding encoding.Encoding
}{
	{"UCS2", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)},
	{"UTF16", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)},
	{"RKSJ", japanese.ShiftJIS},
	{"KSC-EUC", korean.EUCKR},
	{"KSCms-UHC", korean.EUCKR},
	{"GBK2K", simplifiedchinese.GB18030},
	{"GBK", simplifiedchinese.GBK},
	{"GB-EUC", simplifiedchinese.GBK},
	{"B5", traditionalchinese.Big5},
	{"EUC", japanese.EUCJP},
}

// face reads a font dictionary; nil gives a font that shows Latin text.
func (r *reader) newFace(dict types.Dict) *face {
	d := r.doc
	f := &face{widths: map[uint32]float64{}, cache: map[code]string{}, width: 0.5}
	if data, _ := d.stream(dict["ToUnicode"]); data != nil {
		f.unicode = parseCharMap(data)
	}
	if d.name(dict["Subtype"]) == "Type0" {
		f.wide = true
		r.readWide(f, dict)
		return f
	}
	f.table = r.simpleTable(dict)
	r.readSimpleWidths(f, dict)
	return f
}

// simpleTable returns the text of a font's 256 codes by its encoding.
func (r *reader) simpleTable(dict types.Dict) [256]string {
	d := r.doc
	enc := d.dict(dict["Encoding"])
	if enc == nil {
		return encodingTable(d.name(dict["Encoding"]))
	}
	table := encodingTable(d.name(enc["BaseEncoding"]))
	at := 0
	for _, o := range d.array(enc["Differences"]) {
		if n, ok := d.number(o); ok {
			at = int(n)
			continue
		}
		if n := d.name(o); n != "" && at >= 0 && at < len(table) {
			if s := glyphText(n); s != "" || n == ".notdef" {
				table[at] = s
			}
		}
		at++
	}
	return table
}

func (r *reader) readSimpleWidths(f *face, dict types.Dict) {
	d := r.doc
	scale := 0.001
	if m := d.numbers(dict["FontMatrix"], 6); m != nil {
		scale = m[0] // of a Type 3 font, which has units of its own
	}
	list := d.array(dict["Widths"])
	first, _ := d.number(dict["FirstChar"])
	for i, o := range list {
		if c := int(first) + i; c >= 0 && c < 256 {
			if w, ok := d.number(o); ok {
				f.widths[uint32(c)] = w * scale
			}
		}
	}
	if descriptor := d.dict(dict["FontDescriptor"]); descriptor != nil {
		if w, ok := d.number(descriptor["MissingWidth"]); ok && list != nil {
			f.width = w * scale
		}
	}
	if list != nil {
		return
	}
	base := d.name(dict["BaseFont"])
	if strings.HasPrefix(base, "Courier") {
		f.width = 0.6
	}
	if !font.IsCoreFont(base) {
		return
	}
	for c, s := range f.table {
		if n, size := utf8.DecodeRuneInString(s); size > 0 {
			if w, err := font.CharWidth(base, n); err == nil && w > 0 {
				f.widths[uint32(c)] = float64(w) / 1000
			}
		}
	}
}

// readWide reads a composite font (ISO 32000-1 section 9.7).
func (r *reader) readWide(f *face, dict types.Dict) {
	d := r.doc
	f.width = 1
	if n := d.name(dict["Encoding"]); f.unicode == nil && !strings.HasPrefix(n, "Identity") {
		for _, l := range legacyEncodings {
			if strings.Contains(n, l.part) {
				f.legacy = l.encoding
				break
			}
		}
	}
	list := d.array(dict["DescendantFonts"])
	if len(list) == 0 {
		return
	}
	descendant := d.dict(list[0])
	if w, ok := d.number(descendant["DW"]); ok {
		f.width = w / 1000
	}
	w := d.array(descendant["W"])
	for len(w) >= 2 && len(f.widths)+len(f.ranges) < maxWidths {
		first, ok := d.number(w[0])
		if !ok || first < 0 {
			return
		}
		if each := d.array(w[1]); each != nil {
			for i, o := range each {
				if v, ok := d.number(o); ok && len(f.widths) < maxWidths {
					f.widths[uint32(first)+uint32(i)] = v / 1000
				}
			}
			w = w[2:]
			continue
		}
		if len(w) < 3 {
			return
		}
		top, ok1 := d.number(w[1])
		v, ok2 := d.number(w[2])
		if !ok1 || !ok2 {
			return
		}
		f.ranges = append(f.ranges, widthRange{uint32(first), uint32(max(top, 0)), v / 1000})
		w = w[3:]
	}
}

func (f *face) widthOf(c uint32) float64 {
	if w, ok := f.widths[c]; ok {
		return w
	}
	for _, r := range f.ranges {
		if c >= r.low && c <= r.top {
			return r.width
		}
	}
	return f.width
}

// glyphs calls show with each glyph of a string.
func (f *face) glyphs(s string, show func(glyph)) {
	if f.legacy != nil {
		decoded, err := f.legacy.NewDecoder().String(s)
		if err != nil {
			decoded = unmapped
		}
		for _, c := range decoded {
			show(glyph{text: string(c), width: f.width})
		}
		return
	}
	size := 1
	if f.wide {
		size = 2
	}
	for ; len(s) >= size; s = s[size:] {
		c := code{uint32(s[0]), 1}
		if f.wide {
			c = code{uint32(s[0])<<8 | uint32(s[1]), 2}
		}
		show(glyph{text: f.text(c), width: f.widthOf(c.n), space: !f.wide && c.n == ' '})
	}
}

// text returns the text of a code.
func (f *face) text(c code) string {
	s, ok := f.cache[c]
	if ok {
		return s
	}
	s, ok = f.unicode.lookup(c)
	if !ok && c.size == 1 {
		// Some writers map the codes of a simple font as if they had two bytes.
		s, ok = f.unicode.lookup(code{c.n, 2})
	}
	switch {
	case ok:
	case f.wide:
		s = unmapped
	default:
		s = f.table[c.n]
	}
	s = ligatures.Replace(strings.ReplaceAll(s, "\x00", ""))
	f.cache[c] = s
	return s
}

var ligatures = strings.NewReplacer("ﬀ", "ff", "ﬁ", "fi", "ﬂ", "fl", "ﬃ", "ffi", "ﬄ", "ffl", "ﬅ", "st", "ﬆ", "st")
