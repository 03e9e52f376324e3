package vault

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault/kv"
)



// The buckets of the journal.
const (
	journalChanges = "journal"       // by id: a mail.Change
	journalOwners  = "journal.of"    // by principal and id: nothing
	journalCounts  = "journal.count" // by principal: how many changes of theirs there are, 8 bytes
)

// maxJournal bounds the changes that are kept of a principal.
const maxJournal = 2000

func ownerKey(principal, id string) []byte { return []byte(principal + "\x00" + id) }

// BeginChange is that of mail.Journal for the principal that the change names.
func (v *Vault) BeginChange(ctx context.Context, c *mail.Change, unasked int) error {
	return v.Update(ctx, func(tx kv.Tx) error {
		now := v.now().UTC()
		begun := *c
		begun.ID, begun.Begun, begun.Ended = mail.NewID(now), now, time.Time{}
		n, err := changeCount(tx, c.Principal)
		if err != nil {
			return err
		}
		// Two for each that comes, so that a bound that was lowered is reached.
		oldest, err := tx.Scan(journalOwners, kv.Prefix(ownerKey(c.Principal, "")), 2)
		if err != nil {
			return err
		}
		for _, r := range oldest {
			_, id, _ := strings.Cut(string(r.Key), "\x00")
			old, err := readChange(tx, id)
			if err != nil {
				return err
			}
			if n < maxJournal && now.Sub(old.Begun) <= mail.JournalKept {
				break
			}
			if err := tx.Delete(journalOwners, r.Key); err != nil {
				return err
			}
			if err := tx.Delete(journalChanges, []byte(id)); err != nil {
				return err
			}
			n--
		}
		if err := tx.Put(journalOwners, ownerKey(c.Principal, begun.ID), nil); err != nil {
			return err
		}
		if err := tx.Put(journalCounts, []byte(c.Principal), uint64Bytes(n+1)); err != nil {
			return err
		}
		*c = begun
		return putChange(tx, c)
	})
}

func changeCount(tx kv.Tx, principal string) (uint64, error) {
	record, err := tx.Get(journalCounts, []byte(principal))
	switch {
	case err != nil || record == nil:
		return 0, err
	case len(record) != 8:
		return 0, fmt.Errorf("%w: the count of the journal", ErrDamaged)
	}
	return binary.BigEndian.Uint64(record), nil
}

func putChange(tx kv.Tx, c *mail.Change) error {
	record, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return tx.Put(journalChanges, []byte(c.ID), record)
}

func readChange(tx kv.Tx, id string) (mail.Change, error) {
	record, err := tx.Get(journalChanges, []byte(id))
	switch {
	case err != nil:
		return mail.Change{}, err
	case record == nil:
		return mail.Change{}, mail.ErrNoChange
	}
	return parseChange(id, record)
}

func parseChange(id string, record []byte) (c mail.Change, err error) {
	if err := json.Unmarshal(record, &c); err != nil || c.ID != id {
		return mail.Change{}, fmt.Errorf("%w: the change %s of the journal", ErrDamaged, printable([]byte(id)))
	}
	return c, nil
}

// AmendChange implements mail.Journal.
func (v *Vault) AmendChange(ctx context.Context, id string, amend func(*mail.Change) error) (c mail.Change, err error) {
	err = v.Update(ctx, func(tx kv.Tx) error {
		before, err := readChange(tx, id)
		if err != nil {
			return err
		}
		c = before
		if err := amend(&c); err != nil {
			return err
		}
		c.ID, c.Account, c.Principal, c.Begun = before.ID, before.Account, before.Principal, before.Begun
		return putChange(tx, &c)
	})
	if err != nil {
		return mail.Change{}, err
	}
	return c, nil
}

// ChangesMade implements mail.Journal.
func (v *Vault) ChangesMade(ctx context.Context, q mail.ChangeQuery) (list []mail.Change, err error) {
	limit := mail.MaxChanges
	if q.Limit > 0 {
		limit = min(limit, q.Limit)
	}
	err = v.View(ctx, func(tx kv.Tx) error {
		for r, err := range kv.Each(tx, journalChanges, kv.Range{Reverse: true}) {
			if err != nil {
				return err
			}
			c, err := parseChange(string(r.Key), r.Value)
			switch {
			case err != nil:
				return err
			case len(list) == limit, c.Begun.Before(q.Since.Add(-24 * time.Hour)): // clocks differ by less
				return nil
			case q.Matches(&c):
				list = append(list, c)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}
