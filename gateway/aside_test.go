package gateway_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
)

type nothing struct{}

// asideGateway has a command that waits aside for another, and tells when its answer
// has arrived.
func asideGateway(t *testing.T, delivered *atomic.Int32) *gateway.Gateway {
	t.Helper()
	told := make(chan struct{})
	spec := func(path string) discovery.Spec {
		return discovery.Spec{Path: path, Summary: "Wait or tell", Effect: discovery.State, Examples: []string{path}}
	}
	return gatewayOf(t, gateway.Options{},
		discovery.New(spec("wait"), func(ctx context.Context, call *discovery.Call, _ *nothing) (*nothing, error) {
			call.Delivered(func() { delivered.Add(1) })
			return &nothing{}, call.Aside(ctx, func(ctx context.Context) error {
				select {
				case <-told:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			})
		}),
		discovery.New(spec("tell"), func(context.Context, *discovery.Call, *nothing) (*nothing, error) {
			close(told)
			return &nothing{}, nil
		}),
		discovery.New(spec("fail"), func(_ context.Context, call *discovery.Call, _ *nothing) (*nothing, error) {
			call.Delivered(func() { delivered.Add(1) })
			return nil, errors.New("it fails")
		}))
}

func TestACommandThatStandsAsideLetsTheNextOnesPass(t *testing.T) {
	var delivered atomic.Int32
	g := asideGateway(t, &delivered)
	var o gateway.Order
	first, second, third := o.Ticket(), o.Ticket(), o.Ticket()
	answers := make(chan gateway.Answer, 2)
	for ticket, line := range map[*gateway.Ticket]string{first: "wait", second: "tell"} {
		go func() {
			defer ticket.Finish()
			answers <- g.Do(t.Context(), gateway.Request{Line: line, Ticket: ticket})
		}()
	}
	for range 2 {
		if a := <-answers; !a.Success() {
			t.Errorf("%s", a.JSON)
		}
	}
	// It left the line for good when it ended.
	if a := g.Do(t.Context(), gateway.Request{Line: "fail", Ticket: third}); a.Success() || !strings.Contains(string(a.JSON), "EXECUTION_ERROR") {
		t.Errorf("%s", a.JSON)
	}
}

func TestOnlyAnAnswerThatSucceededIsDelivered(t *testing.T) {
	var delivered atomic.Int32
	g := asideGateway(t, &delivered)
	if a := g.Do(t.Context(), gateway.Request{Line: "tell"}); !a.Success() {
		t.Fatalf("%s", a.JSON)
	}
	failed, waited := g.Do(t.Context(), gateway.Request{Line: "fail"}), g.Do(t.Context(), gateway.Request{Line: "wait"})
	if delivered.Load() != 0 {
		t.Error("delivered before anybody said so")
	}
	failed.Delivered()
	if delivered.Load() != 0 {
		t.Error("a failure was delivered")
	}
	waited.Delivered()
	if delivered.Load() != 1 {
		t.Errorf("%d deliveries", delivered.Load())
	}
}
