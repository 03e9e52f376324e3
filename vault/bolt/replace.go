package bolt

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"

	"github.com/postern-mail/postern/vault/kv"
)

// replaceBatch is how many bytes of values one transaction of a new file takes: they are
// in memory until it ends.
const replaceBatch = 16 << 20

// Replace implements kv.Engine with a file beside the vault, which takes its name once it
// is whole and on the disk. What a killed process leaves of it the next one removes.
func (e *Engine) Replace(ctx context.Context, fn func(old kv.Tx, put func(bucket string, key, value []byte) error) error) (v kv.Version, err error) {
	unlock, err := e.lock(ctx, true)
	if err != nil {
		return v, err
	}
	defer unlock()
	aside := e.path + ".new"
	if err := os.Remove(aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return v, err
	}
	defer func() { _ = os.Remove(aside) }() // which the rename leaves nothing of
	open := func(path string, flag int, _ fs.FileMode) (*os.File, error) {
		h, _, err := openChecked(path, flag)
		return h, err
	}
	if err := run(e.path, false, false, open, func(old kv.Tx) error {
		return fill(ctx, aside, func(put func(string, []byte, []byte) error) error { return fn(old, put) })
	}, nil); err != nil {
		return v, err
	}
	info, err := os.Stat(e.path)
	if err != nil {
		return v, err
	}
	SameOwner(aside, info)
	if err := os.Rename(aside, e.path); err != nil {
		return v, err
	}
	// The new records hold from here on, whatever these say.
	_ = syncDir(filepath.Dir(e.path))
	v, _ = e.Version(ctx)
	return v, nil
}

// fill makes a file and lends fn a function that puts records into it.
func fill(ctx context.Context, path string, fn func(put func(bucket string, key, value []byte) error) error) error {
	var db *bolt.DB
	if err := guard(path, func() (err error) {
		db, err = bolt.Open(path, 0o600, &bolt.Options{Timeout: boltTimeout, NoStatistics: true, NoSync: true, NoGrowSync: true})
		return err
	}); err != nil {
		return err
	}
	var batch *tx
	end := func() error {
		if batch == nil {
			return nil
		}
		t := batch
		batch = nil
		return guard(path, t.bolt.Commit)
	}
	size := 0
	err := fn(func(bucket string, key, value []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if batch == nil {
			t, err := db.Begin(true)
			if err != nil {
				return err
			}
			batch = &tx{path: path, bolt: t, buckets: map[string]*bolt.Bucket{}}
		}
		if err := batch.Put(bucket, key, value); err != nil {
			return err
		}
		if size += len(key) + len(value); size < replaceBatch {
			return nil
		}
		size = 0
		return end()
	})
	if err == nil {
		err = end()
	}
	if err == nil {
		err = db.Sync()
	}
	if batch != nil {
		_ = batch.bolt.Rollback()
	}
	return errors.Join(err, db.Close())
}
