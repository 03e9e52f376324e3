package gateway

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/internal/plain"
)

// A plan is a command that the caller may run, bound to its arguments. After a fault it
// holds what was known by then.
type plan struct {
	command    *discovery.Command // nil where the tokens name none
	rest       []string           // the tokens behind its path
	full       bool               // the full answer is wanted; before bind, whether the caller asks for it without --full
	bound      *discovery.Bound
	projection *discovery.Projection
	instead    bool // it is the help of what the tokens name
}

// resolve finds the command. A group named alone is its help.
func (l *plan) resolve(g *Gateway, p Principal, s *Settings, tokens []string) *discovery.Fault {
	found, err := g.o.Registry.Resolve(tokens, func(c *discovery.Command) bool { return g.authorize(p, s, c) == nil })
	switch {
	case err != nil:
		*l = plan{full: l.full}
	case found.Group != "":
		*l = plan{full: l.full, command: g.o.Registry.Lookup("help"), rest: strings.Fields(found.Group), instead: true}
	default:
		*l = plan{full: l.full, command: found.Command, rest: found.Rest}
	}
	return discovery.AsFault(err)
}

// bind authorizes the caller, and then binds the arguments.
func (l *plan) bind(g *Gateway, p Principal, s *Settings) *discovery.Fault {
	if f := g.authorize(p, s, l.command); f != nil {
		return f
	}
	var err error
	l.bound, err = g.o.Registry.Bind(l.command, l.rest, s.Location, func(c *discovery.Command) bool { return g.authorize(p, s, c) == nil })
	if err == nil && l.bound.Help {
		path := strings.Fields(l.command.Path)
		l.command, l.instead = g.o.Registry.Lookup("help"), true
		l.bound, err = l.command.Bind(path, nil)
	}
	if err == nil {
		l.full = l.full || l.bound.Common.Full
		l.projection, err = l.command.Project(l.bound.Common.Fields, l.full)
	}
	if err == nil && s.Stopped != nil && !standing(l.command) {
		return s.Stopped
	}
	return discovery.AsFault(err)
}

// standing reports whether the command runs also while everything is stopped.
func standing(c *discovery.Command) bool { return c.Standing || c.Effect == discovery.Meta }

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

// told is the command as _meta and the audit log tell it: as it came, with nothing but
// sensitive values replaced.
func (x *execution) told() string {
	line := strings.ToValidUTF8(x.Line, "\ufffd")
	tokens, f := x.tokens()
	var shown []string
	if f == nil {
		shown = x.gateway.shown(tokens)
	} else { // it has no tokens; its words are near to them
		tokens = strings.Fields(plain.Clip(line, 4*MaxShownCommand))
		shown = x.gateway.shownWords(tokens)
	}
	if line == "" || !slices.Equal(tokens, shown) {
		line = joinTokens(shown)
	}
	return plain.Clip(strings.TrimSpace(line), MaxShownCommand)
}

// shown are the tokens as they may be shown and logged. Of those that name no command these
// are the first two, where they look like the words of one: any other may be a password that
// was typed in the wrong place.
func (g *Gateway) shown(tokens []string) []string {
	found, err := g.o.Registry.Resolve(tokens, func(*discovery.Command) bool { return true })
	switch {
	case err == nil && found.Command != nil:
		return append(slices.Clone(found.Path), found.Command.Redact(found.Rest)...)
	case err == nil:
		return tokens
	}
	shown := slices.Clone(tokens)
	for i, t := range shown {
		if i > 1 || !wordPattern().MatchString(t) && !g.o.Registry.Exists(t) && !g.o.Registry.Resembles(t) {
			shown[i] = discovery.Redacted
		}
	}
	return shown
}

// shownWords is shown for the words of a command string that has no tokens. What is inside
// quotes cannot be told: of a command with a sensitive argument nothing is shown from the
// first quote on, since a text can hold what looks like an option.
func (g *Gateway) shownWords(words []string) []string {
	i := slices.IndexFunc(words, func(w string) bool { return strings.ContainsAny(w, `'"\`) })
	found, err := g.o.Registry.Resolve(words, func(*discovery.Command) bool { return true })
	if i < 0 || err != nil || found.Command == nil || !found.Command.Sensitive() {
		return g.shown(words)
	}
	return append(g.shown(words[:i]), discovery.Redacted)
}

// wordPattern is what a word of a command looks like that is none here and near to none:
// letters, or as the names of tools are, words joined by underscores. Digits and other signs are
// rather those of a password.
var wordPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\A(-{0,2}|x-)\pL+(_\pL+)*\z`)
})

// account is the account that the command's arguments name, whether or not they bind.
func (l *plan) account() string {
	if l.command == nil {
		return ""
	}
	return l.command.Account(l.rest)
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
