package mailbox_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/emersion/go-imap/v2"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// mixed is a message of a text and further parts.
func mixed(text string, parts ...string) (extra, body string) {
	extra = "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=\"outer\"\r\n"
	body = "--outer\r\n" + text + "\r\n"
	for _, p := range parts {
		body += "--outer\r\n" + p + "\r\n"
	}
	return extra, body + "--outer--\r\n"
}

func attachment(name string, size int) string {
	data := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("attached", size/8)))
	var b strings.Builder
	fmt.Fprintf(&b, "Content-Type: application/octet-stream\r\nContent-Transfer-Encoding: base64\r\nContent-Disposition: attachment; filename=%q\r\n\r\n", name)
	for len(data) > 76 {
		b.WriteString(data[:76] + "\r\n")
		data = data[76:]
	}
	b.WriteString(data)
	return b.String()
}

func Test001_5_GetReadsTheText(t *testing.T) {
	long := strings.Repeat("All work and no play. ", 3000) // 66 kB
	tests := []struct {
		name        string
		text        string // the text part with its header, in a multipart
		want        string // beginning of the text
		chars       int    // of the text; 0 means as many as want has
		truncated   bool
		attachments int
		big         bool
	}{
		{"short", "Content-Type: text/plain\r\n\r\nHello Ann", "Hello Ann", 0, false, 1, false},
		{"short with a large file", "Content-Type: text/plain\r\n\r\nHello Ann", "Hello Ann", 0, false, 1, true},
		{"no text", "Content-Type: image/png\r\nContent-Disposition: attachment; filename=a.png\r\n\r\nx", "", 0, false, 2, true},
		{"long", "Content-Type: text/plain\r\n\r\n" + long, "All work", 2000, true, 1, true},
		{"base64", "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n" +
			base64.StdEncoding.EncodeToString([]byte(strings.Repeat("Grüße ", 2000))), "Grüße Grüße", 2000, true, 1, true},
		{"quoted-printable", "Content-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n" +
			strings.Repeat("=E4=F6=FC=DF\r\n", 1000), "äöüß\näöüß", 2000, true, 1, true},
		{"four bytes a character in base64", "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n" +
			base64.StdEncoding.EncodeToString([]byte(strings.Repeat("𝔊", 20000))), "𝔊𝔊", 2000, true, 1, true},
		{"text behind the file", attachment("first.bin", 100<<10) + "\r\n--outer\r\nContent-Type: text/plain\r\n\r\nbehind", "behind", 0, false, 2, true},
	}
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "text")
		for _, tc := range tests {
			size := 100
			if tc.big {
				size = 300 << 10
			}
			extra, body := mixed(tc.text, attachment("file.bin", size))
			u := b.Add("INBOX", letter{Subject: tc.name, Extra: extra, Body: body, Date: "Sun, 01 Mar 2026 10:00:00 +0000"})[0]
			m := b.Read("INBOX", u, mailbox.GetQuery{})
			runes := []rune(m.BodyText)
			if tc.chars == 0 {
				tc.chars = len([]rune(tc.want))
			}
			if !strings.HasPrefix(m.BodyText, tc.want) || len(runes) > tc.chars || len(runes) < tc.chars-2 || m.BodyTruncated != tc.truncated {
				t.Errorf("%s: %d characters, truncated %v: %.60q", tc.name, len(runes), m.BodyTruncated, m.BodyText)
			}
			if len(m.Attachments) != tc.attachments || m.Attachments[len(m.Attachments)-1].Filename != "file.bin" || !m.HasAttachments {
				t.Errorf("%s: attachments %+v", tc.name, m.Attachments)
			}
			if m.Subject != tc.name || m.Ref.UIDValidity == 0 || m.Ref.UID != u || m.Date.IsZero() || len(m.Issues) > 0 || m.Size == 0 {
				t.Errorf("%s: %+v", tc.name, m.Summary)
			}
		}
	})
}

func TestGetBodyCharsAndHeaders(t *testing.T) {
	b := onDovecot(t, "chars")
	u := b.Add("INBOX", letter{Subject: "s", Body: strings.Repeat("äb", 30000),
		Extra: "Reply-To: r@example.org\r\nIn-Reply-To: <x@y>\r\nReceived: from a\r\nSubject: second\r\nX-Odd: =?utf-8?q?=C3=BC?=\r\nContent-Type: text/plain; charset=utf-8\r\n"},
		letter{Subject: "unread", Date: "last tuesday", Extra: "to: another@example.org\r\n"})
	for chars, want := range map[int]int{0: 2000, 1: 100, 100: 100, 12345: 12345, 20000: 20000, 99999: 20000} {
		if m := b.Read("INBOX", u[0], mailbox.GetQuery{BodyChars: chars}); len([]rune(m.BodyText)) != want || !m.BodyTruncated {
			t.Errorf("%d: %d characters", chars, len([]rune(m.BodyText)))
		}
	}
	names := func(scope mailbox.HeaderScope) string {
		var out []string
		for _, f := range b.Read("INBOX", u[0], mailbox.GetQuery{Headers: scope}).Headers {
			out = append(out, f.Name+"="+f.Value)
		}
		return strings.Join(out, ";")
	}
	if got := names(mailbox.HeadersNone); got != "" {
		t.Errorf("none: %s", got)
	}
	if got := names(""); got != "Reply-To=r@example.org;In-Reply-To=<x@y>" {
		t.Errorf("curated: %s", got)
	}
	if got := names(mailbox.HeadersAll); !strings.Contains(got, "Received=from a;Subject=second;X-Odd=ü") || strings.Contains(got, "From=") || strings.Contains(got, "Subject=s;") {
		t.Errorf("all: %s", got)
	}
	if got := b.Read("INBOX", u[1], mailbox.GetQuery{Headers: mailbox.HeadersAll}).Headers; !slices.Equal(got, []mailbox.HeaderField{{Name: "Date", Value: "last tuesday"}, {Name: "to", Value: "another@example.org"}}) {
		t.Errorf("a date that nobody can read, and To twice: %v", got)
	}
}

func TestGetOfAMessageThatIsNot(t *testing.T) {
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "gone")
		u := b.Add("INBOX", letter{Subject: "1"}, letter{Subject: "2"})
		for _, uid := range []uint32{0, u[1] + 1, 1<<32 - 1} {
			mailtest.WantKind(t, second(b.Get(t.Context(), b.Ref("INBOX", uid), mailbox.GetQuery{})), mail.KindNotFound)
		}
		ref := b.list(mailbox.ListQuery{}).Messages[0].Ref
		b.Remove("INBOX", ref.UID)
		_, err := b.Get(t.Context(), ref, mailbox.GetQuery{})
		mailtest.WantKind(t, err, mail.KindNotFound)
		if got := uidsOf(b.list(mailbox.ListQuery{})); !slices.Equal(got, u[:1]) {
			t.Errorf("listed %v", got)
		}
		ref.UIDValidity++
		mailtest.WantKind(t, second(b.Get(t.Context(), ref, mailbox.GetQuery{})), mail.KindConflict)
		ref.UIDValidity, ref.UID = 0, u[0]
		if m, err := b.Get(t.Context(), ref, mailbox.GetQuery{}); err != nil || m.Ref.UIDValidity == 0 {
			t.Errorf("without UIDVALIDITY: %+v %v", m, err)
		}
	})
}

// Nothing that reads leaves a trace: the files of the server are the same
// afterwards, their names, flags and contents.
func Test004_4_INV06_ReadingChangesNothing(t *testing.T) {
	t.Parallel()
	s, e := mailtest.Shared(t, servertest.Config{})
	b := open(t, e, "trace")
	extra, body := mixed("Content-Type: text/plain\r\n\r\nshort", attachment("f", 100<<10))
	var uids []uint32
	for i := range 20 {
		l := letter{Subject: fmt.Sprint(i), Body: strings.Repeat("text ", 10*i*i)}
		if i%3 == 0 {
			l.Flags = []imap.Flag{imap.FlagSeen, imap.FlagFlagged, "$Own"}
		}
		if i%5 == 0 {
			l.Extra, l.Body = extra, body
		}
		uids = append(uids, b.Add("INBOX", l)...)
	}
	modseq := func() uint64 {
		st, err := b.Admin.Status("INBOX", &imap.StatusOptions{HighestModSeq: true, NumMessages: true, NumUnseen: true}).Wait()
		must(t, err)
		return st.HighestModSeq<<20 + uint64(*st.NumMessages)<<10 + uint64(*st.NumUnseen)
	}
	files, before := s.Files(t, e.User("trace")), modseq()
	for _, hide := range []bool{false, true} {
		b.Dir.Edit(func(a *mail.Account) { a.AllowIn = mail.AllowList{Enabled: hide, Entries: []string{"bob@example.org"}} })
		for _, q := range []mailbox.ListQuery{{}, {OldestFirst: true, Full: true}, {Unread: true}, {BeforeUID: 10}, {Since: dayOne, Until: dayOne.AddDate(1, 0, 0)}} {
			b.list(q)
		}
		for _, u := range uids {
			b.Read("INBOX", u, mailbox.GetQuery{BodyChars: 20000, Headers: mailbox.HeadersAll})
		}
		must(t, second(b.Folders(t.Context(), account, mailbox.FolderQuery{Counts: true})))
		must(t, second(b.Verify(t.Context(), account)))
	}
	if after := modseq(); after != before {
		t.Errorf("HIGHESTMODSEQ and counts were %x, are %x", before, after)
	}
	if !slices.Equal(files, s.Files(t, e.User("trace"))) {
		t.Error("the server's files changed")
	}
	if n := len(b.list(mailbox.ListQuery{Unread: true, Limit: 500}).Messages); n != 13 {
		t.Errorf("%d unread, want 13", n)
	}
}
