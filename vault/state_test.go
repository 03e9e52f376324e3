package vault

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	bolt "go.etcd.io/bbolt"
)

func TestStateIsOrderedAndTransactional(t *testing.T) {
	_, v := newVault(t, nil)
	failure := errors.New("no")
	must(t, v.Update(t.Context(), func(tx *Tx) error {
		b := tx.Bucket("seen")
		for _, k := range []string{"b2", "a1", "b1", "c1", "b3"} {
			if err := b.Put([]byte(k), []byte("value "+k)); err != nil {
				return err
			}
		}
		return errors.Join(b.Delete([]byte("b3")), b.Delete([]byte("never there")), b.Put([]byte("empty"), nil))
	}))
	if err := v.Update(t.Context(), func(tx *Tx) error {
		return errors.Join(tx.Bucket("seen").Put([]byte("a1"), []byte("lost")), failure)
	}); !errors.Is(err, failure) {
		t.Fatalf("Update = %v, want the callback's error", err)
	}
	must(t, v.View(t.Context(), func(tx *Tx) error {
		b := tx.Bucket("seen")
		if got, err := b.Get([]byte("a1")); err != nil || string(got) != "value a1" {
			t.Errorf("after a failed Update: %q, %v", got, err)
		}
		if got, err := b.Get([]byte("empty")); err != nil || got == nil || len(got) != 0 {
			t.Errorf("an empty value is %v, %v; want not nil", got, err)
		}
		if got, err := b.Get([]byte("none")); err != nil || got != nil {
			t.Errorf("no record is %v, %v; want nil", got, err)
		}
		var keys []string
		collect := func(k, v []byte) error {
			if len(v) > 0 && string(v) != "value "+string(k) {
				t.Errorf("%s holds %q", k, v)
			}
			keys = append(keys, string(k))
			return nil
		}
		if err := b.ForEach(nil, collect); err != nil || fmt.Sprint(keys) != "[a1 b1 b2 c1 empty]" {
			t.Errorf("ForEach = %v, %v", keys, err)
		}
		keys = nil
		if err := b.ForEach([]byte("b"), collect); err != nil || fmt.Sprint(keys) != "[b1 b2]" {
			t.Errorf("ForEach of a prefix = %v, %v", keys, err)
		}
		if err := b.ForEach(nil, func(_, _ []byte) error { return failure }); !errors.Is(err, failure) {
			t.Errorf("ForEach = %v, want the callback's error", err)
		}
		c := b.Cursor()
		for _, step := range []struct {
			move func() ([]byte, []byte, error)
			want string
		}{
			{c.Last, "empty"}, {c.Prev, "c1"}, {c.First, "a1"}, {c.Next, "b1"},
			{func() ([]byte, []byte, error) { return c.Seek([]byte("b11")) }, "b2"},
			{func() ([]byte, []byte, error) { return c.Seek([]byte("z")) }, ""},
		} {
			if k, _, err := step.move(); err != nil || string(k) != step.want {
				t.Errorf("the cursor is at %q, %v; want %q", k, err, step.want)
			}
		}
		if k, _, err := tx.Bucket("nothing").Cursor().First(); k != nil || err != nil {
			t.Errorf("a bucket that is not there begins with %q, %v", k, err)
		}
		if err := b.Put([]byte("x"), nil); err == nil {
			t.Error("a View can write")
		}
		if err := tx.Bucket("new").Put([]byte("x"), nil); err == nil {
			t.Error("a View can make a bucket")
		}
		return nil
	}))
}

func TestStateRefusesWhatItCannotKeep(t *testing.T) {
	v, _ := newVault(t, nil)
	must(t, v.Update(t.Context(), func(tx *Tx) error {
		for _, name := range []string{"", "A", "a/b", "a b", "-a", string(bytes.Repeat([]byte("a"), 65)), "a\n"} {
			b := tx.Bucket(name)
			_, getErr := b.Get([]byte("k"))
			if !errors.Is(b.Put([]byte("k"), nil), ErrInvalid) || !errors.Is(getErr, ErrInvalid) || !errors.Is(b.ForEach(nil, nil), ErrInvalid) {
				t.Errorf("a bucket named %q works", name)
			}
		}
		b := tx.Bucket("ok")
		for _, err := range []error{b.Put(nil, nil), b.Put(make([]byte, maxStateKey+1), nil), b.Put([]byte("k"), make([]byte, maxStateValue+1))} {
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("Put = %v, want ErrInvalid", err)
			}
		}
		return b.Put(make([]byte, maxStateKey), make([]byte, maxStateValue))
	}))
	must(t, v.Check(t.Context()))
}

func TestAPanicInAnUpdatePassesThroughAndChangesNothing(t *testing.T) {
	v, _ := newVault(t, nil)
	func() {
		defer func() {
			if r := recover(); r != "mine" {
				t.Errorf("recovered %v, want the caller's panic", r)
			}
		}()
		_ = v.Update(t.Context(), func(tx *Tx) error {
			if err := tx.Bucket("s").Put([]byte("k"), []byte("v")); err != nil {
				return err
			}
			panic("mine")
		})
	}()
	must(t, v.View(t.Context(), func(tx *Tx) error {
		if got, err := tx.Bucket("s").Get([]byte("k")); got != nil || err != nil {
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
	must(t, v.Update(t.Context(), func(tx *Tx) error { return tx.Bucket("s").Put([]byte("k"), []byte("v")) }))
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
		if err := v.Check(t.Context()); !errors.Is(err, ErrDamaged) {
			t.Errorf("a bad record in %s: Check = %v, want ErrDamaged", bucket, err)
		}
		rawUpdate(t, v, func(tx *bolt.Tx) error { return tx.Bucket([]byte(bucket)).Put(key, good) })
	}
	must(t, v.Check(t.Context()))
	rawUpdate(t, v, func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte("foreign")); return err })
	if err := v.Check(t.Context()); !errors.Is(err, ErrDamaged) {
		t.Errorf("a foreign bucket: Check = %v, want ErrDamaged", err)
	}
}

func TestATemporaryVaultIsGoneAfterwards(t *testing.T) {
	v, remove, err := Temporary(t.Context(), nil)
	must(t, err)
	if !v.Admin() {
		t.Error("it was not opened as the admin")
	}
	mustAdd(t, v, "work")
	must(t, remove())
	if _, err := v.Accounts(t.Context()); !errors.Is(err, ErrNoVault) {
		t.Errorf("Accounts = %v, want ErrNoVault", err)
	}
}
