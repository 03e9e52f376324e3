package message

import (
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
)

func TestPartText(t *testing.T) {
	for _, tc := range testmain.Table[struct {
		Name, Header, Body string
		OK                 bool
		Want               string
	}](t, "testdata/cases/parttext.txt") {
		t.Run(tc.Name, func(t *testing.T) {
			p := Parse([]byte("Content-Type: " + tc.Header + "\n\nx")).Root
			p.Size = int64(len(tc.Body))
			got, _, cut, ok := PartText(nil, p, []byte(tc.Body), 1000)
			if got != tc.Want || ok != tc.OK || cut {
				t.Errorf("%q, %v, %v, want %q, %v", got, cut, ok, tc.Want, tc.OK)
			}
		})
	}
}

// What a person would not see of HTML is counted, in an HTML file and in a message within one.
func TestPartTextTellsWhatIsHidden(t *testing.T) {
	for kind, body := range map[string]string{"text/html": "<p>Hello<p hidden>x y", "message/rfc822": "Subject: a\nContent-Type: text/html\n\n<p>Hello<p hidden>x y", "text/plain": "Hello"} {
		p := Parse([]byte("Content-Type: " + kind + "\n\nx")).Root
		want := 2
		if kind == "text/plain" {
			want = 0
		}
		if text, hidden, _, _ := PartText(nil, p, []byte(body), 1000); hidden != want || !strings.HasSuffix(text, "Hello") {
			t.Errorf("%s: %q and %d hidden characters, want %d", kind, text, hidden, want)
		}
	}
}

func TestPartTextIsTruncated(t *testing.T) {
	for _, tc := range testmain.Table[struct {
		Type, Body string
		Size, N    int
		Want       string
		Cut        bool
	}](t, "testdata/cases/parttext_cut.txt") {
		typ, subtype, _ := strings.Cut(tc.Type, "/")
		p := NewPart(Part{Type: typ, Subtype: subtype, Size: int64(tc.Size)}, nil)
		if got, _, cut, ok := PartText(nil, p, []byte(tc.Body), tc.N); got != tc.Want || cut != tc.Cut || !ok {
			t.Errorf("%s of %d runes: %q, %v, %v, want %q, %v", tc.Type, tc.N, got, cut, ok, tc.Want, tc.Cut)
		}
	}
	huge := NewPart(Part{Type: "text", Subtype: "csv", Size: 2 << 20}, nil)
	if got, _, cut, ok := PartText(nil, huge, []byte(strings.Repeat("a;b;c\n", 2<<20/6)), 100); len(got) != 100 || !cut || !ok {
		t.Errorf("%d octets, %v, %v", len(got), cut, ok)
	}
}

func TestPartTextOfNothing(t *testing.T) {
	if _, _, _, ok := PartText(nil, nil, nil, 10); ok {
		t.Error("nothing has a text")
	}
	if _, _, _, ok := PartText(nil, NewPart(Part{Type: "multipart", Subtype: "mixed", Children: []*Part{{}}}, nil), nil, 10); ok {
		t.Error("a container has a text")
	}
}

// A message within a message is one attachment, and so is a winmail.dat.
func TestAttachmentsOfOtherPrograms(t *testing.T) {
	for _, tc := range testmain.Table[struct{ Name, Part, Want string }](t, "testdata/cases/attachment.txt") {
		t.Run(tc.Name, func(t *testing.T) {
			e := Parse([]byte("Content-Type: multipart/mixed; boundary=b\n\n--b\n\nSee attached.\n--b\n" + tc.Part + "\n--b--\n"))
			a := Attachments(e.Root)
			if len(a) != 1 || a[0].ID != "2" || a[0].Filename != tc.Want || len(a[0].Children) > 0 {
				t.Errorf("%d attachments, %q, want %q", len(a), a[0].Filename, tc.Want)
			}
			if text, _ := Text(e.Root, e.Raw, 100); text != "See attached." {
				t.Errorf("text %q", text)
			}
		})
	}
}
