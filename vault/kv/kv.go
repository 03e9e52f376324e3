// Package kv is the interface of the engine that keeps a vault's records: named buckets
// of records, ordered by the bytes of their keys, in transactions that see one moment
// and are durable when they return.
//
// An engine knows neither the meaning of the records nor how they are sealed. A new
// engine must pass the suite in kvtest, is a row of engineKinds in vault/engine.go, and runs the vault's own
// tests through vault/vaulttest.
package kv

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// The errors of an engine on which callers branch, tested with errors.Is.
var (
	ErrNone        = errors.New("there is no vault")
	ErrPermissions = errors.New("other users have access")
	ErrDamaged     = errors.New("the vault is damaged, or the file is not a vault")
	ErrBusy        = errors.New("another program holds the vault")
	ErrUnreachable = errors.New("the vault's database cannot be used")
	ErrAddress     = errors.New("the vault's address cannot be used")
	ErrWentBack    = errors.New("the vault's database went back to an earlier state")
	ErrNewer       = errors.New("the vault was written by a newer version")
)

// Held says that another program held a lock for as long as the caller could wait.
type Held struct {
	Lock string // the lock's file, or its name
	Err  error  // of the caller's context
}

func (e *Held) Error() string { return fmt.Sprintf("the lock %s is held: %v", e.Lock, e.Err) }
func (e *Held) Unwrap() error { return e.Err }

// Away is ErrUnreachable, of one database.
type Away struct {
	Path, Why string // its address without secrets, and what is wrong
	Unknown   bool   // whether the last write was kept
	Err       error
}

func (e *Away) Error() string   { return fmt.Sprintf("%v: %s: %s", ErrUnreachable, e.Path, e.Why) }
func (e *Away) Unwrap() []error { return []error{ErrUnreachable, e.Err} }

// Away is for mail.Away.
func (e *Away) Away() bool { return true }

// silence is for how long a database has to be silent before it is to blame for the end of a
// caller's time, which something else may have used up.
const silence = 400 * time.Millisecond

// Ended is the error of a context that ended while its caller waited for the database at path,
// from an instant on.
func Ended(ctx context.Context, since time.Time, path string) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && time.Since(since) >= silence {
		return &Away{Path: path, Why: "it did not answer in time", Err: ctx.Err()}
	}
	return fmt.Errorf("%s: %w", path, ctx.Err())
}

// Engine keeps records for any number of processes. It holds nothing between calls that
// others could wait for, needs no closing, and is safe for concurrent use. The context of each
// call bounds the wait for others.
type Engine interface {
	// Transact lends fn a transaction that sees one moment. With write, writers take
	// turns, and all changes of fn are durable when Transact returns nil; otherwise
	// none are kept. A panic in fn passes through and counts as an error. fn must be
	// short and must not call the Engine. The Version is that of the moment read, or
	// that after a write; it is valid only without an error.
	Transact(ctx context.Context, write bool, fn func(Tx) error) (Version, error)

	// Replace lends fn all present records to read, and a function that puts new ones.
	// When fn returns nil, the new records take the place of all others at once, and no
	// trace of those stays; otherwise, and with any error, nothing changes. Writers wait
	// meanwhile. The rules for fn are those of Transact.
	Replace(ctx context.Context, fn func(old Tx, put func(bucket string, key, value []byte) error) error) (Version, error)

	// Version names the present state, without a transaction and without waiting for one.
	// Two equal versions mean that no write was completed in between.
	Version(ctx context.Context) (Version, error)

	// Lock waits for the named lock, which one caller of all processes has at a time,
	// until it calls unlock, its process ends, or the lock is lost, which an engine on
	// another machine cannot rule out: held, which derives from ctx, ends before another
	// caller can have it. A name has only letters, digits, -, _ and dots.
	Lock(ctx context.Context, name string) (held context.Context, unlock func(), err error)

	// Changes remembers the present state. wait returns nil once there may have
	// been a write since, and the error of its context when that ends first.
	Changes() (wait func(ctx context.Context) error)

	// Check reads everything and returns the first fault in the engine's own
	// structure. Writers wait meanwhile.
	Check(ctx context.Context) error

	// Path is the place of the records, for errors: a file, or an address without secrets.
	Path() string
}

// Version is comparable; the zero Version equals no other.
type Version struct{ File, Seq, Sum uint64 }

// Tx is a transaction. It is valid until the function it was lent to returns, and in
// one goroutine. Bytes that go in or come out belong to the caller. After an error
// nothing is committed, whatever the function returns.
type Tx interface {
	// Get returns the value, or nil where the record does not exist. An empty value is not nil.
	Get(bucket string, key []byte) ([]byte, error)

	// Put sets the value of a key that is not empty.
	Put(bucket string, key, value []byte) error

	// Delete removes the record, if it exists.
	Delete(bucket string, key []byte) error

	// Scan returns up to limit records of a range in its order.
	Scan(bucket string, r Range, limit int) ([]Record, error)

	// Buckets returns the names of the buckets that hold a record, sorted. It may return
	// some that held one.
	Buckets() ([]string, error)
}

// Record is a key with its value.
type Record struct{ Key, Value []byte }

// Range is the records from From, included, to To, excluded. A nil bound is open.
type Range struct {
	From, To []byte
	Reverse  bool // from the last to the first
}

// Prefix is the range of the keys that begin with prefix.
func Prefix(prefix []byte) Range { return Range{From: prefix, To: prefixEnd(prefix)} }

// prefixEnd is the first key after all that begin with prefix; nil if there is no such key.
func prefixEnd(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			end := append([]byte(nil), prefix[:i+1]...)
			end[i]++
			return end
		}
	}
	return nil
}

// page is how many records Each reads at once.
const page = 64

// Each walks a range, some records at a time. Records may be changed during the walk: it
// goes on after the last record. It ends after an error.
func Each(t Tx, bucket string, r Range) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for n := 8; ; n = page {
			list, err := t.Scan(bucket, r, n)
			for _, record := range list {
				if !yield(record, nil) {
					return
				}
			}
			if err != nil {
				yield(Record{}, err)
				return
			}
			if len(list) < n {
				return
			}
			last := list[len(list)-1].Key
			if r.Reverse {
				r.To = last
			} else {
				r.From = append(append([]byte(nil), last...), 0)
			}
		}
	}
}
