package gateway

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/postern-mail/postern/discovery"
)

// A plan is a command that the caller may run, bound to its arguments. After a fault it
// holds what was known by then.
type plan struct {
	command    *discovery.Command // nil where the tokens name none
	rest       []string           // the tokens behind its path
	full       bool               // the full answer is wanted; before bind, whether the caller asks for it without --full
	shown      string             // the tokens as they may be shown
	bound      *discovery.Bound
	projection *discovery.Projection
	instead    bool // it is the help of what the tokens name
}

// resolve finds the command. A group named alone is its help.
func (l *plan) resolve(g *Gateway, p Principal, s *Settings, tokens []string) *discovery.Fault {
	found, err := g.o.Registry.Resolve(tokens, func(c *discovery.Command) bool { return g.authorize(p, s, c) == nil })
	switch {
	case err != nil:
		*l = plan{full: l.full, shown: g.shownUnknown(tokens)}
	case found.Group != "":
		*l = plan{full: l.full, command: g.o.Registry.Lookup("help"), rest: strings.Fields(found.Group), shown: joinTokens(tokens), instead: true}
	default:
		written := tokens[:len(tokens)-len(found.Rest)]
		*l = plan{full: l.full, command: found.Command, rest: found.Rest, shown: joinTokens(append(slices.Clone(written), found.Command.Redact(found.Rest)...))}
	}
	return discovery.AsFault(err)
}

// bind authorizes the caller, and then binds the arguments.
func (l *plan) bind(g *Gateway, p Principal, s *Settings) *discovery.Fault {
	if f := g.authorize(p, s, l.command); f != nil {
		return f
	}
	var err error
	l.bound, err = l.command.Bind(l.rest, s.Location)
	if err == nil && l.bound.Help {
		path := strings.Fields(l.command.Path)
		l.command, l.instead = g.o.Registry.Lookup("help"), true
		l.bound, err = l.command.Bind(path, nil)
	}
	if err == nil {
		l.full = l.full || l.bound.Common.Full
		l.projection, err = l.command.Project(l.bound.Common.Fields, l.full)
	}
	return discovery.AsFault(err)
}

// Explanation is how far a command string would get: the command it names, the
// arguments it binds to, and what stands in the way.
type Explanation struct {
	Command *discovery.Command // nil when the string names none
	Args    any                // pointer to the command's argument struct; nil when they do not bind
	Refusal *discovery.Fault   // nil when the command would be run
}

// Explain makes the plan that Do makes for the principal and the command of a request,
// and says what it meets. It runs nothing, charges no rate and writes no audit entry:
// the caller's own command has one. The error is for settings that cannot be read.
func (g *Gateway) Explain(ctx context.Context, r Request) (Explanation, error) {
	settings, err := g.o.Settings.Settings(ctx, false)
	if err != nil {
		return Explanation{}, err
	}
	tokens, f := r.tokens()
	if f != nil {
		return Explanation{Refusal: f}, nil
	}
	l := plan{full: r.Full}
	if f = l.resolve(g, r.Principal, &settings, tokens); f == nil {
		f = l.bind(g, r.Principal, &settings)
	}
	e := Explanation{Command: l.command, Refusal: f}
	if f == nil && !l.instead {
		e.Args = l.bound.Args
	}
	return e, nil
}

const defaultTimeout = 30 * time.Second

// peek looks at a command before its caller is authorized. Tokens that name no command, or
// ask for a command's help, have the effect discovery.Meta.
func (g *Gateway) peek(tokens []string) (effect discovery.Effect, o discovery.Outlook) {
	found, err := g.o.Registry.Resolve(tokens, func(*discovery.Command) bool { return true })
	if err != nil || found.Command == nil {
		return discovery.Meta, discovery.Outlook{Timeout: defaultTimeout}
	}
	effect, o = found.Command.Effect, found.Command.Peek(found.Rest)
	if o.Help {
		effect, o.Timeout = discovery.Meta, defaultTimeout
	}
	return effect, o
}

// shownUnknown is the part that may be logged of tokens that name no command: words that a
// command has, or nearly. Anything else may be a password that was typed in the wrong
// place.
func (g *Gateway) shownUnknown(tokens []string) string {
	var words []string
	for _, t := range tokens[:min(2, len(tokens))] {
		if !g.o.Registry.Resembles(t) {
			break
		}
		words = append(words, t)
	}
	shown := joinTokens(words)
	if len(words) < len(tokens) {
		shown = strings.TrimSpace(shown + " …")
	}
	return shown
}

func joinTokens(tokens []string) string {
	var b strings.Builder
	for i, t := range tokens {
		if i > 0 {
			b.WriteByte(' ')
		}
		if t == discovery.Redacted || strings.HasSuffix(t, "="+discovery.Redacted) {
			b.WriteString(t)
		} else {
			b.WriteString(discovery.Quote(t))
		}
	}
	return b.String()
}
