package main

import (
	"strings"
	"testing"

	"github.com/postern-mail/postern/conformance"
	"github.com/postern-mail/postern/gateway"
)

// What the documents of the mailbox, of the agent mailbox and of the transport ask
// holds for an agent, and what they ask of the administrator's commands for the
// administrator.
func TestTheMailCasesHold(t *testing.T) {
	slow(t, "TestOverHTTPWeConformAsOverPipes")
	t.Parallel()
	for _, x := range []struct {
		principal gateway.Principal
		absent    string // what cases that are not applicable say they miss
	}{
		{gateway.Principal{Name: "agent"}, "the server has no command "},
		{gateway.Principal{Name: "admin", Admin: true}, "none is missing"},
	} {
		t.Run(x.principal.Name, func(t *testing.T) {
			t.Parallel()
			r := judge(t, demoHouse(t).piped(x.principal), &conformance.Options{Suite: "mail", AllowEffects: true})
			if len(r.Results) < 130 {
				t.Errorf("%d cases were asked", len(r.Results))
			}
			for _, c := range r.Results {
				if c.Status == conformance.NotApplicable && !strings.HasPrefix(c.Reason, x.absent) {
					t.Errorf("%s was not asked: %s", c.ID, c.Reason)
				}
			}
		})
	}
}
