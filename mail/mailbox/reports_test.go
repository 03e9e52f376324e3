package mailbox_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

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
