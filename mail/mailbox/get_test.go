package mailbox_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

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
		for _, q := range []mailbox.ListQuery{{}, {OldestFirst: true, Full: true}, {Unread: true}, {Before: b.Ref("INBOX", 10)}, {Since: dayOne, Until: dayOne.AddDate(1, 0, 0)}} {
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

func (b *box) each(q mailbox.GetQuery, refs ...mail.Ref) *mailbox.Messages {
	b.T.Helper()
	all, err := b.GetEach(b.T.Context(), account, refs, q)
	must(b.T, err)
	return all
}

// Ten messages of one folder are one round trip on a warm connection, and ten of three
// folders are one too.
func TestSeveralMessagesAreOneRoundTrip(t *testing.T) {
	for _, server := range []string{"dovecot", "courier"} {
		t.Run(server, func(t *testing.T) {
			b, proxy := countedOn(t, server, "ten", 0, 0)
			var inbox, mixed []mail.Ref
			for i := range 10 {
				inbox = append(inbox, b.refs("INBOX", b.Add("INBOX", realistic(i))...)...)
			}
			slices.Reverse(inbox)
			for i, folder := range []string{"Projects", "Sent"} {
				b.folder(folder)
				for n := range 3 {
					mixed = append(mixed, b.refs(folder, b.Add(folder, realistic(10+3*i+n))...)...)
				}
			}
			mixed = append(append(mixed[:4:4], inbox[2:6]...), mixed[4:]...)
			b.list(mailbox.ListQuery{})
			for _, tc := range []struct {
				name string
				refs []mail.Ref
			}{{"of one folder", inbox}, {"of three folders", mixed}, {"of three folders again", mixed}} {
				proxy.Reset()
				all := b.each(mailbox.GetQuery{BodyChars: 20_000}, tc.refs...)
				st := proxy.Stats()
				t.Logf("%s: %d round trips, %d bytes out, %d bytes in", tc.name, st.Flights, st.ToServer, st.ToClient)
				if st.Flights != 1 || st.Connections != 0 {
					t.Errorf("%s: %d round trips on %d new connections", tc.name, st.Flights, st.Connections)
				}
				if len(all.Messages) != len(tc.refs) || len(all.Issues) > 0 {
					t.Fatalf("%s: %d messages, %v", tc.name, len(all.Messages), all.Issues)
				}
				for i, m := range all.Messages {
					ref := tc.refs[i]
					if m.Ref.UIDValidity == 0 || m.Ref.Folder != ref.Folder || m.Ref.UID != ref.UID || !strings.HasPrefix(m.BodyText, "A line of text") {
						t.Errorf("%s: %v in place of %v: %q", tc.name, m.Ref, ref, m.BodyText)
					}
				}
			}
			// Long texts take a second one.
			var long []mail.Ref
			for i, folder := range []string{"INBOX", "Projects", "INBOX", "Projects"} {
				l := letter{Subject: fmt.Sprint(i), Body: strings.Repeat(fmt.Sprint("word", i, " "), 5000)}
				long = append(long, b.refs(folder, b.Add(folder, l)...)...)
			}
			proxy.Reset()
			for i, m := range b.each(mailbox.GetQuery{BodyChars: 20_000}, long...).Messages {
				if m.Subject != fmt.Sprint(i) || !strings.HasPrefix(m.BodyText, fmt.Sprint("word", i, " ")) || utf8.RuneCountInString(m.BodyText) != 5000 || m.NextChar != 5001 {
					t.Errorf("%s: %d characters, then %d: %.20q", m.Subject, utf8.RuneCountInString(m.BodyText), m.NextChar, m.BodyText)
				}
			}
			if st := proxy.Stats(); st.Flights != 2 {
				t.Errorf("long texts: %d round trips", st.Flights)
			}
			subjects := map[string]bool{}
			for _, m := range b.each(mailbox.GetQuery{}, mixed...).Messages {
				subjects[m.Subject] = true
			}
			if len(subjects) != 10 {
				t.Errorf("messages of several folders mix: %v", subjects)
			}
		})
	}
}

func TestSeveralMessagesOfWhichSomeAreNotThere(t *testing.T) {
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "some")
		u := b.Add("INBOX", letter{Subject: "one", From: "ann@example.org"}, letter{Subject: "two", From: "eve@example.net"})
		b.folder("Other")
		o := b.Add("Other", letter{Subject: "three", From: "ann@example.org"})
		stale := b.list(mailbox.ListQuery{Folder: b.In("Other")}).Messages[0].Ref
		stale.UIDValidity++
		one, two, three := b.Ref("INBOX", u[0]), b.Ref("INBOX", u[1]), b.Ref("Other", o[0])
		gone, nowhere := b.Ref("INBOX", u[1]+5), b.Ref("Nowhere", 1)
		kinds := func(all *mailbox.Messages) string {
			var out []string
			for _, m := range all.Messages {
				out = append(out, m.Subject)
			}
			for _, i := range all.Issues {
				out = append(out, fmt.Sprint(i.Kind, " ", i.MessageID))
			}
			return strings.Join(out, ", ")
		}
		want := fmt.Sprintf("three, two, one, conflict %v, not_found %v, not_found %v", stale, gone, nowhere)
		if got := kinds(b.each(mailbox.GetQuery{}, three, stale, two, gone, one, nowhere, one)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		mailtest.WantKind(t, second(b.GetEach(t.Context(), account, []mail.Ref{stale, gone}, mailbox.GetQuery{})), mail.KindConflict)
		mailtest.WantKind(t, second(b.GetEach(t.Context(), account, []mail.Ref{gone, nowhere}, mailbox.GetQuery{})), mail.KindNotFound)
		for _, refs := range [][]mail.Ref{nil, slices.Repeat([]mail.Ref{one}, 21), {one, {Protocol: mail.IMAP, Account: "other", Folder: "INBOX", UID: 1}}} {
			mailtest.WantKind(t, second(b.GetEach(t.Context(), account, refs, mailbox.GetQuery{})), mail.KindInvalid)
		}
		// A hidden message is like one that does not exist.
		b.Dir.Edit(allowing("ann@example.org"))
		all := b.each(mailbox.GetQuery{}, one, two, three)
		if want := fmt.Sprintf("one, three, not_found %v", two); kinds(all) != want || all.Issues[0].Reason != "filtered" {
			t.Errorf("got %s, reason %q, want %s", kinds(all), all.Issues[0].Reason, want)
		}
	})
}

func TestTextsShareTheirCharacters(t *testing.T) {
	b := onDovecot(t, "shared")
	var refs []mail.Ref
	for _, n := range []int{50, 5000, 300, 9000} {
		refs = append(refs, b.refs("INBOX", b.Add("INBOX", letter{Subject: fmt.Sprint(n), Body: strings.Repeat("x", n)})...)...)
	}
	for _, tc := range []struct {
		chars int
		want  []int
	}{
		{20_000, []int{50, 5000, 300, 9000}},
		{2000, []int{50, 825, 300, 825}},
		{1000, []int{50, 325, 300, 325}},
		{400, []int{50, 116, 116, 116}},
		{100, []int{50, 100, 100, 100}},
	} {
		for i, m := range b.each(mailbox.GetQuery{BodyChars: tc.chars}, refs...).Messages {
			whole := m.Subject == fmt.Sprint(len(m.BodyText))
			if len(m.BodyText) != tc.want[i] || m.BodyTruncated == whole || (m.NextChar == 0) != whole {
				t.Errorf("of %d characters %s gets %d, want %d; truncated %v, then %d", tc.chars, m.Subject, len(m.BodyText), tc.want[i], m.BodyTruncated, m.NextChar)
			}
		}
	}
}

// Every character of a long text can be read, in every encoding and on every server, and
// only what is needed is fetched.
func TestTheRestOfALongText(t *testing.T) {
	words := make([]string, 8_000)
	for i := range words {
		words[i] = fmt.Sprintf("wörd%d", i)
	}
	long := strings.Join(words, " ")
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "rest")
		utf8Text := "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n"
		for name, l := range map[string]letter{
			"8bit":   {Extra: utf8Text, Body: strings.ReplaceAll(long, "0 ", "0\r\n")},
			"base64": {Extra: utf8Text + "Content-Transfer-Encoding: base64\r\n", Body: base64.StdEncoding.EncodeToString([]byte(long))},
			"html":   {Extra: "MIME-Version: 1.0\r\nContent-Type: text/html; charset=utf-8\r\n", Body: "<p>" + strings.ReplaceAll(long, "00 ", "00</p>\r\n<p>") + "</p>"},
		} {
			u := b.Add("INBOX", l)[0]
			var got strings.Builder
			for from, pages := 1, 0; from > 0; pages++ {
				m := b.Read("INBOX", u, mailbox.GetQuery{BodyChars: 20_000, FromChar: from})
				if m.NextChar != 0 && (m.NextChar <= from || !m.BodyTruncated) || len(m.Issues) > 0 || pages > 10 {
					t.Fatalf("%s: after %d comes %d, %v", name, from, m.NextChar, m.Issues)
				}
				got.WriteString(m.BodyText)
				from = m.NextChar
			}
			if text := strings.Join(strings.Fields(got.String()), " "); text != long {
				i := 0
				for i < len(text) && text[i] == long[i] {
					i++
				}
				t.Errorf("%s: the pages are %d characters, which differ at %.60q, want %.60q", name, utf8.RuneCountInString(text), text[max(i-20, 0):], long[max(i-20, 0):])
			}
			m := b.Read("INBOX", u, mailbox.GetQuery{FromChar: 1_500_000})
			if m.BodyText != "" || m.NextChar != 0 || len(m.Issues) != 1 {
				t.Errorf("%s, beyond the end: %q, %d, %v", name, m.BodyText, m.NextChar, m.Issues)
			}
		}
	})
}

func TestABounceNamesWhatCameBack(t *testing.T) {
	status := "Content-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.example.org\r\n\r\nFinal-Recipient: rfc822; x@example.net\r\nAction: failed\r\n"
	dsn := func(returned string) letter {
		return letter{From: "MAILER-DAEMON@mx.example.org", Subject: "Undelivered", Extra: "MIME-Version: 1.0\r\nContent-Type: multipart/report; report-type=delivery-status; boundary=b\r\n",
			Body: "--b\r\nContent-Type: text/plain\r\n\r\nIt could not be delivered.\r\n--b\r\n" + status + "\r\n--b\r\n" + returned + "\r\n--b--\r\n"}
	}
	header := "From: demo@example.org\r\nMessage-ID: <letter-1@example.org>\r\nSubject: a letter\r\n"
	far := strings.Repeat("x", 6000) + "\r\n"
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "bounce")
		b.folder("Sent")
		sent := b.Add("Sent", letter{Subject: "another", Extra: "Message-ID: <another-letter-1@example.org>\r\n"}, letter{Subject: "a letter", Extra: "Message-ID: <letter-1@example.org>\r\n"})
		for _, tc := range []struct {
			name  string
			l     letter
			found bool
		}{
			{"with the message", dsn("Content-Type: message/rfc822\r\n\r\n" + header + "\r\nDear Ann\r\n"), true},
			{"with its header", dsn("Content-Type: text/rfc822-headers\r\n\r\n" + header), true},
			{"far down", dsn("Content-Type: text/plain; name=x\r\nContent-Disposition: attachment\r\n\r\n" + far + "--b\r\nContent-Type: message/rfc822\r\n\r\n" + header + "\r\nDear Ann\r\n"), true},
			{"as text", letter{From: "MAILER-DAEMON@mx.example.org", Body: "Hi. This is the mail program.\r\n\r\n--- Below this line is a copy of the message.\r\n\r\n" + header + "\r\nDear Ann\r\n"}, true},
			{"as an answer", letter{From: "postmaster@mx.example.org", Extra: "In-Reply-To: <letter-1@example.org>\r\n", Body: "No."}, true},
			{"of another message", dsn("Content-Type: message/rfc822\r\n\r\nMessage-ID: <letter@example.org>\r\n\r\nDear Ann\r\n"), false},
			{"without a message", dsn("Content-Type: text/plain\r\n\r\nnothing"), false},
			{"no bounce", letter{From: "ann@example.org", Extra: "In-Reply-To: <letter-1@example.org>\r\n", Body: "Yes.\r\n" + header}, false},
		} {
			u := b.Add("INBOX", tc.l)[0]
			m := b.Read("INBOX", u, mailbox.GetQuery{})
			if got := m.Returned; (got != mail.Ref{}) != tc.found || tc.found && (got.UID != sent[1] || got.Folder != b.In("Sent") || got.UIDValidity == 0) {
				t.Errorf("%s: %v", tc.name, got)
			}
		}
		// What the policy hides in that folder is not told.
		bounce := b.Ref("INBOX", b.Add("INBOX", dsn("Content-Type: text/rfc822-headers\r\n\r\n"+header))[0])
		b.Dir.Edit(allowing("@mx.example.org"))
		if m, err := b.Get(t.Context(), bounce, mailbox.GetQuery{}); err != nil || m.Returned != (mail.Ref{}) {
			t.Errorf("%+v, %v", m, err)
		}
		// Of several with one Message-ID it is the newest that the policy shows.
		again := letter{Subject: "a letter", Extra: "Message-ID: <letter-1@example.org>\r\n", From: "bounce@example.org"}
		forged := again
		forged.From = "eve@evil.example"
		mine := b.Add("Sent", again, forged)[0]
		if m, err := b.Get(t.Context(), bounce, mailbox.GetQuery{}); err != nil || m.Returned.UID != mine {
			t.Errorf("%+v, %v", m, err)
		}
	})
}

// What is not read of many attachments is told.
func TestAttachmentsWhoseTextIsNotReadAreCounted(t *testing.T) {
	b := onDovecot(t, "many")
	var parts []string
	for i := range 25 {
		parts = append(parts, fmt.Sprintf("Content-Type: text/csv; name=%d.csv\r\nContent-Disposition: attachment\r\n\r\ntable %d", i, i))
	}
	extra, body := mixed("Content-Type: text/plain\r\n\r\nHello", append(parts, attachment("f.bin", 100))...)
	u := b.Add("INBOX", letter{Extra: extra, Body: body})[0]
	if m := b.Read("INBOX", u, mailbox.GetQuery{AttachmentText: true}); m.Unread != 5 || m.Attachments[19].Text != "table 19" || m.Attachments[20].Text != "" {
		t.Errorf("%d are not read: %q, %q", m.Unread, m.Attachments[19].Text, m.Attachments[20].Text)
	}
	if m := b.Read("INBOX", u, mailbox.GetQuery{}); m.Unread != 0 {
		t.Errorf("%d are not read, though none was asked for", m.Unread)
	}
}

// reader is a PDFReader that says what it was given.
type reader struct{ err error }

func (r reader) Text(_ context.Context, pdf []byte, maxRunes int) (string, bool, error) {
	return "text of " + string(pdf) + "\u202e hidden", false, r.err
}

const invitation = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//x//x//EN\r\nMETHOD:REQUEST\r\nBEGIN:VEVENT\r\nUID:1@x\r\nDTSTAMP:20260301T080000Z\r\nDTSTART:20260305T090000Z\r\nDTEND:20260305T100000Z\r\nSUMMARY:Budget\r\nLOCATION:Room 4\r\nORGANIZER;CN=Carl:mailto:carl@example.org\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"

func pdfPart(content string) string {
	return "Content-Type: application/pdf\r\nContent-Transfer-Encoding: base64\r\nContent-Disposition: attachment; filename=\"a.pdf\"\r\n\r\n" + base64.StdEncoding.EncodeToString([]byte(content))
}

// What attachments say is read where it was asked for, within bounds, and a
// failure is no failure of the message.
func Test001_5_AttachmentText(t *testing.T) {
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "attached")
		extra, body := mixed("Content-Type: text/plain\r\n\r\nsee below",
			"Content-Type: text/calendar; charset=utf-8; method=REQUEST\r\n\r\n"+invitation,
			pdfPart("%PDF-1.4"),
			"Content-Type: text/csv\r\nContent-Disposition: attachment; filename=\"t.csv\"\r\n\r\nname,value\r\n"+strings.Repeat("row,1\r\n", 60),
			"Content-Type: message/rfc822\r\n\r\nFrom: old@example.org\r\nSubject: inner\r\n\r\ninner text",
			"Content-Type: application/ms-tnef; name=\"winmail.dat\"\r\nContent-Disposition: attachment; filename=\"winmail.dat\"\r\n\r\nx",
			pdfPart(strings.Repeat("x", 5<<20+1)),
		)
		u := b.Add("INBOX", letter{Subject: "all", Extra: extra, Body: body})[0]
		b.Client = mailbox.New(mailbox.Options{Directory: b.Dir, PDFText: reader{}})
		t.Cleanup(func() { _ = b.Close() })
		m := b.Read("INBOX", u, mailbox.GetQuery{AttachmentText: true, AttachmentChars: 100})
		if len(m.Attachments) != 6 {
			t.Fatalf("%+v", m.Attachments)
		}
		for i, want := range []struct{ mediaType, text string }{
			{"text/calendar", "Budget"}, {"application/pdf", "text of %PDF-1.4 hidden"}, {"text/csv", "row,1"},
			{"message/rfc822", "inner text"}, {"application/ms-tnef", ""}, {"application/pdf", ""},
		} {
			a := m.Attachments[i]
			if a.ContentType != want.mediaType || !strings.Contains(a.Text, want.text) || want.text == "" && a.Text != "" {
				t.Errorf("%d: %s %q", i, a.ContentType, a.Text)
			}
			if n := len([]rune(a.Text)); n > 100 || (n == 100) != a.TextTruncated && i == 2 {
				t.Errorf("%d: %d characters, truncated %v", i, n, a.TextTruncated)
			}
		}
		if m.Attachments[4].Filename != "winmail.dat" || len(m.Issues) != 1 || !strings.Contains(m.Issues[0].Message, "5 MB") {
			t.Errorf("%+v", m.Issues)
		}
		// The times of an invitation are there without asking.
		m = b.Read("INBOX", u, mailbox.GetQuery{})
		if len(m.Attachments[0].Events) != 1 || m.Attachments[1].Text != "" {
			t.Fatalf("%+v", m.Attachments[0])
		}
		if ev := m.Attachments[0].Events[0]; ev.Summary != "Budget" || ev.Method != "REQUEST" || !ev.Start.Equal(time.Date(2026, 3, 5, 9, 0, 0, 0, time.UTC)) || ev.Location != "Room 4" {
			t.Errorf("%+v", ev)
		}
		_ = b.Close()
		b.Client = mailbox.New(mailbox.Options{Directory: b.Dir, PDFText: reader{errors.New("it is damaged")}})
		if m = b.Read("INBOX", u, mailbox.GetQuery{AttachmentText: true}); len(m.Issues) != 2 || !strings.Contains(m.Issues[1].Message, "damaged") || m.BodyText != "see below" {
			t.Errorf("%+v", m.Issues)
		}
		_ = b.Close()
	})
}

func Test001_5_HTMLIsSanitizedAndBounded(t *testing.T) {
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "html")
		page := `<html><head><style>.h{display:none}</style><script>x()</script></head><body onload="x()"><p>Shown <b>bold</b></p><p class="h">HIDDEN</p><span style="font-size:0">TINY</span>` +
			`<a href="javascript:x()">bad</a><a href="https://example.org/a">good</a><img src="https://spy.example/x.gif"><form action="/"><input></form></body></html>`
		plain := strings.TrimSpace(strings.Repeat("plain words that stand for themselves ", 12))
		u := b.Add("INBOX", letter{Subject: "page", Extra: "MIME-Version: 1.0\r\nContent-Type: multipart/alternative; boundary=\"b\"\r\n",
			Body: "--b\r\nContent-Type: text/plain\r\n\r\n" + plain + "\r\n--b\r\nContent-Type: text/html; charset=utf-8\r\n\r\n" + page + strings.Repeat("<p>more and more</p>", 3000) + "\r\n--b--\r\n"})[0]
		if m := b.Read("INBOX", u, mailbox.GetQuery{}); m.BodyHTML != "" || m.BodyText != plain {
			t.Errorf("%q %q", m.BodyHTML, m.BodyText)
		}
		m := b.Read("INBOX", u, mailbox.GetQuery{HTML: true, BodyChars: 300})
		if !strings.Contains(m.BodyHTML, "<b>bold</b>") || !strings.Contains(m.BodyHTML, `href="https://example.org/a"`) || !m.BodyTruncated || len([]rune(m.BodyHTML)) > 300 {
			t.Errorf("%d: %s", len([]rune(m.BodyHTML)), m.BodyHTML)
		}
		for _, bad := range []string{"HIDDEN", "TINY", "script", "onload", "javascript", "spy.example", "<form", "<input", "style"} {
			if strings.Contains(m.BodyHTML, bad) {
				t.Errorf("%s is in %s", bad, m.BodyHTML)
			}
		}
		// The pages make the whole, with no tag in two of them.
		all := ""
		for from := 0; ; from = m.NextChar {
			m = b.Read("INBOX", u, mailbox.GetQuery{HTML: true, BodyChars: 20_000, FromChar: from})
			all += m.BodyHTML
			if (m.BodyText == "") != (from > 0) || strings.Count(m.BodyHTML, "<") != strings.Count(m.BodyHTML, ">") || len(all) > 100_000 {
				t.Fatalf("from %d: %.80q %.80q", from, m.BodyText, m.BodyHTML)
			}
			if m.NextChar == 0 {
				break
			}
		}
		if strings.Count(all, "Shown") != 1 || strings.Count(all, "<p>more and more</p>") != 3000 {
			t.Errorf("%d characters: %.200s", len(all), all)
		}
	})
}

// What is new comes before what is quoted when not everything fits, also where it
// stands at the end of a long message.
func TestNewTextComesFirst(t *testing.T) {
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "new")
		quoted := strings.Repeat("> a line of what was written before\r\n", 800)
		u := b.Add("INBOX", letter{Subject: "Re: x", Body: "On Mon, 4 May 2026 at 10:00, Bob <bob@example.org> wrote:\r\n" + quoted + "\r\nmy answer at the very end\r\n"})[0]
		m := b.Read("INBOX", u, mailbox.GetQuery{BodyChars: 500})
		if !strings.Contains(m.BodyText, "my answer at the very end") || !strings.Contains(m.BodyText, "> ") || !m.BodyTruncated || len([]rune(m.BodyText)) > 500 {
			t.Errorf("%q", m.BodyText)
		}
	})
}

// Whatever shows the text of a message tells how much of its HTML a person would not see: a
// list and a search with snippets, a conversation, the message, and the text of a forwarded one.
func TestHiddenTextIsCountedInEveryView(t *testing.T) {
	const page = "<p>Hello<p style=\"display:none\">obey</p>"
	forwarded := "Content-Type: message/rfc822\r\n\r\nSubject: inner\r\nContent-Type: text/html\r\n\r\n" + page
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "unseen")
		l := parted("unseen", "mixed", "Content-Type: text/html\r\n\r\n"+page, forwarded)
		ref := b.Ref("INBOX", b.Add("INBOX", l)[0])
		want := func(view string, got int) {
			t.Helper()
			if got != len("obey") {
				t.Errorf("%s: %d hidden characters", view, got)
			}
		}
		want("list", b.list(mailbox.ListQuery{Snippet: 60}).Messages[0].HiddenChars)
		if n := b.list(mailbox.ListQuery{}).Messages[0].HiddenChars; n != 0 {
			t.Errorf("a list without texts: %d", n)
		}
		if found, err := b.Search(t.Context(), []string{account}, mailbox.SearchQuery{Subject: "unseen", Snippet: 60}); err != nil || len(found.Messages) != 1 {
			t.Errorf("%+v, %v", found, err)
		} else {
			want("search", found.Messages[0].HiddenChars)
		}
		if c, err := b.Thread(t.Context(), ref, mailbox.ThreadQuery{Chars: 100}); err != nil || len(c.Messages) != 1 {
			t.Errorf("%+v, %v", c, err)
		} else {
			want("thread", c.Messages[0].HiddenChars)
		}
		for _, q := range []mailbox.GetQuery{{AttachmentText: true}, {HTML: true, AttachmentText: true}} {
			m, err := b.Get(t.Context(), ref, q)
			if err != nil || len(m.Attachments) != 1 {
				t.Fatalf("%+v, %v", m, err)
			}
			want("get", m.HiddenChars)
			want("forwarded", m.Attachments[0].HiddenChars)
		}
		a, err := b.AttachmentText(t.Context(), ref, mailbox.AttachmentQuery{Part: "2"})
		must(t, err)
		want("attachment", a.HiddenChars)
	})
}
