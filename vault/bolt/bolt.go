// Package bolt keeps a vault's records in one file, with bbolt. The file has mode
// 0600. Each transaction finds, checks, locks and opens it again; the lock is a file
// beside it, and when a process dies there is nothing to recover.
//
// Each time it checks that the file is the owner's alone, has a valid head, and is as
// long as its head says; that takes two reads for a file of any size. Check reads
// every page. A file damaged elsewhere gives ErrDamaged where bbolt panics or memory
// faults, and can end the process where bbolt would loop: a process that can write the
// file can destroy it in any case.
package bolt

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"
	bolt "go.etcd.io/bbolt"
	"golang.org/x/sync/semaphore"

	"github.com/postern-mail/postern/vault/kv"
)

// Engine is the file of a vault.
type Engine struct {
	path   string              // without symbolic links, so that all users of the file share one lock
	brief  bool                // see Brief
	places *semaphore.Weighted // maxReaders; a writer takes them all, and a wait for the file's lock keeps its own
	waits  atomic.Int64        // for the file's lock that were given up and still keep theirs

	mu     sync.Mutex
	info   os.FileInfo // of the file that was last opened
	file   uint64      // counts the files seen at this path
	before kv.Version  // while a transaction of this Engine writes, the version it began with
}

var _ kv.Engine = (*Engine)(nil)

// appendFill is the fill of a page that is split by an insert behind its last key;
// later inserts do not fall into it.
const appendFill = 0.95

// maxReaders is how many transactions of one process read at once. More would
// only hold more descriptors.
const maxReaders = 8

// At returns the engine of the file at path. It refuses an unusable file before
// anything is created beside it, and a directory in which somebody else could put another
// file in its place. Errors match kv.ErrNone, kv.ErrPermissions or kv.ErrDamaged.
func At(path string) (*Engine, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("vault %s: %w", path, err)
	}
	real, err := filepath.EvalSymlinks(abs)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w at %s", kv.ErrNone, path)
	}
	if err != nil {
		return nil, fmt.Errorf("vault %s: %w", path, err)
	}
	if err := private(filepath.Dir(real)); err != nil {
		return nil, err
	}
	e := &Engine{path: real, places: semaphore.NewWeighted(maxReaders)}
	if _, err := e.Version(context.Background()); err != nil {
		return nil, err
	}
	return e, nil
}

// Brief says, before the first transaction, that the file does not outlive this process: no
// write waits for the disk.
func (e *Engine) Brief() { e.brief = true }

// Path returns where the file is, symbolic links resolved.
func (e *Engine) Path() string { return e.path }

// Version reads the head of the file, which bbolt writes last and all at once, and the
// time of the last write: so an older copy that was restored and written to has another
// version than the file it replaced. While a transaction of this Engine writes, no other
// process can write and the result is not known yet, so the version is still the one
// before it; a caller that compares versions does not wait for the disk then.
func (e *Engine) Version(context.Context) (kv.Version, error) {
	e.mu.Lock()
	before := e.before
	e.mu.Unlock()
	if before != (kv.Version{}) {
		return before, nil
	}
	h, m, err := openChecked(e.path, os.O_RDONLY)
	if err != nil {
		return kv.Version{}, err
	}
	_ = h.Close()
	return e.version(m), nil
}

func (e *Engine) version(m meta) kv.Version {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.info == nil || !os.SameFile(e.info, m.info) {
		e.file++
	}
	e.info = m.info
	return kv.Version{File: e.file, Seq: m.txid, Sum: m.sum ^ uint64(m.info.ModTime().UnixNano())}
}

// writing records the version with which a write transaction began; the zero Version
// means that it is over.
func (e *Engine) writing(before kv.Version) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.before = before
}

// Transact implements kv.Engine. The lock is held until it returns.
func (e *Engine) Transact(ctx context.Context, write bool, fn func(kv.Tx) error) (v kv.Version, err error) {
	unlock, err := e.lock(ctx, write)
	if err != nil {
		return v, err
	}
	defer unlock()
	open := func(path string, flag int, _ fs.FileMode) (*os.File, error) {
		h, m, err := openChecked(path, flag)
		if err == nil && write {
			e.writing(e.version(m))
		}
		return h, err
	}
	if write {
		defer e.writing(kv.Version{})
	}
	return v, run(e.path, write, e.brief, open, fn, func(h *os.File) error {
		m, err := readMeta(h)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", kv.ErrDamaged, e.path, err)
		}
		v = e.version(m)
		return nil
	})
}

// run opens the file with bbolt for one transaction, which does not wait for the disk where it
// is brief. after, unless it is nil, is lent the file once the transaction has succeeded.
func run(path string, write, brief bool, open func(string, int, fs.FileMode) (*os.File, error), fn func(kv.Tx) error, after func(*os.File) error) error {
	var s session
	defer s.end(path)
	err := guard(path, func() (err error) {
		s.db, err = bolt.Open(path, 0o600, &bolt.Options{
			ReadOnly:     !write,
			Timeout:      boltTimeout,
			NoStatistics: true,
			NoSync:       brief,
			NoGrowSync:   brief,
			OpenFile: func(path string, flag int, mode fs.FileMode) (h *os.File, err error) {
				s.handle, err = open(path, flag, mode)
				return s.handle, err
			},
		})
		if err != nil {
			return openError(path, err)
		}
		s.tx, err = s.db.Begin(write)
		return err
	})
	if err != nil {
		return err
	}
	t := &tx{path: path, bolt: s.tx, buckets: map[string]*bolt.Bucket{}, deleted: map[string]bool{}}
	if err := fn(t); err != nil || t.broken != nil {
		return cmp.Or(err, t.broken)
	}
	if write {
		if err := guard(path, s.tx.Commit); err != nil {
			return err
		}
	}
	if after == nil {
		return nil
	}
	return after(s.handle)
}

// tx is a kv.Tx. bbolt's panics, and faults in mapped memory, are errors of its methods.
type tx struct {
	path    string
	bolt    *bolt.Tx
	buckets map[string]*bolt.Bucket
	deleted map[string]bool // buckets, where pages may have been emptied
	broken  error           // the first error, after which nothing is committed
}

var _ kv.Tx = (*tx)(nil)

// in runs fn with the named bucket, nil where it does not exist.
func (t *tx) in(name string, fn func(*bolt.Bucket) error) error {
	if t.broken != nil {
		return t.broken
	}
	t.broken = guard(t.path, func() error {
		b := t.buckets[name]
		if b == nil {
			if b = t.bolt.Bucket([]byte(name)); b != nil {
				t.buckets[name] = b
			}
		}
		return fn(b)
	})
	return t.broken
}

func (t *tx) Get(bucket string, key []byte) (value []byte, err error) {
	err = t.in(bucket, func(b *bolt.Bucket) error {
		if b != nil {
			value = bytes.Clone(b.Get(key))
		}
		return nil
	})
	return value, err
}

func (t *tx) Put(bucket string, key, value []byte) error {
	return t.in(bucket, func(b *bolt.Bucket) (err error) {
		if b == nil {
			if b, err = t.bolt.CreateBucketIfNotExists([]byte(bucket)); err != nil {
				return err
			}
			t.buckets[bucket] = b
		}
		// Pages that only grow at their end, such as those of a log, stay almost full.
		b.FillPercent = bolt.DefaultFillPercent
		if behind, _ := b.Cursor().Seek(key); behind == nil { // Last does not return where pages were emptied
			b.FillPercent = appendFill
		}
		return b.Put(key, bytes.Clone(value)) // bbolt keeps the slice until the commit
	})
}

func (t *tx) Delete(bucket string, key []byte) error {
	return t.in(bucket, func(b *bolt.Bucket) error {
		if b == nil {
			return nil
		}
		t.deleted[bucket] = true
		return b.Delete(key)
	})
}

func (t *tx) Scan(bucket string, r kv.Range, limit int) (list []kv.Record, err error) {
	err = t.in(bucket, func(b *bolt.Bucket) error {
		if b == nil || limit <= 0 {
			return nil
		}
		c := b.Cursor()
		if r.Reverse && !t.deleted[bucket] {
			for k, v := before(c, r.To); k != nil && bytes.Compare(k, r.From) >= 0 && len(list) < limit; k, v = c.Prev() {
				list = append(list, kv.Record{Key: bytes.Clone(k), Value: bytes.Clone(v)})
			}
			return nil
		}
		for k, v := c.Seek(r.From); k != nil && (r.To == nil || bytes.Compare(k, r.To) < 0) && (r.Reverse || len(list) < limit); k, v = c.Next() {
			// A cursor that goes back stops at a page that was emptied in the same
			// transaction. Then it goes forward, and the last records are kept.
			if len(list) == limit {
				list = list[1:]
			}
			list = append(list, kv.Record{Key: bytes.Clone(k), Value: bytes.Clone(v)})
		}
		if r.Reverse {
			slices.Reverse(list)
		}
		return nil
	})
	return list, err
}

// before moves to the last key before end; nil is the end of the bucket.
func before(c *bolt.Cursor, end []byte) (key, value []byte) {
	if end == nil {
		return c.Last()
	}
	if k, _ := c.Seek(end); k == nil {
		return c.Last()
	}
	return c.Prev()
}

func (t *tx) Buckets() (names []string, err error) {
	err = t.in("", func(*bolt.Bucket) error {
		return t.bolt.ForEach(func(name []byte, _ *bolt.Bucket) error {
			names = append(names, string(name))
			return nil
		})
	})
	return names, err
}

// lockPoll is how often a caller that waits for a named lock tries.
const lockPoll = 20 * time.Millisecond

// Lock implements kv.Engine with a file beside the vault. It works alike among
// callers of this process and of others, since each opens the file itself. It polls:
// a wait that is given up leaves nothing behind. The empty file stays, since other
// callers may be waiting for it.
func (e *Engine) Lock(ctx context.Context, name string) (held context.Context, unlock func(), err error) {
	path := e.path + "." + name + ".lock"
	if err := e.lockable(path); err != nil {
		return nil, nil, err
	}
	side := flock.New(path)
	if _, err := side.TryLockContext(ctx, lockPoll); err != nil {
		_ = side.Close()
		return nil, nil, heldBy(path, err)
	}
	if info, err := os.Stat(e.path); err == nil {
		SameOwner(path, info) // also where root made it
	}
	held, cancel := context.WithCancel(ctx)
	return held, func() {
		cancel()
		_ = side.Close()
	}, nil
}

// lockable refuses to lock a file that is not regular, and to make a lock beside a
// missing vault.
func (e *Engine) lockable(path string) error {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%w: %s is not a regular file", kv.ErrDamaged, path)
	}
	if _, err := os.Stat(e.path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w at %s", kv.ErrNone, e.path)
	}
	return nil
}
