package commands_test

import (
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

// TestEveryNextActionRunsAsWritten runs commands in every state that suggests how
// to go on, and then what was suggested.
func TestEveryNextActionRunsAsWritten(t *testing.T) {
	issue := mail.Issue{Kind: mail.KindRefused, Stage: "parse", UID: 2, Message: "It could not be read."}
	b := newFixture(t, nil, work("work", mail.ReadWrite), work("other", mail.ReadWrite))
	list := summaries(3, 20, 0)
	b.OK(t, "config set default_account work")
	for _, test := range []struct {
		name, line, want string
		set              func(*fakeMailboxes)
	}{
		{"folders", "mail folders --counts --account work --timeout 9", "mail folders --account work --counts --after 'a b' --timeout 9",
			func(s *fakeMailboxes) {
				s.folders = mailbox.FolderList{Folders: []mailbox.Folder{{Name: "INBOX"}, {Name: "a b"}}, Truncated: true}
			}},
		{"list where the last is unreadable", "mail list --account work", "mail list --before imap:work:INBOX:7:2",
			func(s *fakeMailboxes) {
				s.page = mailbox.Page{UIDValidity: 7, Messages: list[:1], HasMore: true, Next: ref(2), Issues: []mail.Issue{issue}}
			}},
		{"list where all are unreadable", "mail list --account work", "mail list --before imap:work:INBOX:7:2",
			func(s *fakeMailboxes) {
				s.page = mailbox.Page{UIDValidity: 7, HasMore: true, Next: ref(2), Issues: []mail.Issue{issue}}
			}},
		{"list with POP3", "mail list --account work -n2", "mail list --before pop3:work:b --limit 2",
			func(s *fakeMailboxes) { s.page = popPage("a", "b") }},
		{"list with POP3 oldest first", "mail list --account work --oldest-first --before pop3:work:z", "mail list --before pop3:work:z --after pop3:work:b --oldest-first",
			func(s *fakeMailboxes) { s.page = popPage("a", "b") }},
		{"list where nothing is between", "mail list --account work --after imap:work:INBOX:7:2", "", func(s *fakeMailboxes) { s.page = mailbox.Page{Messages: list[:1], HasMore: true} }},
		{"watch of an empty folder", "mail watch --account work", "mail watch --after imap:work:INBOX:7:0",
			func(s *fakeMailboxes) { s.watch = mailbox.WatchPage{Page: mailbox.Page{UIDValidity: 7}} }},
		{"search that finds nothing in part", "mail search x y --account work --unread", "mail search --account work --folder all --unread x y", func(s *fakeMailboxes) {
			s.search = mailbox.SearchPage{Searched: []string{"INBOX"}, LeftOut: []string{"Junk"}, Page: mailbox.Page{Issues: []mail.Issue{issue}}}
		}},
		{"copy", "mail copy imap:work:INBOX:7:3 --to 'A b' --to-account other", "mail list --account other --folder 'A b'", nil},
		{"copy to a name like an option", "mail copy imap:work:INBOX:7:3 --to=-x", "mail list --account work --folder=-x", nil},
		{"ack in a name like an option", "mail ack --account work --folder=-x --uid 3", "mail list --account work --folder=-x --new", nil},
		{"move of nothing", "mail move imap:work:INBOX:7:3 --to Archive", "", func(s *fakeMailboxes) { s.changed = mailbox.Changed{Issues: []mail.Issue{issue}} }},
		{"allow", "allow in add @example.org --account work", "account edit work --allow-in on", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			*b.fakeMailboxes = fakeMailboxes{}
			if test.set != nil {
				test.set(b.fakeMailboxes)
			}
			if b.fakeMailboxes.message.Ref == (mail.Ref{}) {
				b.fakeMailboxes.message.Summary = list[0]
			}
			got := b.OK(t, test.line).Next()
			if got != test.want {
				t.Fatalf("%s\n suggests %s\n     want %s", test.line, got, test.want)
			}
			if got == "" {
				return
			}
			b.Binds(t, got)
			if after := b.OK(t, got).Next(); after == got && !strings.Contains(got, "--cursor") && !strings.HasPrefix(test.name, "list") && !strings.HasPrefix(test.name, "watch") && !strings.HasPrefix(test.name, "folders") {
				t.Errorf("%s suggests itself", got)
			}
		})
	}
}
