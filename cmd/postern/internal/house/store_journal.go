package house

import (
	"cmp"
	"context"
	"fmt"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
)

var _ mail.Journal = (*store)(nil)

// The methods below implement mail.Journal by asking the vault. Changes of others are answered
// like ones that do not exist.

// BeginChange keeps a change as the caller's, and a piece of a plan as that of whoever planned it, who
// can take it back whoever approved or ran it. It names the change in the audit entry. The person whose mail
// it is is never asked.
func (s *store) BeginChange(ctx context.Context, c *mail.Change, unasked int) error {
	p := principalOf(ctx)
	if _, err := s.account(ctx, c.Account); err != nil {
		return err
	}
	c.Principal = p.Name
	if isAdmin(p) {
		c.Approved, unasked = true, -1
	}
	if c.Of != "" {
		if plan, err := s.Vault.Outgoing(ctx, c.Of); err == nil && (isAdmin(p) || mail.Owns(p.Name, plan.Principal)) {
			c.Principal = plan.Principal
		}
	}
	err := s.Vault.BeginChange(ctx, c, unasked)
	if err == nil {
		gateway.NoteChange(ctx, cmp.Or(c.Of, c.ID))
	}
	return err
}

func (s *store) AmendChange(ctx context.Context, id string, amend func(*mail.Change) error) (mail.Change, error) {
	return s.Vault.AmendChange(ctx, id, func(c *mail.Change) error {
		if !knowsChange(principalOf(ctx), c) {
			return fmt.Errorf("%w: %s", mail.ErrNoChange, id)
		}
		return amend(c)
	})
}

func (s *store) ChangesMade(ctx context.Context, q mail.ChangeQuery) ([]mail.Change, error) {
	p, only := principalOf(ctx), q.Only
	switch {
	case isAdmin(p), p.Name == mail.PersonPrincipal: // others', too
	case q.Principal != "" && q.Principal != p.Name:
		return nil, nil
	default:
		q.Principal = p.Name
	}
	q.Only = func(c *mail.Change) bool { return knowsChange(p, c) && (only == nil || only(c)) }
	return s.Vault.ChangesMade(ctx, q)
}

// knowsChange reports whether a change is the principal's to know of, and to take back: its own
// in accounts that it still has, and to the person whose mail it is everybody's.
func knowsChange(p gateway.Principal, c *mail.Change) bool {
	return isAdmin(p) || mail.Owns(p.Name, c.Principal) && p.Sees(c.Account)
}
