package admin

import (
	"context"

	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
)

// GrantRemoveResult answers grant remove.
type GrantRemoveResult struct {
	Removed string `json:"removed"`
}

func grantRemove(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "grant remove",
		Summary:  "End a grant: its token opens nothing from now on",
		Details:  "It takes effect with the next command that the token is used for, in every process and every open session.",
		Effect:   discovery.Admin,
		Standing: true,
		Examples: []string{"grant remove laptop"},
	}, func(ctx context.Context, call *discovery.Call, args *grantNameArgs) (GrantRemoveResult, error) {
		call.Target = "grant " + args.Name
		if err := d.Store.RemoveGrant(ctx, args.Name); err != nil {
			return GrantRemoveResult{}, err
		}
		return GrantRemoveResult{args.Name}, nil
	})
}

// Summary implements discovery.Summarizer.
func (r GrantRemoveResult) Summary() string { return "Removed grant " + r.Removed }
