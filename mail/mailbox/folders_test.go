package mailbox_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// All folders are reached page by page, INBOX and those with a role first.
func TestFoldersGoOnUntilAllWereListed(t *testing.T) {
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "many")
		more, page := 225, 0 // more than a page has by default, which depends on no server
		if e.Name != "in memory" {
			more, page = 60, 50
		}
		for i := range more {
			b.folder(fmt.Sprintf("Archive of year %03d", i))
		}
		for _, name := range []string{"Projects", "Projects/B", "Projects/A b", "Projects/A/x", "Projects A"} {
			b.folder(name)
		}
		var names, roles []string
		for q := (mailbox.FolderQuery{Counts: true, Limit: page}); ; q.After = names[len(names)-1] {
			l, err := b.Folders(t.Context(), account, q)
			if err != nil || len(l.Folders) > cmp.Or(page, 200) || l.Truncated != (len(l.Folders) == cmp.Or(page, 200)) {
				t.Fatalf("%+v %v", l, err)
			}
			for _, f := range l.Folders {
				if f.Counts == nil && !f.NoSelect() {
					t.Errorf("%s was not counted", f.Name)
				}
				names = append(names, f.Name)
				if f.Role != "" {
					roles = append(roles, f.Role)
				}
			}
			if !l.Truncated {
				break
			}
		}
		all, err := b.Folders(t.Context(), account, mailbox.FolderQuery{Limit: 1000})
		if err != nil || all.Truncated || len(all.Folders) != len(names) || len(names) < more+6 {
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
		below := []string{}
		for _, name := range names[slices.Index(names, b.In("Projects")):] {
			if name != b.In("Projects/A") { // which not every server lists
				below = append(below, name)
			}
		}
		want := []string{b.In("Projects"), b.In("Projects/A/x"), b.In("Projects/A b"), b.In("Projects/B"), b.In("Projects A")}
		if !slices.Equal(below, want) {
			t.Errorf("%q, want %q", below, want)
		}
		_, err = b.Folders(t.Context(), account, mailbox.FolderQuery{After: "Nowhere"})
		mailtest.WantKind(t, err, mail.KindConflict)
	})
}
