package commands

import (
	"context"

	"github.com/postern-mail/postern/discovery"
)

type accountRemoveArgs struct {
	accountNameArgs
}

// AccountRemoveResult answers account remove.
type AccountRemoveResult struct {
	Removed string `json:"removed"`
}

func accountRemove(d *Deps) *discovery.Command {
	return discovery.New(discovery.Spec{
		Path:     "account remove",
		Summary:  "Forget an account and its password; the mailbox itself stays as it is",
		Effect:   discovery.Admin,
		Examples: []string{"account remove work"},
	}, func(ctx context.Context, call *discovery.Call, args *accountRemoveArgs) (AccountRemoveResult, error) {
		call.Account = args.Name
		return AccountRemoveResult{args.Name}, d.Store.RemoveAccount(ctx, args.Name)
	})
}

// Summary implements discovery.Summarizer.
func (r AccountRemoveResult) Summary() string { return "Removed account " + r.Removed }
