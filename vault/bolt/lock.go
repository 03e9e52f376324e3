package bolt

import (
	"context"
	"os"
	"slices"
	"sync"

	"github.com/gofrs/flock"
)

// takeLock tries once and then blocks in the kernel, which hands the lock over
// without the delay of polling. A wait in the kernel cannot be ended; one that is
// given up is left to whoever next wants the same, so that there are never more of
// them in this process than were wanted at once.
func takeLock(ctx context.Context, path string, write bool) (*flock.Flock, error) {
	side := flock.New(path)
	try := side.TryRLock
	if write {
		try = side.TryLock
	}
	if ok, err := try(); err != nil {
		return nil, err
	} else if ok {
		return side, nil
	}
	w := waitForLock(side, path, write)
	select {
	case err := <-w.got:
		if err != nil {
			return nil, err
		}
		return w.side, nil
	case <-ctx.Done():
		w.abandon()
		return nil, ctx.Err()
	}
}

// lockWait is a wait in the kernel, which costs a thread and a descriptor.
type lockWait struct {
	side *flock.Flock
	kind lockKind
	file os.FileInfo // of the lock; nil where that cannot be told
	got  chan error  // has the outcome, unless nobody is there for it

	// Under abandoned.mu:
	left bool // nobody is there
	over bool // the outcome is in got
}

// lockKind is what waits have in common that can stand in for each other.
type lockKind struct {
	path  string
	write bool
}

// abandoned are the waits of this process that were given up and go on. Whichever gets
// the lock before anybody has taken it over lets it go at once.
var abandoned = struct {
	mu    sync.Mutex
	waits map[lockKind][]*lockWait
}{waits: map[lockKind][]*lockWait{}}

// waitForLock takes over an abandoned wait, or begins one with side. A wait for a file
// that has gone is not taken over: somebody may have removed a lock that was never
// freed.
func waitForLock(side *flock.Flock, path string, write bool) *lockWait {
	w := &lockWait{side: side, kind: lockKind{path, write}, got: make(chan error, 1)}
	w.file, _ = os.Stat(path)
	abandoned.mu.Lock()
	defer abandoned.mu.Unlock()
	for _, other := range abandoned.waits[w.kind] {
		if w.file != nil && os.SameFile(w.file, other.file) {
			other.forget()
			other.left = false
			return other
		}
	}
	go w.run()
	return w
}

func (w *lockWait) run() {
	lock := w.side.RLock
	if w.kind.write {
		lock = w.side.Lock
	}
	err := lock()
	abandoned.mu.Lock()
	defer abandoned.mu.Unlock()
	if w.left {
		w.forget()
		_ = w.side.Close()
		return
	}
	w.over = true
	w.got <- err
}

// abandon leaves the wait to whoever comes next.
func (w *lockWait) abandon() {
	abandoned.mu.Lock()
	defer abandoned.mu.Unlock()
	if w.over { // just now
		_ = w.side.Close()
		return
	}
	w.left = true
	abandoned.waits[w.kind] = append(abandoned.waits[w.kind], w)
}

// forget takes the wait out of those that are abandoned, which are locked.
func (w *lockWait) forget() {
	list := abandoned.waits[w.kind]
	list = slices.Delete(list, slices.Index(list, w), slices.Index(list, w)+1)
	if len(list) == 0 {
		delete(abandoned.waits, w.kind)
		return
	}
	abandoned.waits[w.kind] = list
}
