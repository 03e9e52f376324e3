package vault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/postern-mail/postern/vault/bolt"
	"github.com/postern-mail/postern/vault/kv"
	"github.com/postern-mail/postern/vault/postgres"
)

// engineKind is a kind of place for a vault's records. An engine is added by one row of
// engineKinds, and one of the table in vaulttest.
type engineKind struct {
	schemes []string // what the addresses of its places begin with; nil: a place is a path on this machine

	// foreign: somebody else may administer a place, who could put back single records that
	// were sealed well. So their sums are kept (sums.go).
	foreign bool
	// remote: a place is reached over a network, by processes on other machines too.
	remote bool

	at func(ctx context.Context, place string) (kv.Engine, error)
	// create makes a vault with the records of fill, unless there is one.
	create func(ctx context.Context, place string, fill func(kv.Tx) error) (created bool, err error)
	// exists matches fs.ErrNotExist or kv.ErrNone where there is nothing.
	exists   func(ctx context.Context, place string) error
	describe func(place string) string // see Described
	remove   func(ctx context.Context, place string) error
}

var engineKinds = []engineKind{
	{
		at:       func(_ context.Context, place string) (kv.Engine, error) { return bolt.At(place) },
		create:   bolt.Create,
		exists:   func(_ context.Context, place string) error { _, err := os.Stat(place); return err },
		describe: func(place string) string { return place },
		remove: func(_ context.Context, place string) error {
			return errors.Join(os.Remove(place), os.RemoveAll(place+".lock"))
		},
	},
	{
		schemes: []string{"postgres", "postgresql"}, foreign: true, remote: true,
		at:       func(ctx context.Context, place string) (kv.Engine, error) { return postgres.At(ctx, place) },
		create:   postgres.Create,
		exists:   func(ctx context.Context, place string) error { _, err := postgres.At(ctx, place); return err },
		describe: postgres.Describe,
		remove:   postgres.Remove,
	},
}

// kindOf returns the kind of a vault's place. The error matches ErrAddress for an address of
// none, which must not pass for a file's name.
func kindOf(place string) (engineKind, error) {
	scheme, _, address := strings.Cut(place, "://")
	for _, k := range engineKinds {
		if address && slices.Contains(k.schemes, scheme) || !address && k.schemes == nil {
			return k, nil
		}
	}
	return engineKind{}, fmt.Errorf("%w: it begins with %s://", ErrAddress, printable([]byte(scheme)))
}

// IsAddress reports whether a vault's place is the address of a database, and so no path on
// this machine. The error matches ErrAddress for an address of another kind.
func IsAddress(place string) (bool, error) {
	k, err := kindOf(place)
	return k.schemes != nil, err
}

func engineAt(ctx context.Context, place string) (kv.Engine, error) {
	k, err := kindOf(place)
	if err != nil {
		return nil, err
	}
	return k.at(ctx, place)
}

// Beside returns a path on this machine: the key files and saved attachments of a vault lie
// beside it, and the names of key files begin with its name. It is the vault's own, or for one
// in a database that of the default vault.
func Beside(place string) string {
	if address, err := IsAddress(place); !address && err == nil {
		return place
	}
	path, _ := DefaultPath(func(string) string { return "" })
	return path
}

// Exists reports whether something is at a place: a file, or a vault in a database.
func Exists(ctx context.Context, place string) (bool, error) {
	k, err := kindOf(place)
	if err == nil {
		err = k.exists(ctx, place)
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNoVault) {
		return false, nil
	}
	return err == nil, err
}

// Described is a place as it may be shown: a path as it is, and an address without user,
// password and options. It is empty for an address that cannot be read.
func Described(place string) string {
	k, err := kindOf(place)
	if err != nil {
		return ""
	}
	return k.describe(place)
}

// Remove takes a vault away that was just made, and for which nothing was kept.
func Remove(ctx context.Context, place string) error {
	k, err := kindOf(place)
	if err != nil {
		return err
	}
	return k.remove(ctx, place)
}
