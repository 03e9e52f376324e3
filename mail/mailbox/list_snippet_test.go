package mailbox_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// parted is a letter of several parts, each with its own header.
func parted(subject, multipart string, parts ...string) letter {
	return letter{Subject: subject, Extra: "MIME-Version: 1.0\r\nContent-Type: multipart/" + multipart + "; boundary=b\r\n",
		Body: "--b\r\n" + strings.Join(parts, "\r\n--b\r\n") + "\r\n--b--\r\n"}
}

const (
	plainPart    = "Content-Type: text/plain; charset=utf-8\r\n\r\nhello"
	htmlPart     = "Content-Type: text/html; charset=utf-8\r\n\r\n<p>hello</p>"
	calendarPart = "Content-Type: text/calendar; method=REQUEST\r\n\r\nBEGIN:VCALENDAR\r\nEND:VCALENDAR"
	icsPart      = "Content-Type: application/ics; name=i.ics\r\nContent-Disposition: attachment; filename=i.ics\r\n\r\nBEGIN:VCALENDAR\r\nEND:VCALENDAR"
	filePart     = "Content-Type: application/pdf\r\nContent-Disposition: attachment; filename=a.pdf\r\n\r\n%PDF"
)

// A list knows invitations and attachments as a single message does, from the first time on.
func TestListsAndMessagesAgreeAboutAttachments(t *testing.T) {
	all := []letter{
		{Subject: "none none", Body: "hi"}, parted("none none", "alternative", plainPart, htmlPart), parted("attachments none", "mixed", plainPart, filePart),
		parted("none invitation", "alternative", plainPart, htmlPart, calendarPart), parted("none invitation", "mixed", plainPart, icsPart),
		parted("attachments invitation", "mixed", plainPart, calendarPart, filePart),
	}
	marks := func(s *mailbox.Summary) string {
		return map[bool]string{true: "attachments", false: "none"}[s.HasAttachments] + " " + map[bool]string{true: "invitation", false: "none"}[s.Invitation]
	}
	for _, e := range mailtest.Endpoints(t) {
		if e.Name == "in memory" {
			continue // its BODYSTRUCTURE has no dispositions
		}
		for name, rules := range map[string]func(*mail.Account){"all": func(*mail.Account) {}, "rules": func(a *mail.Account) {
			a.AllowIn = mail.AllowList{Enabled: true, Entries: []string{"@example.org"}}
		}} {
			t.Run(e.Name+" "+name, func(t *testing.T) {
				b := open(t, e, "parts"+name, rules)
				b.Add("INBOX", all[:3]...)
				b.list(mailbox.ListQuery{})
				b.Add("INBOX", all[3:]...)
				for round := range 2 {
					for _, q := range []mailbox.ListQuery{{}, {Full: true}, {Snippet: 60}} {
						p := b.list(q)
						if len(p.Messages) != len(all) || len(p.Issues) > 0 {
							t.Fatalf("%+v", p)
						}
						for i := range p.Messages {
							m := &p.Messages[i]
							one, err := b.Get(t.Context(), m.Ref, mailbox.GetQuery{})
							if err != nil || marks(m) != m.Subject || marks(&one.Summary) != m.Subject {
								t.Errorf("round %d: %q: list %q, get %q, %v", round, m.Subject, marks(m), marks(&one.Summary), err)
							}
						}
					}
				}
			})
		}
	}
}

// snippetLetters are texts and what a list shows of them.
func snippetLetters() (letters []letter, want []string) {
	long := strings.Repeat("word ", 4000)
	letters = []letter{
		{Subject: "short", Body: "Hello,\r\n\r\nis this   new?\r\n"},
		{Subject: "answer", Body: "New words.\r\n\r\nOn Monday Bob wrote:\r\n> old words\r\n"},
		{Subject: "long", Body: long},
		parted("parts", "mixed", "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\nR3LDvMOfZQ==", filePart),
		parted("html", "alternative", "Content-Type: text/html; charset=utf-8\r\n\r\n<style>"+strings.Repeat("p { color: red }\r\n", 300)+"</style><p>shown</p>"),
		{Subject: "empty"},
	}
	return letters, []string{"Hello, is this new?", "New words.", long[:59] + "…", "Grüße", "shown", ""}
}

func TestListShowsTheOpeningOfEach(t *testing.T) {
	letters, want := snippetLetters()
	for _, e := range mailtest.Endpoints(t) {
		for name, rules := range map[string]func(*mail.Account){"all": func(*mail.Account) {}, "rules": func(a *mail.Account) {
			a.AllowIn = mail.AllowList{Enabled: true, Entries: []string{"bob@example.org"}}
		}} {
			t.Run(e.Name+" "+name, func(t *testing.T) {
				b := open(t, e, "openings"+name, rules)
				b.Add("INBOX", letters...)
				for _, q := range []mailbox.ListQuery{{Snippet: 60, OldestFirst: true}, {Snippet: 60, Unread: true, OldestFirst: true}, {Snippet: 1, OldestFirst: true}, {OldestFirst: true}} {
					for i, m := range b.list(q).Messages {
						switch expected := want[i]; {
						case q.Snippet == 0 && m.Snippet != "", q.Snippet == 60 && m.Snippet != expected, q.Snippet == 1 && len([]rune(m.Snippet)) > 50:
							t.Errorf("%+v: %s: %q, want %q", q, m.Subject, m.Snippet, expected)
						}
					}
				}
			})
		}
	}
}

func TestPOP3ListShowsTheOpeningOfEach(t *testing.T) {
	b := openPop(t, "popopenings")
	letters, want := snippetLetters()
	var raw [][]byte
	for i, l := range letters {
		raw = append(raw, fmt.Appendf(nil, "From: bob@example.org\r\nSubject: %s\r\nMessage-ID: <%d@x>\r\n%s\r\n%s", l.Subject, i, l.Extra, l.Body))
	}
	b.s.Deliver(t, b.user, "INBOX", raw...)
	p := b.list(mailbox.ListQuery{Snippet: 60, OldestFirst: true})
	if len(p.Messages) != len(want) {
		t.Fatalf("%+v", p)
	}
	for _, m := range p.Messages {
		i := 0
		for letters[i].Subject != m.Subject {
			i++
		}
		if m.Snippet != want[i] {
			t.Errorf("%s: %q, want %q", m.Subject, m.Snippet, want[i])
		}
	}
}
