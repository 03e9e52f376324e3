package mailbox_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/emersion/go-imap/v2"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

// crlf ends every line as it is on the wire.
func crlf(b []byte) []byte {
	return bytes.ReplaceAll(bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")), []byte("\n"), []byte("\r\n"))
}

// Every real message, whatever is broken about it, goes through every way to read
// it; its source is byte for byte what was delivered.
func TestRealMessagesThroughEveryDoor(t *testing.T) {
	files, err := filepath.Glob("../testdata/real-emails/*/*.eml")
	if err != nil || len(files) < 100 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	b := onDovecot(t, "corpus", func(a *mail.Account) { a.Codes = mail.CodesShow }) // the messages count as new
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source = crlf(source)
		cmd := b.Admin.Append("INBOX", int64(len(source)), &imap.AppendOptions{})
		_, _ = cmd.Write(source)
		_ = cmd.Close()
		data, err := cmd.Wait()
		if err != nil {
			t.Fatal(err)
		}
		ref := b.Ref("INBOX", uint32(data.UID))
		t.Run(filepath.Base(file), func(t *testing.T) {
			raw, err := b.Raw(t.Context(), ref, 1_000_000)
			if err != nil || !bytes.Equal(raw.Source, source[:min(len(source), 1_000_000)]) || raw.Size != int64(len(source)) {
				t.Errorf("raw: %d of %d bytes: %v", len(raw.Source), len(source), err)
			}
			if raw, err = b.Raw(t.Context(), ref, 5); err != nil || !bytes.Equal(raw.Source, source[:min(len(source), 1024)]) || raw.Truncated != (len(source) > 1024) {
				t.Errorf("the beginning: %d bytes, cut %v, %v", len(raw.Source), raw.Truncated, err)
			}
			m, err := b.Get(t.Context(), ref, mailbox.GetQuery{Headers: mailbox.HeadersAll, HTML: true, AttachmentText: true, Content: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range m.Attachments {
				one, err := b.Attachment(t.Context(), ref, a.PartID)
				if err != nil {
					t.Fatal(err)
				}
				// Whose the line break before a boundary is, servers see differently.
				if !bytes.Equal(bytes.TrimRight(one.Content, "\r\n"), bytes.TrimRight(a.Content, "\r\n")) || one.ContentType != a.ContentType {
					t.Errorf("attachment %s %s: %d bytes, with the message %s %d", a.PartID, one.ContentType, len(one.Content), a.ContentType, len(a.Content))
				}
			}
			if len(m.Attachments) == 0 {
				var e *mail.Error
				if _, err := b.Attachment(t.Context(), ref, ""); !errors.As(err, &e) || e.Kind != mail.KindNotFound {
					t.Errorf("an attachment of a message without: %v", err)
				}
			}
			th, err := b.Thread(t.Context(), ref, mailbox.ThreadQuery{Limit: 200})
			if err != nil {
				t.Fatal(err)
			}
			here := false
			for _, m := range th.Messages {
				here = here || m.Ref.UID == ref.UID
			}
			if !here {
				t.Errorf("the message is not in its own conversation of %d", len(th.Messages))
			}
		})
	}
}
