package commands

import (
	"context"
	"slices"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
)

func allowAdd(d *Deps, list direction) *discovery.Command {
	return newCommand(list.spec("add", "Add entries to the list", "Entries that are on the list already are not added twice.",
		"allow %s add ann@example.org --account work", "allow %s add @example.org bob@example.com"),
		func(ctx context.Context, call *discovery.Call, args *allowEntriesArgs) (*AllowResult, error) {
			var added []string
			r, err := d.changeList(ctx, call, args, list, func(l *mail.AllowList) error {
				added = nil
				for _, e := range args.normal {
					if !slices.Contains(l.Entries, e) {
						l.Entries, added = append(l.Entries, e), append(added, e)
					}
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
			r.Added = added
			return r, nil
		})
}
