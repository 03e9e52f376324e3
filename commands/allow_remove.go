package commands

import (
	"context"
	"errors"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
)

func allowRemove(d *Deps, list direction) *discovery.Command {
	return newCommand(list.spec("remove", "Remove entries from the list", "Where one of them is not on the list, none is removed.",
		"allow %s remove ann@example.org --account work"),
		func(ctx context.Context, call *discovery.Call, args *allowEntriesArgs) (*AllowResult, error) {
			name, err := d.account(ctx, call, args.AccountOption)
			if err != nil {
				return nil, err
			}
			entries, err := args.normal()
			if err != nil {
				return nil, err
			}
			var changed mail.Account
			var removed []string
			err = d.Store.UpdateAccount(ctx, name, func(a *mail.Account) (err error) {
				l := list.of(a)
				l.Entries, removed, err = without(l.Entries, entries)
				changed = *a
				return err
			}, nil)
			if errors.Is(err, errNotOnList) {
				return nil, &discovery.Fault{Code: discovery.NotFound, Message: "An entry is not on the list, and none was removed.",
					Hint: "Run 'allow " + string(list) + " list' for the entries there are.", Err: err}
			}
			if err != nil {
				return nil, err
			}
			r := allowResult(&changed, list)
			r.Removed = removed
			return r, nil
		})
}
