package commands_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/outbox"
)

// asked runs a send in an account that needs approval, for a client whose person
// can be asked.
func asked(t *testing.T, b *fixture, line string) (gateway.Answer, envelope) {
	t.Helper()
	a := b.Gateway.Do(t.Context(), gateway.Request{Principal: b.Principal, Line: line, CanAsk: true})
	var e envelope
	must(t, json.Unmarshal(a.JSON, &e))
	return a, e
}

func replied(t *testing.T, b *fixture, line, state string, v discovery.Verdict) envelope {
	t.Helper()
	var e envelope
	must(t, json.Unmarshal(b.Gateway.Do(t.Context(), gateway.Request{Principal: b.Principal, Line: line, Full: true, Reply: &gateway.Reply{State: state, Verdict: v}}).JSON, &e))
	return e
}

const sendLine = "mail send --to ann@example.org --subject 'Lunch on Friday' --body 'Shall we say noon?'"

func TestAnAnswerToAMessageThatChangedSendsNothing(t *testing.T) {
	for name, change := range map[string]func(*outbox.Decision){
		"other content":   func(s *outbox.Decision) { s.Digest = strings.Repeat("0", 64) },
		"other principal": func(s *outbox.Decision) { s.Principal = "robot" },
	} {
		b, y := newOutboxFixture(t, mail.Approve, mail.OutboxWaiting)
		y.becomes = mail.OutboxAccepted
		a, _ := asked(t, b, sendLine)
		change(&y.entry)
		if e := replied(t, b, sendLine, a.Asked.State, discovery.Accepted); e.Error.Code != "NOT_FOUND" || y.entry.State != mail.OutboxWaiting {
			t.Errorf("%s: %+v, %s", name, e, y.entry.State)
		}
	}
}
