package commands_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/outbox"
	"github.com/postern-mail/postern/vault"
)

func (e envelope) outboxIDs() []string {
	var ids []string
	for _, m := range e.Data["messages"].([]any) {
		ids = append(ids, m.(map[string]any)["outbox_id"].(string))
	}
	return ids
}

// code is what approves a message.
func (b *fixture) code(t testing.TB, s *outbox.Shown) string {
	t.Helper()
	code, err := b.vault.ApprovalCode(t.Context(), s.ID, s.Digest)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

func TestAnAgentSeesItsOwnOutboxOnly(t *testing.T) {
	b := newFixture(t, nil, work("work", mail.Approve))
	y := withFakeOutbox(b)
	y.put("mine", "agent", mail.OutboxWaiting)
	y.put("other", "robot", mail.OutboxWaiting)
	if got := b.ok(t, "outbox list"); !slices.Equal(got.outboxIDs(), []string{"other", "mine"}) || got.Message != "2 messages, of which 2 wait for a person" ||
		got.Data["messages"].([]any)[0].(map[string]any)["principal"] != "robot" {
		t.Errorf("the administrator sees %v", got.Data)
	}
	b.ok(t, "outbox show other")
	agent(b)
	if got := b.ok(t, "outbox list").outboxIDs(); !slices.Equal(got, []string{"mine"}) {
		t.Errorf("the agent sees %q", got)
	}
	for _, line := range []string{"outbox show ", "outbox cancel "} {
		missing, foreign := b.do(t, line+"none"), b.do(t, line+"other")
		if missing.Error.Code != "NOT_FOUND" || marshalled(t, missing.Error) != marshalled(t, foreign.Error) {
			t.Errorf("%s: %+v and %+v", line, missing.Error, foreign.Error)
		}
	}
	for _, line := range []string{"outbox approve mine --code " + b.code(t, y.shown["mine"]), "outbox reject mine"} {
		b.fails(t, line, discovery.PermissionDenied, "may not run")
	}
	if len(y.sent) != 0 || y.shown["other"].State != mail.OutboxWaiting {
		t.Errorf("sent %q, %s", y.sent, y.shown["other"].State)
	}
	if e := b.ok(t, "outbox cancel mine"); e.Data["state"] != "cancelled" || e.Message != "The message is cancelled and will not be sent" {
		t.Errorf("%v", e.Data)
	}
	b.fails(t, "outbox cancel mine", discovery.Conflict, "cancelled")
}

func TestTheAdministratorMayTakeBackAnybodys(t *testing.T) {
	b := newFixture(t, nil, work("work", mail.Approve))
	y := withFakeOutbox(b)
	y.put("mine", "agent", mail.OutboxQueued)
	b.ok(t, "outbox cancel mine")
	if s := y.shown["mine"].State; s != mail.OutboxCancelled {
		t.Errorf("it is %s", s)
	}
}

func TestListingTheOutbox(t *testing.T) {
	b := newFixture(t, nil, work("work", mail.Approve))
	y := withFakeOutbox(b)
	for i := range 7 {
		s := y.put(fmt.Sprintf("m%d", i), "agent", []mail.OutboxState{mail.OutboxWaiting, mail.OutboxAccepted}[i%2])
		s.Subject = strings.Repeat("long ", 100)
		s.Recipients = slices.Repeat([]string{"ann@example.org"}, 8)
	}
	var got []string
	for line := "outbox list --account work --limit 3 --fields messages.outbox_id,next_action"; line != ""; {
		e := b.ok(t, line)
		got = append(got, e.outboxIDs()...)
		if line = e.next(); len(got) > 7 {
			t.Fatal("it does not end")
		}
	}
	if !slices.Equal(got, []string{"m6", "m5", "m4", "m3", "m2", "m1", "m0"}) {
		t.Errorf("got %q", got)
	}
	e := b.ok(t, "outbox list --state waiting,unknown")
	if !slices.Equal(e.outboxIDs(), []string{"m6", "m4", "m2", "m0"}) {
		t.Errorf("waiting are %q", e.outboxIDs())
	}
	first := e.Data["messages"].([]any)[0].(map[string]any)
	if len(first["recipients"].([]any)) != 5 || first["more_recipients"] != 3.0 || len([]rune(first["subject"].(string))) > 120 || first["created"] != "2026-03-09T23:30:00Z" {
		t.Errorf("%v", first)
	}
	if !slices.Contains(e.Meta.Untrusted, "messages[].subject") && !slices.Contains(e.Meta.Untrusted, "messages.subject") {
		t.Errorf("untrusted are %q", e.Meta.Untrusted)
	}
	b.fails(t, "outbox list --account nobody", discovery.NotFound, "no such account")
	b.fails(t, "outbox list --state lost", discovery.ValidationError, "--state")
}

func TestApprovingSendsWhatWasSeen(t *testing.T) {
	b := newFixture(t, nil, work("work", mail.Approve))
	y := withFakeOutbox(b)
	s := y.put("m0", "agent", mail.OutboxWaiting)
	s.Files = []outbox.ShownFile{{FileName: mail.FileName{Name: "a.pdf", Type: "application/pdf", Size: 3}, SHA256: "00ff"}}
	shown := b.ok(t, "outbox show m0")
	if want := "outbox approve m0 --code " + b.code(t, s); shown.next() != want {
		t.Errorf("suggests %s", shown.next())
	}
	if shown.Data["text"] != s.Body || shown.Data["from"] != "Desk <desk@example.org>" || shown.Message != "It waits for a person; nothing of it left" ||
		fmt.Sprint(shown.Data["attachments"]) != "[map[content_type:application/pdf name:a.pdf sha256:00ff size_bytes:3]]" {
		t.Errorf("%v", shown.Data)
	}
	b.fails(t, "outbox approve m0 --code 00000000", discovery.Conflict, "Nothing was done")
	b.fails(t, "outbox approve m0 --code "+s.Digest[:16], discovery.ValidationError, "--code")
	if len(y.sent) != 0 {
		t.Fatalf("sent %q", y.sent)
	}
	went := b.ok(t, shown.next())
	if went.Data["state"] != "accepted" || went.Data["text"] != s.Body || went.Data["decided_by"] != "admin" || went.Message != "It was sent" || !slices.Equal(y.sent, []string{"m0"}) {
		t.Errorf("%v, sent %q", went.Data, y.sent)
	}
	b.fails(t, shown.next(), discovery.Conflict, "accepted")
	records, err := b.vault.Audit(t.Context(), vault.AuditQuery{Limit: 1})
	if err != nil || records[0].Target != "outbox m0 to ann@example.org" || records[0].Account != "work" {
		t.Errorf("audited as %+v, %v", records, err)
	}
}

func TestAnApprovalThatEndsOtherwiseIsToldTruly(t *testing.T) {
	for state, says := range map[mail.OutboxState]string{mail.OutboxUnknown: "not known whether", mail.OutboxRefused: "was not sent", mail.OutboxWaiting: "waits in the outbox"} {
		b := newFixture(t, nil, work("work", mail.Approve))
		y := withFakeOutbox(b)
		s := y.put("m0", "agent", mail.OutboxWaiting)
		y.becomes = state
		if e := b.do(t, "outbox approve m0 --code "+b.code(t, s)); e.Success || !strings.Contains(e.Error.Message, says) {
			t.Errorf("%s: %+v", state, e)
		}
	}
	b := newFixture(t, nil, work("work", mail.Approve))
	y := withFakeOutbox(b)
	s := y.put("m0", "agent", mail.OutboxWaiting)
	y.fails = &mail.SendRefused{Reason: mail.ReasonReadOnly}
	b.fails(t, "outbox approve m0 --code "+b.code(t, s), discovery.PermissionDenied, "still waits in the outbox as m0")
}

func TestRejecting(t *testing.T) {
	b := newFixture(t, nil, work("work", mail.Approve))
	y := withFakeOutbox(b)
	y.put("m0", "agent", mail.OutboxWaiting)
	if e := b.ok(t, "outbox reject m0 --reason 'not to a customer'"); e.Data["state"] != "rejected" || e.Data["reason"] != "not to a customer" || e.Data["decided_by"] != "admin" {
		t.Errorf("%v", e.Data)
	}
	// A person's word is none of those of strangers, which an agent does not follow.
	for _, line := range []string{"outbox show m0", "outbox list"} {
		got := b.data(t, line)
		if _, untrusted, _ := strings.Cut(got, "untrusted"); !strings.Contains(got, "not to a customer") || !strings.Contains(got, `why`) || strings.Contains(untrusted, "reason") || strings.Contains(untrusted, "why") {
			t.Errorf("%s: %s", line, got)
		}
	}
}

func TestAMessageWhoseBytesAreGoneIsShownWithout(t *testing.T) {
	b := newFixture(t, nil, work("work", mail.Approve))
	y := withFakeOutbox(b)
	s := y.put("m0", "agent", mail.OutboxAccepted)
	s.Here, s.Body, s.HeaderFrom = false, "", mail.Address{}
	s.Attachments = []mail.FileName{{Name: "a.pdf", Type: "application/pdf", Size: 3}}
	e := b.ok(t, "outbox show m0")
	if e.Data["text_missing"] != true || e.Data["from"] != "desk@example.org" || len(e.Data["attachments"].([]any)) != 1 || e.next() != "" {
		t.Errorf("%v", e.Data)
	}
	long := y.put("m1", "agent", mail.OutboxWaiting)
	long.Body = strings.Repeat("long \u0001", 200_000)
	e = b.ok(t, "outbox show m1")
	if e.Data["truncated"] != true || e.size > gateway.MaxAnswerBytes {
		t.Errorf("%d bytes, truncated %v", e.size, e.Data["truncated"])
	}
}

// A text that does not fit one answer is shown to its end, and nothing is offered to
// be sent of which not all was shown.
func TestALongTextIsShownToItsEnd(t *testing.T) {
	b, y := newOutboxFixture(t, mail.Approve)
	body := strings.Repeat("Zeile für Zeile. ", 30_000) + "THE END"
	y.put("long", "agent", mail.OutboxWaiting).Body = body
	line, text := "outbox show long", ""
	for range 10 {
		e := b.ok(t, line)
		part, _ := e.Data["text"].(string)
		text += part
		line = e.next()
		if e.Data["truncated"] != true {
			break
		}
		if !strings.HasPrefix(line, "outbox show long --offset ") {
			t.Fatalf("a part is followed by %q", line)
		}
	}
	if text != body {
		t.Errorf("%d characters of %d", len(text), len(body))
	}
	if strings.Contains(line, "--offset") {
		t.Errorf("the end is followed by %q", line)
	}
}

// TestLettersThatLookLikeOthersAreToldToThePersonWhoDecides: in a local part, which has no
// other form, too.
func TestLettersThatLookLikeOthersAreToldToThePersonWhoDecides(t *testing.T) {
	b := newFixture(t, nil, work("work", mail.Approve))
	y := withFakeOutbox(b)
	y.put("mine", "agent", mail.OutboxWaiting)
	y.shown["mine"].Recipients = []string{"bob@example.net", "\u0430nn@example.org"} // a Cyrillic letter first
	e := b.ok(t, "outbox show mine")
	if got, _ := e.Data["not_plain"].([]any); len(got) != 1 || !strings.Contains(got[0].(string), `\u0430nn@example.org`) {
		t.Errorf("the full answer has %v", e.Data["not_plain"])
	}
	if got := b.data(t, "outbox show mine"); !strings.Contains(got, `not plain letters: \\u0430nn@example.org`) {
		t.Errorf("the compact one is %s", got)
	}
}
