// Package kvtest is the suite that every engine of a vault passes.
package kvtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/vault/kv"
)

// Run tests an engine. Each call of open returns another engine for the same records, as
// another process has it; at first there are no records.
func Run(t *testing.T, empty func(t *testing.T) (open func() kv.Engine)) {
	for name, test := range map[string]func(*testing.T, func() kv.Engine){
		"order": order, "sizes": sizes, "whole or nothing": wholeOrNothing, "turns": turns, "versions": versions, "locks": locks, "changes": changes, "replace": replace, "again and again": again,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, empty(t))
		})
	}
}

func do(t *testing.T, e kv.Engine, write bool, fn func(kv.Tx) error) kv.Version {
	t.Helper()
	v, err := e.Transact(t.Context(), write, fn)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func put(t *testing.T, e kv.Engine, bucket string, keys ...string) kv.Version {
	t.Helper()
	return do(t, e, true, func(tx kv.Tx) error {
		for _, k := range keys {
			if err := tx.Put(bucket, []byte(k), []byte("value of "+k)); err != nil {
				return err
			}
		}
		return nil
	})
}

// keys are those of a range, and whether the values are theirs.
func keys(tx kv.Tx, bucket string, r kv.Range) (list []string, err error) {
	for record, err := range kv.Each(tx, bucket, r) {
		if err != nil {
			return nil, err
		}
		if want := "value of " + string(record.Key); string(record.Value) != want {
			return nil, fmt.Errorf("%q has the value %q", record.Key, record.Value)
		}
		list = append(list, string(record.Key))
	}
	return list, nil
}

func order(t *testing.T, open func() kv.Engine) {
	e := open()
	var all []string
	for i := range 500 {
		all = append(all, fmt.Sprintf("%c\x00%03d", 'a'+i%3, i), strings.Repeat("k", 1+i))
	}
	put(t, e, "b", all...)
	put(t, e, "other", "a", "z")
	slices.Sort(all)
	check := func(tx kv.Tx, all []string) {
		t.Helper()
		for _, r := range []kv.Range{{}, {From: []byte("b")}, {To: []byte("b")}, {From: []byte("a\x00100"), To: []byte("k")}, {From: []byte("z")}, {From: []byte("k"), To: []byte("b")},
			kv.Prefix([]byte("a\x00")), kv.Prefix([]byte("kkk")), kv.Prefix([]byte{0xff}), kv.Prefix(nil)} {
			var want []string
			for _, k := range all {
				if k >= string(r.From) && (r.To == nil || k < string(r.To)) {
					want = append(want, k)
				}
			}
			for _, reverse := range []bool{false, true} {
				r.Reverse = reverse
				if got, err := keys(tx, "b", r); err != nil || !slices.Equal(got, want) {
					t.Errorf("%+v gives %d keys, want %d, %v", r, len(got), len(want), err)
				}
				list, err := tx.Scan("b", r, 3)
				if err != nil || len(list) != min(3, len(want)) || len(list) > 0 && string(list[0].Key) != want[0] {
					t.Errorf("the first three of %+v: %q, %v", r, list, err)
				}
				slices.Reverse(want)
			}
		}
	}
	do(t, e, false, func(tx kv.Tx) error { check(tx, all); return nil })
	// Also where much was added in the same transaction.
	do(t, e, true, func(tx kv.Tx) error {
		for i := range 500 {
			k := fmt.Sprintf("%c\x01%03d", 'a'+i%3, i)
			if err := tx.Put("b", []byte(k), []byte("value of "+k)); err != nil {
				return err
			}
			all = append(all, k)
		}
		slices.Sort(all)
		check(tx, all)
		return nil
	})
	// Also where much was removed in the same transaction.
	left := all[400:700]
	do(t, e, true, func(tx kv.Tx) error {
		for i, k := range all {
			if i < 400 || i >= 700 {
				if err := tx.Delete("b", []byte(k)); err != nil {
					return err
				}
			}
		}
		check(tx, left)
		return nil
	})
	// And where only the later records are left.
	do(t, e, true, func(tx kv.Tx) error {
		for record, err := range kv.Each(tx, "b", kv.Range{}) {
			if err := errors.Join(err, tx.Delete("b", record.Key)); err != nil {
				return err
			}
		}
		left = []string{"new"}
		return tx.Put("b", []byte("new"), []byte("value of new"))
	})
	do(t, open(), false, func(tx kv.Tx) error {
		check(tx, left)
		names, err := tx.Buckets()
		if fmt.Sprint(names) != "[b other]" {
			t.Errorf("the buckets are %v", names)
		}
		return err
	})
	if err := e.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// sizes writes a value over another one of any size, in one transaction.
func sizes(t *testing.T, open func() kv.Engine) {
	e, last := open(), 0
	value := func(size int) []byte { return bytes.Repeat([]byte{0, '\'', '\\', 0xff}, size/4) }
	is := func(tx kv.Tx, size int) {
		t.Helper()
		got, err := tx.Get("it's", []byte("'\x00"))
		list, errScan := tx.Scan("it's", kv.Range{}, 2)
		if err = errors.Join(err, errScan); err != nil || !bytes.Equal(got, value(size)) || len(list) != 1 || !bytes.Equal(list[0].Value, got) {
			t.Errorf("a value of %d bytes, after %d: %d bytes, %d records, %v", size, last, len(got), len(list), err)
		}
	}
	all := []int{4, 3 << 20, 0, 100_000, 40, 64 << 10, 60_000, 2 << 20, 1 << 20}
	do(t, e, true, func(tx kv.Tx) (err error) {
		for i, size := range all {
			if err = errors.Join(err, tx.Put("it's", []byte("'\x00"), value(size))); i%2 == 1 {
				is(tx, size)
			}
			last = size
		}
		return errors.Join(err, tx.Put("it's", []byte("'\x00"), value(8)))
	})
	do(t, open(), false, func(tx kv.Tx) error { is(tx, 8); return nil })
}

func wholeOrNothing(t *testing.T, open func() kv.Engine) {
	e, failure := open(), errors.New("no")
	put(t, e, "b", "a")
	if _, err := e.Transact(t.Context(), true, func(tx kv.Tx) error { return errors.Join(tx.Put("b", []byte("x"), nil), failure) }); !errors.Is(err, failure) {
		t.Errorf("a failed write: %v", err)
	}
	func() {
		defer func() {
			if r := recover(); r != "mine" {
				t.Errorf("recovered %v", r)
			}
		}()
		_, _ = e.Transact(t.Context(), true, func(tx kv.Tx) error {
			_ = tx.Put("b", []byte("y"), nil)
			panic("mine")
		})
	}()
	if _, err := e.Transact(t.Context(), false, func(tx kv.Tx) error { return tx.Put("b", []byte("z"), nil) }); err == nil {
		t.Error("a transaction that reads can write")
	}
	// After an error of the engine no change is committed, even if fn ignores the error.
	if _, err := e.Transact(t.Context(), true, func(tx kv.Tx) error {
		_ = tx.Put("b", []byte("overlooked"), nil)
		_ = tx.Put("b", nil, nil)
		return nil
	}); err == nil {
		t.Error("an empty key was kept")
	}
	value := []byte("value of b")
	do(t, e, true, func(tx kv.Tx) error {
		err := errors.Join(tx.Put("b", []byte("b"), value), tx.Put("b", []byte("empty"), nil), tx.Delete("b", []byte("none")), tx.Delete("none", []byte("a")))
		clear(value) // it is the caller's again
		return err
	})
	do(t, open(), false, func(tx kv.Tx) error {
		for key, want := range map[string]string{"a": "value of a", "b": "value of b", "empty": ""} {
			if got, err := tx.Get("b", []byte(key)); err != nil || got == nil || string(got) != want {
				t.Errorf("%s is %q, %v", key, got, err)
			}
		}
		for _, key := range []string{"x", "y", "z", "overlooked"} {
			if got, err := tx.Get("b", []byte(key)); got != nil || err != nil {
				t.Errorf("%s is there: %q, %v", key, got, err)
			}
		}
		got, err := tx.Get("none", []byte("a"))
		if got != nil {
			t.Error("there is a record in no bucket")
		}
		return err
	})
}

func turns(t *testing.T, open func() kv.Engine) {
	put(t, open(), "b", "a")
	var wg sync.WaitGroup
	const writers, each = 6, 20
	shared := open()
	for i := range writers {
		e := shared
		if i%2 == 0 {
			e = open()
		}
		wg.Go(func() {
			for range each {
				if _, err := e.Transact(t.Context(), true, func(tx kv.Tx) error {
					n, err := tx.Get("b", []byte("n"))
					return errors.Join(err, tx.Put("b", []byte("n"), append(n, 'x')))
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	do(t, shared, false, func(tx kv.Tx) error {
		n, err := tx.Get("b", []byte("n"))
		if len(n) != writers*each {
			t.Errorf("%d of %d turns count", len(n), writers*each)
		}
		return err
	})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, write := range []bool{false, true} {
		if _, err := shared.Transact(ended, write, func(kv.Tx) error { return nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("with a context that has ended: %v", err)
		}
	}
}

func versions(t *testing.T, open func() kv.Engine) {
	e, other := open(), open()
	now := func() kv.Version {
		t.Helper()
		v, err := e.Version(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	written := put(t, e, "b", "a")
	if read := do(t, e, false, func(kv.Tx) error { return nil }); written != now() || read != written {
		t.Errorf("written %v, read %v, now %v", written, read, now())
	}
	put(t, other, "b", "a")
	if now() == written {
		t.Error("a write of somebody else's is not seen")
	}
	before := now()
	_, _ = e.Transact(t.Context(), true, func(tx kv.Tx) error { return errors.Join(tx.Put("b", []byte("x"), nil), errors.New("no")) })
	if now() != before {
		t.Error("a write that failed is seen")
	}
}

func locks(t *testing.T, open func() kv.Engine) {
	a, b := open(), open()
	put(t, a, "b", "a")
	held, unlock, err := a.Lock(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []kv.Engine{a, b} {
		ctx, cancel := context.WithTimeout(t.Context(), 60*time.Millisecond)
		if _, _, err := e.Lock(ctx, "one"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a second holder: %v", err)
		}
		cancel()
		_, free, err := e.Lock(t.Context(), "two")
		if err != nil {
			t.Fatal(err)
		}
		free()
	}
	put(t, b, "b", "b") // it locks nothing else
	if err := held.Err(); err != nil {
		t.Errorf("while the lock is held: %v", err)
	}
	unlock()
	if held.Err() == nil {
		t.Error("the lock counts as held after its end")
	}
	if _, unlock, err = b.Lock(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	unlock()
}

func changes(t *testing.T, open func() kv.Engine) {
	a, b := open(), open()
	put(t, a, "b", "a")
	wait := a.Changes()
	put(t, b, "b", "b")
	if err := wait(t.Context()); err != nil {
		t.Error(err)
	}
	wait = a.Changes()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := wait(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
}

// copied replaces all records with themselves, unless there is a failure.
func copied(t *testing.T, e kv.Engine, failure error) (kv.Version, error) {
	return e.Replace(t.Context(), func(old kv.Tx, put func(string, []byte, []byte) error) error {
		names, err := old.Buckets()
		for _, name := range names {
			for r, err := range kv.Each(old, name, kv.Range{}) {
				if err := errors.Join(err, put(name, r.Key, r.Value)); err != nil {
					return err
				}
			}
		}
		return errors.Join(err, failure)
	})
}

func replace(t *testing.T, open func() kv.Engine) {
	a, b := open(), open()
	put(t, b, "b", "a")
	before, err := b.Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	failure := errors.New("no")
	if _, err := copied(t, a, failure); !errors.Is(err, failure) {
		t.Errorf("a failure gives %v", err)
	}
	if now, err := b.Version(t.Context()); err != nil || now != before {
		t.Errorf("after a failure the version is %v, not %v: %v", now, before, err)
	}
	// Writers take turns with it, and nothing that they wrote is lost.
	var wg sync.WaitGroup
	const writers, each = 3, 15
	for range writers {
		e := open()
		wg.Go(func() {
			for range each {
				if _, err := e.Transact(t.Context(), true, func(tx kv.Tx) error {
					n, err := tx.Get("b", []byte("n"))
					return errors.Join(err, tx.Put("b", []byte("n"), append(n, 'x')))
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 5 {
		if _, err := copied(t, a, nil); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
	after, err := copied(t, a, nil)
	if now, failed := a.Version(t.Context()); err != nil || failed != nil || now != after || now == before {
		t.Errorf("replaced at %v, now %v: %v, %v", after, now, err, failed)
	}
	do(t, b, false, func(tx kv.Tx) error {
		list, err := keys(tx, "b", kv.Range{To: []byte("n")})
		n, failed := tx.Get("b", []byte("n"))
		if !slices.Equal(list, []string{"a"}) || len(n) != writers*each {
			t.Errorf("%q and %d of %d turns are left", list, len(n), writers*each)
		}
		return errors.Join(err, failed)
	})
	put(t, a, "b", "c")
}
