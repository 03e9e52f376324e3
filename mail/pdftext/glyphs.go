package pdftext

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/ledongthuc/pdf"
)

// encodings gives the text of the codes and glyph names of simple fonts, from
// the tables of package pdf. That package shows its tables through fonts of a
// document only, so this makes a document with a font for each.
type encodings struct {
	tables map[string]*[256]string // by the name of the encoding; "" is the one without
	glyphs map[string]string       // by glyph name; empty means unknown
}

// probe is a code that no glyph name stands for.
const probe = 1

func newEncodings() *encodings {
	e := &encodings{tables: map[string]*[256]string{}, glyphs: map[string]string{}}
	names := []string{"", "WinAnsiEncoding", "MacRomanEncoding"}
	fonts := make([]string, len(names))
	for i, n := range names {
		if n != "" {
			fonts[i] = "/Encoding /" + n
		}
	}
	for i, f := range openFonts(fonts) {
		var table [256]string
		for c := range table {
			table[c] = known(f.Encoder().Decode(string([]byte{byte(c)})))
		}
		e.tables[names[i]] = &table
	}
	return e
}

// table returns a copy of an encoding: the standard one for a name it has not.
func (e *encodings) table(name string) [256]string {
	if t := e.tables[name]; t != nil {
		return *t
	}
	return *e.tables[""]
}

// learn looks glyph names up, so that glyph knows them.
func (e *encodings) learn(names []string) {
	var asked, fonts []string
	for _, n := range names {
		if _, ok := e.glyphs[n]; ok {
			continue
		}
		e.glyphs[n] = numbered(n)
		if e.glyphs[n] == "" && simple(n) {
			asked = append(asked, n)
			fonts = append(fonts, fmt.Sprintf("/Encoding << /Differences [ %d /%s ] >>", probe, n))
		}
	}
	for i, f := range openFonts(fonts) {
		if s := f.Encoder().Decode(string(rune(probe))); s != string(rune(probe)) {
			e.glyphs[asked[i]] = s
		}
	}
}

// glyph returns the text of a glyph name that was learnt, without a suffix like
// that of a.sc when the whole name is unknown.
func (e *encodings) glyph(name string) string {
	if s := e.glyphs[name]; s != "" {
		return s
	}
	base, _, _ := strings.Cut(name, ".")
	return e.glyphs[base]
}

// numbered reads a glyph name that gives its character by number, as uni20AC and
// u1F600 do.
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
	n, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || n == 0 || n > 0x10ffff || n >= 0xd800 && n < 0xe000 {
		return ""
	}
	return string(rune(n))
}

// simple says whether a name can be written as it is.
func simple(name string) bool {
	for _, c := range []byte(name) {
		if c < '!' || c > '~' || c == '#' || isDelimiter(c) {
			return false
		}
	}
	return name != "" && len(name) <= maxTokenLen
}

func known(s string) string {
	if s == "\ufffd" {
		return ""
	}
	return s
}

// openFonts makes a document with a font for each description and opens it.
func openFonts(descriptions []string) []pdf.Font {
	if len(descriptions) == 0 {
		return nil
	}
	var b bytes.Buffer
	b.WriteString("%PDF-1.4\n")
	offset := b.Len()
	b.WriteString("1 0 obj\n[")
	for _, d := range descriptions {
		fmt.Fprintf(&b, "<< /Type /Font %s >>\n", d)
	}
	b.WriteString("]\nendobj\n")
	xref := b.Len()
	fmt.Fprintf(&b, "xref\n0 2\n0000000000 65535 f \n%010d 00000 n \ntrailer\n<< /Size 2 /Root 1 0 R >>\n", offset)
	// The reader looks for the end in the last 100 bytes and takes no shorter file.
	fmt.Fprintf(&b, "%%%0100d\nstartxref\n%d\n%%%%EOF\n", 0, xref)
	r, err := pdf.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		panic(fmt.Sprintf("a document of our own making: %v", err))
	}
	list := r.Trailer().Key("Root")
	fonts := make([]pdf.Font, list.Len())
	for i := range fonts {
		fonts[i] = pdf.Font{V: list.Index(i)}
	}
	return fonts
}
