package admin_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
)

func TestAStopNamesWhatTheCallerMaySeeLeaving(t *testing.T) {
	t.Parallel()
	for principal, want := range map[string]string{mail.PersonPrincipal: "[a] 1", mail.AgentPrincipal: "[a] 1", "laptop": "[l] 1"} {
		if testing.Short() && principal == mail.AgentPrincipal {
			continue // each waits for a second, and the laptop is an agent, too
		}
		t.Run(principal, func(t *testing.T) {
			t.Parallel()
			b := newFixture(t, work("work", mail.ReadWrite))
			b.Principal = gateway.Principal{Name: principal}
			for id, owner := range map[string]string{"a": mail.AgentPrincipal, "l": "laptop"} {
				o := mail.Outgoing{ID: id, Account: "work", Principal: owner, State: mail.OutboxUnknown, Attempt: "at work", Until: at.AddDate(0, 0, 1)}
				if id == "l" {
					o.Kind = mail.OutboxDelete
				}
				*b.outbox = append(*b.outbox, o)
			}
			e := b.OK(t, "stop")
			said := map[bool]string{true: "1 deletion was under way by then", false: "1 message was leaving by then"}[principal == "laptop"]
			if !strings.Contains(e.Message, "; "+said+"; of others 1 entry of the outbox was under way") {
				t.Errorf("it says %q", e.Message)
			}
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
