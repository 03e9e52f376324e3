package commands_test

import (
	"testing"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

// popPage is a page of an account read with POP3 that goes on behind the second of
// its messages.
func popPage(names ...string) mailbox.Page {
	p := mailbox.Page{HasMore: true}
	for _, n := range names {
		p.Messages = append(p.Messages, mailbox.Summary{Ref: mail.Ref{Protocol: mail.POP3, Account: "work", UIDL: n}})
	}
	p.Next = p.Messages[1].Ref
	return p
}

// TestListGoesOnFromAMessage names messages to go on from, well and badly.
func TestListGoesOnFromAMessage(t *testing.T) {
	b := newBench(t, nil, work("work", mail.ReadWrite), work("other", mail.ReadWrite))
	b.fakeMailboxes.page = popPage("a", "b")
	a := b.ok(t, "mail list --after pop3:other:z")
	if b.fakeMailboxes.account != "other" || b.fakeMailboxes.list.After != (mail.Ref{Protocol: mail.POP3, Account: "other", UIDL: "z"}) {
		t.Errorf("asked %q for %+v", b.fakeMailboxes.account, b.fakeMailboxes.list)
	}
	if a.Data["uidvalidity"] != nil || a.Data["uid_next"] != nil {
		t.Errorf("POP3 has no UIDs: %v", a.Data)
	}
	for _, line := range []string{
		"mail list --account work --before x",
		"mail list --account work --before pop3:other:z",
		"mail list --account work --before imap:work:Archive:7:3",
		"mail list --before pop3:work:z --after pop3:work:z",
		"mail list --before pop3:work:z --after pop3:other:y",
	} {
		b.fails(t, line, "VALIDATION_ERROR", "before")
	}
}
