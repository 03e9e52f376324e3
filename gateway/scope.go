package gateway

import (
	"context"
	"slices"

	"github.com/postern-mail/postern/discovery"
)

// Scope narrows a principal to a part of what a gateway offers. The zero Scope
// leaves the reserved commands and nothing else: no command of a profile, no
// account, no identity. A principal that has one is never the administrator.
//
// The gateway itself enforces Profile and Valid. Accounts and Identity are for
// the store that keeps what the commands work on, which learns of them through
// Options.Context: one place that every command passes is safer than a check in each
// command.
type Scope struct {
	// Profile is the set of commands that exist for the principal, of those that the
	// gateway's own profile has.
	Profile Profile

	// Accounts names the accounts that the principal may know of. Any other is answered like
	// one that does not exist.
	Accounts []string

	// Identity is the only identity that the principal acts as, where commands have
	// identities. Empty means none.
	Identity string

	// Valid is asked when a command is about to run, which can be long after its
	// arrival; its error refuses the command. nil means that the scope lasts as long
	// as the process. It is called concurrently.
	Valid func(ctx context.Context) error
}

// Sees reports whether a principal may know of an account. One without a Scope may
// know of all.
func (p Principal) Sees(account string) bool {
	return p.Scope == nil || slices.Contains(p.Scope.Accounts, account)
}

// admin reports whether the principal is the administrator.
func (p Principal) admin() bool { return p.Admin && p.Scope == nil }

// profileFor is the set of commands that a principal is offered: those of both
// profiles. Its name is that of the narrower one.
func (g *Gateway) profileFor(p Principal) Profile {
	if p.Scope == nil {
		return g.o.Profile
	}
	narrow, wide := p.Scope.Profile, g.o.Profile
	name := narrow.Name
	if name == fullName {
		name = wide.Name
	}
	return Profile{name, func(c *discovery.Command) bool { return wide.allows(c) && narrow.allows(c) }}
}

// valid reports why a principal's scope does not hold any more, or nil.
func (g *Gateway) valid(ctx context.Context, p Principal) *discovery.Fault {
	if p.Scope == nil || p.Scope.Valid == nil {
		return nil
	}
	if err := p.Scope.Valid(ctx); err != nil {
		f := g.fault(ctx, err, nil)
		if f.Reason == "" {
			f.Reason = "scope"
		}
		return f
	}
	return nil
}
