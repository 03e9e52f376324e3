package pdftext

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pdfcpu/pdfcpu/pkg/api"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/model"
)

// A file with random damage gives text or one of this package's errors. The damage is the same
// for a seed; a few of them run as a test, and any number as a fuzz target.
func FuzzDamagedFile(f *testing.F) {
	api.DisableConfigDir()
	var rewritten bytes.Buffer
	must(f, api.Optimize(bytes.NewReader(manyPages(typeset(72, 700, "one"), typeset(72, 700, "two"))), &rewritten, model.NewDefaultConfiguration()))
	r := runner(f)
	r.Timeout = 5 * time.Second
	seeds := uint64(20)
	if race {
		seeds = 5 // with the race detector each process waits for a second at its end
	}
	for seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		random := rand.New(rand.NewPCG(1, seed))
		pdf := bytes.Clone(rewritten.Bytes())
		for range 1 + random.IntN(8) {
			at := random.IntN(len(pdf))
			switch random.IntN(3) {
			case 0:
				pdf[at] = byte(random.IntN(256))
			case 1:
				pdf = slices.Delete(pdf, at, min(at+random.IntN(20), len(pdf)))
			default:
				from := random.IntN(len(pdf))
				pdf = slices.Insert(pdf, at, pdf[from:min(from+random.IntN(60), len(pdf))]...)
			}
		}
		text, _, err := r.Text(t.Context(), pdf, 1000)
		known := slices.ContainsFunc([]error{nil, ErrDamaged, ErrNoText, ErrEncrypted, ErrMemory}, func(e error) bool { return errors.Is(err, e) })
		if !known || !utf8.ValidString(text) || (err == nil) != (text != "") {
			t.Errorf("%q, %v", text, err)
		}
	})
}

// This package's own code reads content streams and character maps, so none of them may
// make it fail. The libraries that read the rest of the file are not fuzzed here: they may
// end the process, which is why they run in a child.
func FuzzContent(f *testing.F) {
	doc, err := openDocument(build(catalog, "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /Resources << /Font << /F1 4 0 R /F2 5 0 R >> /XObject << /X1 6 0 R >> >> >>",
		helvetica,
		"<< /Type /Font /Subtype /Type0 /BaseFont /X /Encoding /Identity-H /DescendantFonts [<< /W [1 [2 3] 4 5 6] >>] >>",
		stream("/Type /XObject /Subtype /Form /BBox [0 0 500 500]", "BT /F1 12 Tf 0 300 Td (inner) Tj ET /X1 Do")), 1<<20)
	must(f, err)
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
