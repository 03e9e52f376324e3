package commands_test

import (
	"testing"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
)

// Bounds of what an agent reads before its first errand, in bytes of the envelope.
const (
	maxRootHelp    = 3500
	maxCommandHelp = 1500
)

// TestHelpIsShortForAgents counts the bytes of every page of help that an agent can ask
// for. The administrator's pages have no bound.
func TestHelpIsShortForAgents(t *testing.T) {
	g := newBareGateway(t)
	page := func(line string, limit int) {
		t.Helper()
		a := g.Do(t.Context(), gateway.Request{Principal: gateway.Principal{Name: "agent"}, Line: line})
		if len(a.JSON) > limit || !a.Success() {
			t.Errorf("%s: %d bytes, at most %d: %s", line, len(a.JSON), limit, a.JSON)
		}
	}
	page("help", maxRootHelp)
	for _, c := range newRegistry(t).Commands() {
		if c.Effect != discovery.Admin {
			page("help "+c.Path, maxCommandHelp)
		}
	}
}
