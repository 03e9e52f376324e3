package vault

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault/kv"
)

// draftsBucket holds the drafts that each principal wrote: by account and principal a list of
// mailboxes and references, the newest last. An account that leads elsewhere by now has drafts
// of other people under the same references.
const draftsBucket = "drafts"

// maxDrafts bounds the drafts that are remembered of a principal in an account.
const maxDrafts = 500

func draftsKey(account, principal string) []byte { return []byte(account + "\x00" + principal) }

func draftIn(mailbox string, ref mail.Ref) string { return mailbox + " " + ref.String() }

// NoteDraft keeps that a principal wrote a draft in a mailbox, see Account.Mailbox and
// mail.DraftStore.
func (v *Vault) NoteDraft(ctx context.Context, principal, mailbox string, ref mail.Ref) error {
	return v.Update(ctx, func(tx kv.Tx) error {
		key := draftsKey(ref.Account, principal)
		record, err := tx.Get(draftsBucket, key)
		if err != nil {
			return err
		}
		refs, err := parseDrafts(ref.Account, record)
		if err != nil {
			return err
		}
		refs = append(refs, draftIn(mailbox, ref))
		if record, err = json.Marshal(refs[max(0, len(refs)-maxDrafts):]); err != nil {
			return err
		}
		return tx.Put(draftsBucket, key, record)
	})
}

// DraftWriters returns which principal wrote each of some drafts of one account's mailbox,
// empty where that is not known.
func (v *Vault) DraftWriters(ctx context.Context, mailbox string, refs []mail.Ref) (principals []string, err error) {
	principals = make([]string, len(refs))
	if len(refs) == 0 {
		return principals, nil
	}
	err = v.View(ctx, func(tx kv.Tx) error {
		prefix := draftsKey(refs[0].Account, "")
		for r, err := range kv.Each(tx, draftsBucket, kv.Prefix(prefix)) {
			if err != nil {
				return err
			}
			known, err := parseDrafts(refs[0].Account, r.Value)
			if err != nil {
				return err
			}
			for i, ref := range refs {
				if slices.Contains(known, draftIn(mailbox, ref)) {
					principals[i] = string(r.Key[len(prefix):])
				}
			}
		}
		return nil
	})
	return principals, err
}

func parseDrafts(account string, record []byte) (refs []string, err error) {
	if record != nil && json.Unmarshal(record, &refs) != nil {
		err = fmt.Errorf("%w: the drafts of account %s", ErrDamaged, account)
	}
	return refs, err
}
