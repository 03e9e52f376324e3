package commands_test

import (
	"encoding/json"
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

// asked runs a send in an account that needs approval, for a client whose person
// can be asked.
func asked(t *testing.T, b *fixture, line string) (gateway.Answer, envelope) {
	t.Helper()
	a := b.gateway.Do(t.Context(), gateway.Request{Principal: b.principal, Line: line, CanAsk: true})
	var e envelope
	if err := json.Unmarshal(a.JSON, &e); err != nil {
		t.Fatal(err)
	}
	return a, e
}

func replied(t *testing.T, b *fixture, line, state string, v discovery.Verdict) envelope {
	t.Helper()
	var e envelope
	if err := json.Unmarshal(b.gateway.Do(t.Context(), gateway.Request{Principal: b.principal, Line: line, Full: true, Reply: &gateway.Reply{State: state, Verdict: v}}).JSON, &e); err != nil {
		t.Fatal(err)
	}
	return e
}

const sendLine = "mail send --to ann@example.org --subject 'Lunch on Friday' --body 'Shall we say noon?'"

func TestAPersonIsAskedAboutExactlyTheMessage(t *testing.T) {
	b, y := newOutboxFixture(t, mail.Approve)
	y.begins = mail.OutboxWaiting
	a, e := asked(t, b, sendLine)
	if a.Asked == nil || e.Error.Code != "APPROVAL_REQUIRED" {
		t.Fatalf("%s", a.JSON)
	}
	for _, part := range []string{"Lunch on Friday", "> Shall we say noon?", "Outbox:  m0\n"} {
		if !strings.Contains(a.Asked.Text, part) {
			t.Errorf("the question has no %q:\n%s", part, a.Asked.Text)
		}
	}
	if len(y.sent) != 0 {
		t.Fatal("it was sent before anybody said yes")
	}
	if e := replied(t, b, sendLine, a.Asked.State, discovery.Unanswered); e.Error.Code != "APPROVAL_REQUIRED" || y.shown["m0"].State != mail.OutboxWaiting {
		t.Errorf("no answer: %+v", e)
	}
	if e := replied(t, b, sendLine, a.Asked.State, discovery.Accepted); !e.Success || e.Data["state"] != "accepted" || e.Data["decided_by"] != gateway.PersonViaClient || e.Data["replayed"] != nil {
		t.Errorf("accepted: %+v", e)
	}
	for _, v := range []discovery.Verdict{discovery.Accepted, discovery.Declined, discovery.Unanswered} { // the truth, whatever is said afterwards
		if e := replied(t, b, sendLine, a.Asked.State, v); !e.Success || e.Data["replayed"] != true || e.Message != "It was sent before, and was not sent again" {
			t.Errorf("again: %+v", e)
		}
	}
	if !slices.Equal(y.sent, []string{"m0"}) || len(y.order) != 1 {
		t.Errorf("sent %q of %q", y.sent, y.order)
	}
	records, err := b.vault.Audit(t.Context(), vault.AuditQuery{Limit: 10})
	if err != nil || len(records) != 6 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	for i, want := range []string{"agent asked APPROVAL_REQUIRED", "agent not_answered APPROVAL_REQUIRED", gateway.PersonViaClient + " accepted "} {
		r := records[len(records)-1-i]
		if got := fmt.Sprintf("%s %s %s", r.Principal, r.Reason, r.Code); got != want || r.Target != "outbox m0 to ann@example.org" || !r.Allowed || strings.Contains(r.Command, "noon") {
			t.Errorf("audited as %+v, want %s", r, want)
		}
	}
}

func TestADeclinedMessageIsGone(t *testing.T) {
	b, y := newOutboxFixture(t, mail.Approve)
	y.begins = mail.OutboxWaiting
	a, _ := asked(t, b, sendLine)
	e := replied(t, b, sendLine, a.Asked.State, discovery.Declined)
	if e.Error.Code != "PERMISSION_DENIED" || !strings.Contains(e.Error.Message, "decided against the message m0") || y.shown["m0"].State != mail.OutboxRejected || y.shown["m0"].Decided != gateway.PersonViaClient || strings.Contains(e.Error.Message, "said") {
		t.Errorf("%+v, %+v", e, y.shown["m0"].Outgoing)
	}
	if e := replied(t, b, sendLine, a.Asked.State, discovery.Accepted); e.Error.Code != "PERMISSION_DENIED" || len(y.sent) != 0 {
		t.Errorf("a yes after a no: %+v, sent %q", e, y.sent)
	}
}

func TestTheAdministratorCanKeepTheDecision(t *testing.T) {
	b, y := newOutboxFixture(t, mail.Approve)
	y.begins = mail.OutboxWaiting
	a, _ := asked(t, b, sendLine)
	admin := *b
	admin.principal = gateway.Principal{Name: "admin", Admin: true}
	if e := b.ok(t, "policy show"); e.Data["asks_in_client"] != true {
		t.Errorf("%v", e.Data)
	}
	admin.ok(t, "config set ask_in_client off")
	if e := b.ok(t, "policy show"); e.Data["asks_in_client"] != false {
		t.Errorf("%v", e.Data)
	}
	if e := replied(t, b, sendLine, a.Asked.State, discovery.Accepted); e.Error.Code != "APPROVAL_REQUIRED" || len(y.sent) != 0 {
		t.Errorf("a yes that no longer counts: %+v", e)
	}
	if a, e := asked(t, b, sendLine); a.Asked != nil || e.Error.Code != "APPROVAL_REQUIRED" {
		t.Errorf("asked all the same: %+v", a.Asked)
	}
	admin.fails(t, "config set ask_in_client maybe", discovery.ValidationError, "on or off")
	admin.ok(t, "config set ask_in_client ''")
	if a, _ := asked(t, b, sendLine); a.Asked != nil {
		t.Error("the default is to ask")
	}
}

func TestAnAnswerToAMessageThatChangedSendsNothing(t *testing.T) {
	for name, change := range map[string]func(*outbox.Shown){
		"other content":   func(s *outbox.Shown) { s.Digest = strings.Repeat("0", 64) },
		"other principal": func(s *outbox.Shown) { s.Principal = "robot" },
	} {
		b, y := newOutboxFixture(t, mail.Approve)
		y.begins = mail.OutboxWaiting
		a, _ := asked(t, b, sendLine)
		change(y.shown["m0"])
		if e := replied(t, b, sendLine, a.Asked.State, discovery.Accepted); e.Error.Code != "NOT_FOUND" || len(y.sent) != 0 {
			t.Errorf("%s: %+v, sent %q", name, e, y.sent)
		}
	}
	b, y := newOutboxFixture(t, mail.Approve)
	y.begins = mail.OutboxWaiting
	a, _ := asked(t, b, sendLine)
	y.fails = &mail.SendRefused{Reason: mail.ReasonAllowList, Recipients: []string{"ann@example.org"}}
	if e := replied(t, b, sendLine, a.Asked.State, discovery.Accepted); e.Error.Code != "PERMISSION_DENIED" || !strings.Contains(e.Error.Message, "still waits in the outbox as m0") {
		t.Errorf("the list changed meanwhile: %+v", e)
	}
}
