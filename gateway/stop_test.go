package gateway_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
)

var errHalt = &discovery.Fault{Code: discovery.PermissionDenied, Message: "Everything is stopped.", Hint: "Wait.", Reason: "stopped"}

// stoppable has commands that stop and resume, and that run or wait, under a stop or not.
func stoppable(t *testing.T, limiter gateway.Limiter) *gateway.Gateway {
	t.Helper()
	var stopped *discovery.Fault
	ended := make(chan struct{})
	spec := func(path string, e discovery.Effect, run func(ctx context.Context) error, s discovery.Spec) *discovery.Command {
		s.Path, s.Summary, s.Effect, s.Examples = path, "Run "+path, e, []string{path}
		return discovery.New(s, func(ctx context.Context, _ *discovery.Call, _ *testArgs) (*testResult, error) {
			return &testResult{}, run(ctx)
		})
	}
	nothing := func(context.Context) error { return nil }
	wait := func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Second):
			return nil
		}
	}
	return gatewayOf(t, gateway.Options{
		Limiter:  limiter,
		Settings: fakeSettings(func(context.Context) (gateway.Settings, error) { return gateway.Settings{Stopped: stopped}, nil }),
		Faults: func(err error) *discovery.Fault {
			return &discovery.Fault{Code: discovery.ExecutionError, Message: "It failed.", Hint: "Look.", Err: err}
		},
		Until: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			go func() {
				select {
				case <-ended:
					cancel(errHalt)
				case <-ctx.Done():
				}
			}()
			return ctx, func() { cancel(nil) }
		},
	},
		spec("do read", discovery.Read, nothing, discovery.Spec{}),
		spec("do write", discovery.Write, nothing, discovery.Spec{}),
		spec("do admin", discovery.Admin, nothing, discovery.Spec{}),
		spec("do state", discovery.State, nothing, discovery.Spec{Standing: true}),
		spec("do wait", discovery.Write, wait, discovery.Spec{}),
		spec("do stand", discovery.Write, wait, discovery.Spec{Standing: true}),
		spec("do half", discovery.Write, func(ctx context.Context) error { return &fakePartialError{wait(ctx)} }, discovery.Spec{}),
		spec("do stop", discovery.State, func(context.Context) error { stopped = errHalt; close(ended); return nil }, discovery.Spec{Standing: true, Urgent: true}),
	)
}

// TestAStopEndsAndRefuses: commands at work end with the stop as their reason, and none begins
// but those that stand. stop itself overtakes what is in line.
func TestAStopEndsAndRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := stoppable(t, nil)
		var order gateway.Order
		type result struct {
			line   string
			answer gateway.Answer
		}
		results := make(chan result)
		start := time.Now()
		begin := func(line string, ticket *gateway.Ticket) {
			go func() {
				defer ticket.Finish()
				results <- result{line, g.Do(t.Context(), gateway.Request{Line: line, Ticket: ticket})}
			}()
			synctest.Wait()
		}
		begin("do stand", nil)
		begin("do half", nil)
		for _, line := range []string{"do wait", "do write", "do stop"} { // in one line
			begin(line, order.Ticket())
		}
		for range 5 {
			r := <-results
			after := time.Since(start)
			switch want := map[string]discovery.Code{"do wait": discovery.PermissionDenied, "do write": discovery.PermissionDenied, "do half": discovery.ExecutionError}[r.line]; {
			case r.answer.Code != want:
				t.Errorf("%s: %s", r.line, r.answer.JSON)
			case r.line == "do stand" != (after == 20*time.Second):
				t.Errorf("%s: answered after %s", r.line, after)
			}
		}
		admin := gateway.Principal{Name: "admin", Admin: true}
		for line, refused := range map[string]bool{"do read": true, "do write": true, "do admin": true, "do state": false, "help": false, "do write --help": false} {
			if a := g.Do(t.Context(), gateway.Request{Principal: admin, Line: line}); a.Success() == refused {
				t.Errorf("%s: %s", line, a.JSON)
			}
			e, err := g.Explain(t.Context(), gateway.Request{Principal: admin, Line: line})
			if err != nil || (e.Refusal == errHalt) != refused {
				t.Errorf("%s is explained as %v, %v", line, e.Refusal, err)
			}
		}
	})
}

// fakeRefusingLimiter refuses everything.
type fakeRefusingLimiter struct{}

func (fakeRefusingLimiter) Take(context.Context, string, int, time.Duration) (time.Duration, error) {
	return time.Minute, nil
}

// A flood of commands holds up no stop; it cannot be a flood itself.
func TestAStopHasNoRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := stoppable(t, fakeRefusingLimiter{})
		for _, c := range []struct {
			line string
			code discovery.Code
		}{{"do read", discovery.RateLimited}, {"do stop --fields x", discovery.RateLimited}, {"do stop", ""}, {"do stop", discovery.RateLimited}} {
			if a := g.Do(t.Context(), gateway.Request{Line: c.line}); a.Code != c.code {
				t.Errorf("%s: %s", c.line, a.JSON)
			}
		}
	})
}
