package compose

import (
	"bytes"
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail/internal/message"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

// attach builds a message with one attachment, and returns the attachment as package
// message reads it, and its header.
func attach(t *testing.T, a Attachment) (*message.Part, rfc5322.Header) {
	t.Helper()
	m := sample()
	m.Attachments = []Attachment{a}
	e := message.Parse(build(t, m).Wire)
	p := e.Root.Children[1]
	body := e.Raw(p)
	whole := e.Raw(e.Root)
	before := whole[:bytes.LastIndex(whole, body)]
	return p, rfc5322.ParseHeader(before[bytes.LastIndex(before, []byte("\r\n--"))+2:])
}

func TestAttachmentNames(t *testing.T) {
	for _, test := range testmain.Table[struct{ Name, Want, Old string }](t, "testdata/cases/attachment_name.txt") {
		p, h := attach(t, Attachment{Name: test.Name, Content: []byte("x")})
		if p.Filename != test.Want || p.Param("name") != test.Old {
			t.Errorf("%q: %q and for old readers %q, want %q and %q", test.Name, p.Filename, p.Param("name"), test.Want, test.Old)
		}
		if plain := strings.Contains(h.Get("Content-Disposition"), `filename="`); plain != (test.Old == "") {
			t.Errorf("%q: %s", test.Name, h.Get("Content-Disposition"))
		}
		if p.Disposition != "attachment" || p.Encoding != "base64" {
			t.Errorf("%q: %s, %s", test.Name, p.Disposition, p.Encoding)
		}
	}
}

func TestAttachmentTypes(t *testing.T) {
	for _, test := range testmain.Table[struct{ Name, Given, Content, Want, Charset string }](t, "testdata/cases/attachment_type.txt") {
		p, h := attach(t, Attachment{Name: test.Name, Type: test.Given, Content: []byte(test.Content)})
		if p.MediaType() != test.Want || p.Param("charset") != test.Charset {
			t.Errorf("%q %q: %s, charset %q; want %s, %q", test.Name, test.Given, p.MediaType(), p.Param("charset"), test.Want, test.Charset)
		}
		if strings.Contains(h.Get("Content-Type"), "other") {
			t.Errorf("the type names the file: %s", h.Get("Content-Type"))
		}
		if strings.Contains(test.Given, "method") && p.Param("method") != "REQUEST" {
			t.Errorf("a parameter is lost: %s", h.Get("Content-Type"))
		}
		if strings.Contains(test.Given, "a=") && p.Param("a") != `b "c" \` {
			t.Errorf("a parameter is %q", p.Param("a"))
		}
	}
}

func TestEveryTypeOfTheTableIsAToken(t *testing.T) {
	for ext, kind := range typesByExtension {
		if ext != strings.ToLower(ext) || !strings.HasPrefix(ext, ".") || typeByName("x"+ext) != kind {
			t.Errorf("extension %q", ext)
		}
		if got, _, ok := mediaType(kind, "", nil); !ok || got != kind {
			t.Errorf("%s: %q", ext, got)
		}
	}
}
