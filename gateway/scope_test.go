package gateway_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
)

func TestAPrincipalSeesTheAccountsOfItsScope(t *testing.T) {
	for name, c := range map[string]struct {
		scope *gateway.Scope
		sees  string
	}{
		"none":     {nil, "work home "},
		"zero":     {&gateway.Scope{}, ""},
		"one":      {&gateway.Scope{Accounts: []string{"work"}}, "work "},
		"wildcard": {&gateway.Scope{Accounts: []string{"*", ""}}, ""},
	} {
		got := ""
		for _, account := range []string{"work", "home"} {
			if (gateway.Principal{Scope: c.scope}).Sees(account) {
				got += account + " "
			}
		}
		if got != c.sees {
			t.Errorf("%s: sees %q", name, got)
		}
	}
}

// A command runs with the context that is made for its principal.
func TestACommandRunsOnBehalfOfItsPrincipal(t *testing.T) {
	type key struct{}
	var found gateway.Principal
	var call discovery.Call
	g := gatewayOf(t, gateway.Options{Context: func(ctx context.Context, p gateway.Principal) context.Context {
		return context.WithValue(ctx, key{}, p)
	}}, discovery.New(
		discovery.Spec{Path: "look", Summary: "Look", Effect: discovery.Read, Examples: []string{"look"}},
		func(ctx context.Context, c *discovery.Call, _ *nothing) (*nothing, error) {
			found, _ = ctx.Value(key{}).(gateway.Principal)
			call = *c
			return &nothing{}, nil
		}))
	scope := &gateway.Scope{Profile: gateway.ReadProfile(), Accounts: []string{"work"}, Identity: "repo:main"}
	if a := g.Do(t.Context(), gateway.Request{Principal: gateway.Principal{Name: "ann", Admin: true, Scope: scope}, Line: "look"}); !a.Success() {
		t.Fatalf("%s", a.JSON)
	}
	if found.Name != "ann" || found.Scope != scope || call.Principal != "ann" || call.Admin || call.Profile != "read" || call.Identity != "repo:main" {
		t.Errorf("found %+v, called as %+v", found, call)
	}
	if a := g.Do(t.Context(), gateway.Request{Principal: gateway.Principal{Name: "admin", Admin: true}, Line: "look"}); !a.Success() || !call.Admin || call.Profile != "full" || call.Identity != "" {
		t.Errorf("%s, called as %+v", a.JSON, call)
	}
}

// Every command asks anew whether what let its principal in still holds, and one that
// waited asks again.
func TestAScopeThatEndsEndsItsCommands(t *testing.T) {
	var delivered atomic.Int32
	var ended atomic.Bool
	var once sync.Once
	began := make(chan struct{})
	secret := errors.New("the store says too much")
	over := &discovery.Fault{Code: discovery.AuthFailed, Message: "It has ended.", Hint: "Ask for another.", Reason: "grant"}
	g := asideGateway(t, &delivered)
	fault := error(over)
	p := gateway.Principal{Name: "ann", Scope: &gateway.Scope{Profile: gateway.FullProfile(), Valid: func(context.Context) error {
		if ended.Load() {
			return fault
		}
		once.Do(func() { close(began) })
		return nil
	}}}
	answers := make(chan gateway.Answer, 1)
	go func() { answers <- g.Do(t.Context(), gateway.Request{Principal: p, Line: "wait"}) }()
	<-began
	for e := range 2 { // the second time with what may not be shown
		if e == 1 {
			fault = secret
		}
		ended.Store(true)
		for _, line := range []string{"fail", "tell", "help", "nope", "'", "version"} {
			a := g.Do(t.Context(), gateway.Request{Principal: p, Line: line})
			if a.Success() || e == 0 && a.Code != discovery.AuthFailed || strings.Contains(string(a.JSON), "too much") {
				t.Errorf("%s: %s", line, a.JSON)
			}
		}
		if a := g.Do(t.Context(), gateway.Request{Principal: p, Refusal: &discovery.Fault{Code: discovery.ValidationError, Message: "No."}}); a.Code == discovery.ValidationError {
			t.Errorf("refused with %s", a.JSON)
		}
	}
	fault = over
	if a := g.Do(t.Context(), gateway.Request{Principal: gateway.Principal{Name: "bob"}, Line: "tell"}); !a.Success() {
		t.Errorf("somebody else: %s", a.JSON)
	}
	if a := <-answers; a.Code != discovery.AuthFailed || delivered.Load() != 0 {
		t.Errorf("what waited: %s", a.JSON)
	}
}
