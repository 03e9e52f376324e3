package vault

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/postern-mail/postern/vault/kv"
)

// A vault that was moved, or is not whole yet, has the format movedFormat and a record that
// tells its own format and, in words, what happened. No version opens it.
const (
	movedFormat = 3
	keyMoved    = "moved"
	keyFormat   = "format"
)

// unfinished is the text of a copy before it takes the place of its source.
const unfinished = "this copy was not finished; 'postern vault copy' with the same two places does so"

// movedBody is bytes as they are stored.
func movedBody(format []byte, text string) []byte {
	return append(bytes.Clone(format), text...)
}

// movedError is the error of a header of movedFormat.
func movedError(fields map[string][]byte) error {
	if body := fields[keyMoved]; len(body) > 4 {
		return fmt.Errorf("%w: %s", ErrMoved, body[4:])
	}
	return fmt.Errorf("%w: its header is incomplete", ErrDamaged)
}

// Copy moves a vault, with everything in it and the same keys, to a place that has none, and
// verifies it record by record. The source is left as it was, but says where it was moved
// to and opens no more: at no moment do both open. What uses the vault waits meanwhile.
// After an interruption the same Copy goes on. It needs the administrator's key.
//
// Errors match ErrExists where the destination has another vault, or those of Open.
func Copy(ctx context.Context, from, to string, k Keys) (records int, err error) {
	source, err := engineAt(ctx, from)
	if err != nil {
		return 0, err
	}
	id, done, err := whose(ctx, source)
	if err != nil {
		return 0, err
	}
	var v *Vault
	if !done {
		if v, err = Open(ctx, from, Keys{Admin: k.Admin}, nil); err != nil {
			return 0, err
		}
		if err := v.Check(ctx); err != nil {
			return 0, err
		}
	}
	destination, err := engineAt(ctx, to)
	if err == nil {
		there, _, err := whose(ctx, destination)
		if err != nil {
			return 0, err
		}
		if _, err := Open(ctx, to, Keys{Admin: k.Admin}, nil); !bytes.Equal(there, id) || !errors.Is(err, ErrMoved) {
			return 0, fmt.Errorf("%w: %s has a vault", ErrTaken, Described(to))
		}
	} else if !errors.Is(err, ErrNoVault) {
		return 0, err
	} else if done {
		return 0, fmt.Errorf("vault %s: %w", source.Path(), ErrMoved)
	} else {
		destination = nil
	}
	if !done {
		if destination, records, err = copyTo(ctx, v, id, destination, to); err != nil {
			return 0, err
		}
	}
	// The source opens no more. From here on the destination does.
	if _, err = destination.Transact(ctx, true, func(t kv.Tx) error {
		body, err := t.Get(bucketHeaders, []byte(keyMoved))
		if err != nil || len(body) < 4 || string(body[4:]) != unfinished {
			return errors.Join(err, fmt.Errorf("%w: %s", ErrMoved, destination.Path()))
		}
		return errors.Join(t.Put(bucketHeaders, []byte(keyFormat), body[:4]), t.Delete(bucketHeaders, []byte(keyMoved)))
	}); err != nil {
		return 0, err
	}
	_, err = Open(ctx, to, Keys{Admin: k.Admin}, nil)
	return records, err
}

// whose returns the id of the vault in an engine, and whether it was moved.
func whose(ctx context.Context, e kv.Engine) (id []byte, moved bool, err error) {
	_, err = e.Transact(ctx, false, func(t kv.Tx) error {
		id, moved, err = whoseIn(t)
		return err
	})
	return id, moved, err
}

func whoseIn(t kv.Tx) (id []byte, moved bool, err error) {
	body, err := t.Get(bucketHeaders, []byte(keyMoved))
	if err == nil {
		id, err = t.Get(bucketHeaders, []byte("id"))
	}
	if err == nil && len(id) != idSize {
		err = fmt.Errorf("%w: its header is incomplete", ErrDamaged)
	}
	return id, body != nil, err
}

// still returns an error unless a vault is the one with the id, and was moved or not.
func still(t kv.Tx, id []byte, moved bool) error {
	now, is, err := whoseIn(t)
	if err == nil && (!bytes.Equal(now, id) || is != moved) {
		err = fmt.Errorf("%w: another program copies it, too", ErrBusy)
	}
	return err
}

// copyTo makes the unfinished destination, in the place of a copy that was moved or not finished
// if there is one, and marks the source as moved once both are the same: all that in one
// transaction of the source, so that of two copies at once one finds it moved.
func copyTo(ctx context.Context, v *Vault, id []byte, there kv.Engine, to string) (destination kv.Engine, records int, err error) {
	kind, err := kindOf(to)
	if err != nil {
		return nil, 0, err
	}
	_, err = v.engine.Transact(ctx, true, func(old kv.Tx) error {
		if err := still(old, id, false); err != nil {
			return err
		}
		format, err := old.Get(bucketHeaders, []byte(keyFormat))
		if err != nil {
			return err
		}
		moved := binary.BigEndian.AppendUint32(nil, movedFormat)
		writes := int64(0)
		fill := func(put func(bucket string, key, value []byte) error) error {
			sums := &summing{values: v.keys.Load().values, key: v.sumKey, sums: map[string]*bucketSum{}}
			for r, err := range everything(old) {
				if err == nil {
					err = put(r.bucket, r.Key, r.Value)
				}
				if err != nil {
					return err
				}
				if records++; kind.foreign && r.bucket != bucketHeaders {
					sums.of(r.bucket).add(sumDigest(v.sumKey, r.bucket, r.Key, r.Value))
				}
			}
			if kind.foreign {
				sums.of(countWrites).Records = writes
				record, err := sums.record()
				if err = errors.Join(err, put(bucketSums, sumsKey, record)); err != nil {
					return err
				}
			}
			return errors.Join(put(bucketHeaders, []byte(keyFormat), moved), put(bucketHeaders, []byte(keyMoved), movedBody(format, unfinished)))
		}
		if destination = there; there == nil {
			created, err := kind.create(ctx, to, func(t kv.Tx) error { return fill(t.Put) })
			if err == nil && !created {
				err = fmt.Errorf("%w: %s has a vault", ErrTaken, Described(to))
			}
			if err == nil {
				destination, err = engineAt(ctx, to)
			}
			if err != nil {
				return err
			}
		} else if _, err := there.Replace(ctx, func(t kv.Tx, put func(bucket string, key, value []byte) error) error {
			if err := still(t, id, true); err != nil {
				return err
			}
			if was, err := readSums(t, v.keys.Load().values); err == nil { // in a database, and under this key
				writes = written(was) + 1
			}
			return fill(put)
		}); err != nil {
			return err
		}
		if err := same(ctx, old, destination); err != nil {
			return err
		}
		return errors.Join(old.Put(bucketHeaders, []byte(keyFormat), moved),
			old.Put(bucketHeaders, []byte(keyMoved), movedBody(format, "it was moved to "+destination.Path()+"; point POSTERN_DB there")))
	})
	return destination, records, err
}

// placed is a record of a bucket.
type placed struct {
	bucket string
	kv.Record
}

// everything walks all records but the marks of a copy, and the sums that only a database has.
func everything(t kv.Tx) iter.Seq2[placed, error] {
	return func(yield func(placed, error) bool) {
		names, err := t.Buckets()
		if err != nil {
			yield(placed{}, err)
			return
		}
		for _, bucket := range names {
			if bucket == bucketSums {
				continue
			}
			for r, err := range kv.Each(t, bucket, kv.Range{}) {
				if key := string(r.Key); err == nil && bucket == bucketHeaders && (key == keyFormat || key == keyMoved) {
					continue
				}
				if !yield(placed{bucket, r}, err) {
					return
				}
			}
		}
	}
}

// same compares everything with another engine.
func same(ctx context.Context, old kv.Tx, e kv.Engine) error {
	_, err := e.Transact(ctx, false, func(t kv.Tx) error {
		next, stop := iter.Pull2(everything(t))
		defer stop()
		for a, err := range everything(old) {
			b, errB, more := next()
			if err := errors.Join(err, errB); err != nil {
				return err
			}
			if !more || a.bucket != b.bucket || !bytes.Equal(a.Key, b.Key) || !bytes.Equal(a.Value, b.Value) {
				return fmt.Errorf("%w: the copy differs at %s/%s", ErrDamaged, a.bucket, printable(a.Key))
			}
		}
		if _, err, more := next(); more || err != nil {
			return errors.Join(err, fmt.Errorf("%w: the copy has more than its source", ErrDamaged))
		}
		return nil
	})
	return err
}
