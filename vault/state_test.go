package vault

import (
	"bytes"
	"context"
	"testing"

	"github.com/postern-mail/postern/vault/kv"
	"github.com/postern-mail/postern/vault/kv/kvtest"
	"github.com/postern-mail/postern/vault/vaulttest"
)

// stateEngine offers a vault's state as an engine, for the engines' shared tests.
type stateEngine struct {
	kv.Engine
	v *Vault
}

func (e stateEngine) Transact(ctx context.Context, write bool, fn func(kv.Tx) error) (kv.Version, error) {
	return e.Engine.Transact(ctx, write, func(t kv.Tx) error { return fn(state{&transaction{Tx: t, dataKeys: e.v.keys.Load()}}) })
}

func TestStateIsAnEngine(t *testing.T) {
	t.Parallel()
	kvtest.Run(t, func(t *testing.T) func() kv.Engine {
		path, k := newPlace(t)
		return func() kv.Engine {
			v := mustOpen(t, path, k, nil)
			return stateEngine{v.engine, v}
		}
	})
}

func TestCheckFindsARecordThatDoesNotOpen(t *testing.T) {
	t.Parallel()
	admin, v := newVault(t, nil)
	mustAdd(t, admin, "work")
	record(t, v, 3)
	take(t, v, "k", 5, 1e9)
	must(t, v.Update(t.Context(), func(tx kv.Tx) error { return tx.Put("s", []byte("k"), []byte("v")) }))
	must(t, v.Check(t.Context()))
	for _, bucket := range []string{statePrefix + "s", bucketLimits, bucketAudit, bucketChain} {
		var key, good []byte
		rawUpdate(t, v, func(tx kv.Tx) error {
			first, err := tx.Scan(bucket, kv.Range{}, 1)
			must(t, err)
			key, good = first[0].Key, first[0].Value
			bad := bytes.Clone(good)
			bad[len(bad)/2] ^= 1
			return tx.Put(bucket, key, bad)
		})
		wantErr(t, v.Check(t.Context()), ErrDamaged, "a bad record in %s: Check", bucket)
		rawUpdate(t, v, func(tx kv.Tx) error { return tx.Put(bucket, key, good) })
	}
	must(t, v.Check(t.Context()))
	rawUpdate(t, v, func(tx kv.Tx) error { return tx.Put("foreign", []byte("k"), []byte("v")) })
	wantErr(t, v.Check(t.Context()), ErrDamaged, "a foreign bucket: Check")
}

func TestATemporaryVaultCanBeRemoved(t *testing.T) {
	t.Parallel()
	vaulttest.OnlyFile(t, "a temporary vault is always one")
	v, remove, err := Temporary(t.Context(), nil)
	must(t, err)
	if !v.Admin() {
		t.Error("it was not opened as the admin")
	}
	mustAdd(t, v, "work")
	must(t, remove())
	wantErr(t, second(v.Accounts(t.Context())), ErrNoVault, "Accounts")
}
