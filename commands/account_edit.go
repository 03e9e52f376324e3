package commands

import (
	"context"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
)

type accountEditArgs struct {
	accountNameArgs
	accountOptions
	AllowIn  string `json:"allow-in,omitempty" jsonschema:"enum=on,enum=off" jsonschema_description:"Whether only senders on the inbound list are visible"`
	AllowOut string `json:"allow-out,omitempty" jsonschema:"enum=on,enum=off" jsonschema_description:"Whether only recipients on the outbound list may be written to"`
}

// AccountEditResult answers account edit.
type AccountEditResult struct {
	Account AccountDetail `json:"account"`
}

func accountEdit(d *Deps) *discovery.Command {
	return discovery.New(discovery.Spec{
		Path:     "account edit",
		Summary:  "Change an account; what is not given stays",
		Effect:   discovery.Admin,
		Examples: []string{"account edit work --mode RW", "account edit work --allow-in on"},
	}, func(ctx context.Context, call *discovery.Call, args *accountEditArgs) (*AccountEditResult, error) {
		call.Account = args.Name
		if _, err := d.Store.Account(ctx, args.Name); err != nil {
			return nil, err
		}
		secret, err := args.password(ctx, d)
		if err != nil {
			return nil, err
		}
		if secret != nil {
			defer secret.Wipe()
		}
		var changed mail.Account
		err = d.Store.UpdateAccount(ctx, args.Name, func(a *mail.Account) error {
			setSwitch(&a.AllowIn.Enabled, args.AllowIn)
			setSwitch(&a.AllowOut.Enabled, args.AllowOut)
			err := args.apply(a, d.ReadFile)
			changed = *a
			return err
		}, secret)
		if err != nil {
			return nil, err
		}
		return &AccountEditResult{detailOfAccount(&changed)}, nil
	})
}

func setSwitch(field *bool, given string) {
	if given != "" {
		*field = given == "on"
	}
}

// Summary implements discovery.Summarizer.
func (r *AccountEditResult) Summary() string { return "Changed account " + r.Account.Name }
