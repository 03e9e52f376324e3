package vault

import (
	"context"
	"fmt"
	"strings"
)

// Check reads the whole vault and returns the first fault: a page out of place, a
// policy that does not verify, a record that does not open. It does not walk the
// audit chain, see VerifyAudit. Writers wait meanwhile.
func (v *Vault) Check(ctx context.Context) error {
	if err := v.Ready(ctx); err != nil {
		return err
	}
	if err := v.engine.Check(ctx); err != nil {
		return err
	}
	return v.view(ctx, func(t *transaction) error {
		// Not through the cache, which would answer for records it no longer reads.
		if _, err := v.verifyPolicy(t); err != nil {
			return err
		}
		if err := v.checkSums(t); err != nil {
			return err
		}
		names, err := t.Buckets()
		if err != nil {
			return err
		}
		for _, bucket := range names {
			if bucket == bucketHeaders {
				continue
			}
			if !knownBucket(bucket) {
				return fmt.Errorf("%w: it holds a bucket that is not its own", ErrDamaged)
			}
			if err := t.each(bucket, func(_, value []byte) error {
				clear(value)
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

func knownBucket(name string) bool {
	switch name {
	case bucketPolicy, bucketAccounts, bucketSecrets, bucketSettings, bucketGrants, bucketHeads, bucketResumed, bucketAudit, bucketChain, bucketLimits, bucketSums:
		return true
	}
	return strings.HasPrefix(name, statePrefix)
}
