package house

import (
	"context"

	"github.com/postern-mail/postern/gateway"
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

// principalOf returns the principal that the store works for. It is not ok where no command
// runs, such as in work that the process does for itself.
func principalOf(ctx context.Context) (p gateway.Principal, ok bool) {
	p, ok = ctx.Value(principalKey{}).(gateway.Principal)
	return p, ok
}

// dispensable returns a context for a value that the caller can do without.
func dispensable(ctx context.Context) context.Context {
	return context.WithValue(ctx, optionalKey{}, true)
}

// optional reports whether the caller can do without the value, so that the store must not
// start anything that a person would notice, such as a program that asks for a key.
func optional(ctx context.Context) bool { return ctx.Value(optionalKey{}) != nil }
