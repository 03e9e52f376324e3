package bolt

import (
	"context"

	"github.com/gofrs/flock"
)

// takeLock tries once and then blocks in the kernel, which passes the lock on without
// the delay of polling. A wait in the kernel cannot be cancelled: one that is given up
// goes on and releases the lock at once; left is called then. over is called when the
// lock is released or was not obtained, so it can bound the number of waits.
func takeLock(ctx context.Context, path string, write bool, left, over func()) (unlock func(), _ error) {
	side := flock.New(path)
	try, wait := side.TryRLock, side.RLock
	if write {
		try, wait = side.TryLock, side.Lock
	}
	release := func() {
		_ = side.Close()
		over()
	}
	ok, err := try()
	if err == nil && !ok {
		got := make(chan error, 1)
		go func() { got <- wait() }()
		select {
		case err = <-got:
		case <-ctx.Done():
			left()
			go func() {
				<-got
				release()
			}()
			return nil, ctx.Err()
		}
	}
	if err != nil {
		release()
		return nil, err
	}
	return release, nil
}
