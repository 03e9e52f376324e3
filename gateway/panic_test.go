package gateway_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
)

// A panicArgs panics in Validate, and a panicResult where its text says.
type panicArgs struct {
	Where string `json:"where,omitempty" jsonschema_description:"Where it panics"`
}

func (a *panicArgs) Validate() error {
	if a.Where == "Validate" {
		panic("a secret value")
	}
	return nil
}

type panicResult struct {
	Where string `json:"where"`
}

func (r *panicResult) MarshalJSON() ([]byte, error) {
	switch r.Where {
	case "MarshalJSON":
		panic("a secret value")
	case "Truncate":
		return []byte(`"` + strings.Repeat("x", gateway.MaxAnswerBytes) + `"`), nil
	}
	return []byte(`{"where":""}`), nil
}

func (r *panicResult) Truncate(float64) bool { panic("a secret value") }

func (r *panicResult) Summary() string {
	if r.Where == "Summary" {
		panic("a secret value")
	}
	return ""
}

// fakePanics is a Limiter and an Auditor.
type fakePanics struct{}

func (fakePanics) Take(context.Context, string, int, time.Duration) (time.Duration, error) {
	panic("a secret value")
}

func (fakePanics) Record(context.Context, gateway.AuditEntry) error { panic("a secret value") }

// Wherever something panics, the answer is an error, the audit log has an entry, and the
// next command is served.
func TestAPanicAnywhereIsAnsweredAndAudited(t *testing.T) {
	run := discovery.New(discovery.Spec{Path: "do", Summary: "Do", Effect: discovery.Read, Examples: []string{"do"}},
		func(_ context.Context, _ *discovery.Call, a *panicArgs) (*panicResult, error) {
			switch a.Where {
			case "Run":
				panic("a secret value")
			case "Faults":
				return nil, errors.New("an error")
			}
			return &panicResult{a.Where}, nil
		})
	for _, where := range []string{"Validate", "Run", "MarshalJSON", "Truncate", "Summary", "Faults", "Context", "Settings", "Limiter", "Auditor"} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var logged strings.Builder
				audited := &fakeAuditor{}
				o := gateway.Options{Auditor: audited, Logger: slog.New(slog.NewTextHandler(&logged, nil)),
					Faults: func(error) *discovery.Fault { panic("a secret value") }}
				switch where {
				case "Context":
					o.Context = func(context.Context, gateway.Principal) context.Context { panic("a secret value") }
				case "Settings":
					o.Settings = fakeSettings(func(context.Context) (gateway.Settings, error) { panic("a secret value") })
				case "Limiter":
					o.Limiter = fakePanics{}
				case "Auditor":
					o.Auditor = fakePanics{}
				}
				g := gatewayOf(t, o, run)
				line := "do --where " + where
				if a := g.Do(t.Context(), gateway.Request{Principal: gateway.Principal{Name: "agent"}, Line: line}); a.Code != discovery.ExecutionError || strings.Contains(string(a.JSON), "secret") {
					t.Errorf("%s", a.JSON)
				}
				if a := g.Do(t.Context(), gateway.Request{Principal: gateway.Principal{Name: "agent"}, Line: "version"}); len(a.JSON) == 0 {
					t.Error("the next one has no answer")
				}
				if where == "Auditor" {
					return
				}
				entries := 0
				for _, e := range audited.all() {
					if e.Code == string(discovery.ExecutionError) && strings.HasPrefix(e.Command, "do") {
						entries++
					}
				}
				if entries != 1 {
					t.Errorf("audited as %+v", audited.entries)
				}
				if text := logged.String(); !strings.Contains(text, "panic_test.go") || strings.Contains(text, "secret") {
					t.Errorf("logged %s", text)
				}
			})
		})
	}
}
