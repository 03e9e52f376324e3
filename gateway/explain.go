package gateway

import (
	"context"

	"github.com/postern-mail/postern/discovery"
)

// Explanation is how far a command string would get: the command it names, the
// arguments it binds to, and what stands in the way.
type Explanation struct {
	Command *discovery.Command // nil when the string names none
	Args    any                // pointer to the command's argument struct; nil when they do not bind
	Refusal *discovery.Fault   // nil when the command would be run
}

// Explain takes a command string through the same steps as Do, up to where the
// command would run, and says what it meets there. It runs nothing, charges no
// rate and writes no audit entry: the caller's own command has one. The error is
// for settings that cannot be read.
func (g *Gateway) Explain(ctx context.Context, p Principal, line string) (Explanation, error) {
	settings, err := g.settings.Settings(ctx, false)
	if err != nil {
		return Explanation{}, err
	}
	tokens, err := Tokenize(line)
	if err != nil {
		return Explanation{Refusal: parseFault(err)}, nil
	}
	visible := func(c *discovery.Command) bool { return g.authorize(p, &settings, c) == nil }
	found, err := g.registry.Resolve(tokens, visible)
	if err != nil {
		return Explanation{Refusal: discovery.AsFault(err)}, nil
	}
	if found.Command == nil { // a group named alone is its help
		return Explanation{Command: g.registry.Lookup("help")}, nil
	}
	e := Explanation{Command: found.Command, Refusal: g.authorize(p, &settings, found.Command)}
	if e.Refusal != nil {
		return e, nil
	}
	bound, err := found.Command.Bind(found.Rest, settings.Location)
	if err != nil {
		e.Refusal = discovery.AsFault(err)
		return e, nil
	}
	if bound.Help {
		return Explanation{Command: g.registry.Lookup("help")}, nil
	}
	if _, err := found.Command.Project(bound.Common.Fields); err != nil {
		e.Refusal = discovery.AsFault(err)
		return e, nil
	}
	e.Args = bound.Args
	return e, nil
}
