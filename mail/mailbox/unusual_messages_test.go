package mailbox_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// order is a message with a file, as others enclose it.
const order = "From: bob@example.net\r\nSubject: Order\r\nContent-Type: multipart/mixed; boundary=in\r\n\r\n--in\r\n\r\nForty chairs.\r\n" +
	"--in\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename=order.pdf\r\n\r\n%PDF-1.4\r\n--in--\r\n"

func enclosed(encoding, content string) string {
	return "Content-Type: multipart/mixed; boundary=ou\r\n\r\n--ou\r\n\r\nsee below\r\n--ou\r\nContent-Type: message/rfc822\r\n" +
		"Content-Disposition: attachment; filename=order.eml\r\nContent-Transfer-Encoding: " + encoding + "\r\n\r\n" + content + "\r\n--ou--\r\n"
}

// stored is a message of the test's data without its first fields.
func stored(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	must(t, err)
	_, rest, _ := strings.Cut(string(crlf(b)), "\r\nContent-Disposition")
	return "Content-Disposition" + rest
}

// What programs do to a message in spite of the standards costs its reader neither the text
// nor the files, or says what is missing.
func TestUnusualMessagesAreReadOrSaidToBeUnread(t *testing.T) {
	t.Parallel()
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	calendar := func(lines string) string {
		return "Content-Type: text/calendar; method=REPLY\r\n\r\nBEGIN:VCALENDAR\r\nMETHOD:REPLY\r\nBEGIN:VEVENT\r\nSUMMARY:Budget\r\n" + lines + "END:VEVENT\r\nEND:VCALENDAR\r\n"
	}
	for _, tc := range []struct {
		name, raw string
		text      string // of which it is the beginning; "" for none at all
		files     string // part, name and content of each
		note      string // a piece of the one note; "" for none
		event     string // summary, attendee, state, start and zone of the one event
	}{
		{"boundary that never comes", "Content-Type: multipart/mixed; boundary=never\r\n\r\nThursday.\r\n", "Thursday.", "", "", ""},
		{"no boundary", "Content-Type: multipart/alternative\r\n\r\n--q\r\nContent-Type: text/plain\r\n\r\nThe lift.\r\n--q\r\nContent-Type: text/html\r\n\r\n<p>The lift.\r\n--q--\r\n", "The lift.", "", "", ""},
		{"base64 as a whole", "Content-Type: multipart/mixed; boundary=b\r\nContent-Transfer-Encoding: base64\r\n\r\n" +
			b64("--b\r\n\r\nNote 12.\r\n--b\r\nContent-Type: application/pdf; name=note.pdf\r\n\r\n%PDF\r\n--b--\r\n") + "\r\n", "Note 12.", "2 note.pdf %PDF;", "", ""},
		{"enclosed", enclosed("7bit", order), "see below", "2 order.eml From: ;2.2 order.pdf %PDF-1;", "", ""},
		{"enclosed as base64", enclosed("base64", b64(order)), "see below", "2 order.eml From: ;2.2 order.pdf %PDF-1;", "", ""},
		{"signed", stored(t, "smime-opaque.eml"), "The contract ends on 31 March 2027.", "", "signature was not checked", ""},
		{"encrypted", stored(t, "smime-encrypted.eml"), "", "1 smime.p7m 0\x82\x01;", "encrypted with S/MIME", ""},
		{"OpenPGP", "Content-Type: multipart/encrypted; protocol=\"application/pgp-encrypted\"; boundary=b\r\n\r\n--b\r\nContent-Type: application/pgp-encrypted\r\n\r\nVersion: 1\r\n" +
			"--b\r\nContent-Type: application/octet-stream\r\n\r\n-----BEGIN\r\n--b--\r\n", "", "1  Versio;2  -----B;", "encrypted with OpenPGP", ""},
		{"TNEF", "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\n\r\n--b\r\nContent-Type: application/ms-tnef; name=winmail.dat\r\n\r\nx\x9f\r\n--b--\r\n", "", "2 winmail.dat x\x9f;", "winmail.dat", ""},
		{"uuencode", "\r\nHere it is.\r\n\r\nbegin 644 notes.txt\r\n#0V%T\r\n`\r\nend\r\n", "Here it is.", "1.2 notes.txt Cat;", "", ""},
		{"no text", "\r\n\r\n", "", "", "no text", ""},
		{"stub", "Content-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\n\r\nPozri si to inde.\r\n--b\r\nContent-Type: text/html\r\n\r\n<p>" + strings.Repeat("The rent rises. ", 20) + "\r\n--b--\r\n", "The rent rises.", "", "", ""},
		{"short", "Content-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\n\r\nMany thanks\r\n--b\r\nContent-Type: text/html\r\n\r\n<p>Many thanks!</p><p>Ann\r\n--b--\r\n", "Many thanks", "", "", ""},
		{"answer", calendar("DTSTART;TZID=W. Europe Standard Time:20261203T083000\r\nATTENDEE;PARTSTAT=DECLINED:mailto:bob@example.org\r\n"), "Event: Budget", "", "", "Budget bob@example.org declined 2026-12-03T07:30Z"},
		{"zone nobody knows", calendar("DTSTART;TZID=Mars:20261203T083000\r\n"), "Event: Budget", "", "", "Budget  answered 2026-12-03T08:30Z local Mars"},
	} {
		for _, size := range []int{0, 20_000} { // of those that a server sends as a whole, and in parts
			t.Run(fmt.Sprint(tc.name, size), func(t *testing.T) {
				t.Parallel()
				raw := "From: ann@example.com\r\nSubject: s\r\nMIME-Version: 1.0\r\n" + tc.raw
				if size > 0 && strings.Contains(raw, "\r\n--") && strings.HasSuffix(raw, "--\r\n") {
					raw = "From: ann@example.com\r\nSubject: s\r\nContent-Type: multipart/mixed; boundary=big\r\n\r\n--big\r\n" + tc.raw +
						"\r\n--big\r\nContent-Type: image/png\r\nContent-ID: <i>\r\n\r\n" + strings.Repeat("x", size) + "\r\n--big--\r\n"
					if tc.name == "no boundary" { // in a part it is text
						return
					}
				} else if size > 0 {
					return
				}
				_, e := mailtest.Shared(t, servertest.Config{})
				b := open(t, e, "unusual", func(a *mail.Account) { a.Codes = mail.CodesShow })
				u := b.Add("INBOX", letter{Raw: []byte(raw)})[0]
				m := b.Read("INBOX", u, mailbox.GetQuery{})
				if !strings.HasPrefix(m.BodyText, tc.text) || tc.text == "" && m.BodyText != "" {
					t.Errorf("text %q, want %q", m.BodyText, tc.text)
				}
				files, event := "", ""
				for _, a := range m.Attachments {
					for _, v := range a.Events {
						event = strings.Join([]string{v.Summary, v.Attendee, v.State, v.Start.UTC().Format("2006-01-02T15:04Z")}, " ")
						if v.Local {
							event += " local " + v.Zone
						}
					}
					if len(a.Events) > 0 || a.ContentType == "image/png" {
						continue
					}
					one, err := b.Attachment(t.Context(), m.Ref, a.PartID)
					must(t, err)
					id := a.PartID
					if size > 0 {
						id = strings.TrimPrefix(id, "1.")
					}
					files += id + " " + a.Filename + " " + string(one.Content[:min(6, len(one.Content))]) + ";"
				}
				files = strings.ReplaceAll(files, "0\x82\x01\xf7\x06\x09", "0\x82\x01")
				if files != tc.files || event != tc.event {
					t.Errorf("files %q, want %q; event %q, want %q", files, tc.files, event, tc.event)
				}
				if notes := strings.Join(m.Notes, "\n"); (notes == "") != (tc.note == "") || !strings.Contains(notes, tc.note) || len(m.Issues) > 0 {
					t.Errorf("notes %q, want %q; issues %+v", notes, tc.note, m.Issues)
				}
			})
		}
	}
}

// A size is told alike whatever else is asked for.
func TestSizesOfAttachmentsAreTheSameEachTime(t *testing.T) {
	b := onDovecot(t, "sizes")
	for _, n := range []int{8, 60_000, 60_008, 60_016} {
		u := b.Add("INBOX", func() letter {
			extra, body := mixed("Content-Type: text/plain\r\n\r\nhi", attachment("a.bin", n))
			return letter{Subject: "s", Extra: extra, Body: body}
		}())[0]
		plain, content := b.Read("INBOX", u, mailbox.GetQuery{}).Attachments[0], b.Read("INBOX", u, mailbox.GetQuery{Content: true}).Attachments[0]
		if got := int64(len(content.Content)); plain.Size != content.Size || plain.Size < got || plain.Size > got+2 {
			t.Errorf("%d bytes and %d of %d", plain.Size, content.Size, got)
		}
	}
}

// A server searches the source of HTML, where letters with accents can have names.
func TestSearchFindsLettersThatHTMLNames(t *testing.T) {
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "entities")
		html := letter{Subject: "html", Extra: "Content-Type: text/html\r\n", Body: "<p>Herr B&auml;chtiger kommt"}
		b.Add("INBOX", html, letter{Subject: "plain", Extra: "Content-Type: text/plain; charset=utf-8\r\n", Body: "Herr Bächtiger kommt"})
		for _, q := range []mailbox.SearchQuery{{Words: "Bächtiger"}, {Text: "Herr Bächtiger"}} {
			if p := b.search(q); len(p.Messages) != 2 {
				t.Errorf("%+v: %+v", q, p.Messages)
			}
		}
	})
}
