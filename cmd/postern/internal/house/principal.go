package house

import (
	"context"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
)

// The store is asked with the context of a command, which says two things about the
// caller. They are kept here, since only this package knows both the gateway that says
// them and the store that obeys.

type (
	principalKey struct{}
	optionalKey  struct{}
)

// onBehalfOf returns a context in which the store shows only what p may see.
func onBehalfOf(ctx context.Context, p gateway.Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// forOwner returns a context for what the process does beside commands: it works for the
// person whose mail it is.
func forOwner(ctx context.Context) context.Context {
	return onBehalfOf(ctx, gateway.Principal{Name: mail.PersonPrincipal, Admin: true})
}

// principalOf returns the principal that the store works for. Where nobody said for whom, it
// is one that may know of nothing.
func principalOf(ctx context.Context) gateway.Principal {
	p, ok := ctx.Value(principalKey{}).(gateway.Principal)
	if !ok {
		p.Scope = &gateway.Scope{}
	}
	return p
}

// dispensable returns a context for a value that the caller can do without.
func dispensable(ctx context.Context) context.Context {
	return context.WithValue(ctx, optionalKey{}, true)
}

// optional reports whether the caller can do without the value, so that the store must not
// start anything that a person would notice, such as a program that asks for a key.
func optional(ctx context.Context) bool { return ctx.Value(optionalKey{}) != nil }
