package vault

import (
	"bytes"
	"context"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/postern-mail/postern/vault/kv"
	"github.com/postern-mail/postern/vault/kv/kvtest"
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
		path, k := newVaultFile(t)
		return func() kv.Engine {
			v := mustOpen(t, path, k, nil)
			return stateEngine{v.engine, v}
		}
	})
}

func TestCheckFindsARecordThatDoesNotOpen(t *testing.T) {
	admin, v := newVault(t, nil)
	mustAdd(t, admin, "work")
	record(t, v, 3)
	take(t, v, "k", 5, 1e9)
	must(t, v.Update(t.Context(), func(tx kv.Tx) error { return tx.Put("s", []byte("k"), []byte("v")) }))
	must(t, v.Check(t.Context()))
	for _, bucket := range []string{statePrefix + "s", bucketLimits, bucketAudit, bucketChain} {
		var key, good []byte
		rawUpdate(t, v, func(tx *bolt.Tx) error {
			b := tx.Bucket([]byte(bucket))
			k, sealed := b.Cursor().First()
			key, good = bytes.Clone(k), bytes.Clone(sealed)
			bad := bytes.Clone(sealed)
			bad[len(bad)/2] ^= 1
			return b.Put(key, bad)
		})
		wantErr(t, v.Check(t.Context()), ErrDamaged, "a bad record in %s: Check", bucket)
		rawUpdate(t, v, func(tx *bolt.Tx) error { return tx.Bucket([]byte(bucket)).Put(key, good) })
	}
	must(t, v.Check(t.Context()))
	rawUpdate(t, v, func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte("foreign")); return err })
	wantErr(t, v.Check(t.Context()), ErrDamaged, "a foreign bucket: Check")
}

func TestATemporaryVaultCanBeRemoved(t *testing.T) {
	v, remove, err := Temporary(t.Context(), nil)
	must(t, err)
	if !v.Admin() {
		t.Error("it was not opened as the admin")
	}
	mustAdd(t, v, "work")
	must(t, remove())
	wantErr(t, second(v.Accounts(t.Context())), ErrNoVault, "Accounts")
}
