package vault

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault/kv"
)

var _ mail.SeenStore = (*Vault)(nil)

// seenBucket holds a mail.SeenState for each folder, by account and folder.
const seenBucket = "seen"

func seenKey(account, folder string) []byte { return []byte(account + "\x00" + folder) }

// Seen implements mail.SeenStore.
func (v *Vault) Seen(ctx context.Context, account, folder string) (s mail.SeenState, err error) {
	err = v.View(ctx, func(tx kv.Tx) error {
		s, err = readSeen(tx, account, folder)
		return err
	})
	return s, err
}

func readSeen(tx kv.Tx, account, folder string) (s mail.SeenState, err error) {
	record, err := tx.Get(seenBucket, seenKey(account, folder))
	if err != nil || record == nil {
		return s, err
	}
	if err := json.Unmarshal(record, &s); err != nil {
		return s, fmt.Errorf("%w: the state of a folder of account %s: %w", ErrDamaged, account, err)
	}
	return s, nil
}

// UpdateSeen implements mail.SeenStore.
func (v *Vault) UpdateSeen(ctx context.Context, account, folder string, change func(*mail.SeenState) error) error {
	return v.Update(ctx, func(tx kv.Tx) error {
		s, err := readSeen(tx, account, folder)
		if err != nil {
			return err
		}
		if err := change(&s); err != nil {
			return err
		}
		record, err := json.Marshal(s)
		if err != nil {
			return err
		}
		return tx.Put(seenBucket, seenKey(account, folder), record)
	})
}

// dropOf forgets every record of an account in a bucket whose keys begin with accounts.
func dropOf(t *transaction, bucket, account string) error {
	for record, err := range kv.Each(state{t}, bucket, kv.Prefix([]byte(account+"\x00"))) {
		if err == nil {
			err = state{t}.Delete(bucket, record.Key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Key returns 32 bytes for one purpose of another package, the same for every
// process that opens this vault and of no use for any other purpose or vault.
func (v *Vault) Key(ctx context.Context, purpose string) ([]byte, error) {
	if err := v.Ready(ctx); err != nil {
		return nil, err
	}
	return keyedDigest(v.outerKey, []byte(purpose)), nil
}

// Changes is kv.Engine.Changes.
func (v *Vault) Changes(ctx context.Context) (wait func(context.Context) error, err error) {
	if err := v.Ready(ctx); err != nil {
		return nil, err
	}
	return v.engine.Changes(), nil
}

// Now is the vault's clock.
func (v *Vault) Now() time.Time {
	if !v.opened.Load() {
		return time.Now()
	}
	return v.now()
}
