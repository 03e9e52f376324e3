package commands

import (
	"context"

	"github.com/postern-mail/postern/discovery"
)

func allowList(d *Deps, list direction) *discovery.Command {
	return newCommand(list.spec("list", "Show the entries of the list", "A list that is on and empty lets nothing pass.",
		"allow %s list --account work"),
		func(ctx context.Context, call *discovery.Call, args *AccountOption) (*AllowResult, error) {
			name, err := d.account(ctx, call, *args)
			if err != nil {
				return nil, err
			}
			a, err := d.Store.Account(ctx, name)
			if err != nil {
				return nil, err
			}
			return allowResult(&a, list), nil
		})
}
