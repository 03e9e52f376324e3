package mailbox_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/emersion/go-imap/v2"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// All folders are reached page by page, INBOX and those with a role first, with their counts.
func Test001_3_FoldersTellTheirRoleAndCounts(t *testing.T) {
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "many")
		more, page := 225, 0 // more than a page has by default, which depends on no server
		if e.Name != "in memory" {
			more, page = 30, 25
		}
		for i := range more {
			b.folder(fmt.Sprintf("Archive of year %03d", i))
		}
		for _, name := range []string{"Projects", "Projects/B", "Projects/Bücher", "Projects/A/x", "Projects A"} {
			b.folder(name)
		}
		b.Add("INBOX", letter{Subject: "1"}, letter{Subject: "2", Flags: []imap.Flag{imap.FlagSeen}})
		b.Add("Projects/Bücher", letter{Subject: "3"})
		var names, roles []string
		found := map[string]mailbox.Folder{}
		for q := (mailbox.FolderQuery{Counts: true, Limit: page}); ; q.After = names[len(names)-1] {
			l, err := b.Folders(t.Context(), account, q)
			if err != nil || len(l.Issues) > 0 || len(l.Folders) > cmp.Or(page, 200) || l.Truncated != (len(l.Folders) == cmp.Or(page, 200)) {
				t.Fatalf("%+v %v", l, err)
			}
			for _, f := range l.Folders {
				if found[f.Name] = f; (f.Counts == nil) != f.NoSelect() {
					t.Errorf("%s: %+v", f.Name, f.Counts)
				}
				if names = append(names, f.Name); f.Role != "" {
					roles = append(roles, f.Role)
				}
			}
			if !l.Truncated {
				break
			}
		}
		inbox, books := found["INBOX"], found[b.In("Projects/Bücher")]
		if inbox.Role != "inbox" || inbox.Delimiter != map[bool]string{true: ".", false: "/"}[b.Root != ""] || inbox.Counts.Messages != 2 ||
			inbox.Counts.Unread != 1 || inbox.Counts.UIDNext != 3 || inbox.Counts.UIDValidity == 0 || books.Counts == nil || books.Counts.Messages != 1 {
			t.Errorf("%+v %+v, %+v", inbox, inbox.Counts, books)
		}
		all, err := b.Folders(t.Context(), account, mailbox.FolderQuery{Limit: 1000})
		if err != nil || all.Truncated || len(all.Folders) != len(names) || len(names) < more+6 || all.Folders[0].Counts != nil {
			t.Fatalf("%d folders by pages, %d at once: %v", len(names), len(all.Folders), err)
		}
		for i, f := range all.Folders {
			if f.Name != names[i] || (f.Role != "") != (i < len(roles)) {
				t.Errorf("%d: %q %q, by pages %q", i, f.Name, f.Role, names[i])
			}
		}
		if e.Name == "dovecot" && !slices.Equal(roles, []string{"inbox", "drafts", "sent", "archive", "junk", "trash"}) || names[0] != "INBOX" {
			t.Errorf("roles %q", roles)
		}
		projects := names[slices.Index(names, b.In("Projects")):]
		projects = slices.DeleteFunc(projects, func(name string) bool { return name == b.In("Projects/A") }) // which not every server lists
		want := []string{b.In("Projects"), b.In("Projects/A/x"), b.In("Projects/B"), b.In("Projects/Bücher"), b.In("Projects A")}
		if !slices.Equal(projects, want) {
			t.Errorf("%q, want %q", projects, want)
		}
		l, err := b.Folders(t.Context(), account, mailbox.FolderQuery{Pattern: b.In("Proj") + "*"})
		has := func(name string) bool {
			return slices.ContainsFunc(l.Folders, func(f mailbox.Folder) bool { return f.Name == name })
		}
		if err != nil || !has(b.In("Projects")) || has("INBOX") {
			t.Errorf("%+v %v", l, err)
		}
		mailtest.WantKind(t, second(b.Folders(t.Context(), account, mailbox.FolderQuery{After: "Nowhere"})), mail.KindConflict)
	})
}
