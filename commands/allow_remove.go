package commands

import (
	"context"
	"errors"
	"slices"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
)

func allowRemove(d *Deps, list direction) *discovery.Command {
	return newCommand(list.spec("remove", "Remove entries from the list", "If one of them is not on the list, none is removed.",
		"allow %s remove ann@example.org --account work"),
		func(ctx context.Context, call *discovery.Call, args *allowEntriesArgs) (*AllowResult, error) {
			var removed []string
			r, err := d.changeList(ctx, call, args, list, func(l *mail.AllowList) (err error) {
				l.Entries, removed, err = without(l.Entries, args.normal)
				return err
			})
			if errors.Is(err, errNotOnList) {
				return nil, &discovery.Fault{Code: discovery.NotFound, Message: "An entry is not on the list, so none was removed.",
					Hint: "Run 'allow " + string(list) + " list' to list the entries.", Err: err}
			}
			if err != nil {
				return nil, err
			}
			r.Removed = removed
			return r, nil
		})
}

// errNotOnList is an entry to be removed that is not there.
var errNotOnList = errors.New("not on the list")

// without removes entries from a list, in whatever form they were kept.
func without(list, remove []string) (kept, removed []string, err error) {
	found := map[string]bool{}
	for _, e := range list {
		n, err := mail.ValidateEntry(e)
		if err != nil {
			n = e
		}
		if slices.Contains(remove, n) {
			removed, found[n] = append(removed, e), true
		} else {
			kept = append(kept, e)
		}
	}
	if slices.ContainsFunc(remove, func(r string) bool { return !found[r] }) {
		return nil, nil, errNotOnList
	}
	return kept, removed, nil
}
