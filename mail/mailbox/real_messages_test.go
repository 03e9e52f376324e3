package mailbox_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// crlf ends every line as it is on the wire.
func crlf(b []byte) []byte {
	return bytes.ReplaceAll(bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")), []byte("\n"), []byte("\r\n"))
}

// Every real message, whatever is broken about it, goes through every way to read
// it, by IMAP and by POP3; its source is byte for byte what was delivered.
func TestRealMessagesThroughEveryDoor(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../testdata/real-emails/*/*.eml")
	if err != nil || len(files) < 100 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	var sources [][]byte
	for _, file := range files {
		source, err := os.ReadFile(file)
		must(t, err)
		source = crlf(source)
		if !bytes.HasSuffix(source, []byte("\r\n")) {
			source = append(source, "\r\n"...) // POP3 cannot end a message in the middle of a line
		}
		sources = append(sources, source)
	}
	s, e := mailtest.Shared(t, servertest.Config{})
	s.Deliver(t, e.User("corpus"), "INBOX", sources...)
	shows := func(a *mail.Account) { a.Codes = mail.CodesShow } // the messages count as new
	for name, m := range map[string]*mailbox.Client{"IMAP": open(t, e, "corpus", shows).Client, "POP3": openPopOn(t, s, e.User("corpus"), shows).Client} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := m.List(t.Context(), account, mailbox.ListQuery{Limit: 500, Full: true, OldestFirst: true})
			if err != nil || len(p.Messages) != len(files) || p.HasMore || len(p.Issues) != 0 {
				t.Fatalf("%+v, %v", p, err)
			}
			for i, listed := range p.Messages {
				throughEveryDoor(t, m, files[i], sources[i], &listed)
			}
		})
	}
}

func throughEveryDoor(t *testing.T, m *mailbox.Client, name string, source []byte, listed *mailbox.Summary) {
	t.Helper()
	ref := listed.Ref
	if back, err := mail.ParseRef(ref.String()); err != nil || back != ref {
		t.Errorf("%s: %s comes back as %+v, %v", name, ref, back, err)
	}
	for _, most := range []int64{1_000_000, 5} {
		want := source[:min(len(source), max(int(most), 1024))]
		raw, err := m.Raw(t.Context(), ref, most)
		if err != nil || !bytes.Equal(raw.Source, want) || raw.Size != int64(len(source)) || raw.Truncated != (len(want) < len(source)) {
			t.Fatalf("%s: raw: %d of %d bytes: %v", name, len(raw.Source), len(source), err)
		}
	}
	all, err := m.Get(t.Context(), ref, mailbox.GetQuery{Headers: mailbox.HeadersAll, HTML: true, AttachmentText: true, Content: true})
	if err != nil || all.Subject != listed.Subject || all.Ref != ref {
		t.Fatalf("%s: %+v, %v", name, all, err)
	}
	for _, a := range all.Attachments {
		one, err := m.Attachment(t.Context(), ref, a.PartID)
		if err != nil {
			t.Fatal(name, err)
		}
		// Whose the line break before a boundary is, servers see differently.
		if !bytes.Equal(bytes.TrimRight(one.Content, "\r\n"), bytes.TrimRight(a.Content, "\r\n")) || one.ContentType != a.ContentType {
			t.Errorf("%s: attachment %s %s: %d bytes, with the message %s %d", name, a.PartID, one.ContentType, len(one.Content), a.ContentType, len(a.Content))
		}
	}
	if len(all.Attachments) == 0 {
		mailtest.WantKind(t, second(m.Attachment(t.Context(), ref, "")), mail.KindNotFound)
	}
	th, err := m.Thread(t.Context(), ref, mailbox.ThreadQuery{Limit: 200})
	if err != nil || !slices.ContainsFunc(th.Messages, func(m mailbox.ThreadMessage) bool { return m.Ref == ref }) {
		t.Errorf("%s is not in its own conversation: %v", name, err)
	}
}
