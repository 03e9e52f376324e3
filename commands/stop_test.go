package commands_test

import (
	"fmt"
	"testing"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
)

func TestAStopNamesWhatTheCallerMaySeeLeaving(t *testing.T) {
	t.Parallel()
	for principal, want := range map[string]string{mail.PersonPrincipal: "[a] 1", mail.AgentPrincipal: "[a] 1", "laptop": "[l] 1"} {
		t.Run(principal, func(t *testing.T) {
			t.Parallel()
			y := newFakeOutbox()
			b := newBench(t, nil, work("work", mail.ReadWrite))
			b.deps.Outbox = y
			b.principal = gateway.Principal{Name: principal}
			for id, owner := range map[string]string{"a": mail.AgentPrincipal, "l": "laptop"} {
				s := y.put(id, owner, mail.OutboxUnknown)
				s.Attempt, s.Until = "at work", at.AddDate(0, 0, 1)
			}
			e := b.ok(t, "stop")
			var ids []any
			for _, m := range e.Data["leaving"].([]any) {
				ids = append(ids, m.(map[string]any)["outbox_id"])
			}
			if got := fmt.Sprint(ids, " ", e.Data["leaving_of_others"]); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}
