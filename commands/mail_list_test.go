package commands_test

import (
	"testing"
	"time"

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
	b := newFixture(t, nil, work("work", mail.ReadWrite), work("other", mail.ReadWrite))
	b.page = popPage("a", "b")
	b.OK(t, "mail list --after pop3:other:z")
	if b.account != "other" || b.list.After != (mail.Ref{Protocol: mail.POP3, Account: "other", UIDL: "z"}) || b.list.Folder != "INBOX" {
		t.Errorf("asked %q for %+v", b.account, b.list)
	}
	b.OK(t, "mail list --before 'imap:work:a b:7:9' --after 'imap:work:a b:7:2'")
	if b.account != "work" || b.list.Folder != "a b" || b.list.Before.UID != 9 || b.list.After.UID != 2 {
		t.Errorf("asked %q for %+v", b.account, b.list)
	}
	for _, line := range []string{
		"mail list --account work --before x",
		"mail list --account work --before pop3:other:z",
		"mail list --account work --folder INBOX --before imap:work:Archive:7:3",
		"mail list --before pop3:work:z --after pop3:work:z",
		"mail list --before pop3:work:z --after pop3:other:y",
		"mail list --before imap:work:INBOX:7:3 --after imap:work:INBOX:7:2",
		"mail list --before imap:work:INBOX:7:9 --after imap:work:Archive:7:2",
		"mail list --before imap:work:INBOX:7:9,imap:other:INBOX:7:9",
		"mail list --account all --before imap:work:INBOX:7:9,imap:work:INBOX:7:8",
		"mail list --account all --before imap:work:INBOX:7:9,imap:other:Sent:7:8",
	} {
		b.Fails(t, line, "VALIDATION_ERROR", "before")
	}
	b.Fails(t, "mail list --snippet 49", "VALIDATION_ERROR", "between 50 and 500")
}

// In a list of all accounts a message that was moved back is new to its folder, and holds up
// nothing of its account; where every account fails, the list does.
func TestListOfAllAccounts(t *testing.T) {
	b := newFixture(t, nil, work("home", mail.ReadOnly), work("work", mail.ReadOnly))
	message := func(account string, uid uint32, minute int) mailbox.Summary {
		return mailbox.Summary{Ref: mail.Ref{Protocol: mail.IMAP, Account: account, Folder: "INBOX", UIDValidity: 7, UID: uid}, Date: at.Add(-time.Duration(minute) * time.Minute), Flags: []string{`\Seen`}}
	}
	stored := map[string][]mailbox.Summary{"home": {message("home", 10, 60), message("home", 9, 1)}, "work": {message("work", 50, 2)}}
	b.listing = func(account string, q mailbox.ListQuery) (*mailbox.Page, error) {
		return &mailbox.Page{Folder: q.Folder, UIDValidity: 7, Messages: stored[account]}, nil
	}
	if got := b.Data(t, "mail list --account all --fields id"); got != `{"columns":["id"],"rows":[["home:10"],["home:9"],["work:50"]]}` {
		t.Errorf("shown: %s", got)
	}
	b.listing = func(account string, _ mailbox.ListQuery) (*mailbox.Page, error) {
		return nil, &mail.Error{Kind: mail.KindConnection, Message: "Away."}
	}
	b.Fails(t, "mail list --account all", "CONNECTION_FAILED", "Away.")
}
