package commands_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/outbox"
	"github.com/postern-mail/postern/vault"
)

const (
	linkSentence = "it has a link or an address that the sender of the message that it answers did not write"
	codeSentence = "it carries a code or a link that logs in"
)

// Why a reply waits is told to the agent in a few words, and to the person who decides.
func TestAReplyThatWaitsSaysWhy(t *testing.T) {
	b, y := newOutboxFixture(t, mail.Reply, mail.OutboxWaiting)
	b.message = mailbox.Message{Summary: mailbox.Summary{Ref: ref(3)}}
	y.entry.Asks = []mail.Ask{mail.AskLink, mail.AskCode}
	const line = "mail reply imap:work:INBOX:7:3 --body 'See evil.example'"
	a, e := asked(t, b, line)
	if a.Asked == nil || e.Error.Code != "APPROVAL_REQUIRED" || !strings.Contains(a.Asked.Text, "Why:     mode reply: it has a link or an address") || strings.Contains(a.Asked.Text, "mode approve") {
		t.Errorf("%s", a.JSON)
	}
	b.Fails(t, line, discovery.ApprovalRequired, "until a person decides, since "+linkSentence+".")
	dry := b.OK(t, line+" --dry-run")
	if dry.Data["needs_approval"] != true || !strings.Contains(dry.Data["hint"].(string), "It would wait, since "+linkSentence+".") || len(dry.Data["asks"].([]any)) != 2 {
		t.Errorf("a dry run: %v", dry.Data)
	}
	shown := b.OK(t, "outbox show m0")
	if why := shown.Data["why"]; why != "mode reply: "+linkSentence || !slices.Equal(shown.Data["asks"].([]any), []any{linkSentence, codeSentence}) || shown.Data["unasked"] != nil {
		t.Errorf("%v", shown.Data)
	}
	if list := b.OK(t, "outbox list"); list.Data["messages"].([]any)[0].(map[string]any)["why"] != nil {
		t.Errorf("the agent's list: %v", list.Data)
	}
	b.Principal.Admin = true
	if list := b.OK(t, "outbox list"); list.Data["messages"].([]any)[0].(map[string]any)["why"] != linkSentence {
		t.Errorf("the administrator's list: %v", list.Data)
	}
}

func TestAReplyThatGoesUnaskedIsMarked(t *testing.T) {
	b, y := newOutboxFixture(t, mail.Reply, mail.OutboxAccepted)
	y.entry.Unasked = y.entry.Digest
	b.OK(t, "mail reply imap:work:INBOX:7:3 --body Gladly.")
	if shown := b.OK(t, "outbox show m0"); shown.Data["unasked"] != true || shown.Data["why"] != nil {
		t.Errorf("%v", shown.Data)
	}
	records, err := b.vault.Audit(t.Context(), vault.AuditQuery{Limit: 2})
	if err != nil || records[len(records)-1].Target != "outbox m0 to ann@example.org unasked" {
		t.Errorf("%+v, %v", records, err)
	}
}

func TestModeReplyIsExplained(t *testing.T) {
	open := work("work", mail.Reply)
	open.AllowOut.Entries = []string{"*"}
	b := agent(newFixture(t, nil, open))
	y := &fakeOutbox{}
	b.deps.Outbox = y
	explain := func(line string) map[string]any { return b.OK(t, `policy explain "`+line+`"`).Data }
	const reply = "mail reply imap:work:INBOX:7:3 --body Gladly."
	if got := explain(reply); got["allowed"] != true || got["needs_approval"] != nil || got["asks"] != nil || !y.offline || !y.request.Draft.ToSender {
		t.Errorf("%v, asked %+v", got, y.request)
	}
	y.entry.State, y.entry.Asks = mail.OutboxWaiting, []mail.Ask{mail.AskCode}
	if got := explain(reply); got["allowed"] != true || got["needs_approval"] != true || !slices.Equal(got["asks"].([]any), []any{codeSentence}) {
		t.Errorf("%v", got)
	}
	y.entry = outbox.Decision{}
	y.fails = mail.Operation{Op: "mail send", Account: "work"}.Failure(mail.KindNotFound, "", "There is no such message.", "")
	if got := explain(reply); got["allowed"] != false || got["code"] != "NOT_FOUND" || got["needs_approval"] != nil {
		t.Errorf("%v", got)
	}
	y.fails = &mail.SendRefused{Reason: mail.ReasonAllowList, Account: "work", Recipients: []string{"x@example.net"}}
	if got := explain(reply); got["allowed"] != false || got["reason"] != mail.ReasonAllowList {
		t.Errorf("%v", got)
	}
	if got := b.OK(t, "policy show").Data["accounts"].([]any)[0].(map[string]any); got["replies_may_go_unasked"] != true || got["sends_need_approval"] != true {
		t.Errorf("%v", got)
	}
}
