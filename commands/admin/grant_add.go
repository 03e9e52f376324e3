package admin

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/vault"
)

type grantAddArgs struct {
	grantNameArgs
	Accounts   []string `json:"accounts,omitempty" acli:"form=name" jsonschema:"maxItems=100,example=work" jsonschema_description:"Accounts that it opens; it hides all others"`
	Profile    string   `json:"profile,omitempty" jsonschema:"enum=read,enum=full,default=read" jsonschema_description:"Which commands exist for it: read changes nothing, full has all but the administrator's"`
	Identity   string   `json:"identity,omitempty" acli:"form=identity" jsonschema:"example=my-repo:main" jsonschema_description:"Its identity in the agent mailbox; without one it cannot use that mailbox"`
	Extensions []string `json:"extensions,omitempty" jsonschema:"maxItems=32,pattern=^x-[a-z0-9-]{1\\,62}$,example=x-contacts" form:"must be names of extensions, which start with x-" jsonschema_description:"Extensions that it may run, as far as its profile has their commands; what they reach is not bounded by --accounts"`
	AskClient  bool     `json:"ask-in-client,omitempty" jsonschema_description:"Ask the person through its client about a send that needs approval, and trust the answer; otherwise the send waits for 'outbox approve'"`
	Expires    string   `json:"expires,omitempty" jsonschema:"pattern=^[1-9][0-9]{0\\,5}[mhd]$,default=30d,example=12h" form:"must be minutes, hours or days, such as 12h or 30d" jsonschema_description:"When it ends: minutes, hours or days from now, at most 366d"`

	lifetime time.Duration // since Validate
}

// Validate checks what one option alone cannot.
func (a *grantAddArgs) Validate() error {
	if len(a.Accounts) == 0 && a.Identity == "" {
		return errors.New("--accounts and --identity are both missing: the grant would open nothing")
	}
	if a.AskClient && a.Profile != "full" {
		return errors.New("--ask-in-client is about sends, so it is for --profile full")
	}
	unit := map[byte]time.Duration{'m': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[a.Expires[len(a.Expires)-1]]
	n, err := strconv.Atoi(a.Expires[:len(a.Expires)-1])
	if err != nil || time.Duration(n) > vault.MaxGrantTime/unit {
		return fmt.Errorf("--expires must be at most %dd", vault.MaxGrantTime/(24*time.Hour))
	}
	a.lifetime = time.Duration(n) * unit
	return nil
}

// GrantAddResult answers grant add: the only time that the token is shown.
type GrantAddResult struct {
	Grant GrantDetail `json:"grant"`
	Token string      `json:"token"`
}

func grantAdd(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:    "grant add",
		Summary: "Let a client in over HTTP, with a token of its own",
		Details: "The token is shown only once; the vault keeps only a digest of it. The client sends it with every request to 'postern serve --http', " +
			"as 'Authorization: Bearer TOKEN'. The client sees only the accounts and extensions that the grant names.",
		Effect: discovery.Admin,
		Examples: []string{"grant add laptop --accounts work --expires 7d", "grant add helper --accounts work,home --profile full --identity my-repo:helper",
			"grant add reviewer --identity my-repo:reviewer --profile full --expires 12h"},
	}, func(ctx context.Context, call *discovery.Call, args *grantAddArgs) (*GrantAddResult, error) {
		call.Target = "grant " + args.Name
		for _, name := range args.Accounts {
			if _, err := d.Store.Account(ctx, name); err != nil {
				if f := answer.Faults(err); f != nil && f.Code == discovery.NotFound {
					return nil, &discovery.Fault{Code: f.Code, Message: fmt.Sprintf("There is no account %s.", name), Hint: f.Hint, Err: err}
				}
				return nil, err
			}
		}
		g, token, err := d.Store.AddGrant(ctx, vault.Grant{Name: args.Name, Accounts: args.Accounts, Profile: args.Profile, Identity: args.Identity, Extensions: args.Extensions, Questions: args.AskClient}, args.lifetime)
		if err != nil {
			return nil, grantFault(err)
		}
		defer token.Wipe()
		return &GrantAddResult{d.grantDetail(&g), token.Reveal()}, nil
	})
}

// Summary implements discovery.Summarizer.
func (r *GrantAddResult) Summary() string {
	return "Keep the token: it cannot be shown again. It ends at " + r.Grant.Expires
}
