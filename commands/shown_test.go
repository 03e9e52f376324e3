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

// everyShortID are commands that take a message id, with % in its place.
var everyShortID = []string{"mail get %", "mail thread %", "mail raw %", "mail attachment %", "mail ack %", "mail mark-read %", `mail flags % --add '\Flagged'`,
	"mail copy % --to Archive", "mail move % --to Archive", "mail trash %", "mail delete % --confirm", "mail list --before %", "mail list --after %"}

// TestEveryCommandTakesShortIDs runs each command before the folder was listed, and after.
func TestEveryCommandTakesShortIDs(t *testing.T) {
	b := newFixture(t, nil, work("work", mail.ReadWrite))
	b.fakeMailboxes.message.Summary = summaries(1, 20, 0)[0]
	for _, line := range everyShortID {
		b.Fails(t, strings.Replace(line, "%", "3", 1), discovery.Conflict, "Run 'mail list' and")
	}
	if len(b.calls) > 0 {
		t.Errorf("a server was asked: %q", b.calls)
	}
	b.fakeMailboxes.page = mailbox.Page{Messages: summaries(3, 20, 0)}
	b.OK(t, "mail list")
	for _, line := range everyShortID {
		for _, id := range []string{"3", "work:3", "inbox/3", "work:Inbox/3", ref(3).String()} {
			*b.fakeMailboxes = fakeMailboxes{message: b.fakeMailboxes.message}
			b.OK(t, strings.Replace(line, "%", id, 1))
			got := slices.Concat(b.fakeMailboxes.refs, []mail.Ref{b.list.Before, b.list.After})
			if !slices.Contains(got, ref(3)) {
				t.Errorf("%s with %s works on %+v", line, id, got)
			}
		}
		if strings.HasPrefix(line, "mail list") {
			line += " --folder Sent"
		}
		b.Fails(t, strings.Replace(line, "%", "work:Sent/3", 1), discovery.Conflict, "mail list --account work --folder Sent")
	}
}

func TestAShortIDNeedsAnAccountWhereThereAreSeveral(t *testing.T) {
	b := newFixture(t, nil, work("work", mail.ReadWrite), work("home", mail.ReadWrite))
	b.fakeMailboxes.message.Summary = summaries(1, 20, 0)[0]
	b.fakeMailboxes.page = mailbox.Page{Messages: summaries(3, 20, 0)}
	b.OK(t, "config set default_account work")
	b.OK(t, "mail list")
	e := b.Fails(t, "mail get 3", discovery.ValidationError, "home:3")
	if !slices.Equal(e.Error.Examples, []string{"mail get home:3"}) {
		t.Errorf("examples %q", e.Error.Examples)
	}
	for line, code := range map[string]any{"mail get 3": "VALIDATION_ERROR", "mail delete 3 2 --confirm": "VALIDATION_ERROR", "mail get home:3": "CONFLICT", "mail list --before home:3": "CONFLICT",
		"mail delete 3 home:2 --confirm": "VALIDATION_ERROR", "mail get 3 --account work": nil} {
		if e := b.OK(t, "policy explain '"+line+"'"); e.Data["allowed"] != (code == nil) || e.Data["code"] != code {
			t.Errorf("%s is explained as %v", line, e.Data)
		}
	}
	b.OK(t, "mail get work:3")
	b.OK(t, "mail get 3 --account work")
	b.Fails(t, "mail get 3 --account home", discovery.Conflict, "mail list --account home")
	b.Fails(t, "mail get work:3 --account home", discovery.ValidationError, "another account")
	b.Fails(t, "mail mark-read work:3 home:3", discovery.ValidationError, "not all of one account")
	b.Fails(t, "mail get nobody:3", discovery.NotFound, "account")
}

// TestTheAuditHasLongIDs looks at the entries of commands with short ids.
func TestTheAuditHasLongIDs(t *testing.T) {
	b := newFixture(t, nil, work("work", mail.ReadWrite))
	b.fakeMailboxes.page = mailbox.Page{Messages: summaries(3, 20, 0)}
	b.OK(t, "mail list")
	b.OK(t, "mail mark-read 3 2 3")
	b.OK(t, "mail mark-read --uid 3,2")
	b.Fails(t, "mail mark-read Sent/2", discovery.Conflict, "Sent")
	entries, err := b.vault.Audit(t.Context(), vault.AuditQuery{})
	must(t, err)
	var got []string
	for _, r := range entries {
		got = append(got, r.Account+" "+r.Target)
	}
	if want := []string{"work Sent UID 2", "work INBOX UID 3,2", "work imap:work:INBOX:7:3,2", "work INBOX"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
