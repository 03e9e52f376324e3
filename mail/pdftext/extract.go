package pdftext

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/postern-mail/postern/internal/plain"
)

// bounds are the limits of an extraction.
type bounds struct {
	decoded int64 // bytes that a stream of the document may decode to
	runes   int   // of text
}

// extract returns the text of a PDF. Its errors are those of this package.
func extract(document []byte, b bounds) (text string, err error) {
	defer func() {
		// The libraries report many errors of a file by a panic.
		if recover() != nil {
			text, err = "", ErrDamaged
		}
	}()
	doc, err := openDocument(document, b.decoded)
	if err != nil {
		return "", err
	}
	pages := doc.pages()
	if len(pages) == 0 {
		return "", ErrDamaged
	}
	r := &reader{doc: doc, faces: map[int]*face{}}
	var out strings.Builder
	runes, failed := 0, 0
	for _, p := range pages {
		shown, ok := r.page(p)
		if doc.err != nil {
			return "", doc.err
		}
		if !ok {
			failed++
		}
		if shown == "" {
			continue
		}
		if out.Len() > 0 {
			shown = "\n\n" + shown
		}
		out.WriteString(shown)
		if runes += utf8.RuneCountInString(shown); runes >= b.runes {
			break
		}
	}
	text = out.String()
	switch {
	case strings.ContainsFunc(text, legible):
	case failed > 0:
		return "", ErrDamaged
	default:
		return "", ErrNoText
	}
	text, _ = plain.Head(text, b.runes)
	return text, nil
}

// legible reports whether a character is worth reading: glyphs that nothing
// maps to characters are not.
func legible(c rune) bool { return c != utf8.RuneError && unicode.IsGraphic(c) && !unicode.IsSpace(c) }

// page returns the text of one page, and false when a part of it could not be
// read. The text before that counts.
func (r *reader) page(p page) (text string, ok bool) {
	c := &canvas{reader: r, box: p.box}
	ok = attempt(func() { c.draw(r.doc.content(p.contents), p.resources, identity, 0) })
	for _, a := range p.annots {
		ok = attempt(func() { c.annotation(a) }) && ok
	}
	attempt(func() { text = strings.ToValidUTF8(c.text(), unmapped) })
	return text, ok
}

func attempt(f func()) (ok bool) {
	defer func() { ok = recover() == nil }()
	f()
	return true
}
