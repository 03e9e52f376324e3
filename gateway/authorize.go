package gateway

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postern-mail/postern/discovery"
)

// Principal is the caller. The zero Principal is an unnamed agent.
type Principal struct {
	Name  string // for limits and the audit log
	Admin bool   // may run commands whose effect is discovery.Admin

	// Scope narrows what the principal reaches; nil narrows nothing. It is not changed
	// once a Principal has it.
	Scope *Scope

	// Unasked means that no question is put to a person through the principal's client,
	// and that no answer from it counts: anybody with the principal's token can write that
	// client's answers.
	Unasked bool
}

// Profile is the set of commands a server offers at all. The zero Profile of a Scope
// offers only the reserved commands; New refuses one.
type Profile struct {
	Name   string
	Allows func(*discovery.Command) bool // nil allows nothing
}

const fullName = "full"

// FullProfile offers every command.
func FullProfile() Profile {
	return Profile{fullName, func(*discovery.Command) bool { return true }}
}

// ReadProfile offers the commands that change nothing anywhere, and of those that change
// only what this program keeps itself the ones with these paths.
func ReadProfile(also ...string) Profile {
	also = slices.Clone(also)
	return Profile{"read", func(c *discovery.Command) bool {
		return c.Effect == discovery.Read || c.Effect == discovery.State && slices.Contains(also, c.Path)
	}}
}

// OnlyProfile offers the commands with these paths and no others.
func OnlyProfile(name string, paths ...string) Profile {
	paths = slices.Clone(paths)
	return Profile{name, func(c *discovery.Command) bool { return slices.Contains(paths, c.Path) }}
}

func (p Profile) allows(c *discovery.Command) bool {
	return c.Effect == discovery.Meta || p.Allows != nil && p.Allows(c)
}

// Settings are the rules an administrator may change while a server runs. The
// zero Settings are the defaults.
type Settings struct {
	Deny              []string       // paths of commands or groups, or what commands do: nobody but the administrator may run those, and others that do the same
	CommandsPerMinute int            // per principal; 0 means DefaultCommandsPerMinute
	Location          *time.Location // zone of datetimes without an offset; nil means time.Local

	// Stopped is why everything is stopped; nil where it is not. Then only commands run that
	// are Standing or Meta.
	Stopped *discovery.Fault
}

// DefaultCommandsPerMinute is the rate at which a principal may call.
const DefaultCommandsPerMinute = 1200

// SettingsSource gives the settings in force. Implementations are safe for
// concurrent use; an error refuses every command but the reserved ones.
type SettingsSource interface {
	// Settings is asked before the Limiter and the Auditor, once for each command.
	// optional says that the command works without them, so the source must not start anything
	// that a person would notice, such as a program that asks for a key.
	Settings(ctx context.Context, optional bool) (Settings, error)
}

// FixedSettings is a SettingsSource that never changes.
type FixedSettings Settings

// Settings implements SettingsSource.
func (s FixedSettings) Settings(context.Context, bool) (Settings, error) { return Settings(s), nil }

// authorize returns why p may not run c, or nil. What it refuses is also what
// help, schema and version leave out.
func (g *Gateway) authorize(p Principal, s *Settings, c *discovery.Command) *discovery.Fault {
	switch {
	case c.Effect == discovery.Meta:
		return nil
	case !g.profileFor(p).allows(c):
		return denied(c, "profile", "The command is not part of this server's profile. Run 'help' for the available commands.")
	case c.Effect == discovery.Admin && !p.admin():
		return denied(c, "role", g.o.AdminHint)
	case !p.admin() && g.denies(s.Deny, c):
		hint := notGiven
		if c.Extension() != "" && c.Effect == discovery.Send {
			hint = g.o.SendHint
		}
		return denied(c, "deny", hint)
	}
	return nil
}

const notGiven = "The administrator has not given it to agents. Run 'help' for the available commands."

func denied(c *discovery.Command, reason, hint string) *discovery.Fault {
	return &discovery.Fault{Code: discovery.PermissionDenied, Message: fmt.Sprintf("You may not run '%s'.", c.Path), Hint: hint, Reason: reason}
}

// denies reports whether entries deny a command: they name it, its group, what it does, or
// another command that does the same. An extension is one more that sends.
func (g *Gateway) denies(entries []string, c *discovery.Command) bool {
	does := c.Does
	if c.Effect == discovery.Send && c.Extension() != "" {
		does = c.Effect.String()
	}
	return matchesAny(c.Path, entries) || does != "" && slices.ContainsFunc(entries, func(e string) bool {
		named := g.o.Registry.Lookup(e)
		return e == does || named != nil && named.Does == does
	})
}

// matchesAny reports whether path is one of the entries or lies in a group that
// is.
func matchesAny(path string, entries []string) bool {
	for _, e := range entries {
		if rest, ok := strings.CutPrefix(path, e); ok && e != "" && (rest == "" || rest[0] == ' ') {
			return true
		}
	}
	return false
}

// Why a call beyond a rate was refused: that of commands, or of bytes in the log.
const reasonRate, reasonLog = "rate", "log"

// CommandsKey begins the key under which the commands of a principal are limited; its name
// follows.
const CommandsKey = "commands:"

// takeRate charges one command to the principal, and refuses it also where the principal has
// filled its share of the log. The administrator can be told to stop in other ways.
func (g *Gateway) takeRate(ctx context.Context, p Principal, s *Settings) (*discovery.Fault, error) {
	limit := s.CommandsPerMinute
	if limit <= 0 {
		limit = DefaultCommandsPerMinute
	}
	wait, err := g.o.Limiter.Take(ctx, CommandsKey+p.Name, limit, time.Minute)
	if err != nil {
		return nil, err
	}
	if log, ok := g.o.Auditor.(Bounded); ok && wait <= 0 && !p.admin() {
		if wait, share := log.LogFull(p.Name); wait > 0 {
			return &discovery.Fault{Code: discovery.RateLimited, Message: fmt.Sprintf("Your commands of this hour have filled your share of the audit log, %d MiB.", share>>20),
				Hint: fmt.Sprintf("Wait %d s before the next one. A command that names few messages and recipients takes less of it.", (wait+time.Second-1)/time.Second), Reason: reasonLog}, nil
		}
	}
	if wait <= 0 {
		return nil, nil
	}
	return &discovery.Fault{Code: discovery.RateLimited, Message: fmt.Sprintf("More than %d commands within a minute.", limit),
		Hint: fmt.Sprintf("Wait %d s before the next one.", (wait+time.Second-1)/time.Second), Reason: reasonRate}, nil
}

// Visible reports whether the command exists for the principal now, as help shows it. When
// the settings cannot be read nothing is hidden here, but running the command is refused.
func (g *Gateway) Visible(ctx context.Context, p Principal, c *discovery.Command) bool {
	s, err := g.o.Settings.Settings(ctx, true)
	if err != nil {
		s = Settings{}
	}
	return g.authorize(p, &s, c) == nil
}
