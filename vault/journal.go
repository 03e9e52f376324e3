package vault

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault/kv"
)

// The buckets of the journal. What is said of a change without its messages stands twice beside
// it, so that changes are found and forgotten without reading them all.
const (
	journalChanges = "journal"       // by id: a mail.Change
	journalHeads   = "journal.heads" // by id: its journalHead
	journalOwners  = "journal.of"    // by principal and id: the same
	journalShares  = "journal.share" // by principal: a journalShare
)

// journalHead is what is said of a change without its messages. None of it ever changes.
type journalHead struct {
	Principal string    `json:"principal"`
	Account   string    `json:"account"`
	Of        string    `json:"of,omitempty"`
	Begun     time.Time `json:"begun"`
	Bytes     int64     `json:"bytes"` // that the change may take in the end
}

// journalShare is what a principal has of the journal, and what it changed last, which does not
// depend on what was forgotten.
type journalShare struct {
	Changes int        `json:"changes"`
	Bytes   int64      `json:"bytes"`
	Last    [][2]int64 `json:"last,omitempty"` // within mail.AskWithin: second since 1970, and messages that count
}

// The bounds of a principal's changes. It is forgotten first what was changed longest ago. But
// what a principal changed within journalHeld stays, so that nobody gets rid of it by changing
// much else: such a principal changes nothing more, which needs many times what
// changes_per_hour allows unless that was raised.
const (
	maxJournalChanges = 100_000
	maxJournalBytes   = 64 << 20
	journalHeld       = 24 * time.Hour
)

func ownerKey(principal, id string) []byte { return []byte(principal + "\x00" + id) }

// BeginChange is that of mail.Journal for the principal that the change names. The error is a
// *ShareFull where the principal's share is full of what it changed within a day.
func (v *Vault) BeginChange(ctx context.Context, c *mail.Change, unasked int) error {
	begun := *c
	err := v.Update(ctx, func(tx kv.Tx) error {
		now := v.now().UTC()
		begun.Begun, begun.Ended = now, time.Time{}
		var err error
		if begun.ID, err = nextChange(tx, now); err != nil {
			return err
		}
		if err := forgetOld(tx, now); err != nil {
			return err
		}
		share, err := readShare(tx, c.Principal)
		if err != nil {
			return err
		}
		counted, as := share, mail.AskedAs(c.Principal)
		if as != c.Principal {
			if counted, err = readShare(tx, as); err != nil {
				return err
			}
		}
		if err := counted.count(now, begun.Counts(), unasked); err != nil {
			return err
		}
		if as == c.Principal {
			share = counted
		} else if err := putShare(tx, as, &counted); err != nil {
			return err
		}
		record, err := json.Marshal(&begun)
		if err != nil {
			return err
		}
		// An amended one has the new UIDs and what took its messages back besides.
		head := journalHead{Principal: c.Principal, Account: c.Account, Of: c.Of, Begun: now, Bytes: int64(len(record) + 64*(1+len(c.Messages)))}
		if err := v.journalRoom(tx, &share, &head); err != nil {
			return err
		}
		if err := putHead(tx, begun.ID, &head); err != nil {
			return err
		}
		if err := putShare(tx, c.Principal, &share); err != nil {
			return err
		}
		return tx.Put(journalChanges, []byte(begun.ID), record)
	})
	if err == nil {
		*c = begun
	}
	return err
}

// nextChange returns an id that is greater than all others, also within one millisecond and
// where clocks differ.
func nextChange(tx kv.Tx, now time.Time) (string, error) {
	id := mail.NewID(now)
	last, err := tx.Scan(journalHeads, kv.Range{Reverse: true}, 1)
	if err != nil || len(last) == 0 || id > string(last[0].Key) {
		return id, err
	}
	at, ok := mail.IDTime(string(last[0].Key))
	if !ok {
		return "", damagedChange(string(last[0].Key))
	}
	return mail.NewID(at.Add(time.Millisecond)), nil
}

// count refuses n more messages than a principal may change unasked, unless that is negative.
func (s *journalShare) count(now time.Time, n, unasked int) error {
	since, sum := now.Add(-mail.AskWithin).Unix(), int64(n)
	s.Last = slices.DeleteFunc(s.Last, func(l [2]int64) bool { return l[0] < since })
	for _, l := range s.Last {
		sum += l[1]
	}
	if n == 0 {
		return nil
	}
	if unasked >= 0 && sum > int64(unasked) {
		return mail.ErrManyChanges
	}
	if i := len(s.Last) - 1; i >= 0 && s.Last[i][0] == now.Unix() {
		s.Last[i][1] += int64(n)
	} else {
		s.Last = append(s.Last, [2]int64{now.Unix(), int64(n)})
	}
	return nil
}

// journalRoom adds a change to its principal's share, and makes room there.
func (v *Vault) journalRoom(tx kv.Tx, share *journalShare, head *journalHead) error {
	share.Changes++
	share.Bytes += head.Bytes
	bound := &ShareFull{ShareJournal, head.Principal, cmp.Or(v.journalMost, maxJournalChanges), maxJournalBytes}
	full := func() bool { return share.Changes > bound.Count || share.Bytes > bound.Bytes }
	if !full() {
		return nil
	}
	prefix := ownerKey(head.Principal, "")
	for r, err := range kv.Each(tx, journalOwners, kv.Prefix(prefix)) {
		if err != nil {
			return err
		}
		id := string(r.Key[len(prefix):])
		old, err := parseHead(id, r.Value)
		if err != nil {
			return err
		}
		if head.Begun.Sub(old.Begun) < journalHeld {
			break
		}
		if err := forgetChange(tx, id, old.Principal); err != nil {
			return err
		}
		share.Changes--
		share.Bytes -= old.Bytes
		if !full() {
			return nil
		}
	}
	return bound
}

// forgetOld removes two changes of anybody that are kept no longer, so that they become fewer
// with each that begins.
func forgetOld(tx kv.Tx, now time.Time) error {
	oldest, err := tx.Scan(journalHeads, kv.Range{}, 2)
	if err != nil {
		return err
	}
	for _, r := range oldest {
		old, err := parseHead(string(r.Key), r.Value)
		switch {
		case err != nil:
			return err
		case now.Sub(old.Begun) <= mail.JournalKept:
			return nil
		}
		share, err := readShare(tx, old.Principal)
		if err != nil {
			return err
		}
		share.Changes--
		share.Bytes -= old.Bytes
		if err := putShare(tx, old.Principal, &share); err != nil {
			return err
		}
		if err := forgetChange(tx, string(r.Key), old.Principal); err != nil {
			return err
		}
	}
	return nil
}

func forgetChange(tx kv.Tx, id, principal string) error {
	return errors.Join(tx.Delete(journalOwners, ownerKey(principal, id)), tx.Delete(journalHeads, []byte(id)), tx.Delete(journalChanges, []byte(id)))
}

func readShare(tx kv.Tx, principal string) (s journalShare, err error) {
	record, err := tx.Get(journalShares, []byte(principal))
	if err == nil && record != nil && json.Unmarshal(record, &s) != nil {
		err = fmt.Errorf("%w: the share of %s in the journal", ErrDamaged, principal)
	}
	return s, err
}

func putShare(tx kv.Tx, principal string, s *journalShare) error {
	record, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return tx.Put(journalShares, []byte(principal), record)
}

func putHead(tx kv.Tx, id string, h *journalHead) error {
	record, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return errors.Join(tx.Put(journalHeads, []byte(id), record), tx.Put(journalOwners, ownerKey(h.Principal, id), record))
}

func parseHead(id string, record []byte) (h journalHead, err error) {
	if json.Unmarshal(record, &h) != nil {
		err = damagedChange(id)
	}
	return h, err
}

func damagedChange(id string) error {
	return fmt.Errorf("%w: the change %s of the journal", ErrDamaged, printable([]byte(id)))
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
		return mail.Change{}, damagedChange(id)
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
		c.ID, c.Account, c.Principal, c.Begun, c.Of = before.ID, before.Account, before.Principal, before.Begun, before.Of
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
	only := q.Only
	q.Only = nil // not of what is said without the messages
	since := q.Since
	if of, ok := mail.IDTime(q.ID); ok && of.After(since) { // pieces are younger than what they are of
		since = of
	}
	bucket, prefix := journalHeads, ""
	if q.Principal != "" {
		bucket, prefix = journalOwners, q.Principal+"\x00"
	}
	r := kv.Prefix([]byte(prefix))
	r.Reverse = true
	if q.Before != "" {
		r.To = []byte(prefix + q.Before)
	}
	err = v.View(ctx, func(tx kv.Tx) error {
		for r, err := range kv.Each(tx, bucket, r) {
			if err != nil {
				return err
			}
			id := string(r.Key[len(prefix):])
			h, err := parseHead(id, r.Value)
			switch {
			case err != nil:
				return err
			case len(list) == limit, h.Begun.Before(since.Add(-24 * time.Hour)): // clocks differ by less
				return nil
			case !q.Matches(&mail.Change{ID: id, Principal: h.Principal, Account: h.Account, Of: h.Of, Begun: h.Begun}):
				continue
			}
			c, err := readChange(tx, id)
			if errors.Is(err, mail.ErrNoChange) {
				err = damagedChange(id)
			}
			if err != nil {
				return err
			}
			if only == nil || only(&c) {
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
