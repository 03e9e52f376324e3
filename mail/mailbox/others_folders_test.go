package mailbox_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// TestFoldersOfOthers is on a server with a public namespace and another user's folder, into
// both of which the server lets everybody write.
func TestFoldersOfOthers(t *testing.T) {
	t.Parallel()
	s, e := mailtest.Dovecot(t, servertest.Config{ACL: true, Others: true}) // public folders are everybody's
	open(t, e, "eve")
	s.Share(t, e.User("eve"), "Team", "lrwstipekx")
	t.Run("are used where they are allowed", func(t *testing.T) { allowedFoldersOfOthersAreUsed(t, e) })
	t.Run("have no role", func(t *testing.T) { rolesCountAmongOwnFoldersAlone(t, e) })
	t.Run("are not written to", func(t *testing.T) { nothingIsWrittenToFoldersOfOthers(t, e) })
}

// othersFolders are the folders of that server that are not the person's.
var othersFolders = []string{"Public/board", "shared/eve/Team"}

// Mail leaves by the outbox alone: nothing is written to a folder that others read.
func nothingIsWrittenToFoldersOfOthers(t *testing.T, e mailtest.Endpoint) {
	b := open(t, e, "others", writable, func(a *mail.Account) { a.AllowOut = mail.AllowList{Enabled: true} })
	b.Add("INBOX", letter{Subject: "code 482913"}, letter{Subject: "second"})
	for _, folder := range othersFolders {
		ref, theirs := b.refs("INBOX", 1), b.refs(folder, b.Add(folder, letter{Subject: "theirs"})...)
		for name, change := range map[string]func() (*mailbox.Changed, error){
			"copy":      func() (*mailbox.Changed, error) { return b.Copy(t.Context(), account, ref, "", folder) },
			"move":      func() (*mailbox.Changed, error) { return b.Move(t.Context(), account, ref, folder) },
			"copy into": func() (*mailbox.Changed, error) { return b.Copy(t.Context(), account, theirs, "", folder+"/x") },
			"move out":  func() (*mailbox.Changed, error) { return b.Move(t.Context(), account, theirs, "INBOX") },
			"flags": func() (*mailbox.Changed, error) {
				return b.SetFlags(t.Context(), account, theirs, []string{"code-482913"}, nil)
			},
			"mark-read": func() (*mailbox.Changed, error) { return b.MarkRead(t.Context(), account, theirs) },
			"trash":     func() (*mailbox.Changed, error) { return b.Trash(t.Context(), account, theirs) },
			"delete":    func() (*mailbox.Changed, error) { return b.Delete(t.Context(), account, theirs) },
		} {
			for range 2 { // cold, warm
				if _, err := change(); err == nil {
					t.Errorf("%s: %s was done", folder, name)
				} else if e := mailtest.WantKind(t, err, mail.KindReadOnly); e.Advice != mail.AdviceAllowFolder || e.Detail == "" {
					t.Errorf("%s: %s: %+v", folder, name, e)
				}
			}
		}
		b.want(folder, "theirs")
	}
	b.want("INBOX", "code 482913", "second")
}

// A folder for sent mail or drafts that is not the person's own is neither a place for
// what is sent and drafted here nor one where the inbound list does not hold.
func rolesCountAmongOwnFoldersAlone(t *testing.T, e mailtest.Endpoint) {
	b := open(t, e, "roles", writable, allowing("bob@example.org"))
	must(t, b.Admin.Delete("Sent").Wait())
	mine := letter{From: "roles@example.org", Subject: "forged"}
	b.Add("Public/Sent", mine)
	if got := uidsOf(b.list(mailbox.ListQuery{Folder: "Public/Sent"})); len(got) != 0 {
		t.Errorf("the list is off there: %v", got)
	}
	put, err := b.File(t.Context(), "mail send", account, &mailbox.OwnMessage{Role: "sent", Source: []byte("From: roles@example.org\r\n\r\nx\r\n")})
	if err == nil && put.Folder == "Public/Sent" {
		t.Errorf("filed in %s", put.Folder)
	}
}

// Nothing but sending puts a message into Sent, and what was drafted here cannot come to
// stand where received mail stands.
func TestNothingIsPlantedInSentOrInbox(t *testing.T) {
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "plant", writable)
		b.folders("Sent", "Drafts", "Archive", "Trash")
		draft := func() []mail.Ref {
			put, err := b.File(t.Context(), "mail draft", account, &mailbox.OwnMessage{Role: "drafts", Flags: []string{`\Draft`, `\Seen`},
				Source: []byte("From: boss@example.org\r\nSubject: pay\r\n\r\nnow\r\n")})
			must(t, err)
			return []mail.Ref{put.Ref}
		}
		inbox := b.refs("INBOX", b.Add("INBOX", letter{Subject: "a"})...)
		for _, to := range []string{"Sent", "INBOX", "Archive"} {
			for name, change := range map[string]func() (*mailbox.Changed, error){
				"move a draft": func() (*mailbox.Changed, error) { return b.Move(t.Context(), account, draft(), b.In(to)) },
				"copy a draft": func() (*mailbox.Changed, error) { return b.Copy(t.Context(), account, draft(), "", b.In(to)) },
			} {
				if _, err := change(); err == nil {
					t.Errorf("%s to %s was done", name, to)
				}
			}
		}
		for _, to := range []string{"Sent", "sent", "Sent Messages", "Drafts"} {
			if _, err := b.Copy(t.Context(), account, inbox, "", b.In(to)); err == nil || !strings.Contains(err.Error(), "Only what is") {
				t.Errorf("a copy to %s: %v", to, err)
			}
			if _, err := b.Move(t.Context(), account, inbox, b.In(to)); err == nil || !strings.Contains(err.Error(), "Only what is") {
				t.Errorf("a move to %s: %v", to, err)
			}
		}
		// By the trash.
		gone, err := b.Move(t.Context(), account, draft(), b.In("Trash"))
		must(t, err)
		if _, err := b.Move(t.Context(), account, []mail.Ref{gone.Messages[0].New}, "INBOX"); err == nil {
			t.Error("a draft was moved from the trash to INBOX")
		}
		if _, err := b.SetFlags(t.Context(), account, []mail.Ref{gone.Messages[0].New}, nil, []string{`\Draft`}); err == nil {
			t.Error("a draft was made a message")
		}
		if got := b.subjects("INBOX"); !slices.Equal(got, []string{"a"}) {
			t.Errorf("INBOX has %q", got)
		}
		b.want("Sent")
	})
}

// What the administrator allows can be used as any folder, and nothing beside it.
func allowedFoldersOfOthersAreUsed(t *testing.T, e mailtest.Endpoint) {
	b := open(t, e, "allowed", writable, func(a *mail.Account) { a.AllowFolders = othersFolders })
	b.Add("INBOX", letter{Subject: "a"}, letter{Subject: "b"})
	for i, folder := range othersFolders {
		if c, err := b.Copy(t.Context(), account, b.refs("INBOX", uint32(i)+1), "", folder); err != nil || len(c.Messages) != 1 {
			t.Fatalf("%+v %v", c, err)
		}
		must(t, second(b.SetFlags(t.Context(), account, b.refs(folder, 1), []string{"x"}, nil)))
		must(t, second(b.MarkRead(t.Context(), account, b.refs(folder, 1))))
		must(t, second(b.Move(t.Context(), account, b.refs(folder, 1), "Archive")))
		b.want(folder)
	}
	mailtest.WantKind(t, second(b.Copy(t.Context(), account, b.refs("INBOX", 1), "", "Public/Sent")), mail.KindReadOnly)
	a := b.Dir.Known[account]
	a.AllowFolders = nil // taken back: at once, also on a connection that has the folder open
	b.Dir.Set(a)
	mailtest.WantKind(t, second(b.Copy(t.Context(), account, b.refs("INBOX", 1), "", othersFolders[0])), mail.KindReadOnly)
}

// Where a server has no NAMESPACE, the usual names of shared folders are others', and a
// folder called Outbox is one that the server may send from.
func TestFoldersOfOthersWithoutNamespace(t *testing.T) {
	b := open(t, mailtest.InMemory(t), "nameless", writable)
	b.Add("INBOX", letter{Subject: "a"})
	for _, folder := range []string{"Public/board", "Shared Folders/x", "Other Users/eve", "user.eve", "#shared/x", "Outbox", "INBOX/Outbox"} {
		b.folder(folder)
		_, err := b.Copy(t.Context(), account, b.refs("INBOX", 1), "", folder)
		if e := mailtest.WantKind(t, err, mail.KindReadOnly); e.Advice != mail.AdviceAllowFolder {
			t.Errorf("%s: %+v", folder, e)
		}
		b.want(folder)
	}
	a := b.Dir.Known[account]
	a.AllowFolders = []string{"Outbox", "Public/board"}
	b.Dir.Set(a)
	for _, folder := range a.AllowFolders {
		must(t, second(b.Copy(t.Context(), account, b.refs("INBOX", 1), "", folder)))
	}
}

// Where the policy hides messages, no answer has the UID of a new one: two of them would
// tell how many messages have come between.
func TestNewIDsDoNotCountHiddenMessages(t *testing.T) {
	b := onDovecot(t, "counting", writable, allowing("bob@example.org"))
	b.Add("INBOX", letter{Subject: "a"}, letter{Subject: "b"})
	for i, change := range []func() (*mailbox.Changed, error){
		func() (*mailbox.Changed, error) { return b.Copy(t.Context(), account, b.refs("INBOX", 1), "", "INBOX") },
		func() (*mailbox.Changed, error) {
			return b.Copy(t.Context(), account, b.refs("INBOX", 1), "", "Archive")
		},
		func() (*mailbox.Changed, error) { return b.Move(t.Context(), account, b.refs("INBOX", 2), "Archive") },
	} {
		c, err := change()
		if err != nil || len(c.Messages) != 1 || c.Messages[0].New != (mail.Ref{}) {
			t.Errorf("%d: %+v %v", i, c, err)
		}
	}
}

// Mail of an account that may not send does not leave by another that may.
func TestWhatMayNotLeaveOneAccountDoesNotLeaveByAnother(t *testing.T) {
	e := dovecot(t)
	b := open(t, e, "private", func(a *mail.Account) { a.AllowOut = mail.AllowList{Enabled: true} })
	b.Add("INBOX", letter{Subject: "private"})
	work := open(t, e, "work", writable).Dir.Known[account]
	work.Name = "work"
	b.Dir.Set(work)
	_, err := b.Copy(t.Context(), account, b.refs("INBOX", 1), "work", "INBOX")
	if e := mailtest.WantKind(t, err, mail.KindReadOnly); e.Advice != mail.AdviceOutboundOfBoth {
		t.Errorf("%+v", e)
	}
	if p, err := b.List(t.Context(), "work", mailbox.ListQuery{}); err != nil || len(p.Messages) != 0 {
		t.Fatalf("%+v %v", p, err)
	}
	for _, change := range []func(private, work *mail.Account){
		func(_, work *mail.Account) { work.AllowOut = mail.AllowList{Enabled: true} },
		func(_, work *mail.Account) { work.Mode = mail.Draft },
		func(private, _ *mail.Account) { private.Mode, private.AllowOut = mail.ReadWrite, mail.AllowList{} },
	} {
		p, w := b.Dir.Known[account], work
		change(&p, &w)
		b.Dir.Set(p)
		b.Dir.Set(w)
		if c, err := b.Copy(t.Context(), account, b.refs("INBOX", 1), "work", "INBOX"); err != nil || len(c.Messages) != 1 {
			t.Errorf("%+v %v", c, err)
		}
		for _, folder := range []string{"Sent", "Drafts"} {
			if _, err := b.Copy(t.Context(), account, b.refs("INBOX", 1), "work", folder); err == nil {
				t.Errorf("copied to %s", folder)
			}
		}
	}
}

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
