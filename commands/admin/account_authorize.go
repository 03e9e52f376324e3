package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/login"
)

type accountAuthorizeArgs struct {
	accountNameArgs
	Device bool   `json:"device,omitempty" jsonschema_description:"Show a code to type on another device, for a machine without a browser"`
	Port   uint16 `json:"port,omitempty" jsonschema:"minimum=1,maximum=65535" jsonschema_description:"Port of this machine that the browser sends the answer to; any free one if left out"`
}

// Validate checks what one option alone cannot.
func (a *accountAuthorizeArgs) Validate() error {
	if a.Device && a.Port != 0 {
		return errors.New("--port belongs to a browser on this machine, --device to another device: give one")
	}
	return nil
}

// AccountAuthorizeResult answers account authorize.
type AccountAuthorizeResult struct {
	Account    string             `json:"account"`
	Authorized bool               `json:"authorized"`
	NextAction *answer.NextAction `json:"next_action"`
}

// authorizeTime is how many seconds a person has for the provider's page.
const authorizeTime = 300

func accountAuthorize(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "account authorize",
		Summary:  "Ask the owner of an account with oauth2 for access to the mailbox",
		Details:  "It shows an address to open in a browser on this machine, and waits until the owner has decided there.",
		Effect:   discovery.Admin,
		Timeout:  authorizeTime,
		Examples: []string{"account authorize work", "account authorize work --device"},
	}, func(ctx context.Context, call *discovery.Call, args *accountAuthorizeArgs) (*AccountAuthorizeResult, error) {
		call.Account = args.Name
		a, err := d.Store.Account(ctx, args.Name)
		if err != nil {
			return nil, err
		}
		if a.Auth != mail.AuthOAuth2 {
			return nil, &discovery.Fault{Code: discovery.ValidationError, Message: fmt.Sprintf("The account %s does not log in with oauth2, so there is nothing to authorize.", a.Name),
				Hint: "Change that first with 'account edit NAME --auth oauth2 --oauth-provider PROVIDER --oauth-client-id ID'."}
		}
		client, err := d.Store.ClientSecret(ctx, args.Name)
		if err != nil {
			return nil, err
		}
		defer client.Wipe()
		authorize := d.Authorize
		if authorize == nil {
			authorize = login.Authorize
		}
		refresh, err := authorize(ctx, &a, client, login.AuthorizeOptions{Device: args.Device, Port: args.Port, Show: func(url, code string) {
			text := "Open this address in a browser on this machine and agree there:\n\n  " + plain.Line(url) + "\n"
			if code != "" {
				text = "Open this address on any device and type the code " + plain.Line(code) + " there:\n\n  " + plain.Line(url) + "\n"
			}
			call.Announce(text)
			if d.Tell != nil {
				d.Tell(text)
			}
		}})
		if err != nil {
			return nil, err
		}
		defer refresh.Wipe()
		// The owner has agreed: that is kept although the time is over now.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
		defer cancel()
		if err := d.Store.SetConsent(ctx, args.Name, refresh); err != nil {
			return nil, err
		}
		return &AccountAuthorizeResult{args.Name, true, checkLogin(args.Name)}, nil
	})
}

// Summary implements discovery.Summarizer.
func (r *AccountAuthorizeResult) Summary() string { return "Authorized account " + r.Account }
