package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/gofrs/flock"
)

// heldLock is a lock that somebody else has.
func heldLock(t *testing.T) (path string, holder *flock.Flock) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "lock")
	holder = flock.New(path)
	must(t, holder.Lock())
	t.Cleanup(func() { _ = holder.Close() })
	return path, holder
}

// giveUp waits for a lock with a context that has ended already.
func giveUp(t *testing.T, path string, write bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := takeLock(ctx, path, write); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v, want Canceled", err)
	}
}

// leftBehind is how many waits for a lock nobody waits for any more.
func leftBehind(path string, write bool) int {
	abandoned.mu.Lock()
	defer abandoned.mu.Unlock()
	return len(abandoned.waits[lockKind{path, write}])
}

// free checks that nobody has a lock, or is about to let go of it.
func free(t *testing.T, path string) {
	t.Helper()
	next := flock.New(path)
	must(t, next.Lock())
	must(t, next.Close())
}

func TestAWaitThatIsGivenUpIsTakenOver(t *testing.T) {
	for _, write := range []bool{false, true} {
		t.Run(fmt.Sprintf("to write %v", write), func(t *testing.T) {
			path, holder := heldLock(t)
			for range 100 {
				giveUp(t, path, write)
			}
			if n := leftBehind(path, write); n != 1 {
				t.Errorf("%d waits are left behind", n)
			}
			if n := openHandles(t, path); n > 2 { // the holder's and that of the wait
				t.Errorf("%d descriptors", n)
			}
			w := waitForLock(flock.New(path), path, write)
			if n := leftBehind(path, write); n != 0 {
				t.Errorf("%d waits are left behind by whoever waits now", n)
			}
			must(t, holder.Close())
			must(t, <-w.got)
			other := flock.New(path)
			if ok, err := other.TryLock(); ok || err != nil {
				t.Errorf("the lock can be had twice: %v", err)
			}
			must(t, w.side.Close())
			free(t, path)
		})
	}
}

// openHandles counts the descriptors of this process for a file, where that can be told.
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

// Nobody has a lock that was given up, whenever that was.
func TestAWaitThatIsGivenUpKeepsNoLock(t *testing.T) {
	for _, write := range []bool{false, true} {
		path, holder := heldLock(t)
		giveUp(t, path, write)
		must(t, holder.Close())
		free(t, path)

		// It is given up at the moment at which it has come to its end.
		w := waitForLock(flock.New(path), path, write)
		for len(w.got) == 0 {
			runtime.Gosched()
		}
		w.abandon()
		free(t, path)
		if n := leftBehind(path, write); n != 0 {
			t.Errorf("%d waits are left behind", n)
		}
	}
}

// Somebody removed the file of a lock that is never let go of.
func TestAWaitForALockThatIsGoneIsNotTakenOver(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a file that is open stays")
	}
	path, holder := heldLock(t)
	giveUp(t, path, true)
	for { // it waits for that file
		if openHandles(t, path) == 2 || runtime.GOOS != "linux" {
			break
		}
		runtime.Gosched()
	}
	must(t, os.Remove(path))
	another := flock.New(path)
	must(t, another.Lock())
	w := waitForLock(flock.New(path), path, true)
	if n := leftBehind(path, true); n != 1 {
		t.Errorf("%d waits for the file that is gone, want that which nobody can use", n)
	}
	must(t, another.Close())
	must(t, <-w.got)
	must(t, w.side.Close())
	must(t, holder.Close())
}
