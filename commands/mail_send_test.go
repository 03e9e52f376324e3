package commands_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/commands/admin"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/outbox"
	"github.com/postern-mail/postern/vault"
)

func newOutboxFixture(t testing.TB, mode mail.Mode) (*fixture, *fakeOutbox) {
	t.Helper()
	b := agent(newFixture(t, nil, work("work", mode)))
	if err := b.vault.SetSetting(t.Context(), admin.AskSetting, "on"); err != nil {
		t.Fatal(err)
	}
	return b, withFakeOutbox(b)
}

func TestWhatIsWrittenIsWhatIsSent(t *testing.T) {
	b, y := newOutboxFixture(t, mail.ReadWrite)
	b.saved["letters/one.txt"] = []byte("\ufeffDear Ann,\r\n\r\nyours.")
	b.saved["a/b.pdf"] = []byte{0, 1, 2}
	b.saved["c.txt"] = []byte("c")
	e := b.ok(t, `mail send --to '"Lee\, Ann" <ann@example.org>',bob@example.org --cc c@example.org --bcc d@example.org --subject 'Grüße, Ann' `+
		`--body-file letters/one.txt --attach a/b.pdf,c.txt --reply-to imap:work:INBOX:7:3 --idempotency-key k-1`)
	r := y.request
	want := outbox.Draft{To: []mail.Address{{Name: "Lee, Ann", Addr: "ann@example.org"}, {Addr: "bob@example.org"}}, CC: []mail.Address{{Addr: "c@example.org"}}, BCC: []mail.Address{{Addr: "d@example.org"}}, Subject: "Grüße, Ann",
		Body: "Dear Ann,\r\n\r\nyours.", FromFile: true, Attachments: []outbox.Attachment{{Name: "b.pdf", Content: []byte{0, 1, 2}}, {Name: "c.txt", Content: []byte("c")}}, ReplyTo: &mail.Ref{}}
	*want.ReplyTo = ref(3)
	if got, err := json.Marshal(r.Draft); err != nil || string(got) != marshalled(t, want) {
		t.Errorf("asked for %s", got)
	}
	if r.Key != "k-1" || r.DryRun || r.Principal != "agent" {
		t.Errorf("asked as %+v", r)
	}
	if e.Data["outbox_id"] != "m0" || e.Data["state"] != "accepted" || e.Data["account_id"] != "work" || e.Data["internet_message_id"] != "m0@example.org" ||
		e.Data["size_bytes"] != 500.0 || e.Data["digest"] != nil || fmt.Sprint(e.Data["recipients"]) != "[ann@example.org]" {
		t.Errorf("answered %v", e.Data)
	}
	if !slices.Contains(e.Meta.Untrusted, "subject") {
		t.Errorf("a subject that may be a stranger's is not marked: %q", e.Meta.Untrusted)
	}
	b.ok(t, "mail send --to ann@example.org --body ''")
	if y.request.Draft.Body != "" || y.request.Draft.Subject != "" || y.request.Draft.ReplyTo != nil {
		t.Errorf("an empty text became %+v", y.request.Draft)
	}
}

// TestAFileLeavesOnlyWhereItsAccountLets: what was saved from a message of one account is sent
// by another only where its own mail may go as freely.
func TestAFileLeavesOnlyWhereItsAccountLets(t *testing.T) {
	open, writes := work("open", mail.ReadWrite), work("writes", mail.Draft)
	open.AllowOut.Entries = []string{"*"}
	b := agent(newFixture(t, nil, work("private", mail.ReadOnly), open, writes))
	y := withFakeOutbox(b)
	for _, name := range []string{"of-private/a", "of-gone/a", "of-open/a", "a"} {
		b.saved[name] = []byte("x")
	}
	for _, option := range []string{"--body x --attach", "--body-file"} {
		for name, says := range map[string]string{"of-private/a": "More may leave account open", "of-gone/a": "an account that is not yours"} {
			for _, command := range []string{"mail send --to ann@example.org", "mail draft"} {
				b.fails(t, fmt.Sprintf("%s --account open %s %s", command, option, name), discovery.PermissionDenied, says)
			}
		}
	}
	if y.request.Principal != "" {
		t.Errorf("it was sent: %+v", y.request)
	}
	for _, line := range []string{"mail draft --account writes --body x --attach of-private/a", "mail send --account open --to ann@example.org --body-file of-open/a --attach a"} {
		b.ok(t, line)
	}
}

func marshalled(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestWhatCannotBeSentIsRefusedBeforeAnythingIsAsked(t *testing.T) {
	b, y := newOutboxFixture(t, mail.ReadWrite)
	b.saved["latin"] = []byte("Gr\xfc\xdfe")
	b.saved["big"] = make([]byte, 25<<20)
	b.saved["small"] = []byte("x")
	for _, test := range []struct {
		line string
		code discovery.Code
		says string
	}{
		{"mail send --body x", discovery.ValidationError, "no recipient"},
		{"mail send --to a@example.org", discovery.ValidationError, "text is missing"},
		{"mail send --to a@example.org --body x --body-file y", discovery.ValidationError, "given twice"},
		{"mail send --to 'Lee\\, Ann <ann@example.org>' --body x", discovery.ValidationError, "Address 1 of --to cannot be sent to: it is not one address alone"},
		{"mail send --to a@example.org --bcc b@example.org,bob --body x", discovery.ValidationError, "Address 2 of --bcc cannot be sent to: it is not an address"},
		{"mail send --to a@example.org --body x --reply-to nonsense", discovery.ValidationError, "--reply-to is malformed"},
		{"mail send --to a@example.org --body x --account work --reply-to imap:other:INBOX:7:3", discovery.ValidationError, "another account"},
		{`mail send --to a@example.org --body x --subject "a\nBcc: b@example.org"`, discovery.ValidationError, "--subject"},
		{`mail send --to "a@example.org\nb@example.org" --body x`, discovery.ValidationError, "--to"},
		{"mail send --to a@example.org --body x --subject " + strings.Repeat("é", 999), discovery.ValidationError, "--subject"},
		{"mail send --to a@example.org --body x --idempotency-key 'a b'", discovery.ValidationError, "--idempotency-key"},
		{"mail send --to a@example.org --body x --idempotency-key " + strings.Repeat("k", 129), discovery.ValidationError, "--idempotency-key"},
		{"mail send --to a@example.org --body-file ../x", discovery.PathTraversal, ""},
		{"mail send --to a@example.org --body x --attach /etc/passwd", discovery.PathTraversal, ""},
		{"mail send --to a@example.org --body x --attach small,../x", discovery.PathTraversal, ""},
		{"mail send --to a@example.org --body-file latin", discovery.ValidationError, "UTF-8"},
		{"mail send --to a@example.org --body-file big", discovery.ValidationError, "too large"},
		{"mail send --to a@example.org --body x --attach big,small", discovery.ValidationError, "too large"},
		{"mail send --to a@example.org --body x --attach small,none", discovery.NotFound, `"none"`},
		{"mail send --to a@example.org --body x --account nobody --timeout 0", discovery.ValidationError, "--timeout"},
		{"mail draft --to a@example.org", discovery.ValidationError, "text is missing"},
	} {
		e := b.fails(t, test.line, test.code, test.says)
		if len(e.Error.Examples) == 0 && test.code == discovery.ValidationError {
			t.Errorf("%s: no example", test.line)
		}
	}
	if y.request.Principal != "" || len(y.order) != 0 {
		t.Errorf("something was sent: %+v", y.request)
	}
	b.ok(t, "mail send --to a@example.org --body x --attach big --subject "+strings.Repeat("é", 998)+" --idempotency-key "+strings.Repeat("k", 128))
}

func TestTheAuditKnowsTheRecipientsAndNotTheText(t *testing.T) {
	b, y := newOutboxFixture(t, mail.ReadWrite)
	b.ok(t, "mail send --to 'Ann <ann@example.org>' --bcc bob@example.org --body 'canary text' --subject hello")
	y.fails = &mail.SendRefused{Reason: mail.ReasonAllowList, Recipients: []string{"eve@evil.example"}}
	e := b.fails(t, "mail send --to 'Eve <eve@evil.example>' --body=canary", discovery.PermissionDenied, "eve@evil.example")
	if strings.Contains(marshalled(t, e), "canary") {
		t.Error("the text is repeated")
	}
	records, err := b.vault.Audit(t.Context(), vault.AuditQuery{Limit: 10})
	if err != nil || len(records) != 2 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	if r := records[1]; r.Target != "outbox m0 to ann@example.org" || r.Account != "work" || !r.Allowed {
		t.Errorf("audited as %+v", r)
	}
	if r := records[0]; r.Target != "to eve@evil.example" || r.Account != "work" || r.Allowed || r.Reason != mail.ReasonAllowList {
		t.Errorf("audited as %+v", r)
	}
	for _, r := range records {
		if strings.Contains(fmt.Sprint(r), "canary") {
			t.Errorf("the text is in the log: %+v", r)
		}
	}
}

// TestEveryEndOfASendIsToldTruly is what an agent learns of each state.
func TestEveryEndOfASendIsToldTruly(t *testing.T) {
	refused := &mail.Error{Op: "mail send", Account: "work", Kind: mail.KindRefused, Message: "The submission server refused the message: 550 no.", Advice: mail.AdviceRejected}
	unreachable := &mail.Error{Op: "mail send", Account: "work", Kind: mail.KindConnection, Retryable: true, Message: "The submission server could not be reached.", Advice: mail.AdviceVerify}
	for _, test := range []struct {
		name   string
		state  mail.OutboxState
		reason string
		err    error
		code   discovery.Code
		says   []string
	}{
		{"waiting", mail.OutboxWaiting, "", nil, discovery.ApprovalRequired, []string{"Nothing was sent yet", "m0", "would queue a second one"}},
		{"unknown", mail.OutboxUnknown, "the connection broke", nil, discovery.ExecutionError, []string{"not known whether the message m0 left", "The connection broke.", "never sent again by itself"}},
		{"refused", mail.OutboxRefused, "", refused, discovery.ExecutionError, []string{"550 no", "was not sent", "m0"}},
		{"unreachable", mail.OutboxRefused, "", unreachable, discovery.ConnectionFailed, []string{"could not be reached", "was not sent", "m0"}},
		{"unreachable with a key", mail.OutboxQueued, "", unreachable, discovery.ConnectionFailed, []string{"was not sent", "kept in the outbox as m0", "--idempotency-key goes on"}},
		{"in somebody's hands", mail.OutboxQueued, "", nil, discovery.Conflict, []string{"being sent at this moment", "outbox show"}},
		{"cancelled", mail.OutboxCancelled, "", nil, discovery.Conflict, []string{"was cancelled"}},
		{"rejected", mail.OutboxRejected, "", nil, discovery.PermissionDenied, []string{"decided against", "not sent"}},
		{"rejected, with why", mail.OutboxRejected, "not to a customer", nil, discovery.PermissionDenied, []string{"The person said: not to a customer"}},
		{"refused before", mail.OutboxRefused, "550 no", nil, discovery.ExecutionError, []string{"was not sent. 550 no."}},
		{"of a later version", "other", "", nil, discovery.ExecutionError, []string{"does not know"}},
		{"limited", "", "", &outbox.Limited{Wait: 90 * time.Second}, discovery.RateLimited, []string{"Nothing was sent", "Wait 90 s"}},
		{"read-only", "", "", &mail.SendRefused{Reason: mail.ReasonReadOnly}, discovery.PermissionDenied, []string{"read-only"}},
		{"no such account", "", "", mail.ErrNoAccount, discovery.NotFound, []string{"no such account"}},
		{"inside", "", "", errors.New("secret"), discovery.ExecutionError, []string{"inside the program"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b, y := newOutboxFixture(t, mail.ReadWrite)
			y.begins, y.reason, y.fails = test.state, test.reason, test.err
			e := b.fails(t, "mail send --to ann@example.org --body x", test.code, "")
			for _, says := range test.says {
				if said := e.Error.Message + " " + e.Error.Hint; !strings.Contains(said, says) {
					t.Errorf("%q does not say %q", said, says)
				}
			}
			for _, example := range e.Error.Examples { // each runs
				if strings.HasPrefix(example, "outbox show") {
					b.ok(t, example)
				}
			}
		})
	}
}

func TestADryRunSendsNothingAndSaysSo(t *testing.T) {
	for state, says := range map[mail.OutboxState]string{mail.OutboxQueued: "Nothing was sent; it would go to 1 recipient",
		mail.OutboxWaiting: "Nothing was sent; it would wait for a person, and then go to 1 recipient"} {
		b, y := newOutboxFixture(t, mail.Approve)
		y.begins = state
		a := b.gateway.Do(t.Context(), gateway.Request{Principal: b.principal, Line: "mail send --to ann@example.org --body x --dry-run", CanAsk: true, Full: true})
		var e envelope
		if err := json.Unmarshal(a.JSON, &e); err != nil || a.Asked != nil {
			t.Fatalf("%s, asked %+v", a.JSON, a.Asked)
		}
		if !y.request.DryRun || !e.Success || e.Data["dry_run"] != true || e.Data["state"] != nil || (e.Data["needs_approval"] == true) != (state == mail.OutboxWaiting) || e.Message != says || e.Data["outbox_id"] != nil || e.Data["digest"] != nil || e.Data["internet_message_id"] != nil || len(y.sent) != 0 {
			t.Errorf("%s", a.JSON)
		}
	}
}

// Who runs a command that waits again and again has its person asked once.
func TestAPersonIsAskedOnceAboutAMessage(t *testing.T) {
	b, y := newOutboxFixture(t, mail.Approve)
	y.begins = mail.OutboxWaiting
	for _, replays := range []bool{false, true} {
		y.replays = replays
		a := b.gateway.Do(t.Context(), gateway.Request{Principal: b.principal, Line: "mail send --to ann@example.org --body x --idempotency-key k", CanAsk: true})
		if asked := a.Asked != nil; asked == replays {
			t.Errorf("replayed %t, asked %t: %s", replays, asked, a.JSON)
		}
	}
}

func TestADraftIsLeftForAPerson(t *testing.T) {
	b, y := newOutboxFixture(t, mail.ReadWrite)
	e := b.ok(t, "mail draft --body hello --subject s")
	if e.Data["folder"] != "Drafts" || e.Data["message_id"] != "imap:work:Drafts:3:4" || e.Data["internet_message_id"] != "draft@example.org" || len(y.draft.To) != 0 {
		t.Errorf("%v", e.Data)
	}
	if got := e.next(); got != "mail get imap:work:Drafts:3:4" {
		t.Errorf("suggests %s", got)
	}
	if got := b.ok(t, "mail draft --to ann@example.org --body hello --subject 'no uid'").next(); got != "mail list --account work --folder Drafts" {
		t.Errorf("suggests %s", got)
	}
}

func TestExplainJudgesASend(t *testing.T) {
	list := work("list", mail.ReadWrite)
	list.AllowOut.Entries = []string{"@example.org"}
	asks := work("asks", mail.Approve)
	asks.AllowOut.Enabled = false
	listed := work("listed", mail.Approve)
	listed.AllowOut.Entries = list.AllowOut.Entries
	open := work("open", mail.ReadWrite)
	open.AllowOut.Enabled = false
	b := agent(newFixture(t, nil, list, asks, listed, open, work("ro", mail.ReadOnly)))
	for _, test := range []struct {
		line, reason string
		approval     any
	}{
		{"mail send --account listed --to ann@example.org --body x", "", true},
		{"mail send --account listed --to ann@example.org,eve@evil.example --body x", mail.ReasonAllowList, nil},
		{"mail send --account open --to eve@evil.example --body x", "", nil},
		{"mail send --account list --to 'Ann Lee <ann@EXAMPLE.org>' --body x", "", nil},
		{"mail send --account list --to ann@example.org --bcc eve@evil.example --body x", mail.ReasonAllowList, nil},
		{"mail send --account list --to '\"ann@example.org\" <eve@evil.example>' --body x", mail.ReasonAllowList, nil},
		{"mail send --account list --to nonsense --body x", mail.ReasonAddress, nil},
		{"mail send --account asks --to eve@evil.example --body x", "", true},
		{"mail send --reply-to imap:ro:INBOX:7:1 --to ann@example.org --body x", mail.ReasonReadOnly, nil},
		{"mail send --account ro --body x", "usage", nil},
		{"mail draft --account ro --body x", mail.ReasonReadOnly, nil},
		{"mail draft --account list --to eve@evil.example --body x", "", nil},
		{"outbox approve x --hash " + strings.Repeat("0", 64), "role", nil},
	} {
		e := b.ok(t, "policy explain "+discovery.JoinCommand([]string{test.line}))
		if got, _ := e.Data["reason"].(string); got != test.reason || e.Data["allowed"] != (test.reason == "") || e.Data["needs_approval"] != test.approval {
			t.Errorf("%s: %v", test.line, e.Data)
		}
		if hint, _ := e.Data["hint"].(string); test.reason == mail.ReasonAllowList && !strings.Contains(hint, "'allow out add ADDRESS --account list") {
			t.Errorf("%s: the hint is %q", test.line, hint)
		}
		if said, _ := e.Data["message"].(string); test.reason == mail.ReasonAllowList && !strings.Contains(said, "eve@evil.example") {
			t.Errorf("%s: it does not say who: %v", test.line, e.Data)
		}
	}
}

var _ commands.Outbox = (*fakeOutbox)(nil)

// A compact answer says which message it is and what happened to it.
func TestCompactAnswersOfTheOutbox(t *testing.T) {
	b, y := newOutboxFixture(t, mail.ReadWrite)
	const send = "mail send --to ann@example.org --subject s --body hello"
	if got := b.data(t, send); got != `{"id":"m0","result":"Sent to 1 recipient"}` {
		t.Errorf("%s", got)
	}
	if got := b.data(t, send+" --dry-run"); got != `{"result":"Nothing was sent; it would go to 1 recipient"}` {
		t.Errorf("%s", got)
	}
	if got := b.data(t, "mail draft --subject s --body hello"); got != `{"id":"Drafts/4","result":"The draft is in Drafts; nothing was sent"}` {
		t.Errorf("%s", got)
	}
	y.begins = mail.OutboxWaiting
	e := b.fails(t, send, discovery.ApprovalRequired, "waits in the outbox as m2")
	if said := e.Error.Message + e.Error.Hint + strings.Join(e.Error.Examples, " "); strings.Contains(said, "--") || strings.Contains(said, "approve") || !strings.Contains(said, "the person that m2 waits for them, and") {
		t.Errorf("an agent is told how to approve: %s", said)
	}
	if got := b.data(t, "outbox show m2"); !strings.HasPrefix(got, `{"id":"m2","state":"waiting","result":"It waits for a person; nothing of it left","account":"work",`) ||
		!strings.Contains(got, `"to":["ann@example.org"],"subject":"s"`) || !strings.Contains(got, `"text":"`) || !strings.Contains(got, `"next":"outbox cancel m2"`) || strings.Contains(got, "recipients") {
		t.Errorf("%s", got)
	}
	if got := b.data(t, "outbox list --fields id,state,to,subject"); got != `{"columns":["id","state","to","subject"],"rows":[["m2","waiting","ann@example.org","s"],["m0","accepted","ann@example.org","s"]],"untrusted":"to subject"}` {
		t.Errorf("%s", got)
	}
	if got := b.data(t, "outbox cancel m2"); got != `{"id":"m2","result":"The message is cancelled and will not be sent"}` {
		t.Errorf("%s", got)
	}
	if got := b.data(t, "mail draft --subject hidden --body hello"); got != `{"result":"The draft is in Drafts; nothing was sent"}` {
		t.Errorf("%s", got)
	}

	// That the message that was answered could not be marked is told beside what was done.
	y.begins, y.unmarked = "", &mail.Issue{Kind: mail.KindNotFound, Stage: "fetch", Message: "It could not be marked.", MessageID: ref(3).String()}
	const issue = `"issues":["NOT_FOUND: It could not be marked. (imap:work:INBOX:7:3)"]`
	if got := b.data(t, send); !strings.HasSuffix(got, `"result":"Sent to 1 recipient",`+issue+`,"untrusted":"issues"}`) {
		t.Errorf("%s", got)
	}
	b.principal.Admin = true
	y.put("late", "agent", mail.OutboxWaiting)
	if got := b.data(t, "outbox approve late --code "+b.code(t, y.shown["late"])); !strings.Contains(got, `"state":"accepted"`) || !strings.Contains(got, issue) {
		t.Errorf("%s", got)
	}
}
