package compose

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/internal/testmain"
)

var must = testmain.Must

func TestMain(m *testing.M) { os.Exit(testmain.Run(m.Run)) }

var update = flag.Bool("update", false, "write the golden messages anew")

var day = time.Date(2026, time.March, 9, 14, 5, 7, 0, time.FixedZone("", 2*60*60))

func sample() *Message {
	return &Message{
		From:      Address{Name: "Ann Lee", Addr: "ann@example.org"},
		To:        []Address{{Addr: "bob@example.com"}},
		Subject:   "Minutes of Monday",
		Date:      day,
		MessageID: "4711.0815@example.org",
		Body:      "Dear Bob,\n\nhere are the minutes.\n\n-- \nAnn\n",
	}
}

const longText = "This paragraph is longer than one line of a mail and so it is wrapped where a reader of flowed text will join it again.\n"

// samples returns messages of each kind by the names of their golden files.
func samples() map[string]*Message {
	plain := sample()

	reply := sample()
	reply.Subject = "Re: Grüße aus Köln, und viele schöne Grüße an alle, die sich noch an uns erinnern"
	reply.To = []Address{{Name: "Lee, \"Bo\" \\ Bob", Addr: "bob@example.com"}, {Name: "Jürgen Groß", Addr: "juergen@xn--bcher-kva.example"}}
	reply.CC = []Address{{Name: "O'Brien", Addr: "pat@example.net"}}
	reply.BCC = []Address{{Name: "The Archive", Addr: "archive@example.org"}}
	reply.InReplyTo = "parent@example.com"
	reply.References = []string{"root@example.com", "parent@example.com"}
	reply.Body = longText + "\n> " + strings.Repeat("quoted words ", 8) + "end\n>> deeper\n> > " + strings.Repeat("other ", 16) + "form\n\n  indented\nFrom here on\n" +
		"see https://example.org/" + strings.Repeat("path/", 20) + " for all of it, and for the rest as well\n-- \nAnn"

	cyrillic := sample()
	cyrillic.From.Name = "Анна Ли"
	cyrillic.Subject = "Протокол заседания в понедельник"
	cyrillic.Body = "Дорогой Боб,\n\nвот протокол заседания, которое состоялось в понедельник; прошу прочитать его до пятницы и ответить всем.\n"

	files := sample()
	files.Attachments = []Attachment{
		{Name: "minutes.txt", Content: []byte("one\ntwo\n")},
		{Name: "C:\\Users\\ann\\Prüfung \"final\".pdf", Content: []byte("%PDF-1.7")},
		{Name: "../отчёт о заседании совета директоров в понедельник.csv", Type: "text/csv; header=present", Content: []byte("a;ü\n")},
		{Name: "letter.eml", Type: "message/rfc822", Content: []byte("Subject: x\n\nFrom me\n")},
		{Name: "", Type: "image/png"},
	}

	eai := sample()
	eai.From = Address{Name: "Åsa", Addr: "åsa@bücher.example"}

	blind := sample()
	blind.To, blind.BCC, blind.Subject, blind.Body = nil, []Address{{Addr: "bob@example.com"}}, "", ""

	return map[string]*Message{"plain": plain, "reply": reply, "cyrillic": cyrillic, "files": files, "eai": eai, "blind": blind}
}

func TestBuiltMessagesMatchTheGoldenFilesAndReadBack(t *testing.T) {
	for name, m := range samples() {
		t.Run(name, func(t *testing.T) {
			b := build(t, m)
			golden := filepath.Join("testdata", name+".eml")
			if *update {
				must(t, os.WriteFile(golden, b.Copy, 0o644))
			}
			want, err := os.ReadFile(golden)
			must(t, err)
			if !bytes.Equal(b.Copy, want) {
				t.Errorf("got\n%s\nwant\n%s", b.Copy, want)
			}
			again := build(t, samples()[name])
			if !bytes.Equal(again.Copy, b.Copy) {
				t.Error("the same message gave other bytes")
			}
		})
	}
}

// The error names the field and does not repeat the value.
func TestBuildRefusesAndNamesTheField(t *testing.T) {
	const secret = "hunter2"
	crowd := func(addrs []Address) []Address { return slices.Repeat(addrs, 400) }
	long := []Address{{Addr: strings.Repeat("a", 200) + "@example.org"}}
	for _, test := range []struct {
		name, field string
		spoil       func(m *Message, s string)
		with        []string // the values for spoil; nil means one empty value
	}{
		{"subject", "Subject", func(m *Message, s string) { m.Subject = s }, []string{
			secret + "\r\nBcc: eve@example.net", "a\nb", "a\rb", "a\n", "a\tb", "a\x00b", "a\u0085b", "a\u2028b", "a\u200bb", "a\u202eb", "a\xffb", strings.Repeat("a", maxSubject+1)}},
		{"no sender", "From", func(m *Message, _ string) { m.From = Address{} }, nil},
		{"sender's name", "From", func(m *Message, s string) { m.From.Name = s }, []string{secret + "\r\nX: y"}},
		{"address", "To", func(m *Message, s string) { m.To[0].Addr = s }, []string{
			secret, "bob@example.com\r\nX: y", "bob@example.com> SIZE=1", "bob@bücher.example"}}, // ParseAddress changes the last
		{"name", "To", func(m *Message, s string) { m.To[0].Name = s }, []string{"A\u2066nn", strings.Repeat("a", maxName+1)}},
		{"name in an address", "Cc", func(m *Message, s string) { m.CC = []Address{{Addr: s}} }, []string{"Bob <bob@example.com>", "a@example.com,b@example.com"}},
		{"blind recipient", "Bcc", func(m *Message, s string) { m.BCC = []Address{{Addr: s}} }, []string{"a@example.com,b@example.com"}},
		{"too many recipients", "To", func(m *Message, _ string) { m.To = crowd(long) }, nil},
		{"too many blind recipients", "Bcc", func(m *Message, _ string) { m.BCC = crowd(long) }, nil},
		{"no date", "Date", func(m *Message, _ string) { m.Date = time.Time{} }, nil},
		{"date beyond what a reader takes", "Date", func(m *Message, _ string) { m.Date = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) }, nil},
		{"id", "Message-ID", func(m *Message, s string) { m.MessageID = s }, []string{"", secret, "<a@b>", "a@b\r\nX: y", "a@", "ä@b"}},
		{"parent", "In-Reply-To", func(m *Message, s string) { m.InReplyTo = s }, []string{"a b@c", "a@b><c@d"}},
		{"reference", "References", func(m *Message, s string) { m.References = []string{"a@b", s} }, []string{
			secret + " ", "c@d\r\nX: y", "a\x7f@b", "", "=?utf-8?q?a?=@b", strings.Repeat("a", maxID+1)}},
		{"body", "Body", func(m *Message, s string) { m.Body = s }, []string{secret + "\x00", "\x1b[31mred", "a\u009b", "caf\xe9"}},
		{"media type", "Attachment", func(m *Message, s string) { m.Attachments = []Attachment{{Type: s}} }, []string{
			secret, "text/plain\r\nX: y", "text/plain; a=\"b\r\nX: y\"", "text/plain; a*=utf-8''%C3%A4", "text/plain; a*=utf-8''%0D%0AXy", "text/plain\r\n", "text/plain;\r\n a=b",
			"text/" + strings.Repeat("a", maxType), "text/", "/plain", "text/plain/x", "text plain", "a b/c", "text/plain; x", "text/pläin", "text/plain; a=1; a=2"}},
		{"too many attachments", "Attachment", func(m *Message, _ string) { m.Attachments = make([]Attachment, maxAttachments+1) }, nil},
	} {
		if test.with == nil {
			test.with = []string{""}
		}
		for _, s := range test.with {
			m := sample()
			build(t, m) // the message was valid before
			test.spoil(m, s)
			b, err := Build(m)
			var f *FieldError
			if b != nil || !errors.As(err, &f) || f.Field != test.field {
				t.Errorf("%s %.99q: built %v, error %v; want an error of %s", test.name, s, b != nil, err, test.field)
			} else if f.Problem == "" || err.Error() != f.Field+": "+f.Problem || strings.Contains(err.Error(), secret) {
				t.Errorf("%s %.99q: it says %q", test.name, s, err)
			}
		}
	}
	if _, err := Build(nil); err == nil {
		t.Error("a message that is none was built")
	}
}

func TestBlindRecipientsAreOnlyInTheCopy(t *testing.T) {
	m := sample()
	m.BCC = []Address{{Name: "Secret", Addr: "secret@example.net"}}
	b := build(t, m)
	if bytes.Contains(bytes.ToLower(b.Wire), []byte("secret")) || bytes.Contains(bytes.ToLower(b.Wire), []byte("bcc")) {
		t.Errorf("on the wire:\n%s", b.Wire)
	}
	if got := field(b.Copy, "Bcc"); got != "Secret <secret@example.net>" {
		t.Errorf("in the copy %q", got)
	}
	later, err := AddBCC(b.Wire, m.BCC)
	if err != nil || !bytes.Equal(later, b.Copy) {
		t.Errorf("a copy made later differs: %v", err)
	}
	if _, err := AddBCC(b.Wire, []Address{{Addr: "x\r\ny"}}); err == nil {
		t.Error("a copy was made with what is no address")
	}
	m.BCC = nil
	if b := build(t, m); &b.Copy[0] != &b.Wire[0] {
		t.Error("without blind recipients the copy is made of its own")
	}
}

func TestDates(t *testing.T) {
	zone := func(seconds int) *time.Location { return time.FixedZone("", seconds) }
	at := time.Date(2026, time.January, 2, 3, 4, 5, 999, time.UTC)
	for _, test := range []struct {
		date time.Time
		want string
	}{
		{at, "Fri, 02 Jan 2026 03:04:05 +0000"},
		{at.In(zone(5*3600 + 1800)), "Fri, 02 Jan 2026 08:34:05 +0530"},
		{at.In(zone(-9*3600 - 1800)), "Thu, 01 Jan 2026 17:34:05 -0930"},
		{at.In(zone(19*60 + 32)), "Fri, 02 Jan 2026 03:04:05 +0000"},
		{at.In(zone(23 * 3600)), "Fri, 02 Jan 2026 03:04:05 +0000"},
		{at.In(zone(-101 * 3600)), "Fri, 02 Jan 2026 03:04:05 +0000"},
		{time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC), "Mon, 01 Jan 1900 00:00:00 +0000"},
		{time.Date(9998, 12, 31, 23, 59, 59, 0, time.UTC), "Thu, 31 Dec 9998 23:59:59 +0000"},
	} {
		m := sample()
		m.Date = test.date
		if got := field(build(t, m).Wire, "Date"); got != test.want {
			t.Errorf("%v: %q, want %q", test.date, got, test.want)
		}
	}
}
