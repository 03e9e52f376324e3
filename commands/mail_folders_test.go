package commands_test

import (
	"fmt"
	"testing"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

func TestFoldersAreATable(t *testing.T) {
	b := newFixture(t, nil, work("work", mail.ReadOnly))
	b.Compact = true
	b.folders = mailbox.FolderList{Truncated: true, Issues: []mail.Issue{{Kind: mail.KindRefused, Stage: "status", Message: "Not counted."}}, Folders: []mailbox.Folder{
		{Name: "INBOX", Role: "inbox", Counts: &mailbox.Counts{Messages: 5, Unread: 2}}, {Name: "Empty", Counts: &mailbox.Counts{}},
		{Name: "Only", Attributes: []string{`\Noselect`}}, {Name: "a b"}}}
	for line, want := range map[string]string{
		"mail folders --counts": "map[columns:[name role messages unread] issues:[EXECUTION_ERROR: Not counted.] more:mail folders --counts --after 'a b' " +
			"rows:[[INBOX inbox 5 2] [Empty  0 0] [Only noselect <nil> <nil>] [a b  <nil> <nil>]] untrusted:name issues]",
		"mail folders --account work --fields name,more --pattern '%'": "map[columns:[name] issues:[EXECUTION_ERROR: Not counted.] more:mail folders --account work --pattern % --after 'a b' --fields name,more " +
			"rows:[[INBOX] [Empty] [Only] [a b]] untrusted:name issues]",
	} {
		if got := fmt.Sprint(b.OK(t, line).Data); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", line, got, want)
		}
	}
	b.OK(t, "mail folders --after 'a b'")
	if b.listed.After != "a b" {
		t.Errorf("%+v", b.listed)
	}
	b.folders = mailbox.FolderList{Folders: []mailbox.Folder{{Name: "INBOX"}}}
	if got := fmt.Sprint(b.OK(t, "mail folders").Data); got != "map[columns:[name] rows:[[INBOX]] untrusted:name]" {
		t.Errorf("names alone: %s", got)
	}
}

func TestAccountsNameTheDefault(t *testing.T) {
	starttls := work("other", mail.ReadWrite)
	starttls.IMAP.Security = mail.StartTLS
	b := newFixture(t, nil, work("work", mail.ReadOnly), starttls, popAccount())
	b.Compact = true
	table := "columns:[account email mode protocol] rows:[[other desk@example.org RW ] [pop desk@example.org RO pop3] [work desk@example.org RO ]]]"
	if got := fmt.Sprint(b.OK(t, "mail accounts").Data); got != "map["+table {
		t.Errorf("without a default: %s", got)
	}
	b.OK(t, "config set default_account work")
	if got := fmt.Sprint(b.OK(t, "mail accounts --account all").Data); got != "map[columns:[account email mode protocol] default:work "+table[len("columns:[account email mode protocol] "):] {
		t.Errorf("with a default: %s", got)
	}
	b.Fails(t, "mail accounts --account nobody", "NOT_FOUND", "no such account")
	b.Fails(t, "mail folders --limit 3", "VALIDATION_ERROR", "have it. Usage: mail folders")
	b.Fails(t, "account add all --email ann@example.org --imap-host imap.example.org --password-from stdin", "VALIDATION_ERROR", "every account")
	b.Compact = false
	e := b.OK(t, "mail accounts")
	if e.Data["default_account"] != "work" || e.Next() != "mail folders --account work" {
		t.Errorf("%v", e.Data)
	}
	for _, a := range e.Data["accounts"].([]any) {
		if a := a.(map[string]any); a["secure"] != true {
			t.Errorf("encrypted with STARTTLS or TLS: %v", a)
		}
	}
	if got := b.OK(t, "mail verify --account other").Data["server"].(map[string]any)["secure"]; got != true {
		t.Errorf("verify: %v", got)
	}
}

func popAccount() mail.Account {
	a := work("pop", mail.ReadOnly)
	a.Protocol, a.POP3, a.IMAP = mail.POP3, mail.Endpoint{Host: "pop.example.org", Port: 995, Security: mail.TLS}, mail.Endpoint{}
	return a
}

func TestVerifyIsShort(t *testing.T) {
	b := newFixture(t, nil, work("work", mail.ReadOnly))
	b.Compact = true
	if got := fmt.Sprint(b.OK(t, "mail verify").Data); got != "map[account:work ok:true]" {
		t.Errorf("%s", got)
	}
	b.verified.Issues = []mail.Issue{{Kind: mail.KindAuth, Stage: "auth", Message: "The server refused the login.", Advice: mail.AdviceCheckLoginHelper}}
	want := "map[account:work hint:Check what the account's helper program prints, and the user name. issues:[AUTH_FAILED: The server refused the login.] ok:false untrusted:issues]"
	if got := fmt.Sprint(b.OK(t, "mail verify").Data); got != want {
		t.Errorf("%s", got)
	}
}
