package commands_test

import (
	"fmt"
	"slices"
	"strings"
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
	b.ok(t, "mail list --after pop3:other:z")
	if b.account != "other" || b.list.After != (mail.Ref{Protocol: mail.POP3, Account: "other", UIDL: "z"}) || b.list.Folder != "INBOX" {
		t.Errorf("asked %q for %+v", b.account, b.list)
	}
	b.ok(t, "mail list --before 'imap:work:a b:7:9' --after 'imap:work:a b:7:2'")
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
		b.fails(t, line, "VALIDATION_ERROR", "before")
	}
	b.fails(t, "mail list --snippet 49", "VALIDATION_ERROR", "between 50 and 500")
}

// What --account all shows is merged by date, and goes on in each account where it ended
// there; an account that fails is an issue.
func TestListOfAllAccounts(t *testing.T) {
	b := newFixture(t, nil, work("home", mail.ReadOnly), work("lost", mail.ReadOnly), work("work", mail.ReadOnly))
	message := func(account string, uid uint32, minute int) mailbox.Summary {
		return mailbox.Summary{Ref: mail.Ref{Protocol: mail.IMAP, Account: account, Folder: "INBOX", UIDValidity: 7, UID: uid}, Date: at.Add(-time.Duration(minute) * time.Minute), Flags: []string{`\Seen`}}
	}
	stored := map[string][]mailbox.Summary{
		"home": {message("home", 9, 1), message("home", 8, 5), message("home", 3, 7)},
		"work": {message("work", 50, 2), message("work", 49, 3), message("work", 48, 4), message("work", 2, 9)},
	}
	b.listing = func(account string, q mailbox.ListQuery) (*mailbox.Page, error) {
		if account == "lost" {
			return nil, &mail.Error{Op: "mail list", Account: account, Kind: mail.KindAuth, Stage: "auth", Message: "The server refused the login."}
		}
		p := &mailbox.Page{Folder: q.Folder, UIDValidity: 7}
		for _, m := range stored[account] {
			switch {
			case q.Before.UID != 0 && m.Ref.UID >= q.Before.UID:
			case len(p.Messages) == q.Limit:
				p.HasMore = true
			default:
				p.Messages = append(p.Messages, m)
			}
		}
		return p, nil
	}
	b.compact = true
	var ids []string
	var lines []string
	for line := "mail list --account all --limit 3"; line != ""; {
		e := b.ok(t, line)
		for _, r := range e.Data["rows"].([]any) {
			ids = append(ids, r.([]any)[0].(string))
		}
		if got := fmt.Sprint(e.Data["issues"]); got != "[AUTH_FAILED: Account lost: The server refused the login.]" {
			t.Errorf("%s: issues %s", line, got)
		}
		line, _ = e.Data["more"].(string)
		if lines = append(lines, line); len(lines) > 5 {
			t.Fatal("paging does not end")
		}
	}
	if got := strings.Join(ids, " "); got != "home:9 work:50 work:49 work:48 home:8 home:3 work:2" {
		t.Errorf("shown: %s", got)
	}
	if got := strings.Join(lines, "; "); got != "mail list --account all --before home:9,work:49 --limit 3; mail list --account all --before home:3,work:48 --limit 3; " {
		t.Errorf("went on with %s", got)
	}
	// One that was moved back is new to its folder, and holds up nothing of its account.
	stored["home"] = slices.Insert(stored["home"], 0, message("home", 10, 60))
	rows := b.ok(t, "mail list --account all --limit 3").Data["rows"].([]any)
	if got := fmt.Sprintln(rows[0].([]any)[0], rows[1].([]any)[0], rows[2].([]any)[0]); got != "home:10 home:9 work:50\n" {
		t.Errorf("shown: %s", got)
	}
	stored["home"] = stored["home"][1:]
	b.compact = false
	e := b.ok(t, "mail list --account all")
	if e.Data["account_id"] != "all" || e.Data["status"] != "partial" || len(e.ids()) != 7 || e.Data["uidvalidity"] != nil {
		t.Errorf("full: %v", e.Data)
	}
	b.fails(t, "mail list --account lost", "AUTH_FAILED", "refused the login")
	b.listing = func(account string, _ mailbox.ListQuery) (*mailbox.Page, error) {
		return nil, &mail.Error{Kind: mail.KindConnection, Message: "Away."}
	}
	b.fails(t, "mail list --account all", "CONNECTION_FAILED", "Away.")
	b.fails(t, "mail list --account all --before 9", "VALIDATION_ERROR", "does not say whose")
}
