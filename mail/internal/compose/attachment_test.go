package compose

import (
	"bytes"
	"strings"
	"testing"

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
	long := strings.Repeat("long ", 60)
	for _, test := range []struct{ name, want, old string }{ // old is the name in Content-Type, for readers without RFC 2231
		{"report.pdf", "report.pdf", ""},
		{"my report (1), final.pdf", "my report (1), final.pdf", ""},
		{"", "attachment", ""},
		{"/", "attachment", ""},
		{"dir/", "attachment", ""},
		{"/etc/passwd", "passwd", ""},
		{"../../x.txt", "x.txt", ""},
		{`C:\Users\ann\x.txt`, "x.txt", ""},
		{`\\server\share\x.txt`, "x.txt", ""},
		{"C:x.txt", "C_x.txt", ""},
		{"..", "__", ""},
		{".profile", "_profile", ""},
		{"nul.txt", "_nul.txt", ""},
		{"x" + strings.Repeat("\u00a0.", 50), "x", ""},
		{"a\r\nX: y\x00.txt", "a X_ y.txt", ""},
		{"a\tb.txt", "a b.txt", ""},
		{"invoice\u202efdp.exe", "invoicefdp.exe", ""},
		{"zero\u200bwidth.txt", "zerowidth.txt", ""},
		{"=?utf-8?q?a=2Fb?=.txt", "a_b.txt", ""},
		{"what=?.txt", "what=_.txt", ""},
		{`say "hi".txt`, `say "hi".txt`, "say _hi_.txt"},
		{"100%.txt", "100%.txt", "100_.txt"},
		{"Prüfung.pdf", "Prüfung.pdf", "Prufung.pdf"},
		{"отчёт.pdf", "отчёт.pdf", "_____.pdf"},
		{"会議.pdf", "会議.pdf", "__.pdf"},
		{"‥／x", "‥／x", "___x"},
		{"\u0301", "\u0301", "attachment"},
		{"caf\xe9.txt", "café.txt", "cafe.txt"},
		{long + ".pdf", long[:251] + ".pdf", strings.TrimSpace(long[:56]) + ".pdf"},
	} {
		p, h := attach(t, Attachment{Name: test.name, Content: []byte("x")})
		if p.Filename != test.want || p.Param("name") != test.old {
			t.Errorf("%q: %q and for old readers %q, want %q and %q", test.name, p.Filename, p.Param("name"), test.want, test.old)
		}
		if plain := strings.Contains(h.Get("Content-Disposition"), `filename="`); plain != (test.old == "") {
			t.Errorf("%q: %s", test.name, h.Get("Content-Disposition"))
		}
		if p.Disposition != "attachment" || p.Encoding != "base64" {
			t.Errorf("%q: %s, %s", test.name, p.Disposition, p.Encoding)
		}
	}
}

func TestAttachmentTypes(t *testing.T) {
	const latin = "caf\xe9"
	for _, test := range []struct{ name, given, content, want, charset string }{
		{"x.pdf", "", "x", "application/pdf", ""},
		{"x.PDF", "", "x", "application/pdf", ""},
		{"x.unknown", "", "x", "application/octet-stream", ""},
		{"x", "", "x", "application/octet-stream", ""},
		{"x.pdf", "image/png", "x", "image/png", ""},
		{"x.pdf", "IMAGE/Svg+XML", "x", "image/svg+xml", ""},
		{"x.txt", "", "x", "text/plain", "utf-8"},
		{"x.txt", "", "ü", "text/plain", "utf-8"},
		{"x.txt", "", latin, "text/plain", ""},
		{"x.txt", "text/plain; charset=iso-8859-1", latin, "text/plain", "iso-8859-1"},
		{"x.txt", "text/plain; charset=us-ascii", "x", "text/plain", "us-ascii"},
		{"x.ics", "text/calendar; method=REQUEST", "x", "text/calendar", "utf-8"},
		{"x.eml", "", "x", "application/octet-stream", ""},
		{"x.eml", "message/rfc822", "Subject: x\n\n", "application/octet-stream", ""},
		{"x", "multipart/mixed; boundary=b", "--b\r\n", "application/octet-stream", ""},
		{"x.txt", `application/x-y; name="other.exe"; a="b \"c\" \\"`, "x", "application/x-y", ""},
	} {
		p, h := attach(t, Attachment{Name: test.name, Type: test.given, Content: []byte(test.content)})
		if p.MediaType() != test.want || p.Param("charset") != test.charset {
			t.Errorf("%q %q: %s, charset %q; want %s, %q", test.name, test.given, p.MediaType(), p.Param("charset"), test.want, test.charset)
		}
		if strings.Contains(h.Get("Content-Type"), "other") {
			t.Errorf("the type names the file: %s", h.Get("Content-Type"))
		}
		if strings.Contains(test.given, "method") && p.Param("method") != "REQUEST" {
			t.Errorf("a parameter is lost: %s", h.Get("Content-Type"))
		}
		if strings.Contains(test.given, "a=") && p.Param("a") != `b "c" \` {
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
