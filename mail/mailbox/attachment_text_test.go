package mailbox_test

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// shoutedPDF is a PDFReader whose documents say what they hold in capitals.
type shoutedPDF struct{}

func (shoutedPDF) Text(_ context.Context, pdf []byte, maxRunes int) (string, bool, error) {
	text := strings.ToUpper(strings.TrimPrefix(string(pdf), "%PDF-"))
	if len(text) == len(pdf) {
		return "", false, errors.New("it is damaged")
	}
	return text[:min(len(text), maxRunes)], len(text) > maxRunes, nil
}

func TestAttachmentText(t *testing.T) {
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "says")
		b.Client = mailbox.New(mailbox.Options{Directory: b.Dir, PDFText: shoutedPDF{}})
		t.Cleanup(func() { _ = b.Close() })
		file := func(kind, name, content string) string {
			return "Content-Type: " + kind + "; name=" + name + "\r\nContent-Disposition: attachment; filename=" + name + "\r\nContent-Transfer-Encoding: base64\r\n\r\n" +
				base64.StdEncoding.EncodeToString([]byte(content))
		}
		extra, body := mixed("Content-Type: text/plain\r\n\r\nHello", file("text/csv", "a.csv", strings.Repeat("0123456789", 30)), file("application/pdf", "b.pdf", "%PDF-"+strings.Repeat("abcde", 50)),
			file("application/pdf", "c.pdf", "broken"), file("image/png", "d.png", "\x89PNG"), file("application/octet-stream", "e.txt", "Grüße"))
		ref := b.Ref("INBOX", b.Add("INBOX", letter{Extra: extra, Body: body})[0])
		for _, tc := range []struct {
			q    mailbox.AttachmentQuery
			want string
			next int
		}{
			{mailbox.AttachmentQuery{Part: "2"}, strings.Repeat("0123456789", 30), 0},
			{mailbox.AttachmentQuery{Part: "2", Chars: 100}, strings.Repeat("0123456789", 10), 101},
			{mailbox.AttachmentQuery{Part: "2", Chars: 100, FromChar: 102}, strings.Repeat("1234567890", 10), 202},
			{mailbox.AttachmentQuery{Part: "2", Chars: 100, FromChar: 291}, "0123456789", 0},
			{mailbox.AttachmentQuery{Part: "2", FromChar: 301}, "", 0},
			{mailbox.AttachmentQuery{Part: "3", Chars: 100}, strings.Repeat("ABCDE", 20), 101},
			{mailbox.AttachmentQuery{Part: "3", Chars: 100, FromChar: 201}, strings.Repeat("ABCDE", 10), 0},
			{mailbox.AttachmentQuery{Part: "6"}, "Grüße", 0},
			{mailbox.AttachmentQuery{Part: "1"}, "Hello", 0}, // the text itself is a part too
		} {
			a, err := b.AttachmentText(t.Context(), ref, tc.q)
			if err != nil || a.Text != tc.want || a.NextChar != tc.next || a.TextTruncated != (tc.next > 0) || a.Content != nil {
				t.Errorf("%+v: %+v, %v", tc.q, a, err)
			}
		}
		for part, kind := range map[string]mail.Kind{"4": mail.KindUnsupported, "5": mail.KindUnsupported, "": mail.KindInvalid, "7": mail.KindNotFound} {
			mailtest.WantKind(t, second(b.AttachmentText(t.Context(), ref, mailbox.AttachmentQuery{Part: part})), kind)
		}
	})
}
