package pdftext

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pdfcpu/pdfcpu/pkg/api"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/model"

	"github.com/postern-mail/postern/internal/testmain"
)

var must = testmain.Must

var generous = bounds{decoded: 64 << 20, runes: 100_000}

const toUnicode = `/CIDInit /ProcSet findresource begin 12 dict begin begincmap
/CIDSystemInfo << /Registry (Adobe) /Ordering (UCS) /Supplement 0 >> def
/CMapName /Adobe-Identity-UCS def /CMapType 2 def
1 begincodespacerange <0000> <FFFF> endcodespacerange
3 beginbfchar <0003> <0020> <0010> <00660066> <0011> <D83DDE00> endbfchar
3 beginbfrange <0024> <003D> <0041> <0400> <04FF> <0400> <0100> <0101> [<0416> <043804390430>] endbfrange
endcmap CMapName currentdict /CMap defineresource pop end end`

// reads checks that a PDF has a text.
func reads(t *testing.T, pdf []byte, want string) {
	t.Helper()
	if got, err := extract(pdf, generous); err != nil || got != want {
		t.Errorf("got  %q, %v\nwant %q", got, err, want)
	}
}

func TestText(t *testing.T) {
	for _, test := range testmain.Table[struct{ Name, Want, Content string }](t, "testdata/pages.txt") {
		t.Run(test.Name, func(t *testing.T) { reads(t, onePage(test.Content, helvetica), test.Want) })
	}
}

// The cells of a row stay on one line: a table is no running text in columns.
func TestTables(t *testing.T) {
	for file, rows := range map[string][]string{
		"table.pdf":     {"10  Oak chair with arm rests and cover  24  189.00  14,536.00", "30  Lift and delivery  1  1,120.00  11,120.00", "Sum  150,103.00"},
		"statement.pdf": {"Date  Text  Value  Debit  Credit  Balance", "02.11.2026  02.11.  5,812.40  9,120.15", "20.11.2026  Refund  20.11.  59.90  7,033.00"},
	} {
		pdf, err := os.ReadFile("testdata/" + file)
		must(t, err)
		text, err := extract(pdf, generous)
		for _, row := range rows {
			if err != nil || !strings.Contains(text, row+"\n") && !strings.HasSuffix(text, row) {
				t.Errorf("%s has no row %q: %v\n%s", file, row, err, text)
			}
		}
	}
}

func TestTextOfFontsAndForms(t *testing.T) {
	for name, test := range map[string]struct {
		pdf  []byte
		want string
	}{
		"differences by glyph name": {
			onePage("BT /F1 12 Tf 72 700 Td (\\001\\002\\003 \\004\\005) Tj ET",
				"<< /Type /Font /Subtype /Type1 /BaseFont /X /FirstChar 1 /LastChar 5 /Widths [600 600 600 600 600] /Encoding "+
					"<< /Type /Encoding /Differences [1 /Euro /zcaron /uni0416 /fi /a.alt] >> >>"),
			"€žЖ fia",
		},
		"two-byte codes with a map to Unicode": {
			onePage("BT /F1 12 Tf 72 700 Td <0024002500100003041600030011010000030101> Tj ET",
				"<< /Type /Font /Subtype /Type0 /BaseFont /X /Encoding /Identity-H /DescendantFonts [6 0 R] /ToUnicode 7 0 R >>",
				"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /X /DW 500 /W [36 [600 600] 1024 1279 550] >>",
				stream("", toUnicode)),
			"ABff Ж 😀Ж ийа",
		},
		"a map to Unicode on a simple font": {
			onePage("BT /F1 12 Tf 72 700 Td (!\") Tj ET",
				"<< /Type /Font /Subtype /TrueType /BaseFont /X /ToUnicode 6 0 R >>",
				stream("", "1 begincodespacerange <00> <FF> endcodespacerange 2 beginbfchar <21> <0048> <22> <0069> endbfchar")),
			"Hi",
		},
		"Shift JIS": {
			onePage("BT /F1 12 Tf 72 700 Td <93FA967B> Tj ET",
				"<< /Type /Font /Subtype /Type0 /BaseFont /X /Encoding /90ms-RKSJ-H /DescendantFonts [6 0 R] >>",
				"<< /Type /Font /Subtype /CIDFontType0 /BaseFont /X >>"),
			"日本",
		},
		"a compressed stream": {
			build(catalog, "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
				"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents [4 0 R 5 0 R] /Resources << /Font << /F1 6 0 R >> >> >>",
				flate(t, "", strings.NewReader("BT /F1 12 Tf 72 700 Td (in two")),
				stream("/Filter /ASCIIHexDecode", fmt.Sprintf("%x>", " streams) Tj ET")),
				helvetica),
			"in two\n streams", // the streams are read as if a line end stood between them
		},
		"pages": {manyPages(typeset(72, 700, "one"), "", typeset(72, 700, "three")), "one\n\nthree"},
		"a form within a form": {
			build(catalog, "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
				"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /XObject << /X1 6 0 R >> >> >>",
				stream("", "q 1 0 0 1 10 20 cm /X1 Do Q"), helvetica,
				stream("/Type /XObject /Subtype /Form /BBox [0 0 500 500] /Resources << /Font << /F1 5 0 R >> /XObject << /X2 7 0 R >> >>",
					"BT /F1 12 Tf 10 300 Td (outer) Tj ET /X2 Do"),
				stream("/Type /XObject /Subtype /Form /BBox [0 0 500 500] /Matrix [1 0 0 1 43 0] /Resources << /Font << /F1 5 0 R >> >>",
					"BT /F1 12 Tf 0 300 Td (inner) Tj ET")),
			"outer inner",
		},
	} {
		t.Run(name, func(t *testing.T) { reads(t, test.pdf, test.want) })
	}
}

// Text that a person does not see on the page is left out, except the invisible text over
// the image of a scan.
func TestInvisibleTextIsShownOnlyOverAnImage(t *testing.T) {
	hidden := "q BT 3 Tr /F1 12 Tf 72 700 Td (hidden) Tj ET Q "
	visible := typeset(72, 500, "visible")
	image := "BI /W 1 /H 1 ID x EI "
	for name, test := range map[string]struct{ content, want string }{
		"no image":      {hidden + visible, "visible"},
		"a scan":        {image + hidden, "hidden"},
		"off the page":  {visible + typeset(72, 2000, "outside") + typeset(-400, 300, "outside"), "visible"},
		"far too small": {visible + "BT /F1 0.01 Tf 72 600 Td (tiny) Tj ET", "visible"},
	} {
		t.Run(name, func(t *testing.T) { reads(t, onePage(test.content, helvetica), test.want) })
	}
}

func TestFilledFieldIsShownInItsPlace(t *testing.T) {
	pdf := build(catalog, "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> /Annots [6 0 R 8 0 R] >>",
		stream("", typeset(72, 700, "Name:")+typeset(72, 650, "Date:")), helvetica,
		"<< /Type /Annot /Subtype /Widget /Rect [120 696 300 716] /AP << /N 7 0 R >> >>",
		stream("/Type /XObject /Subtype /Form /BBox [0 0 180 20] /Resources << /Font << /F1 5 0 R >> >>",
			"BT /F1 12 Tf 2 4 Td (Ann Lee) Tj ET"),
		"<< /Type /Annot /Subtype /Widget /F 2 /Rect [120 646 300 666] /AP << /N 7 0 R >> >>")
	reads(t, pdf, "Name:  Ann Lee\n\nDate:")
}

// Files of different writers give the same text.
func TestTextSurvivesRewriting(t *testing.T) {
	api.DisableConfigDir()
	original := manyPages(typeset(72, 700, "page one", "line two"), typeset(72, 700, "page two"))
	const want = "page one\nline two\n\npage two"
	owner := "owner"
	for name, config := range map[string]func(*model.Configuration){
		"object streams": func(*model.Configuration) {},
		"a table":        func(c *model.Configuration) { c.WriteObjectStream, c.WriteXRefStream = false, false },
		"owner AES-256":  func(c *model.Configuration) { c.Cmd, c.OwnerPW = model.ENCRYPT, owner },
		"owner AES-128":  func(c *model.Configuration) { c.Cmd, c.OwnerPW, c.EncryptKeyLength = model.ENCRYPT, owner, 128 },
		"owner RC4-128": func(c *model.Configuration) {
			c.Cmd, c.OwnerPW, c.EncryptUsingAES, c.EncryptKeyLength = model.ENCRYPT, owner, false, 128
		},
		"no permissions": func(c *model.Configuration) {
			c.Cmd, c.OwnerPW, c.Permissions = model.ENCRYPT, owner, model.PermissionsNone
		},
		"linearized head": nil,
	} {
		t.Run(name, func(t *testing.T) {
			var rewritten bytes.Buffer
			if config == nil {
				// Some mailers put bytes before the header.
				rewritten.WriteString("\r\n")
				rewritten.Write(original)
			} else {
				c := model.NewDefaultConfiguration()
				config(c)
				run := api.Optimize
				if c.Cmd == model.ENCRYPT {
					run = api.Encrypt
				}
				must(t, run(bytes.NewReader(original), &rewritten, c))
			}
			reads(t, rewritten.Bytes(), want)
		})
	}
}

func encrypted(t testing.TB) []byte {
	t.Helper()
	api.DisableConfigDir()
	c := model.NewDefaultConfiguration()
	c.UserPW, c.OwnerPW = "user", "owner"
	var out bytes.Buffer
	must(t, api.Encrypt(bytes.NewReader(manyPages(typeset(72, 700, "secret"))), &out, c))
	return out.Bytes()
}

func TestExtractSaysWhyThereIsNoText(t *testing.T) {
	for name, test := range map[string]struct {
		pdf  []byte
		want error
	}{
		"a header":     {[]byte("%PDF-1.7\n"), ErrDamaged},
		"no page":      {build(catalog, "<< /Type /Pages /Kids [] /Count 0 >>"), ErrDamaged},
		"spaces":       {onePage(typeset(72, 700, "   "), helvetica), ErrNoText},
		"no Unicode":   {onePage("BT /F1 12 Tf 72 700 Td <00240025> Tj ET", "<< /Type /Font /Subtype /Type0 /BaseFont /X /Encoding /Identity-H /DescendantFonts [] >>"), ErrNoText},
		"its own page": {build(catalog, "<< /Type /Pages /Kids [2 0 R] /Count 1 >>"), ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := extract(test.pdf, generous)
			if !errors.Is(err, test.want) {
				t.Errorf("got %q, %v, want %v", text, err, test.want)
			}
		})
	}
}

// bomb returns a PDF with a page whose content of a few hundred kilobytes decodes to 32 MB.
func bomb(t testing.TB) []byte {
	return build(catalog, "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R >>",
		flateBomb(t, "", "(x) Tj ", 32))
}

// objectBomb returns a PDF with such a stream in place of a stream of objects.
func objectBomb(t testing.TB) []byte {
	return build(catalog, "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R >>",
		flateBomb(t, "/Type /ObjStm /N 1 /First 4", "5 0 << ", 100))
}

func TestTextIsCutAtTheBound(t *testing.T) {
	got, err := extract(onePage(typeset(72, 700, "caf\\351s, two"), helvetica), bounds{decoded: 1 << 20, runes: 5})
	if err != nil || got != "cafés" {
		t.Errorf("got %q, %v", got, err)
	}
}

// Reading a PDF with references in a loop ends.
func TestLoopsEnd(t *testing.T) {
	page := "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources 5 0 R >>"
	for name, test := range map[string]struct {
		pdf  []byte
		want string // empty means ErrDamaged
	}{
		"page tree": {build(catalog, "<< /Type /Pages /Kids [3 0 R 2 0 R 3 0 R] /Count 3 >>", page,
			stream("", typeset(72, 700, "once")), "<< /Font << /F1 6 0 R >> >>", helvetica), "once"},
		"form": {build(catalog, "<< /Type /Pages /Kids [3 0 R] /Count 1 >>", page,
			stream("", "/X Do "+typeset(72, 700, "end")), "<< /XObject << /X 6 0 R >> /Font << /F1 7 0 R >> >>",
			stream("/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources 5 0 R", "/X Do /X Do /X Do"), helvetica), "end"},
		"resources": {build(catalog, "<< /Type /Pages /Kids [3 0 R] /Count 1 >>", page,
			stream("", typeset(72, 700, "end")), "<< /Font 5 0 R /F1 5 0 R >>", helvetica), "end"},
		"previous table": {tableLoop(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := extract(test.pdf, generous)
			if got != test.want || (err != nil) != (test.want == "") || err != nil && !errors.Is(err, ErrDamaged) {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

// tableLoop returns a PDF whose cross-reference table names itself as the previous one.
func tableLoop() []byte {
	pdf := onePage(typeset(72, 700, "end"), helvetica)
	at := bytes.LastIndex(pdf, []byte("xref\n0"))
	return bytes.Replace(pdf, []byte("/Root 1 0 R"), fmt.Appendf(nil, "/Root 1 0 R /Prev %d", at), 1)
}

// A PDF cut anywhere gives text of the document or one of this package's errors.
func TestTruncatedFiles(t *testing.T) {
	pdf := manyPages(typeset(72, 700, "one"), typeset(72, 700, "two"))
	for n := 0; n < len(pdf); n += 7 {
		text, err := extract(pdf[:n], generous)
		if err == nil && !strings.Contains(text, "one") && !strings.Contains(text, "two") ||
			err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNoText) {
			t.Errorf("%d of %d bytes: %q, %v", n, len(pdf), text, err)
		}
	}
}
