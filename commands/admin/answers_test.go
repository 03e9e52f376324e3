package admin_test

import (
	"context"
	"flag"
	"strings"
	"testing"

	"github.com/postern-mail/postern/commands/admin"
	"github.com/postern-mail/postern/commands/internal/commandtest"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

var update = flag.Bool("update", false, "write the answers anew")

// TestAnswers has the answers of testdata/answers.
func TestAnswers(t *testing.T) {
	commandtest.Answers(t, "testdata/answers/*.txt", *update, func(t *testing.T, name string) *commandtest.Caller {
		accounts := []mail.Account{work("work", mail.ReadWrite), work("other", mail.ReadWrite)}
		switch name {
		case "rights":
			accounts = []mail.Account{work("old", mail.Approve), work("work", mail.ReadWrite), work("read", mail.ReadOnly)}
		case "policy":
			hiding, reading := work("hiding", mail.Approve), work("reading", mail.ReadOnly)
			hiding.AllowIn = mail.AllowList{Enabled: true, Entries: []string{"ann@example.org"}}
			hiding.SubjectPattern, hiding.AllowOut.Entries, hiding.Destroy = "canary", []string{"@example.com"}, mail.DestroyOn
			reading.AllowOut.Enabled = false
			accounts = []mail.Account{hiding, reading}
		}
		b := newFixture(t, accounts...)
		b.folders.Folders = []mailbox.Folder{{Name: "INBOX"}, {Name: "HR"}}
		b.mailboxes.judged = map[string]map[mail.Verdict]int{"@bank.example": {mail.Verified: 7, mail.Failed: 1, mail.Unknown: 2}}
		b.deps.ReadSecret = func(context.Context, string) (mail.Secret, error) { return mail.NewSecret([]byte("secret")), nil }
		return &b.Caller
	})
}

// While everything is stopped the administrator can bound what goes on afterwards.
func TestListsAreChangedWhileEverythingIsStopped(t *testing.T) {
	n := 0
	for _, c := range admin.Commands(&admin.Deps{}) {
		if strings.HasPrefix(c.Path, "allow ") || strings.HasPrefix(c.Path, "hide ") {
			if n++; !c.Standing {
				t.Errorf("%s does not run", c.Path)
			}
		}
	}
	if n != 12 {
		t.Errorf("%d commands", n)
	}
}
