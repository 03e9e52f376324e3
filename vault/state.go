package vault

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
)

const (
	maxStateKey   = 4096
	maxStateValue = 16 << 20
)

var bucketName = regexp.MustCompile(`\A[a-z0-9][a-z0-9._-]{0,63}\z`)

// Tx is a transaction over the state of other packages: what was seen, what
// waits to be sent, the agent mailbox, tokens that a provider rotates. State is
// sealed like everything else, but it is not policy: any key that opens the vault
// may write it, and nothing signs it.
//
// A Tx and what comes from it are valid only until the callback it was lent to
// returns, and in its goroutine only. Bytes it returns belong to the caller.
type Tx struct {
	t      *transaction
	broken error // bbolt gave up under way, and nothing may be committed
}

// View lends a transaction that reads one consistent moment. Other readers go on
// meanwhile and writers wait, so fn must be short, must not wait for the network,
// and must not call the Vault, which would wait for itself.
func (v *Vault) View(ctx context.Context, fn func(*Tx) error) error {
	return v.view(ctx, func(t *transaction) error {
		return lend(t, fn)
	})
}

// Update lends a transaction that reads and writes. All of it is durable when
// Update returns nil, and nothing of it happened otherwise; a panic in fn passes
// through and counts as an error. What is said of View's fn holds, and everybody
// else waits meanwhile.
func (v *Vault) Update(ctx context.Context, fn func(*Tx) error) error {
	return v.update(ctx, func(t *transaction) error {
		return lend(t, fn)
	})
}

func lend(t *transaction, fn func(*Tx) error) error {
	tx := &Tx{t: t}
	if err := callerCode(func() error { return fn(tx) }); err != nil {
		return err
	}
	return tx.broken
}

// Bucket returns the named set of records, empty until something is put there.
// A name is 1 to 64 of a-z, 0-9, dot, hyphen and underscore, and begins with a
// letter or digit; with any other name every method of the Bucket returns an
// error.
func (tx *Tx) Bucket(name string) *Bucket {
	b := &Bucket{tx: tx, name: statePrefix + name}
	if !bucketName.MatchString(name) {
		b.err = fmt.Errorf("%w: no name for a bucket", ErrInvalid)
		return b
	}
	b.err = b.do(func() error {
		b.bolt = tx.t.bucket(b.name)
		return nil
	})
	return b
}

// Bucket is one set of records, ordered by the bytes of their keys. Keys are
// 1 to 4096 bytes and lie in the file as they are; values are up to 16 MiB and
// are sealed.
type Bucket struct {
	tx   *Tx
	name string
	bolt *checkedBucket // nil while there is none
	err  error
}

// do runs what touches the file, whose damage must not look like the caller's
// panic.
func (b *Bucket) do(fn func() error) error {
	if b.err != nil {
		return b.err
	}
	returned := false
	err := guard(b.name, func() error {
		err := fn()
		returned = true
		return err
	})
	if !returned {
		b.tx.broken = err
	}
	return err
}

// Get returns the value, or nil when there is none. An empty value is not nil.
func (b *Bucket) Get(key []byte) (value []byte, err error) {
	err = b.do(func() error {
		if b.bolt == nil {
			return nil
		}
		sealed := b.bolt.Get(key)
		if sealed == nil {
			return nil
		}
		value, err = b.tx.t.values.open(b.name, key, sealed)
		return err
	})
	return value, err
}

// Put sets the value, in an Update only.
func (b *Bucket) Put(key, value []byte) error {
	return b.do(func() (err error) {
		if len(key) == 0 || len(key) > maxStateKey || len(value) > maxStateValue {
			return fmt.Errorf("%w: a record's key has 1 to %d bytes and its value up to %d", ErrInvalid, maxStateKey, maxStateValue)
		}
		if b.bolt == nil {
			if b.bolt, err = b.tx.t.makeBucket(b.name); err != nil {
				return err
			}
		}
		return b.bolt.Put(key, b.tx.t.values.seal(b.name, key, value))
	})
}

// Delete removes the record, in an Update only. It is no error when there is none.
func (b *Bucket) Delete(key []byte) error {
	return b.do(func() error {
		if b.bolt == nil {
			return nil
		}
		return b.bolt.Delete(key)
	})
}

// ForEach calls fn with every record whose key begins with prefix, in order, until
// fn returns an error, which it then returns. fn must not change the bucket. A nil
// prefix means every record.
func (b *Bucket) ForEach(prefix []byte, fn func(key, value []byte) error) error {
	c := b.Cursor()
	for key, value, err := c.Seek(prefix); ; key, value, err = c.Next() {
		if err != nil {
			return err
		}
		if key == nil || !bytes.HasPrefix(key, prefix) {
			return nil
		}
		if err := fn(key, value); err != nil {
			return err
		}
	}
}

// Cursor returns a cursor that stands nowhere. Changing the bucket while one is in
// use makes it undefined where it goes next.
func (b *Bucket) Cursor() *Cursor {
	c := &Cursor{b: b}
	_ = b.do(func() error {
		if b.bolt != nil {
			c.bolt = b.bolt.Cursor()
		}
		return nil
	})
	return c
}

// Cursor walks a bucket in the order of keys. Each method returns the record it
// moved to, or a nil key where there is none.
type Cursor struct {
	b    *Bucket
	bolt *checkedCursor
}

// First moves to the first record.
func (c *Cursor) First() (key, value []byte, err error) {
	return c.move(func() ([]byte, []byte) { return c.bolt.First() })
}

// Last moves to the last record.
func (c *Cursor) Last() (key, value []byte, err error) {
	return c.move(func() ([]byte, []byte) { return c.bolt.Last() })
}

// Next moves one record on.
func (c *Cursor) Next() (key, value []byte, err error) {
	return c.move(func() ([]byte, []byte) { return c.bolt.Next() })
}

// Prev moves one record back.
func (c *Cursor) Prev() (key, value []byte, err error) {
	return c.move(func() ([]byte, []byte) { return c.bolt.Prev() })
}

// Seek moves to the first record whose key is at or after key.
func (c *Cursor) Seek(key []byte) (found, value []byte, err error) {
	return c.move(func() ([]byte, []byte) { return c.bolt.Seek(key) })
}

func (c *Cursor) move(step func() ([]byte, []byte)) (key, value []byte, err error) {
	err = c.b.do(func() error {
		if c.bolt == nil {
			return nil
		}
		k, sealed := step()
		if k == nil {
			return nil
		}
		key = bytes.Clone(k)
		value, err = c.b.tx.t.values.open(c.b.name, key, sealed)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return key, value, nil
}
