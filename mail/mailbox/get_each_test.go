package mailbox_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

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
