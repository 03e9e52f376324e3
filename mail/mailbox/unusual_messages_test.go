package mailbox_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)


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
	for _, tc := range testmain.Table[struct{ Name, Text, Files, Note, Event, Raw string }](t, "testdata/cases/unusual_messages.txt") {
		if file, ok := strings.CutPrefix(tc.Raw, "@"); ok {
			tc.Raw = stored(t, file)
		}
		for _, size := range []int{0, 20_000} { // of those that a server sends as a whole, and in parts
			t.Run(fmt.Sprint(tc.Name, size), func(t *testing.T) {
				t.Parallel()
				raw := "From: ann@example.com\r\nSubject: s\r\nMIME-Version: 1.0\r\n" + tc.Raw
				if size > 0 && strings.Contains(raw, "\r\n--") && strings.HasSuffix(raw, "--\r\n") {
					raw = "From: ann@example.com\r\nSubject: s\r\nContent-Type: multipart/mixed; boundary=big\r\n\r\n--big\r\n" + tc.Raw +
						"\r\n--big\r\nContent-Type: image/png\r\nContent-ID: <i>\r\n\r\n" + strings.Repeat("x", size) + "\r\n--big--\r\n"
					if tc.Name == "no boundary" { // in a part it is text
						return
					}
				} else if size > 0 {
					return
				}
				_, e := mailtest.Shared(t, servertest.Config{})
				b := open(t, e, "unusual", func(a *mail.Account) { a.Codes = mail.CodesShow })
				u := b.Add("INBOX", letter{Raw: []byte(raw)})[0]
				m := b.Read("INBOX", u, mailbox.GetQuery{})
				if !strings.HasPrefix(m.BodyText, tc.Text) || tc.Text == "" && m.BodyText != "" {
					t.Errorf("text %q, want %q", m.BodyText, tc.Text)
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
				if files != tc.Files || event != tc.Event {
					t.Errorf("files %q, want %q; event %q, want %q", files, tc.Files, event, tc.Event)
				}
				if notes := strings.Join(m.Notes, "\n"); (notes == "") != (tc.Note == "") || !strings.Contains(notes, tc.Note) || len(m.Issues) > 0 {
					t.Errorf("notes %q, want %q; issues %+v", notes, tc.Note, m.Issues)
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
