package commands_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/outbox"
)

// TestAFileLeavesOnlyWhereItsAccountLets: what was saved from a message of one account is sent
// by another only where its own mail may go as freely.
func TestAFileLeavesOnlyWhereItsAccountLets(t *testing.T) {
	open, writes := work("open", mail.ReadWrite), work("writes", mail.Draft)
	open.AllowOut.Entries = []string{"*"}
	b := agent(newFixture(t, nil, work("private", mail.ReadOnly), open, writes))
	y := &fakeOutbox{entry: outbox.Decision{Outgoing: mail.Outgoing{State: mail.OutboxAccepted}}}
	b.deps.Outbox = y
	for _, name := range []string{"of-private/a", "of-gone/a", "of-open/a", "a"} {
		b.saved[name] = []byte("x")
	}
	for _, option := range []string{"--body x --attach", "--body-file"} {
		for name, says := range map[string]string{"of-private/a": "More may leave account open", "of-gone/a": "an account that is not yours"} {
			for _, command := range []string{"mail send --to ann@example.org", "mail draft"} {
				b.Fails(t, fmt.Sprintf("%s --account open %s %s", command, option, name), discovery.PermissionDenied, says)
			}
		}
	}
	if y.request.Principal != "" {
		t.Errorf("it was sent: %+v", y.request)
	}
	for _, line := range []string{"mail draft --account writes --body x --attach of-private/a", "mail send --account open --to ann@example.org --body-file of-open/a --attach a"} {
		b.OK(t, line)
	}
}

// TestEveryEndOfASendIsToldTruly is what an agent learns of each state.
func TestEveryEndOfASendIsToldTruly(t *testing.T) {
	refused := &mail.Error{Op: "mail send", Account: "work", Kind: mail.KindRefused, Message: "The submission server refused the message: 550 no.", Advice: mail.AdviceRejected}
	unreachable := &mail.Error{Op: "mail send", Account: "work", Kind: mail.KindConnection, Retryable: true, Message: "The submission server could not be reached.", Advice: mail.AdviceVerify}
	for _, test := range []struct {
		name   string
		state  mail.OutboxState
		reason string
		err    error
		code   discovery.Code
		says   []string
	}{
		{"waiting", mail.OutboxWaiting, "", nil, discovery.ApprovalRequired, []string{"Nothing was sent yet", "m0", "would queue a second one"}},
		{"unknown", mail.OutboxUnknown, "the connection broke", nil, discovery.ExecutionError, []string{"not known whether the message m0 left", "The connection broke.", "never sent again by itself"}},
		{"refused", mail.OutboxRefused, "", refused, discovery.ExecutionError, []string{"550 no", "was not sent", "m0"}},
		{"unreachable", mail.OutboxRefused, "", unreachable, discovery.ConnectionFailed, []string{"could not be reached", "was not sent", "m0"}},
		{"unreachable with a key", mail.OutboxQueued, "", unreachable, discovery.ConnectionFailed, []string{"was not sent", "kept in the outbox as m0", "--idempotency-key goes on"}},
		{"in somebody's hands", mail.OutboxQueued, "", nil, discovery.Conflict, []string{"being sent at this moment", "outbox show"}},
		{"cancelled", mail.OutboxCancelled, "", nil, discovery.Conflict, []string{"was cancelled"}},
		{"rejected", mail.OutboxRejected, "", nil, discovery.PermissionDenied, []string{"decided against", "not sent"}},
		{"rejected, with why", mail.OutboxRejected, "not to a customer", nil, discovery.PermissionDenied, []string{"The person said: not to a customer"}},
		{"refused before", mail.OutboxRefused, "550 no", nil, discovery.ExecutionError, []string{"was not sent. 550 no."}},
		{"of a later version", "other", "", nil, discovery.ExecutionError, []string{"does not know"}},
		{"limited", "", "", &outbox.Limited{Wait: 90 * time.Second}, discovery.RateLimited, []string{"Nothing was sent", "Wait 90 s"}},
		{"read-only", "", "", &mail.SendRefused{Reason: mail.ReasonReadOnly}, discovery.PermissionDenied, []string{"read-only"}},
		{"no such account", "", "", mail.ErrNoAccount, discovery.NotFound, []string{"no such account"}},
		{"inside", "", "", errors.New("secret"), discovery.ExecutionError, []string{"inside the program"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b, y := newOutboxFixture(t, mail.ReadWrite, test.state)
			y.entry.Reason, y.fails = test.reason, test.err
			e := b.Fails(t, "mail send --to ann@example.org --body x", test.code, "")
			for _, says := range test.says {
				if said := e.Error.Message + " " + e.Error.Hint; !strings.Contains(said, says) {
					t.Errorf("%q does not say %q", said, says)
				}
			}
			for _, example := range e.Error.Examples { // each runs
				if strings.HasPrefix(example, "outbox show") {
					b.OK(t, example)
				}
			}
		})
	}
}

func TestExplainJudgesASend(t *testing.T) {
	list := work("list", mail.ReadWrite)
	list.AllowOut.Entries = []string{"@example.org"}
	asks := work("asks", mail.Approve)
	asks.AllowOut.Enabled = false
	listed := work("listed", mail.Approve)
	listed.AllowOut.Entries = list.AllowOut.Entries
	open := work("open", mail.ReadWrite)
	open.AllowOut.Enabled = false
	b := agent(newFixture(t, nil, list, asks, listed, open, work("ro", mail.ReadOnly)))
	for _, test := range testmain.Table[struct {
		Line, Reason string
		Approval     bool
	}](t, "testdata/cases/explained_sends.txt") {
		e := b.OK(t, "policy explain "+discovery.JoinCommand([]string{test.Line}))
		if got, _ := e.Data["reason"].(string); got != test.Reason || e.Data["allowed"] != (test.Reason == "") || (e.Data["needs_approval"] == true) != test.Approval {
			t.Errorf("%s: %v", test.Line, e.Data)
		}
		if hint, _ := e.Data["hint"].(string); test.Reason == mail.ReasonAllowList && !strings.Contains(hint, "'allow out add ADDRESS --account list") {
			t.Errorf("%s: the hint is %q", test.Line, hint)
		}
		if said, _ := e.Data["message"].(string); test.Reason == mail.ReasonAllowList && !strings.Contains(said, "eve@evil.example") {
			t.Errorf("%s: it does not say who: %v", test.Line, e.Data)
		}
	}
}

// What could not be done besides is told beside what was done.
func TestWhatWasDoneInPartIsToldOfASend(t *testing.T) {
	b, y := newOutboxFixture(t, mail.ReadWrite, mail.OutboxAccepted)
	const send, more = "mail send --to ann@example.org --subject s --body hello", "mail draft --append-to imap:work:Drafts:3:1 --body x"
	y.entry.Unmarked = &mail.Issue{Kind: mail.KindNotFound, Stage: "fetch", Message: "It could not be marked.", MessageID: ref(3).String()}
	const issue = `"issues":["NOT_FOUND: It could not be marked. (imap:work:INBOX:7:3)"]`
	if got := b.Data(t, send); got != `{"untrusted":"issues","id":"m0","result":"Sent to 1 recipient",`+issue+`}` {
		t.Errorf("%s", got)
	}
	y.becomes, b.Principal.Admin = mail.OutboxAccepted, true
	y.entry.State = mail.OutboxWaiting
	if got := b.Data(t, "outbox approve m0 --code "+b.code(t, &y.entry)); !strings.Contains(got, `"state":"accepted"`) || !strings.Contains(got, issue) {
		t.Errorf("%s", got)
	}
	y.entry.Unmarked, y.entry.DraftLeft = nil, &mail.Issue{Kind: mail.KindConnection, Message: "The message was sent, and its draft may still be there."}
	if got := b.Data(t, "mail send --draft imap:work:Drafts:3:1"); !strings.Contains(got, "its draft may still be there") {
		t.Errorf("it does not say that the draft is there: %s", got)
	}
	y.draft = outbox.SavedDraft{Account: "work", Folder: "Drafts", Left: &mail.Issue{Kind: mail.KindUnsupported, Message: "The server has no UIDPLUS."}}
	if got := b.Data(t, more); !strings.Contains(got, "The draft without this text may still be there: The server has no UIDPLUS.") {
		t.Errorf("it does not say that two drafts are there: %s", got)
	}
	y.draft.Left = nil // a draft whose UID the server did not tell
	if got := b.OK(t, "mail draft --body x").Next(); got != "mail list --account work --folder Drafts" {
		t.Errorf("suggests %s", got)
	}
	y.draft.Ref, y.draft.Hidden = mail.Ref{Protocol: mail.IMAP, Account: "work", Folder: "Drafts", UIDValidity: 3, UID: 4}, true
	if got := b.Data(t, "mail draft --body x"); got != `{"result":"The draft is in Drafts; nothing was sent"}` {
		t.Errorf("%s", got)
	}
}
