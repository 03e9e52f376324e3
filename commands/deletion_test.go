package commands_test

import (
	"strings"
	"testing"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
)

// TestADeletionThatEndsOtherwiseIsToldTruly has the ends that no sample server makes.
func TestADeletionThatEndsOtherwiseIsToldTruly(t *testing.T) {
	const line = "mail delete imap:work:INBOX:7:3 imap:work:INBOX:7:4 --confirm"
	for state, want := range map[mail.OutboxState]struct {
		code discovery.Code
		says string
	}{
		mail.OutboxPartly: {}, mail.OutboxUnknown: {discovery.ExecutionError, "not known which"}, mail.OutboxRefused: {discovery.ExecutionError, "nothing was deleted"},
		mail.OutboxExpired: {discovery.Conflict, "is expired"}, mail.OutboxWaiting: {discovery.ApprovalRequired, "waits in the outbox"},
	} {
		b, y := newOutboxFixture(t, mail.Approve, mail.OutboxWaiting)
		must(t, b.vault.UpdateAccount(t.Context(), "work", func(a *mail.Account) error { a.Destroy = mail.DestroyOn; return nil }, nil))
		y.becomes, y.entry.Kind, y.entry.Folder = state, mail.OutboxDelete, "INBOX"
		y.entry.Deletes = []mail.Deletion{{ID: ref(3).String(), Outcome: mail.DeletionDone}, {ID: ref(4).String(), Outcome: mail.DeletionKept, Reason: "It may not be removed."}}
		a, _ := asked(t, b, line)
		if a.Asked == nil {
			t.Fatalf("%s", a.JSON)
		}
		e := replied(t, b, line, a.Asked.State, discovery.Accepted)
		if e.Error.Code != string(want.code) || !strings.Contains(e.Error.Message, want.says) {
			t.Errorf("%s: %+v", state, e)
		}
		if want.code == "" && (len(e.Data["messages"].([]any)) != 1 || len(e.Data["issues"].([]any)) != 1 || e.Data["status"] != "partial") {
			t.Errorf("%s: %v", state, e.Data)
		}
	}
}
