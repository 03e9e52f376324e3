package pdftext

import (
	"bytes"
	compress "compress/flate"
	"compress/zlib"
	"fmt"
	"io"
	"strings"
	"testing"
)

// build writes a PDF with objects numbered from 1; the first must be the catalog.
func build(objects ...string) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
	offsets := make([]int, len(objects))
	for i, o := range objects {
		offsets[i] = b.Len()
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	xref := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, o := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", o)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, xref)
	return b.Bytes()
}

// stream writes a stream object with entries in its dictionary.
func stream(entries, data string) string {
	return fmt.Sprintf("<< %s /Length %d >>\nstream\n%s\nendstream", entries, len(data), data)
}

// flate writes a compressed stream object.
func flate(t testing.TB, entries string, data io.Reader) string {
	t.Helper()
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	if _, err := io.Copy(w, data); err != nil {
		t.Fatal(err)
	}
	must(t, w.Close())
	return stream(entries+" /Filter /FlateDecode", b.String())
}

const (
	helvetica = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
	catalog   = "<< /Type /Catalog /Pages 2 0 R >>"
)

// onePage writes a PDF of one page. font is object 5, named F1, and more are the objects
// from 6 on.
func onePage(content, font string, more ...string) []byte {
	return build(append([]string{
		catalog,
		"<< /Type /Pages /Kids [3 0 R] /Count 1 /MediaBox [0 0 595 842] >>",
		"<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
		stream("", content),
		font,
	}, more...)...)
}

// typeset returns a content stream that sets lines at 12 points, the first at x, y.
func typeset(x, y int, lines ...string) string {
	return fmt.Sprintf("BT /F1 12 Tf 14 TL %d %d Td (%s) Tj ET\n", x, y, strings.Join(lines, ") Tj T* ("))
}

// manyPages writes a PDF with one page for each content stream.
func manyPages(contents ...string) []byte {
	objects := []string{catalog, "", helvetica}
	var kids []string
	for _, c := range contents {
		n := len(objects) + 1
		kids = append(kids, fmt.Sprintf("%d 0 R", n))
		objects = append(objects,
			fmt.Sprintf("<< /Type /Page /Parent 2 0 R /Contents %d 0 R >>", n+1),
			stream("", c))
	}
	objects[1] = fmt.Sprintf("<< /Type /Pages /Kids [%s] /Count %d /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >> >>",
		strings.Join(kids, " "), len(kids))
	return build(objects...)
}

// flateBomb writes a compressed stream object that repeats a text of about a
// megabyte many times over.
func flateBomb(t testing.TB, entries, text string, megabytes int) string {
	t.Helper()
	var chunk bytes.Buffer
	w, err := compress.NewWriter(&chunk, compress.BestCompression)
	must(t, err)
	if _, err := io.WriteString(w, strings.Repeat(text, 1<<20/len(text))); err != nil {
		t.Fatal(err)
	}
	// After a flush the output ends at a byte boundary. It refers to nothing before it, so
	// it can be repeated.
	must(t, w.Flush())
	const header, lastBlock = "\x78\xda", "\x01\x00\x00\xff\xff"
	return stream(entries+" /Filter /FlateDecode", header+strings.Repeat(chunk.String(), megabytes)+lastBlock)
}
