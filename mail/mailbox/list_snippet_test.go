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

// A list and a search know invitations and attachments as a single message does, from the
// first time on and in every folder; of hidden messages none of them tells.
func TestListsSearchesAndMessagesAgreeAboutAttachments(t *testing.T) {
	all := []letter{
		{Subject: "none none", Body: "hi"}, parted("none none", "alternative", plainPart, htmlPart), parted("attachments none", "mixed", plainPart, filePart),
		parted("none invitation", "alternative", plainPart, htmlPart, calendarPart), parted("none invitation", "mixed", plainPart, icsPart),
		parted("attachments invitation", "mixed", plainPart, calendarPart, filePart),
	}
	strange := parted("hidden attachments invitation", "mixed", plainPart, calendarPart, filePart)
	strange.From = "eve@example.net"
	marks := func(s *mailbox.Summary) string {
		return map[bool]string{true: "attachments", false: "none"}[s.HasAttachments] + " " + map[bool]string{true: "invitation", false: "none"}[s.Invitation]
	}
	t.Parallel()
	for _, e := range mailtest.SharedServers(t) { // the one in memory tells no dispositions
		for name, rules := range map[string]func(*mail.Account){"all": func(*mail.Account) {}, "rules": allowing("@example.org")} {
			t.Run(e.Name+" "+name, func(t *testing.T) {
				t.Parallel()
				b := open(t, e, "parts"+name, rules)
				b.folders("Work")
				b.Add("INBOX", all[:3]...)
				b.Add("Work", all[5])
				if name == "rules" {
					b.Add("INBOX", strange)
				}
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
				for _, tc := range []struct {
					q    mailbox.SearchQuery
					want int
				}{
					{mailbox.SearchQuery{Attachments: true}, 3},
					{mailbox.SearchQuery{Invitations: true, Unread: true, Snippet: 50}, 4},
					{mailbox.SearchQuery{Invitations: true, Subject: "none inv"}, 2},
					{mailbox.SearchQuery{Attachments: true, Invitations: true}, 2},
				} {
					p := b.search(tc.q)
					for i := range p.Messages {
						m := &p.Messages[i]
						if tc.q.Attachments && !m.HasAttachments || tc.q.Invitations && !m.Invitation || marks(m) != m.Subject {
							t.Errorf("%+v: found %q", tc.q, m.Subject)
						}
					}
					if len(p.Messages) != tc.want || p.Total != tc.want || len(p.Issues) > 0 {
						t.Errorf("%+v: %q of %d, %v, want %d", tc.q, found(p), p.Total, p.Issues, tc.want)
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

func TestListsAndSearchesShowTheOpeningOfEach(t *testing.T) {
	t.Parallel()
	letters, want := snippetLetters()
	for _, e := range mailtest.SharedEndpoints(t) {
		for name, rules := range map[string]func(*mail.Account){"all": func(*mail.Account) {}, "rules": allowing("bob@example.org")} {
			t.Run(e.Name+" "+name, func(t *testing.T) {
				t.Parallel()
				b := open(t, e, "openings"+name, rules)
				b.Add("INBOX", letters...)
				for _, m := range b.search(mailbox.SearchQuery{Folders: []string{"INBOX"}, Snippet: 60}).Messages {
					if i := int(m.Ref.UID) - 1; m.Snippet != want[i] {
						t.Errorf("a search: %s: %q, want %q", m.Subject, m.Snippet, want[i])
					}
				}
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
	for _, l := range letters {
		b.deliver(fmt.Sprintf("From: bob@example.org\r\nSubject: %s\r\n%s\r\n%s", l.Subject, l.Extra, l.Body))
	}
	for i, m := range b.list(mailbox.ListQuery{Snippet: 60, OldestFirst: true}).Messages {
		if m.Subject != letters[i].Subject || m.Snippet != want[i] {
			t.Errorf("%s: %q, want %q", m.Subject, m.Snippet, want[i])
		}
	}
}
