package mailbox_test

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

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
