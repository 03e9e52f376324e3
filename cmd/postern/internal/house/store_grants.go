package house

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/postern-mail/postern/commands/admin"
	"github.com/postern-mail/postern/commands/agents"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/gateway/mcpserve"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault"
)

// caller returns the holder of a token: the principal of its grant, limited to what the
// grant names.
func (s *store) caller(ctx context.Context, token string) (mcpserve.Caller, error) {
	g, err := s.GrantOf(ctx, token)
	switch {
	case errors.Is(err, vault.ErrNoGrant):
		return mcpserve.Caller{}, mcpserve.ErrNotAdmitted
	case err != nil:
		return mcpserve.Caller{}, err
	}
	profile, err := grantProfile(&g)
	if err != nil {
		return mcpserve.Caller{}, err
	}
	return mcpserve.Caller{ID: g.ID, Principal: gateway.Principal{Name: admin.GrantPrincipal(g.Name), Unasked: !g.Questions, Scope: &gateway.Scope{
		Profile: profile, Accounts: g.Accounts, Identity: g.Identity,
		Valid: func(ctx context.Context) error { return s.stillGranted(ctx, &g) },
	}}}, nil
}

// stillGranted returns why a grant no longer holds as it was, or nil.
func (s *store) stillGranted(ctx context.Context, g *vault.Grant) error {
	now, err := s.GrantByID(ctx, g.ID)
	if errors.Is(err, vault.ErrNoGrant) || err == nil && !slices.Equal(now.Accounts, g.Accounts) {
		return &discovery.Fault{Code: discovery.AuthFailed, Message: "Your access has ended. Nothing was done.", Reason: "grant",
			Hint: "Ask the person whose mail it is for another token."}
	}
	return err
}

// grantProfile is the set of commands of a grant. Without an identity it has no part
// in the agent mailbox, where it could be anybody. An extension runs beside the store,
// with the rights of the person, so a grant has only those that it names.
func grantProfile(g *vault.Grant) (gateway.Profile, error) {
	p, err := ProfileNamed(g.Profile)
	if err != nil {
		return p, err
	}
	all, identity, extensions := p.Allows, g.Identity != "", slices.Clone(g.Extensions)
	p.Allows = func(c *discovery.Command) bool {
		if name := c.Extension(); name != "" && !slices.Contains(extensions, name) {
			return false
		}
		return all(c) && (identity || !agents.IsCommand(c))
	}
	return p, nil
}

// What follows is the one place in which a command's principal is held to its scope.
// Every command reaches accounts and the outbox only through the store, with the
// context that the gateway gave it; so no command, not even a new one, has to check it
// itself.

// sees reports whether the caller of a context may know of an account.
func sees(ctx context.Context, account string) bool { return principalOf(ctx).Sees(account) }

// outOfScope is the error for an account that is not the principal's, else nil.
// It is that of an account that does not exist.
func outOfScope(ctx context.Context, account string) error {
	if sees(ctx, account) {
		return nil
	}
	return fmt.Errorf("%w: %s", mail.ErrNoAccount, account)
}

// inScope leaves out the accounts that are not the principal's.
func inScope(ctx context.Context, accounts []mail.Account) []mail.Account {
	return slices.DeleteFunc(accounts, func(a mail.Account) bool { return !sees(ctx, a.Name) })
}

// seenSettings leaves out settings that name an account that is not the principal's: for
// that principal no default is set. A grant says itself whether its client is asked, unless
// the setting does.
func seenSettings(ctx context.Context, all []vault.Setting) []vault.Setting {
	p := principalOf(ctx)
	for i := range all {
		switch s := &all[i]; {
		case s.Type == vault.TypeAccount && s.Value != "" && !sees(ctx, s.Value):
			s.Value, s.IsSet = s.Default, false
		case s.Name == admin.AskSetting && !s.IsSet && p.Scope != nil && !p.Unasked:
			s.Value = "on"
		}
	}
	return all
}

// ownOutgoing reports whether a message of the outbox is the principal's to know of: a
// scoped one may see those that it sent itself, from accounts that it still has.
func ownOutgoing(ctx context.Context, o *mail.Outgoing) bool {
	p := principalOf(ctx)
	return p.Scope == nil || o.Principal == p.Name && p.Sees(o.Account)
}

// ownedByGrant reports whether a grant has an identity of the agent mailbox.
func (s *store) ownedByGrant(ctx context.Context, identity string) (bool, error) {
	if s.temporary { // it has no grants, and none of the mailbox
		return false, nil
	}
	grants, err := s.Grants(ctx)
	return slices.ContainsFunc(grants, func(g vault.Grant) bool { return g.Identity == identity }), err
}
