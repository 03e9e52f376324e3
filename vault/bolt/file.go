package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/postern-mail/postern/vault/kv"
)

// boltTimeout is for a program that opens the file without our lock, such as
// a database browser; our own processes never wait for bbolt's lock.
const boltTimeout = 5 * time.Second

// openChecked opens the existing file, never creating it, and refuses one that
// others can read or that cannot be a whole vault.
func openChecked(path string, flag int) (*os.File, meta, error) {
	// A pipe or device must not be opened at all: opening can block or act.
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, meta{}, fmt.Errorf("%w: %s is not a regular file", kv.ErrDamaged, path)
	}
	h, err := os.OpenFile(path, flag&^(os.O_CREATE|os.O_TRUNC), 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, meta{}, fmt.Errorf("%w at %s", kv.ErrNone, path)
	}
	if err != nil {
		return nil, meta{}, fmt.Errorf("vault: %w", err)
	}
	m, err := readMeta(h)
	switch {
	case m.info != nil && !PrivateMode(m.info.Mode()):
		err = fmt.Errorf("%w: %s has mode %04o, want 0600", kv.ErrPermissions, path, m.info.Mode().Perm())
	case err != nil:
		err = fmt.Errorf("%w: %s: %w", kv.ErrDamaged, path, err)
	}
	if err != nil {
		_ = h.Close()
		return nil, meta{}, err
	}
	return h, m, nil
}

// session holds the open parts of one transaction.
type session struct {
	handle *os.File
	db     *bolt.DB
	tx     *bolt.Tx
}

// end closes everything after any outcome of the transaction. Its own
// failures do not matter: a commit was durable before.
//
// A panic inside bbolt can leave its locks held, and then Close would wait for
// them forever. After a rollback has returned that is impossible; otherwise the
// mapping is abandoned and only the file's locks are released.
func (s *session) end(path string) {
	closable := false
	_ = guard(path, func() error {
		if s.tx == nil {
			return nil
		}
		_ = s.tx.Rollback() // refused after a commit
		closable = true
		return s.db.Close()
	})
	if !closable && s.handle != nil {
		release(s.handle)
	}
}

func openError(path string, err error) error {
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return fmt.Errorf("%w: %s", kv.ErrBusy, path)
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrChecksum), errors.Is(err, berrors.ErrVersionMismatch):
		return fmt.Errorf("%w: %s: %w", kv.ErrDamaged, path, err)
	}
	return err
}

// guard turns a memory fault in a mapped page and bbolt's assertions into
// kv.ErrDamaged. fn only calls bbolt.
func guard(path string, fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %s: %.120s", kv.ErrDamaged, path, fmt.Sprint(r))
		}
	}()
	return fn()
}

// lock waits for its turn, first within the process, then among processes.
func (e *Engine) lock(ctx context.Context, write bool) (unlock func(), err error) {
	places, side := int64(1), e.path+".lock"
	if write {
		places = maxReaders
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := e.places.Acquire(ctx, places); err != nil {
		if e.waits.Load() > 0 { // behind one who waits for another program
			return nil, heldBy(side, err)
		}
		return nil, err
	}
	over := func() { e.places.Release(places) }
	left := func() { // a wait keeps one place, so that this process can still read
		e.places.Release(places - 1)
		places = 1
		e.waits.Add(1)
		over = func() {
			e.waits.Add(-1)
			e.places.Release(1)
		}
	}
	if err := e.lockable(side); err != nil {
		over()
		return nil, err
	}
	if unlock, err = takeLock(ctx, side, write, left, func() { over() }); err != nil {
		return nil, heldBy(side, err)
	}
	return unlock, nil
}

// held makes a wait for a lock that took too long a *kv.Held.
func heldBy(lock string, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return &kv.Held{Lock: lock, Err: err}
	}
	return fmt.Errorf("lock %s: %w", lock, err)
}
