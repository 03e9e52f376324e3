package admin

import (
	"context"

	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
)

// AccountShowResult answers account show.
type AccountShowResult struct {
	Account AccountDetail `json:"account"`
}

func accountShow(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "account show",
		Summary:  "Show one account with everything but its secrets",
		Effect:   discovery.Admin,
		Standing: true,
		Examples: []string{"account show work"},
	}, func(ctx context.Context, call *discovery.Call, args *accountNameArgs) (AccountShowResult, error) {
		call.Account = args.Name
		a, err := d.Store.Account(ctx, args.Name)
		if err != nil {
			return AccountShowResult{}, err
		}
		return AccountShowResult{detailOfAccount(&a)}, nil
	})
}

// Brief is the account without what is usual.
func (r AccountShowResult) Brief() accountBrief { return r.Account.brief("", nil) }
