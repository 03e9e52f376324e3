package vault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/postern-mail/postern/vault/bolt"
	"github.com/postern-mail/postern/vault/kv"
	"github.com/postern-mail/postern/vault/postgres"
)

// Shared reports whether a vault's place is a database, and not a file: then it has no path on
// this machine, and somebody else may administer it, so that sums are kept (sums.go). The
// error matches ErrAddress for an address of another kind, which must not pass for a file's
// name.
func Shared(place string) (bool, error) {
	scheme, _, ok := strings.Cut(place, "://")
	switch {
	case !ok:
		return false, nil
	case postgres.Is(place):
		return true, nil
	}
	return false, fmt.Errorf("%w: it begins with %s://", ErrAddress, printable([]byte(scheme)))
}

func engineAt(ctx context.Context, place string) (kv.Engine, error) {
	switch shared, err := Shared(place); {
	case err != nil:
		return nil, err
	case shared:
		return postgres.At(ctx, place)
	}
	return bolt.At(place)
}

// create makes a vault with the records of fill at a place, unless there is one.
func create(ctx context.Context, place string, fill func(kv.Tx) error) (created bool, err error) {
	switch shared, err := Shared(place); {
	case err != nil:
		return false, err
	case shared:
		return postgres.Create(ctx, place, fill)
	}
	return bolt.Create(ctx, place, fill)
}

// Beside returns a path on this machine: the key files and saved attachments of a vault lie
// beside it, and the names of key files begin with its name. It is the vault's own, or for one
// in a database that of the default vault.
func Beside(place string) string {
	if shared, err := Shared(place); !shared && err == nil {
		return place
	}
	path, _ := DefaultPath(func(string) string { return "" })
	return path
}

// Exists reports whether something is at a place: a file, or a vault in a database.
func Exists(ctx context.Context, place string) (bool, error) {
	shared, err := Shared(place)
	if shared {
		_, err = postgres.At(ctx, place)
	} else if err == nil {
		_, err = os.Stat(place)
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNoVault) {
		return false, nil
	}
	return err == nil, err
}

// Described is a place as it may be shown: a path as it is, and an address without user,
// password and options.
func Described(place string) string {
	if shared, err := Shared(place); shared || err != nil {
		return postgres.Describe(place)
	}
	return place
}

// Remove takes a vault away that was just made, and for which nothing was kept.
func Remove(ctx context.Context, place string) error {
	switch shared, err := Shared(place); {
	case err != nil:
		return err
	case shared:
		return postgres.Remove(ctx, place)
	}
	return errors.Join(os.Remove(place), os.RemoveAll(place+".lock"))
}
