package vault

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault/kv"
)

// Who administers a database that holds a vault can put back a record as it was before,
// exchange two rows of different times, or take one away: each is sealed well. So a vault in
// a database keeps, sealed in one record, for each bucket how many records it has and the sum
// of their keyed digests, which changes with each write of whoever has a key. A file has no
// such administrator: who can write it is who runs Postern.
//
// Check compares everything. What a message's leaving depends on is compared before it leaves,
// and the idempotency keys before one more is used.
// A whole database that is put back is consistent. So the sums also count the writes, as the
// records of a bucket without a name, and a process refuses to write after fewer than it has
// seen, and to begin after fewer than its machine has seen, see mark.go; the engine's own number
// is not sealed.
const (
	bucketSums  = "sums"
	purposeSums = "record sums"
	countWrites = ""
)

var sumsKey = []byte("sums")

// leaving are the buckets on which depends whether and how often a message leaves. All have
// few records: whether its own entry is the newest is told by its outboxSize.
var leaving = []string{bucketPolicy, bucketResumed, bucketLimits, statePrefix + outboxSizes}

// mayLeave refuses what would leave behind the transaction while everything is stopped, or where
// what that depends on is not what was written last.
func (v *Vault) mayLeave(t *transaction, o *mail.Outgoing) error {
	if err := v.mayBegin(t); err != nil || !v.kind.foreign {
		return err
	}
	t.leaves = true
	depends := leaving
	if o.Unasked != "" { // few do, for which others of the last hour were counted
		depends = append(slices.Clip(depends), statePrefix+outboxEntries)
	}
	if err := newest(state{t}, o.ID); err != nil {
		return err
	}
	return v.checkSums(t, depends...)
}

// Idempotency keys are kept for months. While there are more of them than manyKeys, a process
// compares them once in keysEvery.
const (
	manyKeys  = 1000
	keysEvery = time.Minute
)

// checkKeys finds that an idempotency key was taken away, whose message would leave again. No
// writer waits for it.
func (v *Vault) checkKeys(ctx context.Context) error {
	if !v.kind.foreign {
		return nil
	}
	return v.view(ctx, func(t *transaction) error {
		sums, err := readSums(t, t.values)
		if err != nil {
			return err
		}
		const keys = statePrefix + outboxKeys
		now, last := v.now().UnixNano(), v.keysCompared.Load()
		if s := sums[keys]; s != nil && s.Records > manyKeys && now-last < int64(keysEvery) {
			return nil
		}
		if err = v.checkSums(t, keys); err == nil {
			v.keysCompared.Store(now)
		}
		return err
	})
}

// bucketSum is the state of one bucket: a sum of digests without carry out of 256 bits, which
// does not depend on their order.
type bucketSum struct {
	Records int64     `json:"n"`
	Sum     [4]uint64 `json:"s"` // the lowest digits first
}

func (b *bucketSum) add(digest []byte) {
	var carry uint64
	for i := range b.Sum {
		b.Sum[i], carry = bits.Add64(b.Sum[i], binary.BigEndian.Uint64(digest[8*i:]), carry)
	}
	b.Records++
}

func (b *bucketSum) remove(digest []byte) {
	var borrow uint64
	for i := range b.Sum {
		b.Sum[i], borrow = bits.Sub64(b.Sum[i], binary.BigEndian.Uint64(digest[8*i:]), borrow)
	}
	b.Records--
}

// summing is a kv.Tx that keeps the sums of what is written through it.
type summing struct {
	kv.Tx
	values *sealer
	key    []byte // of the digests
	sums   map[string]*bucketSum
	dirty  bool
}

// newSumming continues the sums of a vault.
func newSumming(t kv.Tx, values *sealer, key []byte) (*summing, error) {
	sums, err := readSums(t, values)
	return &summing{Tx: t, values: values, key: key, sums: sums}, err
}

// freshSums begins the sums of a new vault, from whose root their key derives.
func freshSums(t kv.Tx, values *sealer, root, id []byte) (*summing, error) {
	key, err := derive(root, id, purposeSums)
	return &summing{Tx: t, values: values, key: key, sums: map[string]*bucketSum{}}, err
}

func readSums(t kv.Tx, values *sealer) (sums map[string]*bucketSum, err error) {
	sealed, err := t.Get(bucketSums, sumsKey)
	if err != nil {
		return nil, err
	}
	if sealed == nil {
		return nil, fmt.Errorf("%w: the sums of its records are missing", ErrDamaged)
	}
	plain, err := values.open(bucketSums, sumsKey, sealed)
	if err == nil && json.Unmarshal(plain, &sums) != nil {
		err = fmt.Errorf("%w: the sums of its records are unreadable", ErrDamaged)
	}
	return sums, err
}

func written(sums map[string]*bucketSum) int64 {
	if n := sums[countWrites]; n != nil {
		return n.Records
	}
	return 0
}

// later refuses sums of fewer writes than this process had seen before it asked for them.
func (v *Vault) later(before int64, sums map[string]*bucketSum) error {
	if now := written(sums); now < before {
		err := fmt.Errorf("%w: %s from its write %d to %d", ErrWentBack, v.engine.Path(), before, now)
		if v.marks != "" {
			err = v.errMark(err)
		}
		return err
	}
	return nil
}

// sawWrites remembers the greatest number of writes that was seen.
func (v *Vault) sawWrites(n int64) {
	for {
		seen := v.writes.Load()
		if n <= seen || v.writes.CompareAndSwap(seen, n) {
			return
		}
	}
}

func sumDigest(key []byte, bucket string, record, sealed []byte) []byte {
	return keyedDigest(key, []byte(bucket), record, sealed)
}

func (s *summing) Put(bucket string, key, value []byte) error {
	return errors.Join(s.change(bucket, key, value), s.Tx.Put(bucket, key, value))
}

func (s *summing) Delete(bucket string, key []byte) error {
	return errors.Join(s.change(bucket, key, nil), s.Tx.Delete(bucket, key))
}

func (s *summing) change(bucket string, key, value []byte) error {
	if bucket == bucketHeaders {
		return nil
	}
	before, err := s.Tx.Get(bucket, key)
	if err != nil {
		return err
	}
	if before != nil {
		s.of(bucket).remove(sumDigest(s.key, bucket, key, before))
	}
	if value != nil {
		s.of(bucket).add(sumDigest(s.key, bucket, key, value))
	}
	return nil
}

func (s *summing) of(bucket string) *bucketSum {
	s.dirty = true
	b := s.sums[bucket]
	if b == nil {
		b = &bucketSum{}
		s.sums[bucket] = b
	}
	return b
}

// keep writes the sums; it is the last write of a transaction.
func (s *summing) keep() error {
	if !s.dirty {
		return nil
	}
	s.of(countWrites).Records++
	record, err := s.record()
	if err != nil {
		return err
	}
	return s.Tx.Put(bucketSums, sumsKey, record)
}

func (s *summing) record() ([]byte, error) {
	plain, err := json.Marshal(s.sums)
	return s.values.seal(bucketSums, sumsKey, plain), err
}

// checkSums compares the records of some buckets, or of all, with their sums. A vault in a
// file has none.
func (v *Vault) checkSums(t *transaction, buckets ...string) error {
	if !v.kind.foreign {
		return nil
	}
	var sums map[string]*bucketSum
	var err error
	if s, ok := t.Tx.(*summing); ok {
		sums = s.sums
	} else if sums, err = readSums(t, t.values); err == nil {
		err = v.later(t.writes, sums)
	}
	if err != nil {
		return err
	}
	if buckets == nil {
		if buckets, err = t.Buckets(); err != nil {
			return err
		}
		buckets = slices.Compact(slices.Sorted(slices.Values(append(buckets, slices.Collect(maps.Keys(sums))...))))
	}
	for _, bucket := range buckets {
		if bucket == bucketHeaders || bucket == bucketSums || bucket == countWrites {
			continue
		}
		var now bucketSum
		for r, err := range kv.Each(t, bucket, kv.Range{}) {
			if err != nil {
				return err
			}
			now.add(sumDigest(v.sumKey, bucket, r.Key, r.Value))
		}
		kept := sums[bucket]
		if kept == nil {
			kept = &bucketSum{}
		}
		if now != *kept {
			return fmt.Errorf("%w: the records of %s are not those that were written last: one was put back, exchanged or taken away (%d records, %d were written)", ErrDamaged, bucket, now.Records, kept.Records)
		}
	}
	return nil
}
