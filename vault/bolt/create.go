package bolt

import (
	"context"
	"os"
	"path/filepath"

	"github.com/postern-mail/postern/vault/kv"
)

// Create makes the file at path, with its directory where that is missing, and the
// records of fill. It is made aside and then renamed, so that it appears complete or
// not at all. Create reports whether it made the file: one that exists already, or that
// another process makes meanwhile, stays unchanged. The error matches kv.ErrPermissions for
// a directory that others can write to.
func Create(ctx context.Context, path string, fill func(kv.Tx) error) (created bool, err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, err
	}
	// The lock is beside the file's real path, as it is for transactions.
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return false, err
	}
	if err := private(dir); err != nil {
		return false, err
	}
	path = filepath.Join(dir, filepath.Base(path))
	unlock, err := takeLock(ctx, path+".lock", true, func() {}, func() {})
	if err != nil {
		return false, err
	}
	defer unlock()
	if _, err := os.Lstat(path); err == nil {
		return false, nil
	}
	temporary, err := os.CreateTemp(dir, ".postern-*.new") // mode 0600
	if err != nil {
		return false, err
	}
	defer func() { _ = os.Remove(temporary.Name()) }()
	if err := temporary.Close(); err != nil {
		return false, err
	}
	if err := run(temporary.Name(), true, false, os.OpenFile, fill, nil); err != nil {
		return false, err
	}
	// The lock covers the check and this rename, since every maker of a vault takes it.
	if err := os.Rename(temporary.Name(), path); err != nil {
		return false, err
	}
	return true, syncDir(dir)
}
