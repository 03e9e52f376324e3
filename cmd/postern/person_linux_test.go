package main

import (
	"strings"
	"testing"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
)

// TestAnAgentDoesNotUseUpWhatThePersonMaySend: the person at a terminal, without the
// administrator's key, has limits of their own; and what was the agent's when both had one
// name is still the person's to see, to take back and not to send twice.
func TestAnAgentDoesNotUseUpWhatThePersonMaySend(t *testing.T) {
	servers, v := sampleServers(t), newVault(t)
	a := servers.Account()
	a.Mode, a.AllowOut = mail.ReadWrite, mail.AllowList{Enabled: true, Entries: []string{"@example.com"}}
	v.add(t, a, servers.Password.Reveal())
	h := newHouse(t, v)
	agent, person := gateway.Principal{Name: "agent"}, gateway.Principal{Name: "person"}

	keyed := h.as(t, agent, lunch+" --idempotency-key lunch-1")
	if a := h.as(t, person, lunch+" --idempotency-key lunch-1"); !a.Success || !strings.Contains(string(a.raw), `"replayed":true`) || len(servers.Outgoing()) != 1 {
		t.Errorf("a key that was used before sends again: %s", a.raw)
	}
	id := outboxID(t, keyed)
	if a := h.as(t, person, "outbox show "+id); !a.Success {
		t.Errorf("the person does not see what was sent before: %s", a.raw)
	}
	if a := h.as(t, person, "outbox list"); !strings.Contains(string(a.raw), id) {
		t.Errorf("nor a list of it: %s", a.raw)
	}
	h.as(t, agent, "mail list --limit 1")

	h.do(t, "config set sends_per_hour 2", &struct{}{})
	h.as(t, agent, lunch)
	if a := h.as(t, agent, lunch); a.Error.Code != "RATE_LIMITED" {
		t.Fatalf("the agent is not limited: %s", a.raw)
	}
	env := v.environment(false)
	at := func(line string) string {
		x := onTerminal(t, 200, 50, env, "exec", "--json", line)
		x.quits(0)
		return x.written()
	}
	if got := at(lunch); !strings.Contains(got, "accepted") && !strings.Contains(got, `"id"`) || len(servers.Outgoing()) != 3 {
		t.Errorf("the person is refused: %s, %d sent", got, len(servers.Outgoing()))
	}
	if got := at("policy show"); !strings.Contains(got, `"principal":"person"`) {
		t.Errorf("at a terminal the principal is %s", got)
	}
	if got := at("mail get 1"); !strings.Contains(got, `"success":true`) { // a short id that was shown when both had one name
		t.Errorf("a short id: %s", got)
	}
	var list struct {
		Messages []struct {
			ID        string `json:"outbox_id"`
			Principal string `json:"principal"`
		} `json:"messages"`
	}
	h.do(t, "outbox list", &list)
	for _, m := range list.Messages {
		if m.Principal != "person" {
			continue
		}
		if a := h.as(t, agent, "outbox show "+m.ID); a.Error.Code != "NOT_FOUND" {
			t.Errorf("the agent reads the person's letter: %s", a.raw)
		}
		return
	}
	t.Errorf("nothing was sent by the person: %+v", list)
}

// outboxID is the outbox id of a message that was sent.
func outboxID(t *testing.T, a answer) string {
	t.Helper()
	_, rest, found := strings.Cut(string(a.raw), `"outbox_id":"`)
	if !found {
		t.Fatalf("%s", a.raw)
	}
	id, _, _ := strings.Cut(rest, `"`)
	return id
}
