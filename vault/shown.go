package vault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault/kv"
)

// shownBucket holds a Shown for each principal.
const shownBucket = "shown"

// Shown is what the short message ids of one principal mean: under which UIDVALIDITY each
// folder was last shown to it. The zero Shown is that of a principal that was shown
// nothing.
type Shown struct {
	Folders map[string]ShownFolder `json:"folders,omitempty"` // by account, a colon and the folder's name; by nothing, the account that ids without one are of, as a Mailbox
}

// ShownFolder is a folder as it was last shown.
type ShownFolder struct {
	Mailbox     string    `json:"mailbox"` // protocol, server and user
	UIDValidity uint32    `json:"uidvalidity"`
	Time        time.Time `json:"time"`             // when that was written down, at most a day before the last showing
	Changed     time.Time `json:"changed,omitzero"` // when it was first shown with another Mailbox or UIDValidity than before; zero if it never was
}

func shownKey(principal string) []byte { return []byte("principal " + principal) }

// Shown returns what was shown to a principal, by any process.
func (v *Vault) Shown(ctx context.Context, principal string) (s Shown, err error) {
	err = v.View(ctx, func(tx kv.Tx) error {
		s, err = readShown(tx, principal)
		return err
	})
	return s, err
}

// UpdateShown lends what was shown to a principal, and where change reports that it changed
// something keeps what it leaves, in one transaction. change must be short and must not
// call the Vault.
func (v *Vault) UpdateShown(ctx context.Context, principal string, change func(*Shown) (changed bool)) error {
	err := v.Update(ctx, func(tx kv.Tx) error {
		s, err := readShown(tx, principal)
		if err != nil {
			return err
		}
		if !change(&s) {
			return errNothing
		}
		record, err := json.Marshal(s)
		if err != nil {
			return err
		}
		return tx.Put(shownBucket, shownKey(principal), record)
	})
	if errors.Is(err, errNothing) {
		return nil
	}
	return err
}

func readShown(tx kv.Tx, principal string) (s Shown, err error) {
	record, err := tx.Get(shownBucket, shownKey(principal))
	if record == nil && err == nil && principal == mail.PersonPrincipal { // who had the agent's name before
		record, err = tx.Get(shownBucket, shownKey(mail.AgentPrincipal))
	}
	if err != nil || record == nil {
		return s, err
	}
	if err := json.Unmarshal(record, &s); err != nil {
		return s, fmt.Errorf("%w: what was shown to a principal: %w", ErrDamaged, err)
	}
	return s, nil
}
