package commands_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

func agent(b *fixture) *fixture {
	b.Principal = gateway.Principal{Name: "agent"}
	return b
}

func TestWhatCommandsDoIsDenied(t *testing.T) {
	b := newFixture(t, nil, work("rw", mail.ReadWrite))
	for does, line := range map[string]string{"send": "mail forward 1 --to a@b.example", "draft": "mail draft --body x", "file": "mail trash 1", "flags": "mail mark-read 1", "destroy": "mail delete 1 --confirm"} {
		b.Principal = gateway.Principal{Name: "admin", Admin: true}
		b.OK(t, "config set deny "+does)
		if e := agent(b).OK(t, `policy explain "`+line+`"`); e.Data["reason"] != "deny" {
			t.Errorf("%s: %v", does, e.Data)
		}
	}
}

func TestPolicyExplainSaysWhatWouldHappen(t *testing.T) {
	files, off := work("files", mail.Draft), work("off", mail.ReadWrite)
	files.Destroy, off.Destroy = mail.DestroyOn, mail.DestroyOff
	anybody := work("any", mail.ReadWrite)
	anybody.AllowOut.Entries = []string{"*"}
	b := newFixture(t, nil, work("ro", mail.ReadOnly), work("rw", mail.ReadWrite), work("ask", mail.Approve), files, off, anybody)
	b.OK(t, "config set deny 'mail raw'")
	b.message = mailbox.Message{Summary: mailbox.Summary{Ref: ref(1)}}
	agent(b)
	for _, test := range testmain.Table[struct{ Line, Code, Reason, Account string }](t, "testdata/cases/explained.txt") {
		calls := len(b.calls)
		b.deps.Outbox = b.real()
		e := b.OK(t, `policy explain "`+test.Line+`"`)
		text := func(name string) string { s, _ := e.Data[name].(string); return s }
		waits, code := e.Data["needs_approval"] == true, test.Code
		if waits {
			code = string(discovery.ApprovalRequired)
		}
		if waits != (test.Account == "files" && strings.HasPrefix(test.Line, "mail delete")) || e.Data["allowed"] != (test.Code == "") || text("code") != test.Code || text("reason") != test.Reason || text("account_id") != test.Account {
			t.Errorf("%s: %v", test.Line, e.Data)
		}
		if test.Code != "" && (text("message") == "" || text("hint") == "") {
			t.Errorf("%s: no message or hint: %v", test.Line, e.Data)
		}
		if test.Reason == "draft_mode" && !strings.Contains(text("hint"), "'mail draft' leaves it in the folder for drafts. The administrator allows sending with 'account edit files --mode approve") {
			t.Errorf("%s: the hint is %q", test.Line, text("hint"))
		}
		if len(b.calls) != calls {
			t.Errorf("%s: it was run", test.Line)
		}
		// What it says is what happens, but for an account's mode, which Mailboxes judges.
		b.deps.Outbox = &fakeOutbox{Outbox: b.deps.Outbox}
		if a := b.Do(t, strings.ReplaceAll(test.Line, `\"`, `"`)); !slices.Contains([]string{"ro_mode", "draft_mode", "destroy", "across"}, test.Reason) && test.Line != "mail copy imap:rw:INBOX:7:1 --to x --to-account nobody" &&
			test.Line != "mail list --account nobody" && a.Error.Code != code {
			t.Errorf("%s: explained as %q, and ends with %q %s", test.Line, test.Code, a.Error.Code, a.Error.Message)
		}
	}
	b.deps.Outbox = b.real()
	// Who asks whether a message may be sent has no text yet, and means any of those to be filed.
	for line, want := range map[string]string{
		"mail send --account any --to ann@example.org":   "",
		"mail reply imap:any:INBOX:7:1":                  "VALIDATION_ERROR", // in mode reply its text decides
		"mail send --account files --to ann@example.org": "PERMISSION_DENIED",
		"mail trash --account any":                       "",
		"mail mark-read --account ro":                    "PERMISSION_DENIED",
		"mail get 1 --account any --uid 1":               "VALIDATION_ERROR",
		"mail send --account any":                        "VALIDATION_ERROR",
		"mail send --account any --to":                   "VALIDATION_ERROR",
		"mail reply":                                     "VALIDATION_ERROR",
	} {
		e := b.OK(t, "policy explain '"+line+"'")
		if code, _ := e.Data["code"].(string); code != want || e.Data["allowed"] != (want == "") {
			t.Errorf("%s: %v", line, e.Data)
		}
	}
}

func TestPolicyExplainWritesDownNothingOfTheCommand(t *testing.T) {
	b := agent(newFixture(t, nil, work("rw", mail.ReadWrite)))
	a := b.Gateway.Do(t.Context(), gateway.Request{Principal: b.Principal, Line: "policy explain 'mail move --uid 1 --to canary'"})
	if !a.Success() || strings.Contains(string(a.JSON), "canary") {
		t.Errorf("%s", a.JSON)
	}
}
