package gateway_test

import (
	"testing"
	"testing/synctest"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
)

func TestACallWithoutACommandCountsAgainstTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, gateway.Options{Settings: gateway.FixedSettings{CommandsPerMinute: 1}})
		call := g.MCP(gateway.Principal{Name: "agent"})
		f := &discovery.Fault{Code: discovery.ValidationError, Message: "No command.", Hint: "Give one.", Examples: []string{"help"}}
		if a := g.Refuse(t.Context(), gateway.Principal{Name: "agent"}, f); a.Code != discovery.ValidationError {
			t.Errorf("%s", a.JSON)
		}
		if a := g.Refuse(t.Context(), gateway.Principal{Name: "agent"}, f); a.Code != discovery.RateLimited {
			t.Errorf("%s", a.JSON)
		}
		if r := call(t.Context(), gateway.MCPCall{Fault: "there are none"}); !r.IsError {
			t.Errorf("%s", r.Text)
		}
	})
}
