package mailbox_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/internal/testmain"
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

// What other programs were reported to read wrongly is read right.
func TestReports(t *testing.T) {
	t.Parallel()
	var files []string
	var sources [][]byte
	facts := map[string][]string{}
	for _, c := range testmain.Table[struct{ File, Source, Says string }](t, "testdata/reports.txt") {
		if facts[c.File] == nil {
			source, err := os.ReadFile("testdata/reports/" + c.File + ".eml")
			must(t, err)
			files, sources = append(files, c.File), append(sources, source)
		}
		facts[c.File] = append(facts[c.File], c.Says)
	}
	s, e := mailtest.Shared(t, servertest.Config{})
	s.Deliver(t, e.User("reports"), "INBOX", sources...)
	b := open(t, e, "reports", func(a *mail.Account) { a.Codes = mail.CodesShow })
	p, err := b.List(t.Context(), account, mailbox.ListQuery{Limit: 500, Full: true, OldestFirst: true})
	if err != nil || len(p.Messages) != len(files) {
		t.Fatalf("%+v, %v", p, err)
	}
	for i, listed := range p.Messages {
		m, err := b.Get(t.Context(), listed.Ref, mailbox.GetQuery{AttachmentText: true})
		if err != nil {
			t.Errorf("%s: %v", files[i], err)
			continue
		}
		said := factsOf(m)
		for _, want := range facts[files[i]] {
			if not, is := strings.CutPrefix(want, "not: "); is == strings.Contains(said, strings.TrimPrefix(want, "not: ")) {
				t.Errorf("%s does not say %q, or should not say %q:\n%s", files[i], want, not, said)
			}
		}
		if listed.Subject != m.Subject || !listed.Date.Equal(m.Date) {
			t.Errorf("%s is listed as %q of %v, and read as %q of %v", files[i], listed.Subject, listed.Date, m.Subject, m.Date)
		}
	}
}

// factsOf is a message in words, a fact a line.
func factsOf(m *mailbox.Message) string {
	var out strings.Builder
	say := func(what string, v any) { fmt.Fprintf(&out, "%s: %v\n", what, v) }
	say("subject", m.Subject)
	for _, a := range m.From {
		say("from", a)
	}
	for _, a := range m.To {
		say("to", a)
	}
	say("date", m.Date.UTC().Format(time.RFC3339))
	for line := range strings.SplitSeq(strings.TrimRight(m.BodyText, "\n"), "\n") {
		say("text", line)
	}
	for _, a := range m.Attachments {
		say("file", strings.Join([]string{a.Filename, a.ContentType, a.Text}, " "))
		for _, ev := range a.Events {
			times := ev.Start.UTC().Format("2006-01-02T15:04Z")
			if !ev.End.IsZero() {
				times += " " + ev.End.UTC().Format("2006-01-02T15:04Z")
			}
			say("event", ev.Summary+" "+times)
		}
	}
	for _, i := range m.Issues {
		say("issue", i.Message)
	}
	return out.String()
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
