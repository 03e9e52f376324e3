package gateway_test

import (
	"context"
	"errors"
	"testing"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/internal/testmain"
)

type explainedArgs struct {
	Count int `json:"count,omitempty" jsonschema:"minimum=1,maximum=3" jsonschema_description:"Count"`
}

func TestExplainAgreesWithDoAndRunsNothing(t *testing.T) {
	ran := 0
	command := func(path string, effect discovery.Effect) *discovery.Command {
		return discovery.New(discovery.Spec{Path: path, Summary: "Do it", Effect: effect, Examples: []string{path}},
			func(context.Context, *discovery.Call, *explainedArgs) (struct{}, error) {
				ran++
				return struct{}{}, nil
			})
	}
	commands := []*discovery.Command{command("thing see", discovery.Read), command("thing break", discovery.Write),
		command("thing own", discovery.Admin), command("thing lose", discovery.Read)}
	profiles := map[string]gateway.Profile{"full": gateway.FullProfile(), "read": gateway.ReadProfile(), "none": gateway.OnlyProfile("none")}
	for _, test := range testmain.Table[struct {
		Line, Command, Profile string
		Admin                  bool
		Code, Reason           string
		Bound                  bool
	}](t, "testdata/cases/explained.txt") {
		t.Run(test.Line, func(t *testing.T) {
			g := gatewayOf(t, gateway.Options{Profile: profiles[test.Profile], Settings: gateway.FixedSettings{Deny: []string{"thing lose"}}}, commands...)
			p := gateway.Principal{Name: "agent", Admin: test.Admin}
			ran = 0
			e, err := g.Explain(t.Context(), gateway.Request{Principal: p, Line: test.Line})
			if err != nil || ran != 0 {
				t.Fatalf("%v, ran %d times", err, ran)
			}
			path, code, reason := "", discovery.Code(""), ""
			if e.Command != nil {
				path = e.Command.Path
			}
			if e.Refusal != nil {
				code, reason = e.Refusal.Code, e.Refusal.Reason
			}
			if path != test.Command || string(code) != test.Code || reason != test.Reason || (e.Args != nil) != test.Bound {
				t.Errorf("command %q, code %q, reason %q, bound %v", path, code, reason, e.Args != nil)
			}
			if a := g.Do(t.Context(), gateway.Request{Principal: p, Line: test.Line}); a.Code != code {
				t.Errorf("Do ends with %q, Explain with %q", a.Code, code)
			}
		})
	}
}

func TestExplainAllowsNothingWithoutTheSettings(t *testing.T) {
	g := gatewayOf(t, gateway.Options{Settings: fakeSettings(noSettings)})
	if e, err := g.Explain(t.Context(), gateway.Request{Line: "help"}); !errors.Is(err, errNoSettings) || e.Command != nil {
		t.Errorf("%+v, %v", e, err)
	}
}

// countingArgs counts how often the command's own check runs.
type countingArgs struct {
	N int `json:"n,omitempty" jsonschema_description:"Number"`
}

var checked int

func (*countingArgs) Validate() error { checked++; return nil }

// Nothing of a command's own runs for a caller who may not run it, and its check runs
// once for one who may.
func TestACommandIsBoundOnceAndForItsCallersOnly(t *testing.T) {
	c := discovery.New(discovery.Spec{Path: "count", Summary: "Count", Effect: discovery.Admin, Examples: []string{"count"}},
		func(context.Context, *discovery.Call, *countingArgs) (*nothing, error) { return &nothing{}, nil })
	g := gatewayOf(t, gateway.Options{}, c)
	for p, want := range map[gateway.Principal]int{{Name: "agent"}: 0, {Name: "admin", Admin: true}: 1} {
		checked = 0
		if a := g.Do(t.Context(), gateway.Request{Principal: p, Line: "count --n 1 --timeout 5"}); a.Success() != (want == 1) || checked != want {
			t.Errorf("%s: checked %d times: %s", p.Name, checked, a.JSON)
		}
	}
}
