package mailbox_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/emersion/go-imap/v2"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

func TestTrashMovesIntoTheTrashAndBack(t *testing.T) {
	onWriters(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "trash", writable)
		b.folders("Trash")
		u := b.Add("INBOX", letter{Subject: "a"}, letter{Subject: "b"}, letter{Subject: "c", Flags: []imap.Flag{imap.FlagDeleted}}, letter{Subject: "d"})
		c, err := b.Trash(t.Context(), account, b.refs("INBOX", u[0], u[3], 999))
		if err != nil || c.To != b.In("Trash") || len(c.Messages) != 2 || len(c.Issues) != 1 {
			t.Fatalf("%+v %v", c, err)
		}
		for _, pattern := range []string{"", b.In("T") + "*"} {
			l, err := b.Folders(t.Context(), account, mailbox.FolderQuery{Pattern: pattern})
			if err != nil || !slices.ContainsFunc(l.Folders, func(f mailbox.Folder) bool { return f.Name == c.To && f.Role == "trash" }) {
				t.Errorf("folders %q: %+v %v", pattern, l, err)
			}
		}
		b.want("INBOX", "b", `c \deleted`)
		if got := b.subjects("Trash"); len(got) != 2 || !strings.HasPrefix(got[0], "a") || !strings.HasPrefix(got[1], "d") {
			t.Errorf("the trash holds %q", got)
		}
		_, err = b.Trash(t.Context(), account, []mail.Ref{c.Messages[1].New})
		if e := mailtest.WantKind(t, err, mail.KindInvalid); e != nil && e.Advice != mail.AdviceDelete {
			t.Errorf("%+v", e)
		}
		must(t, second(b.Move(t.Context(), account, []mail.Ref{c.Messages[1].New}, "INBOX")))
		b.want("INBOX", "b", `c \deleted`, "d")
	})
}

func TestNothingIsTrashedWithoutATrash(t *testing.T) {
	none := [2]string{"* LIST () \".\" INBOX\r\n* LIST (\\NoSelect) \".\" Trash\r\n", ""}
	k := serveFake(t, "UIDPLUS MOVE", map[string][][2]string{"UID FETCH": {{"* 1 FETCH (UID 5 FLAGS ())\r\n", ""}}, "LIST": {none, none, {"* LIST () \".\" Trash\r\n", ""}}})
	_, err := k.Trash(t.Context(), account, kept(5))
	if e := mailtest.WantKind(t, err, mail.KindNotFound); e != nil && e.Advice != mail.AdviceMakeTrash {
		t.Errorf("%+v", e)
	}
	if k.sent("UID MOVE")+k.sent("UID STORE")+k.sent("UID EXPUNGE") > 0 {
		t.Errorf("sent %q", k.commands)
	}
	if c, err := k.Trash(t.Context(), account, kept(5)); err != nil || c.To != "Trash" || k.sent("UID MOVE") != 1 {
		t.Errorf("a trash that was made since: %+v %v", c, err)
	}
}

// The right to delete for good and the mode decide what a real server is asked to do. An
// account made before the right existed deletes unasked in mode approve; a new one does not.
func TestModesAndTheRightToDelete(t *testing.T) {
	e := dovecot(t)
	for name, tt := range map[string]struct {
		mode    mail.Mode
		destroy mail.Destroy
		files   bool
		deletes bool
		advice  mail.Advice
	}{
		"ro":             {mail.ReadOnly, mail.DestroyOn, false, false, mail.AdviceAllowChanges},
		"draft":          {mail.Draft, mail.DestroyOff, true, false, mail.AdviceAllowDestroy},
		"draft-on":       {mail.Draft, mail.DestroyOn, true, false, mail.AdviceTrashInstead},
		"approve":        {mail.Approve, mail.DestroyOff, true, false, mail.AdviceAllowDestroy},
		"approve-on":     {mail.Approve, mail.DestroyOn, true, false, mail.AdviceTrashInstead},
		"approve-before": {mail.Approve, mail.DestroyUnset, true, true, ""},
		"rw":             {mail.ReadWrite, mail.DestroyOff, true, false, mail.AdviceAllowDestroy},
		"rw-on":          {mail.ReadWrite, mail.DestroyOn, true, true, ""},
		"rw-before":      {mail.ReadWrite, mail.DestroyUnset, true, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, e, "rights-"+name, func(a *mail.Account) { a.Mode, a.Destroy = tt.mode, tt.destroy })
			u := b.Add("INBOX", letter{Subject: "kept"}, letter{Subject: "doomed"})
			for _, what := range changes[:len(changes)-1] { // without delete
				if err := b.through(what, b.refs("INBOX", b.Add("INBOX", letter{Subject: what})...)...); (err == nil) != tt.files {
					t.Errorf("%s: %v", what, err)
				}
			}
			_, err := b.Delete(t.Context(), account, b.refs("INBOX", u[1]))
			left := b.subjects("INBOX")
			if tt.deletes {
				if err != nil || left[0] != "kept" || len(left) > 1 && left[1] == "doomed" {
					t.Errorf("%v, %q is left", err, left)
				}
				return
			}
			e := mailtest.WantKind(t, err, mail.KindReadOnly)
			if e == nil || e.Advice != tt.advice || left[1] != "doomed" {
				t.Errorf("%+v, %q is left", e, left)
			}
		})
	}
}
