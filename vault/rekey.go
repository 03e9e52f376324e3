package vault

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/postern-mail/postern/vault/kv"
)

// Rekey gives the vault at path new keys and a new data key. now are its present keys,
// next the new ones; a zero key of next leaves the present one. Every record is sealed
// again in a new file, which takes the place of the old one all at once: at any moment
// exactly the present or the new keys open it, and nothing that a former key opens is left
// in it. Others wait meanwhile, and open it again then (see Lazy); a Vault made by Open
// gives ErrRekeyed.
//
// The policy keeps its signing key, and names and digests keep theirs, so that pins,
// grants, limits and the audit chain hold.
//
// Errors match ErrNoKey, ErrBadKey, or those of Open for the keys of now.
func Rekey(ctx context.Context, path string, now, next Keys) error {
	keepsAgent := next.Agent.IsZero()
	if keepsAgent {
		next.Agent = now.Agent
	}
	if next.Admin.IsZero() {
		next.Admin = now.Admin
	}
	if err := next.both("rekeying a vault"); err != nil {
		return err
	}
	kind, err := kindOf(path)
	if err != nil {
		return err
	}
	engine, err := kind.at(ctx, path)
	if err != nil {
		return err
	}
	if _, err = engine.Replace(ctx, func(old kv.Tx, put func(bucket string, key, value []byte) error) error {
		return rekey(old, put, now, next, keepsAgent, kind.foreign)
	}); err != nil {
		return fmt.Errorf("vault %s: %w", engine.Path(), err)
	}
	return nil
}

func rekey(old kv.Tx, put func(bucket string, key, value []byte) error, now, next Keys, keepsAgent, withSums bool) error {
	h, err := readHeader(old)
	if err != nil {
		return err
	}
	admin, err := decodeKey(now.Admin, AdminKeyVar)
	if err != nil {
		return err
	}
	defer clear(admin)
	data, err := h.openSlot(slotAdmin, admin)
	if err != nil {
		return err
	}
	defer clear(data)
	private, err := h.openSigner(admin)
	if err != nil {
		return err
	}
	defer clear(private)
	if keepsAgent { // a key that opens nothing now must not open the vault afterwards
		agent, err := decodeKey(now.Agent, AgentKeyVar)
		if err != nil {
			return err
		}
		defer clear(agent)
		same, err := h.openSlot(slotAgent, agent)
		if err != nil {
			return err
		}
		clear(same)
	}
	from, err := derivedSealer(data, h.id, purposeValues)
	if err != nil {
		return err
	}
	root, err := h.openRoot(data, from)
	if err != nil {
		return err
	}
	defer clear(root)
	fresh := make([]byte, keySize)
	_, _ = rand.Read(fresh) // it never fails
	defer clear(fresh)
	to, err := derivedSealer(fresh, h.id, purposeValues)
	if err != nil {
		return err
	}
	if err := writeHeader(func(name string, value []byte) error { return put(bucketHeaders, []byte(name), value) }, next, h.id, fresh, private.Seed(), root); err != nil {
		return err
	}
	sums, err := freshSums(nil, to, root, h.id)
	if err != nil {
		return err
	}
	names, err := old.Buckets()
	if err != nil {
		return err
	}
	for _, bucket := range names {
		if bucket == bucketHeaders || bucket == bucketSums {
			continue
		}
		t := &transaction{Tx: old, dataKeys: &dataKeys{values: from}}
		if err := t.each(bucket, func(key, value []byte) error {
			defer clear(value)
			sealed := to.seal(bucket, key, value)
			sums.of(bucket).add(sumDigest(sums.key, bucket, key, sealed))
			return put(bucket, key, sealed)
		}); err != nil {
			return err
		}
	}
	if !withSums {
		return nil
	}
	before, err := readSums(old, from)
	if err != nil {
		return err
	}
	sums.of(countWrites).Records = written(before) + 1
	record, err := sums.record()
	if err != nil {
		return err
	}
	return put(bucketSums, sumsKey, record)
}
