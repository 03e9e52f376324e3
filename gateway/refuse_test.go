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
		f := &discovery.Fault{Code: discovery.ValidationError, Message: "No command.", Hint: "Give one.", Examples: []string{"help"}}
		if a := g.Do(t.Context(), gateway.Request{Principal: gateway.Principal{Name: "agent"}, Refusal: f}); a.Code != discovery.ValidationError {
			t.Errorf("%s", a.JSON)
		}
		if a := g.Do(t.Context(), gateway.Request{Principal: gateway.Principal{Name: "agent"}, Refusal: f}); a.Code != discovery.RateLimited {
			t.Errorf("%s", a.JSON)
		}
	})
}
