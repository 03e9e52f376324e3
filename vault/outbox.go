package vault

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault/kv"
)

var _ mail.OutboxStore = (*Vault)(nil)

// The buckets of the outbox. Keys are not sealed in the file, so they are only
// ids, names of accounts and digests.
const (
	outboxEntries = "outbox"       // by id: a mail.Outgoing
	outboxKeys    = "outbox.keys"  // by account and digest of the idempotency key: the id
	outboxSizes   = "outbox.sizes" // by id, while the bytes of the message are kept: an outboxSize
	outboxChunks  = "outbox.bytes" // by id and number: the message in pieces
)

// outboxChunk is the length of a piece: well below the limit of a value, so that
// a message of any size is a run of values of one size.
const outboxChunk = 1 << 20

var outboxID = regexp.MustCompile(`\A[a-z0-9][a-z0-9-]{0,63}\z`)

func outboxKey(account, key string) []byte { return []byte(account + "\x00" + key) }

func chunkKey(id string, n int) []byte {
	return binary.BigEndian.AppendUint32([]byte(id+"\x00"), uint32(n))
}

// AddOutgoing implements mail.OutboxStore. An ID is 1 to 64 of a-z, 0-9 and
// hyphen. The entry, its bytes and its key are there together or not at all.
func (v *Vault) AddOutgoing(ctx context.Context, o mail.Outgoing, message []byte) (kept mail.Outgoing, added bool, err error) {
	if !outboxID.MatchString(o.ID) || !mail.ValidAccountName(o.Account) {
		return kept, false, fmt.Errorf("%w: no id or account for an outgoing message", ErrInvalid)
	}
	if o.Key != "" {
		if err := v.checkKeys(ctx); err != nil {
			return kept, false, err
		}
	}
	err = v.Update(ctx, func(tx kv.Tx) error {
		o := o
		if o.Key != "" {
			id, err := tx.Get(outboxKeys, outboxKey(o.Account, o.Key))
			if err != nil {
				return err
			}
			if id != nil {
				kept, err = indexed(tx, string(id))
				return err
			}
		}
		if there, err := tx.Get(outboxEntries, []byte(o.ID)); err != nil || there != nil {
			return cmp.Or(err, fmt.Errorf("%w: the outbox has a message %s", ErrExists, o.ID))
		}
		if err := forgetOutgoing(tx, v.now()); err != nil {
			return err
		}
		if err := roomFor(tx, v.now(), o.Principal, len(message), maxOutboxMessages, maxOutboxBytes); err != nil {
			return err
		}
		if o.Unasked != "" {
			if n, err := unasked(tx, o.Account, o.Created.Add(-mail.UnaskedWithin)); err != nil {
				return err
			} else if n >= mail.MaxUnasked {
				o.Attempts = 0
				o.Wait(mail.AskOften)
			}
		}
		if err := putMessage(tx, &o, message); err != nil {
			return err
		}
		if o.Key != "" {
			if err := tx.Put(outboxKeys, outboxKey(o.Account, o.Key), []byte(o.ID)); err != nil {
				return err
			}
		}
		added = true
		kept, err = putOutgoing(tx, &o)
		return err
	})
	if err != nil {
		return mail.Outgoing{}, false, err
	}
	return kept, added, nil
}

// unasked counts the messages of an account that went unasked since then. Ids ascend with
// time, but for clocks that differ, by less than a day.
func unasked(tx kv.Tx, account string, since time.Time) (n int, err error) {
	for r, err := range kv.Each(tx, outboxEntries, kv.Range{Reverse: true}) {
		if err != nil {
			return 0, err
		}
		o, err := parseOutgoing(string(r.Key), r.Value)
		switch {
		case err != nil:
			return 0, err
		case o.Created.Before(since.Add(-24 * time.Hour)):
			return n, nil
		case o.Account == account && o.Unasked != "" && o.Created.After(since):
			n++
		}
	}
	return n, nil
}

// The bounds of the outbox's messages that are not sent. One principal may have a part
// of them.
const (
	maxOutboxMessages = 1000
	maxOutboxBytes    = 512 << 20
	outboxShare       = 4
)

// roomFor makes room for one more message of a principal, by removing ended ones first; the
// error matches mail.ErrOutboxFull if the outbox is full, and is a *ShareFull if the
// principal's share of it is.
func roomFor(tx kv.Tx, now time.Time, principal string, size, most int, mostBytes uint64) error {
	count, bytes := 1, uint64(size)
	list, err := tx.Scan(outboxSizes, kv.Range{}, 4*most) // all, as long as the bounds hold
	if err != nil {
		return err
	}
	// What ended, or has no principal beside its length, may be somebody else's, too.
	var ids, own []string
	var sizes []uint64
	n, sum := 1, uint64(size)
	for _, r := range list {
		length, of := uint64(0), principal
		if s, err := parseSize(string(r.Key), r.Value); err == nil {
			length, of = s.length, cmp.Or(s.principal, principal)
		}
		ids, sizes = append(ids, string(r.Key)), append(sizes, length)
		count, bytes = count+1, bytes+length
		if of == principal {
			own, n, sum = append(own, string(r.Key)), n+1, sum+length
		}
	}
	if share := (&ShareFull{ShareOutbox, principal, most / outboxShare, int64(mostBytes / outboxShare)}); n > share.Count || sum > uint64(share.Bytes) {
		n, sum = 1, uint64(size)
		for _, id := range own {
			if o, err := indexed(tx, id); err == nil && o.Principal == principal && !o.Ended() && !o.Expired(now) {
				n, sum = n+1, sum+sizes[slices.Index(ids, id)]
			}
		}
		if n > share.Count || sum > uint64(share.Bytes) {
			return share
		}
	}
	for i, id := range ids {
		if count <= most && bytes <= mostBytes {
			return nil
		}
		if o, err := indexed(tx, id); err != nil || !o.Ended() {
			continue
		}
		if err := dropMessage(tx, id); err != nil {
			return err
		}
		count, bytes = count-1, bytes-sizes[i]
	}
	if count > most || bytes > mostBytes {
		return mail.ErrOutboxFull
	}
	return nil
}

// putOutgoing stores the entry and returns it as a later read will.
func putOutgoing(tx kv.Tx, o *mail.Outgoing) (mail.Outgoing, error) {
	record, err := json.Marshal(o)
	if err != nil {
		return mail.Outgoing{}, err
	}
	kept, err := parseOutgoing(o.ID, record)
	if err != nil {
		return kept, err
	}
	size, err := readSize(tx, o.ID)
	if err == nil {
		size.entry = sha256.Sum256(record)
		err = tx.Put(outboxSizes, []byte(o.ID), size.record())
	}
	if err != nil && !errors.Is(err, mail.ErrNoOutgoing) {
		return kept, err
	}
	return kept, tx.Put(outboxEntries, []byte(o.ID), record)
}

// outboxSize is what is kept of each entry whose message is kept: few records, so that all of
// them can be compared with their sum before one leaves.
type outboxSize struct {
	length    uint64
	entry     [sha256.Size]byte // the digest of the entry's record
	principal string
}

func (s *outboxSize) record() []byte {
	return append(append(uint64Bytes(s.length), s.entry[:]...), s.principal...)
}

// parseSize reads a record of outboxSizes. Once it was the length alone.
func parseSize(id string, record []byte) (s outboxSize, err error) {
	if len(record) != 8 && len(record) < 8+sha256.Size {
		return s, fmt.Errorf("%w: the length of the outgoing message %s", ErrDamaged, id)
	}
	s.length = binary.BigEndian.Uint64(record)
	s.principal = string(record[8+copy(s.entry[:], record[8:]):])
	return s, nil
}

// readSize fails with mail.ErrNoOutgoing where the bytes of a message are not kept.
func readSize(tx kv.Tx, id string) (s outboxSize, err error) {
	record, err := tx.Get(outboxSizes, []byte(id))
	switch {
	case err != nil:
		return s, err
	case record == nil:
		return s, mail.ErrNoOutgoing
	}
	return parseSize(id, record)
}

// newest refuses an entry that is not as it was last written.
func newest(tx kv.Tx, id string) error {
	record, err := tx.Get(outboxEntries, []byte(id))
	if err != nil {
		return err
	}
	size, err := readSize(tx, id)
	if err != nil {
		return err
	}
	if size.entry != [sha256.Size]byte{} && size.entry != sha256.Sum256(record) {
		return fmt.Errorf("%w: the outgoing message %s is not as it was written last: its record was put back or exchanged", ErrDamaged, id)
	}
	return nil
}

func parseOutgoing(id string, record []byte) (o mail.Outgoing, err error) {
	if err := json.Unmarshal(record, &o); err != nil || o.ID != id {
		return mail.Outgoing{}, fmt.Errorf("%w: the outgoing message %s", ErrDamaged, id)
	}
	return o, nil
}

func readOutgoing(tx kv.Tx, id string) (mail.Outgoing, error) {
	if !outboxID.MatchString(id) {
		return mail.Outgoing{}, mail.ErrNoOutgoing
	}
	record, err := tx.Get(outboxEntries, []byte(id))
	switch {
	case err != nil:
		return mail.Outgoing{}, err
	case record == nil:
		return mail.Outgoing{}, mail.ErrNoOutgoing
	}
	return parseOutgoing(id, record)
}

// indexed is readOutgoing for an id that the index of keys names. A key without
// its entry must not pass for an unused key: its message would be sent again.
func indexed(tx kv.Tx, id string) (mail.Outgoing, error) {
	o, err := readOutgoing(tx, id)
	if errors.Is(err, mail.ErrNoOutgoing) {
		err = fmt.Errorf("%w: the outgoing message %s is missing", ErrDamaged, printable([]byte(id)))
	}
	return o, err
}

// Outgoing implements mail.OutboxStore.
func (v *Vault) Outgoing(ctx context.Context, id string) (o mail.Outgoing, err error) {
	err = v.View(ctx, func(tx kv.Tx) error {
		o, err = readOutgoing(tx, id)
		return err
	})
	return o, err
}

// OutgoingByKey implements mail.OutboxStore.
func (v *Vault) OutgoingByKey(ctx context.Context, account, key string) (o mail.Outgoing, err error) {
	err = v.View(ctx, func(tx kv.Tx) error {
		id, err := tx.Get(outboxKeys, outboxKey(account, key))
		if err != nil {
			return err
		}
		if id == nil {
			return mail.ErrNoOutgoing
		}
		o, err = indexed(tx, string(id))
		return err
	})
	return o, err
}

// ChangeOutgoing implements mail.OutboxStore. The entry's id, account and key do
// not change. An entry that becomes or stays unknown with an attempt is about to leave, or to
// delete: while everything is stopped that is refused, and no stop comes in between.
func (v *Vault) ChangeOutgoing(ctx context.Context, id string, change func(*mail.Outgoing) (drop bool, err error)) (o mail.Outgoing, err error) {
	err = v.update(ctx, func(t *transaction) error {
		tx := state{t}
		before, err := readOutgoing(tx, id)
		if err != nil {
			return err
		}
		if v.kind.foreign { // else what is written now would pass for the newest
			if err := newest(tx, id); err != nil && !errors.Is(err, mail.ErrNoOutgoing) {
				return err
			}
		}
		after := before
		drop, err := change(&after)
		if err != nil {
			return err
		}
		after.ID, after.Account, after.Key = before.ID, before.Account, before.Key
		if after.State == mail.OutboxUnknown && after.Attempt != "" {
			if err := v.mayLeave(t, &after); err != nil {
				return err
			}
		}
		if drop {
			if err := dropMessage(tx, id); err != nil {
				return err
			}
		}
		o, err = putOutgoing(tx, &after)
		return err
	})
	if err != nil {
		return mail.Outgoing{}, err
	}
	return o, nil
}

// ListOutgoing implements mail.OutboxStore.
func (v *Vault) ListOutgoing(ctx context.Context, q mail.OutboxQuery) (entries []mail.Outgoing, more bool, err error) {
	limit := q.Limit
	if limit <= 0 {
		limit = mail.DefaultOutboxLimit
	}
	limit = min(limit, mail.MaxOutboxLimit)
	err = v.View(ctx, func(tx kv.Tx) error {
		r := kv.Range{Reverse: true}
		if q.Before != "" {
			r.To = []byte(q.Before)
		}
		for record, err := range kv.Each(tx, outboxEntries, r) {
			if err != nil {
				return err
			}
			o, err := parseOutgoing(string(record.Key), record.Value)
			if err != nil {
				return err
			}
			if !q.Matches(&o) {
				continue
			}
			if len(entries) == limit {
				more = true
				return nil
			}
			entries = append(entries, o)
		}
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	return entries, more, nil
}

// ApprovalCode returns what the administrator approves an entry of the outbox with: a few
// characters that stand for its id and its digest, and that no process without the
// administrator's key can make. The error matches ErrAdminRequired in such a process.
func (v *Vault) ApprovalCode(ctx context.Context, id, digest string) (string, error) {
	if err := v.Ready(ctx); err != nil {
		return "", err
	}
	if v.codeKey == nil {
		return "", ErrAdminRequired
	}
	return mail.IDAlphabet.EncodeToString(keyedDigest(v.codeKey, []byte(id), []byte(digest))[:5]), nil
}

// putMessage keeps the bytes of a new message.
func putMessage(tx kv.Tx, o *mail.Outgoing, message []byte) error {
	size := outboxSize{length: uint64(len(message)), principal: o.Principal}
	if err := tx.Put(outboxSizes, []byte(o.ID), size.record()); err != nil {
		return err
	}
	n := 0
	for chunk := range slices.Chunk(message, outboxChunk) {
		if err := tx.Put(outboxChunks, chunkKey(o.ID, n), chunk); err != nil {
			return err
		}
		n++
	}
	return nil
}

// OutgoingMessage implements mail.OutboxStore. An incomplete message is
// ErrDamaged.
func (v *Vault) OutgoingMessage(ctx context.Context, id string) (message []byte, err error) {
	err = v.View(ctx, func(tx kv.Tx) error {
		if _, err := readOutgoing(tx, id); err != nil {
			return err
		}
		s, err := readSize(tx, id)
		if err != nil {
			return err
		}
		size := s.length
		message = []byte{}
		for n := 0; uint64(len(message)) < size; n++ {
			chunk, err := tx.Get(outboxChunks, chunkKey(id, n))
			if err != nil {
				return err
			}
			// Each piece but the last is full, so that a missing one is always noticed.
			if want := min(size-uint64(len(message)), outboxChunk); uint64(len(chunk)) != want {
				return fmt.Errorf("%w: the outgoing message %s is not whole", ErrDamaged, id)
			}
			if n == 0 && uint64(len(chunk)) < size {
				message = make([]byte, 0, min(size, 64*outboxChunk))
			}
			message = append(message, chunk...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return message, nil
}

// dropMessage deletes the bytes of a message, if any.
func dropMessage(tx kv.Tx, id string) error {
	size, err := readSize(tx, id)
	if errors.Is(err, mail.ErrNoOutgoing) {
		return nil
	}
	if err != nil {
		return err
	}
	for n := range (size.length + outboxChunk - 1) / outboxChunk {
		if err := tx.Delete(outboxChunks, chunkKey(id, int(n))); err != nil {
			return err
		}
	}
	return tx.Delete(outboxSizes, []byte(id))
}

// forgetOutgoing removes entries that ended long ago, and the bytes of more recently
// ended ones. Ids ascend with time, so that it reads only old entries, few of which have
// not ended. It stops at a damaged record, which must not prevent sending.
func forgetOutgoing(tx kv.Tx, now time.Time) error {
	ended := func(bucket string, keep time.Duration) (old []mail.Outgoing, err error) {
		for r, err := range kv.Each(tx, bucket, kv.Range{}) {
			var o mail.Outgoing
			if err == nil {
				o, err = indexed(tx, string(r.Key))
			}
			switch {
			case errors.Is(err, ErrDamaged):
				return old, nil
			case err != nil:
				return nil, err
			case now.Sub(o.Created) <= keep:
				return old, nil
			case (o.Ended() || o.Expired(now)) && now.Sub(o.Changed) > keep:
				old = append(old, o)
			}
		}
		return old, nil
	}
	old, err := ended(outboxSizes, mail.KeepOutgoingMessage)
	if err != nil {
		return err
	}
	for _, o := range old {
		if err := dropMessage(tx, o.ID); err != nil {
			return err
		}
	}
	if old, err = ended(outboxEntries, mail.KeepOutgoing); err != nil {
		return err
	}
	for _, o := range old {
		if o.Key != "" {
			if err := tx.Delete(outboxKeys, outboxKey(o.Account, o.Key)); err != nil {
				return err
			}
		}
		if err := tx.Delete(outboxEntries, []byte(o.ID)); err != nil {
			return err
		}
	}
	return nil
}
