package gateway_test

import (
	"context"
	"errors"
	"testing"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
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
	reading := gateway.ReadProfile()
	for _, test := range []struct {
		name, line, command string
		profile             gateway.Profile
		admin               bool
		code                discovery.Code
		reason              string
		bound               bool
	}{
		{"allowed", "thing see --count 2", "thing see", gateway.FullProfile(), false, "", "", true},
		{"profile", "thing break", "thing break", reading, false, discovery.PermissionDenied, "profile", false},
		{"role", "thing own", "thing own", gateway.FullProfile(), false, discovery.PermissionDenied, "role", false},
		{"role held", "thing own", "thing own", gateway.FullProfile(), true, "", "", true},
		{"deny", "thing lose", "thing lose", gateway.FullProfile(), false, discovery.PermissionDenied, "deny", false},
		{"deny is not for the administrator", "thing lose", "thing lose", gateway.FullProfile(), true, "", "", true},
		{"bounds", "thing see --count 4", "thing see", gateway.FullProfile(), false, discovery.ValidationError, "", false},
		{"fields", "thing see --fields nope", "thing see", gateway.FullProfile(), false, discovery.ValidationError, "", false},
		{"unknown", "thing sea", "", gateway.FullProfile(), false, discovery.CommandNotFound, "", false},
		{"nothing", "", "", gateway.FullProfile(), false, discovery.CommandNotFound, "", false},
		{"parse", "thing 'see", "", gateway.FullProfile(), false, discovery.ParseError, "", false},
		{"group", "thing", "help", gateway.FullProfile(), false, "", "", false},
		{"help", "thing see --help", "help", gateway.FullProfile(), false, "", "", false},
		{"reserved", "version", "version", gateway.OnlyProfile("none"), false, "", "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := gatewayOf(t, gateway.Options{Profile: test.profile, Settings: gateway.FixedSettings{Deny: []string{"thing lose"}}}, commands...)
			p := gateway.Principal{Name: "agent", Admin: test.admin}
			ran = 0
			e, err := g.Explain(t.Context(), gateway.Request{Principal: p, Line: test.line})
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
			if path != test.command || code != test.code || reason != test.reason || (e.Args != nil) != test.bound {
				t.Errorf("command %q, code %q, reason %q, bound %v", path, code, reason, e.Args != nil)
			}
			if a := g.Do(t.Context(), gateway.Request{Principal: p, Line: test.line}); a.Code != code {
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
