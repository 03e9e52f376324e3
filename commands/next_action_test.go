package commands_test

import (
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

// TestEveryNextActionRunsAsWritten runs commands in every state that suggests how
// to go on, and then what was suggested.
func TestEveryNextActionRunsAsWritten(t *testing.T) {
	issue := mail.Issue{Kind: mail.KindRefused, Stage: "parse", UID: 2, Message: "It could not be read."}
	b := newBench(t, nil, work("work", mail.ReadWrite), work("other", mail.ReadWrite))
	list := summaries(3, 20, 0)
	b.ok(t, "config set default_account work")
	for _, test := range []struct {
		name, line, want string
		set              func(*fakeMailboxes)
	}{
		{"accounts", "mail accounts", "mail folders --account work", nil},
		{"one account", "mail accounts --account other", "mail folders --account other", nil},
		{"verify", "mail verify --account work", "mail list --account work", nil},
		{"folders", "mail folders --counts --account work --timeout 9", "mail folders --account work --counts --after 'a b' --timeout 9",
			func(s *fakeMailboxes) {
				s.folders = mailbox.FolderList{Folders: []mailbox.Folder{{Name: "INBOX"}, {Name: "a b"}}, Truncated: true}
			}},
		{"folders at the end", "mail folders --counts --account work --after 'a b'", "mail list --account work", nil},
		{"list", "mail list --account work --new --unread --after imap:work:INBOX:7:1 --since 2026-02-01 --until 2026-02-07 --full -n3 --fields messages,next_action --timeout 60",
			"mail list --unread --new --since 2026-02-01 --until 2026-02-07 --before imap:work:INBOX:7:3 --after imap:work:INBOX:7:1 --limit 3 --full --fields messages,next_action --timeout 60",
			func(s *fakeMailboxes) { s.page = mailbox.Page{Messages: list[:1], HasMore: true} }},
		{"list of the default account", "mail list", "mail list --before imap:work:INBOX:7:1", func(s *fakeMailboxes) { s.page = mailbox.Page{Messages: list, HasMore: true} }},
		{"folders of the default account", "mail folders --pattern 'a%'", "mail folders --account work --pattern a% --after a", func(s *fakeMailboxes) {
			s.folders = mailbox.FolderList{Folders: []mailbox.Folder{{Name: "a"}}, Truncated: true}
		}},
		{"search of the default account", "mail search", "mail search --account work --cursor c",
			func(s *fakeMailboxes) {
				s.search = mailbox.SearchPage{Page: mailbox.Page{Folder: "a", HasMore: true}, NextCursor: "c"}
			}},
		{"list with a time", "mail list --account work --since 2026-02-01T10:00:00+01:00", "mail list --since 2026-02-01T10:00:00+01:00 --before imap:work:INBOX:7:1",
			func(s *fakeMailboxes) { s.page = mailbox.Page{Messages: list, HasMore: true} }},
		{"list oldest first", "mail list --account work --oldest-first --before imap:work:INBOX:7:9", "mail list --before imap:work:INBOX:7:9 --after imap:work:INBOX:7:3 --oldest-first",
			func(s *fakeMailboxes) {
				s.page = mailbox.Page{Messages: []mailbox.Summary{list[2], list[0]}, HasMore: true}
			}},
		{"list where the last is unreadable", "mail list --account work", "mail list --before imap:work:INBOX:7:2",
			func(s *fakeMailboxes) {
				s.page = mailbox.Page{UIDValidity: 7, Messages: list[:1], HasMore: true, Issues: []mail.Issue{issue}}
			}},
		{"list where all are unreadable", "mail list --account work", "mail list --before imap:work:INBOX:7:2",
			func(s *fakeMailboxes) {
				s.page = mailbox.Page{UIDValidity: 7, HasMore: true, Issues: []mail.Issue{issue}}
			}},
		{"list with POP3", "mail list --account work -n2", "mail list --before pop3:work:b --limit 2",
			func(s *fakeMailboxes) { s.page = popPage("a", "b") }},
		{"list with POP3 oldest first", "mail list --account work --oldest-first --before pop3:work:z", "mail list --before pop3:work:z --after pop3:work:b --oldest-first",
			func(s *fakeMailboxes) { s.page = popPage("a", "b") }},
		{"list at the end", "mail list --account work", "mail get imap:work:INBOX:7:3", func(s *fakeMailboxes) { s.page = mailbox.Page{Messages: list} }},
		{"list where nothing is between", "mail list --account work --after imap:work:INBOX:7:2", "", func(s *fakeMailboxes) { s.page = mailbox.Page{Messages: list[:1], HasMore: true} }},
		{"watch", "mail watch --folder 'a b' --full -n3 --wait 30s --timeout 60 --account work",
			"mail watch --wait 30s --after 'imap:work:a b:7:9' --limit 3 --full --timeout 60",
			func(s *fakeMailboxes) {
				s.watch = mailbox.WatchPage{Page: mailbox.Page{UIDValidity: 7, Messages: list[:1]}, After: 9}
			}},
		{"watch of an empty folder", "mail watch --account work", "mail watch --after imap:work:INBOX:7:0",
			func(s *fakeMailboxes) { s.watch = mailbox.WatchPage{Page: mailbox.Page{UIDValidity: 7}} }},
		{"search", "mail search x --account work --folder a --from y --last-days 3 --snippet 60 -n1 --full --timeout 5",
			"mail search --account work --snippet 60 --limit 1 --cursor 'c/+= d' --full --timeout 5",
			func(s *fakeMailboxes) {
				s.search = mailbox.SearchPage{Page: mailbox.Page{Folder: "INBOX", Messages: list, HasMore: true}, NextCursor: "c/+= d"}
			}},
		{"search at the end", "mail search x --account work", "mail get imap:work:INBOX:7:3", func(s *fakeMailboxes) { s.search = mailbox.SearchPage{Page: mailbox.Page{Messages: list}} }},
		{"search that finds nothing in part", "mail search x y --account work --unread", "mail search --account work --folder all --unread x y", func(s *fakeMailboxes) {
			s.search = mailbox.SearchPage{Searched: []string{"INBOX"}, LeftOut: []string{"Junk"}, Page: mailbox.Page{Issues: []mail.Issue{issue}}}
		}},
		{"search that finds nothing anywhere", "mail search x --folder all", "mail list --account work", func(s *fakeMailboxes) { s.search = mailbox.SearchPage{} }},
		{"get", "mail get --account work --folder INBOX --uid 3 --headers all --html --attachment-text --attachment-chars 100 --chars 300 --fields message.body_text,next_action",
			"mail get --chars 300 --from-char 301 --fields message.body_text,next_action imap:work:INBOX:7:3",
			func(s *fakeMailboxes) {
				s.message = mailbox.Message{Summary: list[0], BodyTruncated: true, NextChar: 301}
			}},
		{"get at the end", "mail get imap:work:INBOX:7:3 --from-char 301", "", func(s *fakeMailboxes) { s.message = mailbox.Message{Summary: list[0]} }},
		{"attachment", "mail attachment imap:work:INBOX:7:3 --as-text --chars 100", "mail attachment --part 2 --as-text --chars 100 --from-char 101 imap:work:INBOX:7:3",
			func(s *fakeMailboxes) {
				s.part = mailbox.AttachmentContent{Ref: ref(3), Attachment: mailbox.Attachment{PartID: "2", Text: "x"}, NextChar: 101}
			}},
		{"raw", "mail raw imap:work:INBOX:7:3", "mail raw --max-bytes 1000000 imap:work:INBOX:7:3", func(s *fakeMailboxes) { s.raw = mailbox.RawMessage{Ref: ref(3), Truncated: true} }},
		{"raw at the end", "mail raw imap:work:INBOX:7:3 --max-bytes 1000000", "", func(s *fakeMailboxes) { s.raw = mailbox.RawMessage{Ref: ref(3), Truncated: true} }},
		{"thread", "mail thread imap:work:INBOX:7:3 --limit 10 --full", "mail thread --full imap:work:INBOX:7:3", func(s *fakeMailboxes) { s.thread = mailbox.Thread{Folder: "INBOX", Truncated: true} }},
		{"thread at the end", "mail thread imap:work:INBOX:7:3 --limit 200", "mail get imap:work:INBOX:7:3",
			func(s *fakeMailboxes) {
				s.thread = mailbox.Thread{Folder: "INBOX", Truncated: true, Messages: []mailbox.ThreadMessage{{Summary: list[0]}}}
			}},
		{"ack", "mail ack --account work --folder \"it's\" --uid 3,4", `mail list --account work --folder "it's" --new`, nil},
		{"copy", "mail copy imap:work:INBOX:7:3 --to 'A b' --to-account other", "mail list --account other --folder 'A b'", nil},
		{"move", "mail move imap:work:INBOX:7:3 --to Archive", "mail list --account work --folder Archive", nil},
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
			got := b.ok(t, test.line).next()
			if got != test.want {
				t.Fatalf("%s\n suggests %s\n     want %s", test.line, got, test.want)
			}
			if got == "" {
				return
			}
			tokens, err := gateway.Tokenize(got)
			if err != nil {
				t.Fatal(err)
			}
			found, err := b.registry.Resolve(tokens, everything)
			if err != nil || found.Command == nil {
				t.Fatalf("%s: %v", got, err)
			}
			if _, err := found.Command.Bind(found.Rest, time.UTC); err != nil {
				t.Fatalf("%s: %v", got, err)
			}
			if after := b.ok(t, got).next(); after == got && !strings.Contains(got, "--cursor") && !strings.HasPrefix(test.name, "list") && !strings.HasPrefix(test.name, "watch") && !strings.HasPrefix(test.name, "folders") {
				t.Errorf("%s suggests itself", got)
			}
		})
	}
}
