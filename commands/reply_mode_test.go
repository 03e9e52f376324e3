package commands_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
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
	if e := b.OK(t, "policy explain \""+line+"\""); e.Data["needs_approval"] != true || !y.offline {
		t.Errorf("explained: %v, without a word to the submission server: %v", e.Data, y.offline)
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

func TestThePolicyTellsOfModeReply(t *testing.T) {
	b := agent(newFixture(t, nil, work("work", mail.Reply)))
	if got := b.OK(t, "policy show").Data["accounts"].([]any)[0].(map[string]any); got["replies_may_go_unasked"] != true || got["sends_need_approval"] != true {
		t.Errorf("%v", got)
	}
}
