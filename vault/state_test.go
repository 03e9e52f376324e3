package vault

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/postern-mail/postern/vault/kv"
)

func TestStateIsOrderedAndTransactional(t *testing.T) {
	_, v := newVault(t, nil)
	failure := errors.New("no")
	must(t, v.Update(t.Context(), func(tx kv.Tx) error {
		for _, k := range []string{"b2", "a1", "b1", "c1", "b3"} {
			if err := tx.Put("seen", []byte(k), []byte("value "+k)); err != nil {
				return err
			}
		}
		return errors.Join(tx.Delete("seen", []byte("b3")), tx.Delete("seen", []byte("never there")), tx.Put("seen", []byte("empty"), nil))
	}))
	if err := v.Update(t.Context(), func(tx kv.Tx) error {
		return errors.Join(tx.Put("seen", []byte("a1"), []byte("lost")), failure)
	}); !errors.Is(err, failure) {
		t.Fatalf("Update = %v, want the callback's error", err)
	}
	must(t, v.View(t.Context(), func(tx kv.Tx) error {
		if got, err := tx.Get("seen", []byte("a1")); err != nil || string(got) != "value a1" {
			t.Errorf("after a failed Update: %q, %v", got, err)
		}
		if got, err := tx.Get("seen", []byte("empty")); err != nil || got == nil || len(got) != 0 {
			t.Errorf("an empty value is %v, %v; want not nil", got, err)
		}
		if got, err := tx.Get("seen", []byte("none")); err != nil || got != nil {
			t.Errorf("no record is %v, %v; want nil", got, err)
		}
		for _, c := range []struct {
			r     kv.Range
			limit int
			want  string
		}{
			{kv.Range{}, 9, "[a1 b1 b2 c1 empty]"}, {kv.Range{}, 2, "[a1 b1]"}, {kv.Range{Reverse: true}, 2, "[empty c1]"},
			{kv.Prefix([]byte("b")), 9, "[b1 b2]"}, {kv.Range{From: []byte("b11")}, 1, "[b2]"}, {kv.Range{From: []byte("z")}, 9, "[]"},
		} {
			list, err := tx.Scan("seen", c.r, c.limit)
			keys := []string{}
			for _, r := range list {
				if len(r.Value) > 0 && string(r.Value) != "value "+string(r.Key) {
					t.Errorf("%s holds %q", r.Key, r.Value)
				}
				keys = append(keys, string(r.Key))
			}
			if err != nil || fmt.Sprint(keys) != c.want {
				t.Errorf("Scan of %+v, %d: %v, %v; want %s", c.r, c.limit, keys, err, c.want)
			}
		}
		if names, err := tx.Buckets(); err != nil || fmt.Sprint(names) != "[seen]" {
			t.Errorf("the buckets are %v, %v", names, err)
		}
		return nil
	}))
	for _, bucket := range []string{"seen", "new"} {
		if err := v.View(t.Context(), func(tx kv.Tx) error { return tx.Put(bucket, []byte("x"), nil) }); err == nil {
			t.Error("a View can write")
		}
	}
}

func TestStateRefusesWhatItCannotKeep(t *testing.T) {
	v, _ := newVault(t, nil)
	must(t, v.Update(t.Context(), func(tx kv.Tx) error {
		for _, name := range []string{"", "A", "a/b", "a b", "-a", string(bytes.Repeat([]byte("a"), 65)), "a\n"} {
			_, getErr := tx.Get(name, []byte("k"))
			_, scanErr := tx.Scan(name, kv.Range{}, 1)
			if !errors.Is(tx.Put(name, []byte("k"), nil), ErrInvalid) || !errors.Is(getErr, ErrInvalid) || !errors.Is(scanErr, ErrInvalid) || !errors.Is(tx.Delete(name, []byte("k")), ErrInvalid) {
				t.Errorf("a bucket named %q works", name)
			}
		}
		for _, err := range []error{tx.Put("ok", nil, nil), tx.Put("ok", make([]byte, maxStateKey+1), nil), tx.Put("ok", []byte("k"), make([]byte, maxStateValue+1))} {
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("Put = %v, want ErrInvalid", err)
			}
		}
		return tx.Put("ok", make([]byte, maxStateKey), make([]byte, maxStateValue))
	}))
	must(t, v.Check(t.Context()))
}

func TestAPanicInAnUpdatePassesThroughAndChangesNothing(t *testing.T) {
	v, _ := newVault(t, nil)
	panics(t, func() {
		_ = v.Update(t.Context(), func(tx kv.Tx) error {
			_ = tx.Put("s", []byte("k"), []byte("v"))
			panic("mine")
		})
	})
	must(t, v.View(t.Context(), func(tx kv.Tx) error {
		if got, err := tx.Get("s", []byte("k")); got != nil || err != nil {
			t.Errorf("it was kept: %q, %v", got, err)
		}
		return nil
	}))
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

func TestATemporaryVaultIsGoneAfterwards(t *testing.T) {
	v, remove, err := Temporary(t.Context(), nil)
	must(t, err)
	if !v.Admin() {
		t.Error("it was not opened as the admin")
	}
	mustAdd(t, v, "work")
	must(t, remove())
	wantErr(t, second(v.Accounts(t.Context())), ErrNoVault, "Accounts")
}
