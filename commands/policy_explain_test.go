package commands_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

func agent(b *fixture) *fixture {
	b.principal = gateway.Principal{Name: "agent"}
	return b
}

func TestPolicyExplainSaysWhatWouldHappen(t *testing.T) {
	files, off := work("files", mail.Draft), work("off", mail.ReadWrite)
	files.Destroy, off.Destroy = mail.DestroyOn, mail.DestroyOff
	anybody := work("any", mail.ReadWrite)
	anybody.AllowOut.Entries = []string{"*"}
	b := newFixture(t, nil, work("ro", mail.ReadOnly), work("rw", mail.ReadWrite), work("ask", mail.Approve), files, off, anybody)
	b.ok(t, "config set deny 'mail raw'")
	b.message = mailbox.Message{Summary: mailbox.Summary{Ref: ref(1)}}
	agent(b)
	b.deps.Outbox = &fakeOutbox{}
	for _, test := range []struct{ line, code, reason, account string }{
		{"help", "", "", ""},
		{"mail", "", "", ""},
		{"mail list --help", "", "", ""},
		{"mail accounts", "", "", ""},
		{"mail list --account ro", "", "", "ro"},
		{"mail get imap:ro:INBOX:7:1", "", "", "ro"},
		{"mail ack --account ro --uid 1", "", "", "ro"},
		{"mail move imap:rw:INBOX:7:1 --to x", "", "", "rw"},
		{"mail flags imap:ask:INBOX:7:1 --add x", "", "", "ask"},
		{"mail copy imap:ro:INBOX:7:1 --to x --to-account rw", "", "", "ro"},
		{"mail copy imap:ro:INBOX:7:1 --to x --to-account files", "", "", "ro"},
		{"mail copy imap:ro:INBOX:7:1 --to x --to-account any", "PERMISSION_DENIED", "across", "ro"},
		{"mail copy imap:rw:INBOX:7:1 --to x --to-account ro", "PERMISSION_DENIED", "ro_mode", "rw"},
		{"mail copy imap:rw:INBOX:7:1 --to x --to-account nobody", "NOT_FOUND", "account", "rw"},
		{"mail mark-read --account ro --uid 1", "PERMISSION_DENIED", "ro_mode", "ro"},
		{"mail move imap:ro:INBOX:7:1 --to x", "PERMISSION_DENIED", "ro_mode", "ro"},
		{"mail list", "VALIDATION_ERROR", "account", ""},
		{"mail list --account nobody", "NOT_FOUND", "account", ""},
		{"mail raw --account rw --uid 1", "PERMISSION_DENIED", "deny", ""},
		{"mail delete --account rw --uid 1 --confirm", "", "", "rw"},
		{"mail delete --account ro --uid 1 --confirm", "PERMISSION_DENIED", "ro_mode", "ro"},
		{"mail delete --account off --uid 1 --confirm", "PERMISSION_DENIED", "destroy", "off"},
		{"mail delete --account off --uid 1", "PERMISSION_DENIED", "destroy", "off"},
		{"mail delete --account rw --uid 1", "VALIDATION_ERROR", "usage", "rw"},
		{"mail delete --account files --uid 1 --confirm", "", "", "files"},
		{"mail move imap:files:INBOX:7:1 --to x", "", "", "files"},
		{"mail send --account files --to ann@example.org --subject x --body y", "PERMISSION_DENIED", "draft_mode", "files"},
		{"account list", "PERMISSION_DENIED", "role", ""},
		{"mail lst", "COMMAND_NOT_FOUND", "usage", ""},
		{"mail list --limit 9999", "VALIDATION_ERROR", "usage", ""},
		{"mail list --fields nope", "VALIDATION_ERROR", "usage", ""},
		{`mail list \"open`, "PARSE_ERROR", "usage", ""},
		{"mail attachment --account rw --uid 1 --save ../x", "PATH_TRAVERSAL_BLOCKED", "path", ""},
	} {
		calls := len(b.calls)
		e := b.ok(t, `policy explain "`+test.line+`"`)
		text := func(name string) string { s, _ := e.Data[name].(string); return s }
		waits, code := e.Data["needs_approval"] == true, test.code
		if waits {
			code = string(discovery.ApprovalRequired)
		}
		if waits != (test.account == "files" && strings.HasPrefix(test.line, "mail delete")) || e.Data["allowed"] != (test.code == "") || text("code") != test.code || text("reason") != test.reason || text("account_id") != test.account {
			t.Errorf("%s: %v", test.line, e.Data)
		}
		if test.code != "" && (text("message") == "" || text("hint") == "") {
			t.Errorf("%s: no message or hint: %v", test.line, e.Data)
		}
		if test.reason == "draft_mode" && !strings.Contains(text("hint"), "'mail draft' leaves it in the folder for drafts. The administrator allows sending with 'account edit files --mode approve") {
			t.Errorf("%s: the hint is %q", test.line, text("hint"))
		}
		if len(b.calls) != calls {
			t.Errorf("%s: it was run", test.line)
		}
		// What it says is what happens, but for an account's mode, which Mailboxes judges.
		if a := b.do(t, strings.ReplaceAll(test.line, `\"`, `"`)); !slices.Contains([]string{"ro_mode", "draft_mode", "destroy", "across"}, test.reason) && test.line != "mail copy imap:rw:INBOX:7:1 --to x --to-account nobody" &&
			test.line != "mail list --account nobody" && a.Error.Code != code {
			t.Errorf("%s: explained as %q, and ends with %q %s", test.line, test.code, a.Error.Code, a.Error.Message)
		}
	}
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
		e := b.ok(t, "policy explain '"+line+"'")
		if code, _ := e.Data["code"].(string); code != want || e.Data["allowed"] != (want == "") {
			t.Errorf("%s: %v", line, e.Data)
		}
	}
}

func TestPolicyExplainWritesDownNothingOfTheCommand(t *testing.T) {
	b := agent(newFixture(t, nil, work("rw", mail.ReadWrite)))
	a := b.gateway.Do(t.Context(), gateway.Request{Principal: b.principal, Line: "policy explain 'mail move --uid 1 --to canary'"})
	if !a.Success() || strings.Contains(string(a.JSON), "canary") {
		t.Errorf("%s", a.JSON)
	}
}
