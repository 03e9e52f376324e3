package vault

import (
	"testing"

	"github.com/postern-mail/postern/mail"
)

// TestADraftIsOfTheMailboxItWasWrittenIn: an account that was edited to another server or user
// may have a person's draft under the same reference.
func TestADraftIsOfTheMailboxItWasWrittenIn(t *testing.T) {
	t.Parallel()
	_, v := newVault(t, nil)
	ref := mail.Ref{Protocol: mail.IMAP, Account: "work", Folder: "Drafts", UIDValidity: 1, UID: 7}
	must(t, v.NoteDraft(t.Context(), "agent", "imap a.test:993 ann", ref))
	for mailbox, want := range map[string]string{"imap a.test:993 ann": "agent", "imap a.test:993 bob": ""} {
		if by, err := v.DraftWriters(t.Context(), mailbox, []mail.Ref{ref}); err != nil || by[0] != want {
			t.Errorf("%s: %q, %v", mailbox, by, err)
		}
	}
}
