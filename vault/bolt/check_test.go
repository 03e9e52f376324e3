package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/vault/kv"
	"github.com/postern-mail/postern/vault/kv/kvtest"
)

var must = testmain.Must

func mustAt(t testing.TB, path string) *Engine {
	t.Helper()
	e, err := At(path)
	must(t, err)
	return e
}

func newFile(t testing.TB) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "postern.db")
	created, err := Create(t.Context(), path, func(kv.Tx) error { return nil })
	if err != nil || !created {
		t.Fatalf("Create = %v, %v", created, err)
	}
	return path
}

func update(t testing.TB, e *Engine, fn func(kv.Tx) error) {
	t.Helper()
	_, err := e.Transact(t.Context(), true, fn)
	must(t, err)
}

func TestBoltIsAnEngine(t *testing.T) {
	kvtest.Run(t, func(t *testing.T) func() kv.Engine {
		path := newFile(t)
		return func() kv.Engine { return mustAt(t, path) }
	})
}

// Each entry of the log looks for the newest before it, so a writer does not read them all.
func TestAWriterFindsTheNewestRecordWithoutTheOthers(t *testing.T) {
	e := mustAt(t, newFile(t))
	const records = 10_000
	update(t, e, func(tx kv.Tx) error {
		for i := range records {
			if err := tx.Put("log", fmt.Appendf(nil, "%05d", i), []byte("entry")); err != nil {
				return err
			}
		}
		return nil
	})
	update(t, e, func(tx kv.Tx) error {
		if n := testing.AllocsPerRun(1, func() {
			list, err := tx.Scan("log", kv.Range{Reverse: true}, 1)
			if must(t, err); len(list) != 1 || string(list[0].Key) != "09999" {
				t.Errorf("%v", list)
			}
		}); n > records/10 {
			t.Errorf("%g allocations for the last of %d records", n, records)
		}
		return nil
	})
}

// TestTheVersionChangesWhenTransactReturns asks for the version when the commit is done
// and Transact has not returned.
func TestTheVersionChangesWhenTransactReturns(t *testing.T) {
	e := mustAt(t, newFile(t))
	before, err := e.Version(t.Context())
	must(t, err)
	after, err := e.Transact(t.Context(), true, func(x kv.Tx) error {
		x.(*tx).bolt.OnCommit(func() {
			if v, err := e.Version(t.Context()); v != before || err != nil {
				t.Errorf("meanwhile it is %v, want %v, %v", v, before, err)
			}
		})
		return x.Put("b", []byte("k"), nil)
	})
	must(t, err)
	if v, err := e.Version(t.Context()); v != after || v == before || err != nil {
		t.Errorf("it is %v, want %v, %v", v, after, err)
	}
}

// bigFile makes a file whose tree has branches, overflow pages, free pages and
// buckets without a page of their own.
func bigFile(t testing.TB) *Engine {
	t.Helper()
	e := mustAt(t, newFile(t))
	update(t, e, func(tx kv.Tx) error {
		if err := tx.Put("small", []byte("k"), []byte("v")); err != nil {
			return err
		}
		for i := range 2000 {
			if err := tx.Put("large", fmt.Appendf(nil, "%06d", i), make([]byte, 100)); err != nil {
				return err
			}
		}
		return tx.Put("large", []byte("overflow"), make([]byte, 50_000))
	})
	update(t, e, func(tx kv.Tx) error {
		for i := range 1000 {
			if err := tx.Delete("large", fmt.Appendf(nil, "%06d", i)); err != nil {
				return err
			}
		}
		return nil
	})
	return e
}

// TestCheckFindsDamagedPages breaks the tree, also in ways that would make bbolt recurse
// without end: a branch that leads to itself or to the root.
func TestCheckFindsDamagedPages(t *testing.T) {
	size := os.Getpagesize()
	e := bigFile(t)
	must(t, e.Check(t.Context()))
	whole, err := os.ReadFile(e.Path())
	must(t, err)
	f, err := os.Open(e.Path())
	must(t, err)
	m, err := readMeta(f)
	must(t, errors.Join(err, f.Close()))
	branch, free, root := 0, int(m.freelist), int(m.root)
	must(t, run(e.Path(), false, false, os.OpenFile, func(t kv.Tx) error {
		branch = int(t.(*tx).bolt.Bucket([]byte("large")).Root())
		return nil
	}, nil))
	for name, damage := range map[string]func(b []byte){
		"a branch leads to itself":   func(b []byte) { order.PutUint64(b[branch*size+pageHeader+8:], uint64(branch)) },
		"a branch leads to the root": func(b []byte) { order.PutUint64(b[branch*size+pageHeader+8:], uint64(root)) },
		"a branch leads outside":     func(b []byte) { order.PutUint64(b[branch*size+pageHeader+8:], 1<<40) },
		"a branch has no children":   func(b []byte) { order.PutUint16(b[branch*size+10:], 0) },
		"a branch has too many":      func(b []byte) { order.PutUint16(b[branch*size+10:], 0xffff) },
		"a branch is out of order":   func(b []byte) { copy(b[branch*size+pageHeader+8:], b[branch*size+pageHeader+elementSize+8:][:8]) },
		"a key lies outside":         func(b []byte) { order.PutUint32(b[branch*size+pageHeader:], 1<<31) },
		"a page is of no kind":       func(b []byte) { order.PutUint16(b[branch*size+8:], 3) },
		"a page is another":          func(b []byte) { order.PutUint64(b[branch*size:], uint64(branch)+1) },
		"a page reaches outside":     func(b []byte) { order.PutUint32(b[root*size+12:], 1<<30) },
		"a bucket is no bucket":      func(b []byte) { order.PutUint32(b[root*size+pageHeader:], 0) },
		"a value lies outside":       func(b []byte) { order.PutUint32(b[root*size+pageHeader+12:], 1<<31) },
		"a free page is used":        func(b []byte) { order.PutUint64(b[free*size+pageHeader:], uint64(branch)) },
		"too many free pages":        func(b []byte) { order.PutUint16(b[free*size+10:], 0xfff0) },
	} {
		t.Run(name, func(t *testing.T) {
			b := append([]byte(nil), whole...)
			damage(b)
			must(t, os.WriteFile(e.Path(), b, 0o600))
			if err := e.Check(t.Context()); !errors.Is(err, kv.ErrDamaged) {
				t.Errorf("Check = %v, want ErrDamaged", err)
			}
		})
	}
}

// TestAFileCutWhileInUseIsAnError takes pages away from a running process: that call
// fails, and the next one works when they are back.
func TestAFileCutWhileInUseIsAnError(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a mapped file cannot be cut here")
	}
	e := bigFile(t)
	whole, err := os.ReadFile(e.Path())
	must(t, err)
	all := func(tx kv.Tx) error {
		_, err := tx.Scan("large", kv.Range{}, 9999)
		return err
	}
	transact := func(write bool, fn func(kv.Tx) error) error {
		_, err := e.Transact(context.Background(), write, fn)
		return err
	}
	must(t, transact(false, all))

	// Between transactions: found before anything is mapped.
	must(t, os.Truncate(e.Path(), int64(len(whole)/2)))
	if err := transact(false, all); !errors.Is(err, kv.ErrDamaged) {
		t.Errorf("reading half a file = %v, want ErrDamaged", err)
	}
	must(t, os.WriteFile(e.Path(), whole, 0o600))
	must(t, transact(false, all))

	// Within one: a fault in mapped memory, which is an error even if fn ignores it.
	for _, write := range []bool{false, true} {
		for _, overlook := range []bool{false, true} {
			err := transact(write, func(tx kv.Tx) error {
				must(t, os.Truncate(e.Path(), int64(8*os.Getpagesize())))
				if err := all(tx); !overlook {
					return err
				}
				return nil
			})
			if !errors.Is(err, kv.ErrDamaged) {
				t.Errorf("a file cut meanwhile, write %v: %v, want ErrDamaged", write, err)
			}
			must(t, os.WriteFile(e.Path(), whole, 0o600))
			must(t, transact(true, all))
		}
	}
}

// TestAFaultInsideBboltLeavesTheFileFree ends a transaction at the points where
// bbolt may still hold its locks and its mapping.
func TestAFaultInsideBboltLeavesTheFileFree(t *testing.T) {
	e := mustAt(t, newFile(t))
	for _, write := range []bool{false, true} {
		_, err := e.Transact(t.Context(), write, func(x kv.Tx) error {
			return x.(*tx).in("b", func(*bolt.Bucket) error { panic("assertion failed: of bbolt") })
		})
		if !errors.Is(err, kv.ErrDamaged) {
			t.Errorf("a panic inside: %v, want ErrDamaged", err)
		}
		update(t, e, func(kv.Tx) error { return nil })
	}
	// This session got no transaction, so closing it could wait forever.
	h, err := os.OpenFile(e.Path(), os.O_RDWR, 0)
	must(t, err)
	db, err := bolt.Open(e.Path(), 0o600, &bolt.Options{OpenFile: func(string, int, os.FileMode) (*os.File, error) { return h, nil }})
	must(t, err)
	s := session{handle: h, db: db}
	s.end(e.Path())
	update(t, e, func(kv.Tx) error { return nil })
}
