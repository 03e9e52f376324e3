package vault

import (
	"context"
	"fmt"
	"strings"

	bolt "go.etcd.io/bbolt"
)

// Check reads the whole vault and returns the first fault: a page out of place, a
// policy that does not verify, a record that does not open. It does not walk the
// audit chain, see VerifyAudit. Writers wait meanwhile.
func (v *Vault) Check(ctx context.Context) error {
	if err := v.file.check(ctx); err != nil {
		return err
	}
	return v.view(ctx, func(t *transaction) error {
		// Not through the cache, which would vouch for records it no longer reads.
		if _, err := v.verifyPolicy(t, t.manifest()); err != nil {
			return err
		}
		return t.bolt.ForEach(func(name []byte, _ *bolt.Bucket) error {
			switch bucket := string(name); {
			case bucket == bucketHeaders:
				return nil
			case !knownBucket(bucket):
				return fmt.Errorf("%w: it holds a bucket that is none of its own", ErrDamaged)
			default:
				return t.each(bucket, func(_, value []byte) error {
					clear(value)
					return nil
				})
			}
		})
	})
}

func knownBucket(name string) bool {
	switch name {
	case bucketPolicy, bucketAccounts, bucketSecrets, bucketSettings, bucketGrants, bucketAudit, bucketChain, bucketLimits:
		return true
	}
	return strings.HasPrefix(name, statePrefix)
}
