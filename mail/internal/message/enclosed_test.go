package message

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// ber writes an element, without its length where that is open.
func berOf(tag byte, open bool, content ...[]byte) []byte {
	b := slices.Concat(content...)
	if open {
		return slices.Concat([]byte{tag, 0x80}, b, []byte{0, 0})
	}
	return slices.Concat([]byte{tag, 0x82, byte(len(b) >> 8), byte(len(b))}, b)
}

func signedData(open bool, content string) []byte {
	oid := func(last byte) []byte { return []byte{6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 7, last} }
	octets := berOf(4, false, []byte(content))
	if open {
		octets = berOf(0x24, true, berOf(4, false, []byte(content[:5])), berOf(4, false, []byte(content[5:])))
	}
	inner := berOf(0x30, open, oid(1), berOf(0xa0, open, octets))
	return berOf(0x30, open, oid(2), berOf(0xa0, open, berOf(0x30, open, []byte{2, 1, 1, 0x31, 0}, inner, []byte{0x31, 0})))
}

// Signed data is opened, with and without lengths, and cut anywhere without a panic.
func TestOpenSignedData(t *testing.T) {
	const content = "Content-Type: text/plain\r\n\r\nThe contract."
	for _, open := range []bool{false, true} {
		b := signedData(open, content)
		p := NewPart(Part{ID: "1", Type: "application", Subtype: "x-pkcs7-mime", Size: int64(len(b))}, nil)
		e := Open(p, b)
		if e == nil || e.Root.ID != "1.1" || string(e.Raw(e.Root)) != "The contract." {
			t.Fatalf("open %t: %+v", open, e)
		}
		for n := range b {
			short := *p
			short.Size = int64(n)
			Open(&short, b[:n])
		}
	}
	deep := bytes.Repeat([]byte{0x30, 0x80}, 1<<16)
	if kind, got := readCMS(deep); kind != cmsUnknown || got != nil {
		t.Errorf("%v %q", kind, got)
	}
}

func TestOpenUuencode(t *testing.T) {
	for text, want := range map[string]string{
		"a\nbegin 644 n.txt\n#0V%T\n`\nend\nb\n":                               "a\nb\n|n.txt=Cat",
		"begin 644 one\n#0V%T\n \nend\nbegin 600 ../two\n#0V%T\nend\n":         "|one=Cat|___two=Cat",
		"begin 644 n\n&0V%T0V%T\n\nend":                                        "|n=CatCat",
		"begin 644 spaces\n#   #\nend\n":                                       "|spaces=\x00\x00\x03",
		"begin 644 n.txt\n#0V%T\n`\nno end\n":                                  "",
		"> begin 644 n.txt\n> #0V%T\n> end\n":                                  "",
		"begin the day with this list\nMilk\nend\n":                            "",
		"begin 644 n.txt\n" + strings.Repeat("#0V%T\n", 1000) + "`\nend\nmore": "more|n.txt=" + strings.Repeat("Cat", 1000),
	} {
		p := NewPart(Part{ID: "1", Type: "text", Subtype: "plain", Size: int64(len(text))}, nil)
		got := ""
		if e := Open(p, []byte(text)); e != nil {
			got = string(e.Raw(e.Root.Children[0]))
			for _, c := range e.Root.Children[1:] {
				got += "|" + c.Filename + "=" + string(e.Raw(c))
			}
		}
		if got != want {
			t.Errorf("%.60q: %.80q, want %.80q", text, got, want)
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(signedData(true, "Content-Type: text/plain\r\n\r\nx"), true)
	f.Add([]byte("begin 644 n.txt\n#0V%T\n`\nend\n"), false)
	f.Fuzz(func(t *testing.T, b []byte, cms bool) {
		p := NewPart(Part{ID: "1", Type: "text", Subtype: "plain", Size: int64(len(b))}, nil)
		if cms {
			p = NewPart(Part{ID: "1", Type: "application", Subtype: "pkcs7-mime", Size: int64(len(b))}, nil)
		}
		if e := Open(p, b); e != nil {
			for q := range e.Root.Leaves() {
				if !strings.HasPrefix(q.ID, "1.") || int64(len(e.Raw(q))) != q.Size {
					t.Errorf("part %q of %d octets, told as %d", q.ID, len(e.Raw(q)), q.Size)
				}
				Inner(p, b, q.ID)
			}
		}
	})
}
