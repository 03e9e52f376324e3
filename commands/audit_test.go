package commands_test

import (
	"testing"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/vault"
)

// TestAnEntryNamesTheAccountOfARefusedCommand, from its option or its name, also where it did
// not bind or the caller may not run it.
func TestAnEntryNamesTheAccountOfARefusedCommand(t *testing.T) {
	b := newFixture(t, nil, work("work", mail.ReadOnly), work("other", mail.ReadOnly))
	for line, want := range map[string]string{
		"mail list --account other --limit 0":                   "other",
		"mail list --sinse x --account=other":                   "other",
		"mail attachment --account other --uid 1 --save /x":     "other",
		"mail list --account nobody --limit 0":                  "nobody",
		"mail list --account 'no name'":                         "",
		"account edit other --mode XX":                          "other",
		"mail get imap:other:INBOX:7:5 --chrs 3":                "other",
		"mail get other:Sent/5 --chrs 3":                        "other",
		"mail ack other:5 work:6":                               "other",
		"mail get 5 --chrs 3":                                   "",
		"mail list --limit 0":                                   "",
		"mail attachment --uid 1 --save ../x --account other x": "other",
	} {
		b.Gateway.Do(t.Context(), gateway.Request{Principal: b.Principal, Line: line})
		if e := b.lastEntry(t); e.Account != want || e.Code == "" || e.Command != line {
			t.Errorf("%s: %+v, want account %q", line, e, want)
		}
	}
	agent := gateway.Principal{Name: "agent"}
	b.Gateway.Do(t.Context(), gateway.Request{Principal: agent, Line: "account remove other"})
	if e := b.lastEntry(t); e.Account != "other" || e.Reason != "role" || e.Allowed {
		t.Errorf("%+v", e)
	}
}

// lastEntry is the newest entry of the audit log.
func (b *fixture) lastEntry(t testing.TB) gateway.AuditEntry {
	t.Helper()
	list, err := b.vault.Audit(t.Context(), vault.AuditQuery{Limit: 1})
	if err != nil || len(list) != 1 {
		t.Fatalf("%d entries, %v", len(list), err)
	}
	return list[0].AuditEntry
}

// TestABatchWithAHiddenMessageIsOnRecord, and its answer does not tell it.
func TestABatchWithAHiddenMessageIsOnRecord(t *testing.T) {
	b := newFixture(t, nil, work("work", mail.ReadWrite))
	for reason, want := range map[string]string{"": "", "filtered": "filtered"} {
		b.changed = mailbox.Changed{Messages: []mailbox.ChangedMessage{{Ref: ref(3)}},
			Issues: []mail.Issue{{Kind: mail.KindNotFound, Stage: "fetch", Message: "There is no such message.", UID: 9, Reason: reason}}}
		for verb, rest := range batches {
			line := "mail " + verb + " --uid 3,9" + rest
			a := b.Gateway.Do(t.Context(), gateway.Request{Principal: b.Principal, Line: line, Full: true})
			if e := b.lastEntry(t); e.Reason != want || !e.Allowed || e.Code != "" {
				t.Errorf("%s: %+v, want reason %q: %s", line, e, want, a.JSON)
			}
		}
	}
}
