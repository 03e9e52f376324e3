package admin

import (
	"context"
	"errors"
	"time"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault"
)

// Grants are the clients that may come in over HTTP; *vault.Vault implements it.
type Grants interface {
	AddGrant(ctx context.Context, g vault.Grant, lifetime time.Duration) (added vault.Grant, token mail.Secret, err error)
	RemoveGrant(ctx context.Context, name string) error
	Grants(ctx context.Context) ([]vault.Grant, error)
	StoppedAlone(ctx context.Context) ([]string, error)
}

var _ Grants = (*vault.Vault)(nil)

// grantNameArgs name a grant.
type grantNameArgs struct {
	Name string `json:"name" acli:"form=name,positional" jsonschema:"example=laptop" jsonschema_description:"Name of the grant: 1 to 64 letters, digits, hyphens or underscores"`
}

// GrantDetail is a grant with everything but its token.
type GrantDetail struct {
	Name       string   `json:"name"`
	Principal  string   `json:"principal"`
	Accounts   []string `json:"accounts"`
	Profile    string   `json:"profile"`
	Identity   string   `json:"identity,omitempty"`
	Extensions []string `json:"extensions,omitempty"`
	AskClient  bool     `json:"ask_in_client,omitempty"`
	Created    string   `json:"created" jsonschema:"format=date-time"`
	Expires    string   `json:"expires" jsonschema:"format=date-time"`
	Expired    bool     `json:"expired,omitempty"`
	Stopped    bool     `json:"stopped,omitempty" jsonschema_description:"Its client said stop, which holds it alone until 'resume'"`

	expires time.Time
}

// GrantPrincipal is the principal of a grant's calls: in the audit log, for limits,
// and as the owner of what it sends.
func GrantPrincipal(name string) string { return "grant:" + name }

func (d *Deps) grantDetail(g *vault.Grant) GrantDetail {
	return GrantDetail{Name: g.Name, Principal: GrantPrincipal(g.Name), Accounts: append([]string{}, g.Accounts...), Profile: g.Profile, Identity: g.Identity, Extensions: g.Extensions, AskClient: g.Questions,
		Created: answer.UTC(g.Created), Expires: answer.UTC(g.Expires), Expired: !d.Now().Before(g.Expires), expires: g.Expires}
}

// grantFault is the fault of an invalid grant, where Faults would speak of settings.
func grantFault(err error) error {
	if !errors.Is(err, vault.ErrInvalid) {
		return err
	}
	return &discovery.Fault{Code: discovery.ValidationError, Message: answer.Capital(err.Error()) + ".", Hint: "Run 'grant list' to see the grants.", Err: err}
}
