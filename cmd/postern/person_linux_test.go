package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
)

// TestAnAgentDoesNotUseUpWhatThePersonMaySend: the person at a terminal, without the
// administrator's key, has limits of their own; and what was the agent's when both had one
// name is still the person's to see, to take back and not to send twice.
func TestAnAgentDoesNotUseUpWhatThePersonMaySend(t *testing.T) {
	t.Parallel()
	servers, v := sampleServers(t), newVault(t)
	a := servers.Account()
	a.Mode, a.AllowOut = mail.ReadWrite, mail.AllowList{Enabled: true, Entries: []string{"@example.com"}}
	v.add(t, a, servers.Password.Reveal())
	h := newHouse(t, v)
	agent, person := gateway.Principal{Name: "agent"}, gateway.Principal{Name: "person"}

	keyed := h.as(t, agent, lunch+" --idempotency-key lunch-1")
	id := outboxID.FindStringSubmatch(string(keyed.raw))[1]
	for line, shows := range map[string]string{lunch + " --idempotency-key lunch-1": `"replayed":true`, "outbox show " + id: id, "outbox list": id} {
		if a := h.as(t, person, line); !a.Success || !strings.Contains(string(a.raw), shows) {
			t.Errorf("%s: the person does not see what was sent before: %s", line, a.raw)
		}
	}
	if n := len(servers.Outgoing()); n != 1 {
		t.Errorf("a key that was used before sends again: %d messages left", n)
	}

	h.as(t, agent, "mail list --limit 1")
	h.do(t, "config set sends_per_hour 2", &struct{}{})
	h.as(t, agent, lunch)
	if a := h.as(t, agent, lunch); a.Error.Code != "RATE_LIMITED" {
		t.Fatalf("the agent is not limited: %s", a.raw)
	}
	var sent string
	for line, shows := range map[string]string{lunch: `"outbox_id"`, "policy show": `"principal":"person"`, "mail get 1": `"success":true`} { // a short id that was shown to the agent
		x := onTerminal(t, 200, 50, v.environment(false), "exec", "--json", line)
		x.quits(0)
		if !strings.Contains(x.written(), shows) {
			t.Errorf("%s at a terminal: %s", line, x.written())
		}
		if line == lunch {
			sent = outboxID.FindStringSubmatch(x.written())[1]
		}
	}
	if n := len(servers.Outgoing()); n != 3 {
		t.Errorf("%d messages left", n)
	}
	if a := h.as(t, agent, "outbox show "+sent); a.Error.Code != "NOT_FOUND" {
		t.Errorf("the agent reads the person's letter: %s", a.raw)
	}
}

// outboxID finds the outbox id of a message in the answer to its sending.
var outboxID = regexp.MustCompile(`"outbox_id":"([a-z0-9]+)"`)
