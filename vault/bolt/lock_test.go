package bolt

import (
	"context"
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/postern-mail/postern/vault/kv"
)

// TestAWaitThatIsGivenUp has another program hold the lock while many waits are cancelled.
// They must not pile up in the kernel, and must not keep the lock afterwards.
func TestAWaitThatIsGivenUp(t *testing.T) {
	for _, write := range []bool{false, true} {
		e := mustAt(t, newFile(t))
		path := e.Path() + ".lock"
		holder := flock.New(path)
		transact := func(ctx context.Context) error {
			_, err := e.Transact(ctx, write, func(kv.Tx) error { return nil })
			return err
		}
		for range 20 {
			must(t, holder.Lock())
			for range 20 {
				ctx, cancel := context.WithCancel(t.Context())
				go cancel()
				if err := transact(ctx); !errors.Is(err, context.Canceled) {
					t.Fatalf("write %v: %v, want Canceled", write, err)
				}
			}
			// The holder's descriptor, and those of waits that go on in the kernel.
			if n, most := openHandles(t, path), map[bool]int{false: maxReaders, true: 1}[write]; n > 1+most {
				t.Errorf("write %v: %d descriptors", write, n)
			}
			must(t, holder.Unlock())
			must(t, transact(t.Context()))
		}
		must(t, holder.Lock()) // it is free again
		must(t, holder.Close())
	}
}

// TestReadersGoOnAfterAWriteGaveUp has another program hold the lock for reading all the
// time.
func TestReadersGoOnAfterAWriteGaveUp(t *testing.T) {
	e := mustAt(t, newFile(t))
	holder := flock.New(e.Path() + ".lock")
	must(t, holder.RLock())
	defer func() { must(t, holder.Close()) }()
	nothing := func(kv.Tx) error { return nil }
	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	if _, err := e.Transact(ctx, true, nothing); !errors.Is(err, context.Canceled) {
		t.Fatalf("the write ends with %v, want Canceled", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := e.Transact(ctx, false, nothing); err != nil {
		t.Errorf("the read ends with %v", err)
	}
}

// openHandles counts the descriptors of this process for a file; 0 on systems other than
// Linux.
func openHandles(t *testing.T, path string) (n int) {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if runtime.GOOS != "linux" {
		return 0
	}
	must(t, err)
	for _, e := range all {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && to == path {
			n++
		}
	}
	return n
}

// Only the writes of a file that does not outlive its process do not wait for the disk.
func TestOnlyABriefFileIsNotOnTheDisk(t *testing.T) {
	e := mustAt(t, newFile(t))
	for _, brief := range []bool{false, true} {
		_, err := e.Transact(t.Context(), true, func(k kv.Tx) error {
			if db := k.(*tx).bolt.DB(); db.NoSync != brief || db.NoGrowSync != brief {
				t.Errorf("brief %v: it does not wait: %v, %v", brief, db.NoSync, db.NoGrowSync)
			}
			return k.Put("b", []byte("k"), []byte("value"))
		})
		must(t, err)
		e.Brief()
	}
	_, err := e.Transact(t.Context(), false, func(k kv.Tx) error {
		if v, err := k.Get("b", []byte("k")); string(v) != "value" || err != nil {
			t.Errorf("%q, %v", v, err)
		}
		return nil
	})
	must(t, err)
}
