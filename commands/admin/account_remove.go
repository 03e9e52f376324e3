package admin

import (
	"context"

	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
)

// AccountRemoveResult answers account remove.
type AccountRemoveResult struct {
	Removed       string `json:"removed"`
	LeftInKeyring string `json:"left_in_keyring,omitempty"`
}

func accountRemove(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "account remove",
		Summary:  "Forget an account and its password; the mailbox itself stays as it is",
		Effect:   discovery.Admin,
		Standing: true,
		Examples: []string{"account remove work"},
	}, func(ctx context.Context, call *discovery.Call, args *accountNameArgs) (AccountRemoveResult, error) {
		call.Account = args.Name
		a, err := d.Store.Account(ctx, args.Name)
		if err != nil {
			return AccountRemoveResult{}, err
		}
		if err := d.Store.RemoveAccount(ctx, args.Name); err != nil {
			return AccountRemoveResult{}, err
		}
		r := AccountRemoveResult{Removed: args.Name}
		if a.Auth == mail.AuthKeyring {
			r.LeftInKeyring = d.forgetInKeyring(ctx, args.Name)
		}
		return r, nil
	})
}

// Summary implements discovery.Summarizer.
func (r AccountRemoveResult) Summary() string { return "Removed account " + r.Removed }
