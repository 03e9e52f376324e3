package pdftext

import "testing"

// This package's own code reads content streams and character maps, so none of them may
// make it fail. The libraries that read the rest of the file are not fuzzed here: they may
// end the process, which is why they run in a child.
func FuzzContent(f *testing.F) {
	doc, err := openDocument(build(catalog, "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /Resources << /Font << /F1 4 0 R /F2 5 0 R >> /XObject << /X1 6 0 R >> >> >>",
		helvetica,
		"<< /Type /Font /Subtype /Type0 /BaseFont /X /Encoding /Identity-H /DescendantFonts [<< /W [1 [2 3] 4 5 6] >>] >>",
		stream("/Type /XObject /Subtype /Form /BBox [0 0 500 500]", "BT /F1 12 Tf 0 300 Td (inner) Tj ET /X1 Do")), 1<<20)
	if err != nil {
		f.Fatal(err)
	}
	resources := doc.pages()[0].resources
	f.Fuzz(func(t *testing.T, content, charMap []byte) {
		if len(content) > 1<<16 || len(charMap) > 1<<16 {
			return // longer inputs find nothing more
		}
		read := func() string {
			d := *doc
			c := &canvas{reader: &reader{doc: &d, faces: map[int]*face{}}}
			c.fontNamed(resources, "F2").unicode = parseCharMap(charMap)
			c.draw(content, resources, identity, 0)
			return c.text()
		}
		if first, second := read(), read(); first != second {
			t.Errorf("read %q, then %q", first, second)
		}
	})
}
