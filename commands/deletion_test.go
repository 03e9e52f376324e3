package commands_test

import (
	"strings"
	"testing"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
)

// newDeletionFixture is a fixture whose account deletes for good when a person has said so.
func newDeletionFixture(t *testing.T) (*fixture, *fakeOutbox) {
	t.Helper()
	b, y := newOutboxFixture(t, mail.Approve)
	if err := b.vault.UpdateAccount(t.Context(), "work", func(a *mail.Account) error { a.Destroy = mail.DestroyOn; return nil }, nil); err != nil {
		t.Fatal(err)
	}
	b.ok(t, "mail list --limit 5")
	return b, y
}

const deleteLine = "mail delete imap:work:INBOX:7:3 imap:work:INBOX:7:4 --confirm"

func TestADeletionForGoodWaitsForAPerson(t *testing.T) {
	b, y := newDeletionFixture(t)
	calls := len(b.calls)
	e := b.fails(t, deleteLine, discovery.ApprovalRequired, "the deletion waits in the outbox as d0 until a person decides")
	if len(b.calls) != calls || len(e.Error.Examples) != 0 || strings.Contains(marshalled(t, e), y.shown["d0"].Digest[:8]) {
		t.Errorf("%+v, %q", e, b.calls[calls:])
	}
	if got := b.data(t, "outbox list"); got != `{"columns":["id","date","kind","state","subject"],"rows":[["d0","2026-03-09T23:30Z","delete","waiting","delete 2 messages of INBOX"]],"untrusted":"subject"}` {
		t.Errorf("%s", got)
	}
	shown := b.data(t, "outbox show d0")
	for _, want := range []string{`"folder":"INBOX"`, `"deletes":{"columns":["id","date","from","subject"],"rows":[["3","2026-03-09T23:30Z","Ann \u003cann@example.org\u003e","Letter 0"],["4",`, `"why":"a person decides about each deletion for good in work"`, "nothing was deleted"} {
		if !strings.Contains(strings.NewReplacer("<", `\u003c`, ">", `\u003e`).Replace(shown), want) {
			t.Errorf("no %s in %s", want, shown)
		}
	}
	if strings.Contains(shown, "approve") {
		t.Errorf("an agent is shown %s", shown)
	}
	b.principal.Admin = true
	full := b.ok(t, "outbox show d0")
	if want := "outbox approve d0 --code " + b.code(t, y.shown["d0"]); full.next() != want || full.Data["kind"] != "delete" {
		t.Errorf("the administrator is shown %v", full.Data)
	}
	b.fails(t, "outbox approve d0 --code 00000000", discovery.Conflict, "Nothing was done")
	y.becomes = mail.OutboxPartly
	y.shown["d0"].Deletes[0].Outcome, y.shown["d0"].Deletes[1].Outcome, y.shown["d0"].Deletes[1].Reason = mail.DeletionDone, mail.DeletionKept, "It may not be removed."
	if got := b.data(t, full.next()); !strings.Contains(got, `"state":"partly"`) || !strings.Contains(got, `"deleted",""],`) || !strings.Contains(got, `"kept","It may not be removed."]`) {
		t.Errorf("%s", got)
	}
}

func TestADeletionIsAskedAboutAndToldTruly(t *testing.T) {
	for state, want := range map[mail.OutboxState]struct {
		code discovery.Code
		says string
	}{
		mail.OutboxDone: {}, mail.OutboxPartly: {},
		mail.OutboxUnknown: {discovery.ExecutionError, "not known which"}, mail.OutboxRefused: {discovery.ExecutionError, "nothing was deleted"},
		mail.OutboxExpired: {discovery.Conflict, "is expired"}, mail.OutboxWaiting: {discovery.ApprovalRequired, "waits in the outbox"},
	} {
		b, y := newDeletionFixture(t)
		a, _ := asked(t, b, deleteLine)
		if a.Asked == nil {
			t.Fatalf("%s", a.JSON)
		}
		for _, part := range []string{"Delete these messages for good?", "Folder:  \"INBOX\"\n", "Count:   2 messages\n", "Outbox:  d0\n", "> 2026-03-09T23:30Z  ann@example.org, called \"Ann\"", `"Letter 1"`} {
			if !strings.Contains(a.Asked.Text, part) {
				t.Errorf("the question has no %q:\n%s", part, a.Asked.Text)
			}
		}
		y.becomes = state
		s := y.shown["d0"]
		s.Deletes[0].Outcome, s.Deletes[1].Outcome, s.Deletes[1].Reason = mail.DeletionDone, mail.DeletionGone, "There is no such message."
		e := replied(t, b, deleteLine, a.Asked.State, discovery.Accepted)
		if e.Error.Code != string(want.code) || !strings.Contains(e.Error.Message, want.says) {
			t.Errorf("%s: %+v", state, e)
		}
		if want.code == "" && (len(e.Data["messages"].([]any)) != 1 || len(e.Data["issues"].([]any)) != 1 || e.Data["status"] != "partial") {
			t.Errorf("%s: %v", state, e.Data)
		}
	}
	b, y := newDeletionFixture(t)
	a, _ := asked(t, b, deleteLine)
	if e := replied(t, b, deleteLine, a.Asked.State, discovery.Declined); e.Error.Code != "PERMISSION_DENIED" || y.shown["d0"].State != mail.OutboxRejected {
		t.Errorf("%+v", e)
	}
}
