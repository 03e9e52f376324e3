package commands

import (
	"context"
	"slices"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
)

func allowAdd(d *Deps, list direction) *discovery.Command {
	return newCommand(list.spec("add", "Add entries to the list", "What is there already stays once.",
		"allow %s add ann@example.org --account work", "allow %s add @example.org bob@example.com"),
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
			var added []string
			err = d.Store.UpdateAccount(ctx, name, func(a *mail.Account) error {
				l := list.of(a)
				added = nil
				for _, e := range entries {
					if !slices.Contains(l.Entries, e) {
						l.Entries, added = append(l.Entries, e), append(added, e)
					}
				}
				changed = *a
				return nil
			}, nil)
			if err != nil {
				return nil, err
			}
			r := allowResult(&changed, list)
			r.Added = added
			return r, nil
		})
}
