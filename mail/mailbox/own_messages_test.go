package mailbox_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// With an inbound list, messages that the account's own address wrote are visible in its
// folders for sent messages and drafts, and nowhere else: a stranger can write any From.
func TestOwnMessagesAreVisibleInOwnFolders(t *testing.T) {
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		const own = "ownfolders@example.org"
		b := open(t, e, "ownfolders", writable, allowing("bob@example.org"))
		extra, body := mixed("Content-Type: text/plain\r\n\r\nhi", attachment("f.bin", 100))
		b.folders("Sent", "Drafts", "Archive")
		wrote := func(from string) letter { return letter{From: from, Subject: "by " + from, Extra: extra, Body: body} }
		strangers := []letter{wrote("eve@evil.example"), wrote(own + ", eve@evil.example"), wrote("eve@evil.example\r\nFrom: " + own),
			wrote(`"` + own + `" <eve@evil.example>`), wrote("ownfolders@example.net"), wrote("x.ownfolders@example.org")}
		for folder, visible := range map[string]bool{"INBOX": false, "Archive": false, "Sent": true, "Drafts": true} {
			hidden := b.Add(folder, strangers...)
			mine := b.Add(folder, wrote("Me <OWNFOLDERS@example.org>"))[0]
			friend := b.Add(folder, wrote("bob@example.org"))[0]
			shown := []uint32{friend}
			if visible {
				shown = []uint32{mine, friend}
			} else {
				hidden = append(hidden, mine)
			}
			for range 2 { // cold, warm
				if got := uidsOf(b.list(mailbox.ListQuery{Folder: b.In(folder), OldestFirst: true})); !slices.Equal(got, shown) {
					t.Errorf("%s: listed %v, want %v", folder, got, shown)
				}
			}
			if p := b.search(mailbox.SearchQuery{Folders: []string{b.In(folder)}, Subject: "by", Snippet: 200}); p.Total != len(shown) || len(p.Messages) != len(shown) {
				t.Errorf("%s: found %d, %+v", folder, p.Total, p.Messages)
			}
			if c := counts(t, b, b.In(folder)); c == nil || int(c.Messages) != len(shown) {
				t.Errorf("%s: counts %+v", folder, c)
			}
			for _, name := range append(readers, "flags") {
				for _, uid := range shown {
					if err := b.through(name, b.Ref(folder, uid)); err != nil {
						t.Errorf("%s: %s of %d: %v", folder, name, uid, err)
					}
				}
				for _, uid := range hidden {
					if e := mailtest.WantKind(t, b.through(name, b.Ref(folder, uid)), mail.KindNotFound); e.Reason != "filtered" {
						t.Errorf("%s: %s of %d: the audit is told %q", folder, name, uid, e.Reason)
					}
				}
			}
		}
	})
}

// Each method finds out by itself, on a new connection, which folders are the account's own.
func TestOwnFoldersAreFoundFromEveryDoor(t *testing.T) {
	e := dovecot(t)
	extra, body := mixed("Content-Type: text/plain\r\n\r\nhi", attachment("f.bin", 100))
	for _, name := range append(readers, "flags") {
		b := open(t, e, "owndoor"+name, writable, allowing("bob@example.org"))
		b.folders("Sent")
		uid := b.Add("Sent", letter{From: fmt.Sprintf("owndoor%s@example.org", name), Extra: extra, Body: body})[0]
		if err := b.through(name, b.Ref("Sent", uid)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A draft filed here can be read at once, also where its folder was made by that.
func TestADraftIsReadableAsSoonAsItIsFiled(t *testing.T) {
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "owndraft", writable, allowing("bob@example.org"))
		b.list(mailbox.ListQuery{Folder: "INBOX"})
		b.folders("Drafts")
		put, err := b.File(t.Context(), "mail draft", account, &mailbox.OwnMessage{Role: "drafts", Source: []byte("From: owndraft@example.org\r\nSubject: x\r\n\r\ny\r\n")})
		must(t, err)
		if put.Ref != (mail.Ref{}) {
			t.Errorf("its UID counts the hidden ones before it: %v", put.Ref)
		}
		if p := b.list(mailbox.ListQuery{Folder: put.Folder}); len(p.Messages) != 1 {
			t.Errorf("%+v", p)
		}
	})
}
