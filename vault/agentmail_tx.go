package vault

import (
	"context"

	"github.com/postern-mail/postern/vault/kv"
)

// Tx is a transaction as the agent mailbox uses it.
type Tx struct{ t kv.Tx }

func (v *Vault) viewTx(ctx context.Context, fn func(*Tx) error) error {
	return v.View(ctx, func(t kv.Tx) error { return fn(&Tx{t}) })
}

func (v *Vault) updateTx(ctx context.Context, fn func(*Tx) error) error {
	return v.Update(ctx, func(t kv.Tx) error { return fn(&Tx{t}) })
}

// Bucket returns the named set of records.
func (tx *Tx) Bucket(name string) *Bucket { return &Bucket{tx.t, name} }

// Bucket is one set of records.
type Bucket struct {
	t    kv.Tx
	name string
}

// Get is kv.Tx.Get.
func (b *Bucket) Get(key []byte) ([]byte, error) { return b.t.Get(b.name, key) }

// Put is kv.Tx.Put.
func (b *Bucket) Put(key, value []byte) error { return b.t.Put(b.name, key, value) }

// Delete is kv.Tx.Delete.
func (b *Bucket) Delete(key []byte) error { return b.t.Delete(b.name, key) }

// ForEach calls fn with every record whose key begins with prefix, in order.
func (b *Bucket) ForEach(prefix []byte, fn func(key, value []byte) error) error {
	for r, err := range kv.Each(b.t, b.name, kv.Prefix(prefix)) {
		if err == nil {
			err = fn(r.Key, r.Value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Cursor walks forward.
func (b *Bucket) Cursor() *Cursor { return &Cursor{b: b} }

// Cursor walks a bucket in the order of keys.
type Cursor struct {
	b  *Bucket
	at []byte
}

// Seek moves to the first record whose key is at or after key.
func (c *Cursor) Seek(key []byte) (found, value []byte, err error) {
	list, err := c.b.t.Scan(c.b.name, kv.Range{From: key}, 1)
	if err != nil || len(list) == 0 {
		return nil, nil, err
	}
	c.at = list[0].Key
	return c.at, list[0].Value, nil
}

// Next moves one record on.
func (c *Cursor) Next() (key, value []byte, err error) {
	return c.Seek(append(c.at[:len(c.at):len(c.at)], 0))
}
