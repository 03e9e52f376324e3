package vault

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/postern-mail/postern/vault/kv"
)

const (
	maxStateKey   = 4096
	maxStateValue = 16 << 20
)

var bucketName = regexp.MustCompile(`\A[a-z0-9][a-z0-9._-]{0,63}\z`)

// state is a kv.Tx over the state of other packages: what was seen, what waits to be
// sent, the agent mailbox, tokens that a provider rotates. State is sealed like
// everything else, but it is not policy: any key that opens the vault may write it, and
// nothing signs it.
//
// A bucket has a name of 1 to 64 of a-z, 0-9, dot, hyphen and underscore, which begins
// with a letter or digit. Keys are 1 to 4096 bytes and lie in the file as they are;
// values are up to 16 MiB and are sealed.
type state struct{ t *transaction }

var _ kv.Tx = state{}

// View lends a transaction over state that reads one consistent moment. Other readers go
// on meanwhile and writers wait, so fn must be short, must not wait for the network,
// and must not call the Vault, which would wait for itself.
func (v *Vault) View(ctx context.Context, fn func(kv.Tx) error) error {
	return v.view(ctx, func(t *transaction) error { return fn(state{t}) })
}

// Update lends a transaction over state that reads and writes. All of it is durable
// when Update returns nil, and nothing of it happened otherwise; a panic in fn passes
// through and counts as an error. What is said of View's fn holds, and everybody
// else waits meanwhile.
func (v *Vault) Update(ctx context.Context, fn func(kv.Tx) error) error {
	return v.update(ctx, func(t *transaction) error { return fn(state{t}) })
}

func stateBucket(name string) (string, error) {
	if !bucketName.MatchString(name) {
		return "", fmt.Errorf("%w: a bucket cannot have this name", ErrInvalid)
	}
	return statePrefix + name, nil
}

func (s state) Get(bucket string, key []byte) ([]byte, error) {
	name, err := stateBucket(bucket)
	if err != nil {
		return nil, err
	}
	return s.t.get(name, key)
}

func (s state) Put(bucket string, key, value []byte) error {
	name, err := stateBucket(bucket)
	if err == nil && (len(key) == 0 || len(key) > maxStateKey || len(value) > maxStateValue) {
		err = fmt.Errorf("%w: a record's key has 1 to %d bytes and its value up to %d", ErrInvalid, maxStateKey, maxStateValue)
	}
	if err != nil {
		return err
	}
	return s.t.put(name, key, value)
}

func (s state) Delete(bucket string, key []byte) error {
	name, err := stateBucket(bucket)
	if err != nil {
		return err
	}
	return s.t.Delete(name, key)
}

func (s state) Scan(bucket string, r kv.Range, limit int) ([]kv.Record, error) {
	name, err := stateBucket(bucket)
	if err != nil {
		return nil, err
	}
	list, err := s.t.Scan(name, r, limit)
	for i := range list {
		if err == nil {
			list[i].Value, err = s.t.values.open(name, list[i].Key, list[i].Value)
		}
	}
	if err != nil {
		return nil, err
	}
	return list, nil
}

func (s state) Buckets() (names []string, err error) {
	all, err := s.t.Buckets()
	for _, name := range all {
		if own, ok := strings.CutPrefix(name, statePrefix); ok {
			names = append(names, own)
		}
	}
	return names, err
}
