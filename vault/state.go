package vault

import (
	"context"
	"strings"

	"github.com/postern-mail/postern/vault/kv"
)

// state is a kv.Tx over the state of other packages: acknowledged messages, the outbox, the
// agent mailbox, tokens that a provider rotates. State is sealed like everything else, but
// it is not policy: any key that opens the vault may write it, and nothing signs it.
//
// Keys and the names of buckets are not sealed in the file; values are.
type state struct{ t *transaction }

var _ kv.Tx = state{}

// View lends a transaction over state that reads one consistent moment. Other readers go
// on meanwhile and writers wait, so fn must be short, must not wait for the network, and
// must not call the Vault, which would deadlock.
func (v *Vault) View(ctx context.Context, fn func(kv.Tx) error) error {
	return v.view(ctx, func(t *transaction) error { return fn(state{t}) })
}

// Update lends a transaction over state that reads and writes. All changes are durable
// when Update returns nil, and none are kept otherwise; a panic in fn passes through and
// counts as an error. The rules for fn are those of View, and all other callers wait
// meanwhile.
func (v *Vault) Update(ctx context.Context, fn func(kv.Tx) error) error {
	return v.update(ctx, func(t *transaction) error { return fn(state{t}) })
}

func (s state) Get(bucket string, key []byte) ([]byte, error) {
	return s.t.get(statePrefix+bucket, key)
}

func (s state) Put(bucket string, key, value []byte) error {
	return s.t.put(statePrefix+bucket, key, value)
}

func (s state) Delete(bucket string, key []byte) error {
	return s.t.Delete(statePrefix+bucket, key)
}

func (s state) Scan(bucket string, r kv.Range, limit int) ([]kv.Record, error) {
	list, err := s.t.Scan(statePrefix+bucket, r, limit)
	for i := range list {
		if err == nil {
			list[i].Value, err = s.t.values.open(statePrefix+bucket, list[i].Key, list[i].Value)
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
