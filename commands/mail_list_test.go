package commands_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/discovery"
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

func TestListIsATable(t *testing.T) {
	b := newBench(t, nil, work("work", mail.ReadOnly))
	from := []mail.Address{{Name: "Ann Lee", Addr: "ann@example.org"}}
	b.page = mailbox.Page{HasMore: true, Messages: []mailbox.Summary{
		{Ref: ref(9), Date: at, From: from, Subject: "All of it", Flags: []string{`\Flagged`, `\Answered`, `\Draft`, "x"}, HasAttachments: true, Invitation: true, Snippet: "How it begins…"},
		{Ref: ref(7), From: from, Flags: []string{`\Seen`}}},
		Issues: []mail.Issue{{Kind: mail.KindRefused, Stage: "parse", UID: 5, MessageID: "imap:work:INBOX:7:5", Message: "It could not be read."}}}
	for line, want := range map[string]string{
		"mail list --limit 2 --snippet 60": `{"folder":"INBOX","now":"2026-03-09T23:30Z","columns":["id","date","from","subject","marks","snippet"],"rows":[` +
			`["9","2026-03-09T23:30Z","Ann Lee <ann@example.org>","All of it","unread answered flagged draft attachments invitation","How it begins…"],["7","","Ann Lee <ann@example.org>","","",""]],` +
			`"issues":["EXECUTION_ERROR: It could not be read. (5)"],"more":"mail list --before 5 --snippet 60 --limit 2","untrusted":"from subject snippet issues"}`,
		"mail list --unread --fields id,marks": `{"columns":["id","marks"],"rows":[["9","answered flagged draft attachments invitation"],["7",""]],` +
			`"issues":["EXECUTION_ERROR: It could not be read. (5)"],"more":"mail list --unread --before 5 --fields id,marks","untrusted":"issues"}`,
	} {
		if got := b.data(t, line); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", line, got, want)
		}
	}
	if b.list.Snippet != 0 && b.list.Snippet != 60 || b.list.Full {
		t.Errorf("%+v", b.list)
	}
	b.page = mailbox.Page{}
	if got := b.data(t, "mail list --folder Sent"); !strings.HasPrefix(got, `{"folder":"Sent","now":"2026-03-09T23:30Z","columns":[],"rows":[],"hint":"Nothing here`) || strings.Contains(got, "more") {
		t.Errorf("%s", got)
	}
	for narrow, whole := range map[string]string{"--since 2026-03-10": "mail list", "--unread": "mail list", "--new --folder Sent --limit 3": "mail list --folder Sent --limit 3",
		"--before imap:work:Sent:7:9": "mail list --account work --folder Sent", "--account all --unread": "mail list --account all"} {
		if got := b.data(t, "mail list "+narrow); !strings.Contains(got, `"hint":"Nothing of that kind. '`+whole+`' shows the newest."`) {
			t.Errorf("%s: %s", narrow, got)
		}
	}
}

// What --account all shows is merged by date, and goes on in each account where it ended
// there; an account that fails is an issue.
func TestListOfAllAccounts(t *testing.T) {
	b := newBench(t, nil, work("home", mail.ReadOnly), work("lost", mail.ReadOnly), work("work", mail.ReadOnly))
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

// Where a bound was a UID in other programs, the error names the option that takes an id.
func TestAnIDInPlaceOfADateIsToldWhereItBelongs(t *testing.T) {
	b := newBench(t, nil, work("work", mail.ReadOnly))
	b.fails(t, "mail list --since 41", discovery.ValidationError, "--after")
	b.fails(t, "mail list --until 41", discovery.ValidationError, "--before")
}

// A UID where a date is expected comes from a tool that pages by UID.
func TestBindSaysWhereAnIDBelongs(t *testing.T) {
	for _, c := range commands.All(&commands.Deps{}) {
		if c.Path != "mail list" {
			continue
		}
		_, err := c.Bind([]string{"--since", "41"}, nil)
		if f := discovery.AsFault(err); f == nil || !strings.HasPrefix(f.Hint, "An id such as 41 goes with --before or --after. Usage: mail list ") {
			t.Errorf("%+v", f)
		}
	}
}
