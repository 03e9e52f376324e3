package house

import (
	"context"
	"errors"
	"testing"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
)

// TestAChangeIsItsPrincipals: an agent knows of its own changes in accounts that it still has, and
// the owner, who is never asked, of everybody's.
func TestAChangeIsItsPrincipals(t *testing.T) {
	t.Parallel()
	s, _ := notifying(t, "note")
	owner := forOwner(t.Context())
	for _, name := range []string{"work", "home"} {
		if err := s.AddAccount(owner, mail.Account{Name: name, Protocol: mail.IMAP, Auth: mail.AuthKeyring, Username: "ann", Mode: mail.Draft, IMAP: mail.Endpoint{Host: "localhost", Port: 1, Security: mail.TLS}}, mail.Secret{}); err != nil {
			t.Fatal(err)
		}
	}
	as := func(name string, accounts ...string) context.Context {
		p := gateway.Principal{Name: name}
		if accounts != nil {
			p.Scope = &gateway.Scope{Accounts: accounts}
		}
		return onBehalfOf(t.Context(), p)
	}
	ids := map[string]string{}
	for _, c := range []struct {
		id, account string
		ctx         context.Context
		err         error
	}{
		{"owner's", "work", owner, nil}, {"agent's", "work", as("agent"), nil}, {"grant's", "home", as("grant", "home"), nil},
		{"asks", "work", as("agent"), mail.ErrManyChanges}, {"scope", "work", as("grant", "home"), mail.ErrNoAccount},
	} {
		change := &mail.Change{Principal: "somebody", Account: c.account, Kind: mail.ChangeFlags, Messages: make([]mail.ChangeMessage, 2)}
		if err := s.BeginChange(c.ctx, change, 3); !errors.Is(err, c.err) || c.err == nil && change.ID == "" {
			t.Errorf("%s: %+v, %v", c.id, change, err)
		}
		ids[c.id] = change.ID
	}
	for _, c := range []struct {
		who   string
		ctx   context.Context
		knows []string // the newest first
	}{
		{"owner", owner, []string{"grant's", "agent's", "owner's"}}, {"agent", as("agent"), []string{"agent's"}}, {"person", as("person"), []string{"agent's", "owner's"}},
		{"grant", as("grant", "home"), []string{"grant's"}}, {"grant elsewhere", as("grant", "work"), nil}, {"nobody", t.Context(), nil},
	} {
		made, err := s.ChangesMade(c.ctx, mail.ChangeQuery{})
		if err != nil || len(made) != len(c.knows) {
			t.Errorf("%s knows of %d changes: %v", c.who, len(made), err)
			continue
		}
		known := map[string]bool{}
		for i, id := range c.knows {
			if known[ids[id]] = true; made[i].ID != ids[id] || made[i].Approved != (id == "owner's") {
				t.Errorf("%s: change %d is %+v", c.who, i, made[i])
			}
		}
		for id, change := range ids {
			if _, err := s.AmendChange(c.ctx, change, func(*mail.Change) error { return nil }); (err == nil) != known[change] || err != nil && !errors.Is(err, mail.ErrNoChange) {
				t.Errorf("%s amends %s: %v", c.who, id, err)
			}
		}
	}
}
