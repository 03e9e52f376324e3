package gateway_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
)

// A store that falls silent is named for it, and does not make a command much longer than it
// may be; what took effect waits for its entry.
func TestASilentStoreIsToBlame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent, kept := errors.New("silent"), false
		var waits time.Duration
		g := gatewayOf(t, gateway.Options{
			Settings: fakeSettings(func(ctx context.Context) (gateway.Settings, error) {
				if !kept { // as it was read before
					kept = true
					return gateway.Settings{}, nil
				}
				<-ctx.Done()
				return gateway.Settings{}, silent
			}),
			Auditor: fakeAuditorFunc(func(ctx context.Context) error {
				start := time.Now()
				<-ctx.Done()
				waits = time.Since(start)
				return silent
			}),
			Faults: func(err error) *discovery.Fault {
				if errors.Is(err, silent) {
					return &discovery.Fault{Code: discovery.StoreError, Message: "It is silent.", Hint: "Wait.", Examples: []string{"help"}}
				}
				return nil
			},
		}, command("do wait", discovery.Read, func(ctx context.Context, _ *discovery.Call, _ *testArgs) (*testResult, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}), command("do echo", discovery.Read, func(context.Context, *discovery.Call, *testArgs) (*testResult, error) {
			return &testResult{}, nil
		}), command("do write", discovery.Write, func(context.Context, *discovery.Call, *testArgs) (*testResult, error) {
			return &testResult{}, nil
		}))
		for line, want := range map[string]time.Duration{"do wait --timeout 7": 8 * time.Second, "do echo --timeout 3": 3 * time.Second, "do write --timeout 3": 10 * time.Second} {
			kept = false
			start := time.Now()
			a := g.Do(t.Context(), gateway.Request{Line: line})
			code := discovery.StoreError
			if strings.HasPrefix(line, "do write") {
				code = ""
			}
			if took := time.Since(start); a.Code != code || took != want {
				t.Errorf("%s: after %s, of which its entry took %s: %s", line, took, waits, a.JSON)
			}
		}
	})
}

// Examples as they run for the caller are not worth a wait for the store.
func TestExamplesDelayNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here := 0
		r, err := discovery.NewRegistry(discovery.Info{Name: "test", Version: "1", Here: func(ctx context.Context, _ string) func(*discovery.Command, string) string {
			here++
			<-ctx.Done()
			return func(_ *discovery.Command, example string) string { return example }
		}}, command("fail", discovery.Read, func(_ context.Context, _ *discovery.Call, a *testArgs) (*testResult, error) {
			return nil, &discovery.Fault{Code: discovery.Code(a.Text), Message: "It failed.", Hint: "Look.", Examples: []string{"fail"}}
		}))
		if err != nil {
			t.Fatal(err)
		}
		g, err := gateway.New(gateway.Options{Registry: r, Profile: gateway.FullProfile()})
		if err != nil {
			t.Fatal(err)
		}
		for code, want := range map[discovery.Code]time.Duration{discovery.Conflict: time.Second / 2, discovery.StoreError: 0} {
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			if a := g.Do(ctx, gateway.Request{Line: "fail --text " + string(code)}); a.Code != code || time.Since(start) != want {
				t.Errorf("%s after %s", a.JSON, time.Since(start))
			}
			cancel()
		}
		if here != 1 {
			t.Errorf("asked %d times", here)
		}
	})
}

// fakeAuditorFunc is a gateway.Auditor.
type fakeAuditorFunc func(context.Context) error

func (f fakeAuditorFunc) Record(ctx context.Context, _ gateway.AuditEntry) error { return f(ctx) }
