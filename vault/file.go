package vault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

const (
	// boltTimeout is for a program that opens the file without our lock, such as
	// a database browser; among ourselves nobody waits for bbolt's own lock.
	boltTimeout = 5 * time.Second

	// maxReaders is how many transactions of one process read at once. More would
	// only hold more descriptors.
	maxReaders = 8
)

// file is the vault's file as transactions see it: found, checked, locked and
// opened for each of them anew.
type file struct {
	path    string        // without symbolic links, so that all who use the file share one lock
	writing chan struct{} // one place: who waits to write
	reading chan struct{} // maxReaders places; a writer takes them all

	looked func(cost) // told what a transaction came to; nil but in tests
}

// cost is what a transaction came to.
type cost struct {
	write bool
	pages int // of the file that were read and checked
	steps int // keys that were looked up or changed, and steps of cursors
}

// findFile resolves the path and refuses what no transaction could use, before
// anything is created beside it.
func findFile(path string) (*file, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("vault %s: %w", path, err)
	}
	real, err := filepath.EvalSymlinks(abs)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w at %s", ErrNoVault, path)
	}
	if err != nil {
		return nil, fmt.Errorf("vault %s: %w", path, err)
	}
	f := &file{path: real, writing: make(chan struct{}, 1), reading: make(chan struct{}, maxReaders)}
	h, err := f.openChecked(real, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	return f, h.Close()
}

// openChecked opens the existing file, never creating it, and refuses one that
// others can read or that cannot be a whole vault. It has the signature of
// bbolt's hook, and there runs under the lock.
func (f *file) openChecked(path string, flag int, _ fs.FileMode) (*os.File, error) {
	// A pipe or device must not be opened at all: opening can block or act.
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s is not a regular file", ErrDamaged, path)
	}
	h, err := os.OpenFile(path, flag&^(os.O_CREATE|os.O_TRUNC), 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w at %s", ErrNoVault, path)
	}
	if err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	if err := checkOpened(h); err != nil {
		_ = h.Close()
		return nil, err
	}
	return h, nil
}

func checkOpened(h *os.File) error {
	info, err := h.Stat()
	if err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	if !privateMode(info.Mode()) {
		return fmt.Errorf("%w: %s has mode %04o, want 0600", ErrPermissions, h.Name(), info.Mode().Perm())
	}
	if _, err := readMeta(h); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, h.Name(), err)
	}
	return nil
}

// check reads every page of the file under the lock, which takes as long as the file is
// big.
func (f *file) check(ctx context.Context) error {
	unlock, err := f.lock(ctx, false)
	if err != nil {
		return err
	}
	defer unlock()
	h, err := f.openChecked(f.path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = h.Close() }()
	if err := checkPages(h); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, f.path, err)
	}
	return nil
}

// transact runs fn in one transaction. The lock is held until it returns.
func (f *file) transact(ctx context.Context, write bool, fn func(*bolt.Tx) error) error {
	unlock, err := f.lock(ctx, write)
	if err != nil {
		return err
	}
	defer unlock()
	return runBolt(f.path, write, f.openChecked, fn)
}

// transactChecked is transact for an fn that has the pages checked that it comes to.
func (f *file) transactChecked(ctx context.Context, write bool, fn func(checkedTx) error) error {
	unlock, err := f.lock(ctx, write)
	if err != nil {
		return err
	}
	defer unlock()
	var handle *os.File
	open := func(path string, flag int, mode fs.FileMode) (h *os.File, err error) {
		handle, err = f.openChecked(path, flag, mode)
		return handle, err
	}
	return runBolt(f.path, write, open, func(b *bolt.Tx) error {
		pages, err := newPageCheck(handle, write)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrDamaged, f.path, err)
		}
		if f.looked != nil {
			defer func() { f.looked(cost{write, len(pages.branches) + len(pages.leaves), pages.steps}) }()
		}
		return fn(checkedTx{b, pages})
	})
}

// runBolt opens the file with bbolt for one transaction.
func runBolt(path string, write bool, open func(string, int, fs.FileMode) (*os.File, error), fn func(*bolt.Tx) error) error {
	var s session
	defer s.end(path)
	return guard(path, func() (err error) {
		s.db, err = bolt.Open(path, 0o600, &bolt.Options{
			ReadOnly:     !write,
			Timeout:      boltTimeout,
			NoStatistics: true,
			OpenFile: func(path string, flag int, mode fs.FileMode) (h *os.File, err error) {
				s.handle, err = open(path, flag, mode)
				return s.handle, err
			},
		})
		if err != nil {
			return openError(path, err)
		}
		if s.tx, err = s.db.Begin(write); err != nil {
			return err
		}
		if err := fn(s.tx); err != nil || !write {
			return err
		}
		return s.tx.Commit()
	})
}

// session is what one transaction has open.
type session struct {
	handle *os.File
	db     *bolt.DB
	tx     *bolt.Tx
}

// end closes everything, however the transaction ended. Its own failures are of
// no interest: what was committed is durable.
//
// A panic inside bbolt can leave its locks held, and then Close would wait for
// them for good. It cannot once a rollback has come back; otherwise the mapping is
// given up and only what others wait for is released.
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
		return fmt.Errorf("%w: %s", ErrBusy, path)
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrChecksum), errors.Is(err, berrors.ErrVersionMismatch):
		return fmt.Errorf("%w: %s: %w", ErrDamaged, path, err)
	}
	return err
}

// callerPanic carries a panic of a caller's function through guard, which is to
// catch bbolt's own only.
type callerPanic struct{ value any }

func callerCode(fn func() error) error {
	defer func() {
		if r := recover(); r != nil {
			panic(callerPanic{r})
		}
	}()
	return fn()
}

// guard turns a memory fault in a mapped page and bbolt's assertions into
// ErrDamaged.
func guard(path string, fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch r := recover().(type) {
		case nil:
		case callerPanic:
			panic(r.value)
		default:
			err = fmt.Errorf("%w: %s: %.120s", ErrDamaged, path, fmt.Sprint(r))
		}
	}()
	return fn()
}

// lock waits its turn, first within the process, then among processes.
func (f *file) lock(ctx context.Context, write bool) (unlock func(), err error) {
	leave, err := f.enter(ctx, write)
	if err != nil {
		return nil, err
	}
	// No lock is made beside a vault that is gone.
	if _, err := os.Stat(f.path); errors.Is(err, fs.ErrNotExist) {
		leave()
		return nil, fmt.Errorf("%w at %s", ErrNoVault, f.path)
	}
	if info, err := os.Lstat(f.path + ".lock"); err == nil && !info.Mode().IsRegular() {
		leave()
		return nil, fmt.Errorf("%w: %s.lock is not a regular file", ErrDamaged, f.path)
	}
	side, err := takeLock(ctx, f.path+".lock", write)
	if err != nil {
		leave()
		return nil, fmt.Errorf("vault lock: %w", err)
	}
	return func() {
		_ = side.Close()
		leave()
	}, nil
}

func (f *file) enter(ctx context.Context, write bool) (leave func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	n := 1
	if write {
		select {
		case f.writing <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		n = maxReaders
	}
	held := 0
	leave = func() {
		for range held {
			<-f.reading
		}
		if write {
			<-f.writing
		}
	}
	for range n {
		select {
		case f.reading <- struct{}{}:
			held++
		case <-ctx.Done():
			leave()
			return nil, ctx.Err()
		}
	}
	return leave, nil
}
