package agentmail

import (
	"encoding/binary"
	"encoding/json"

	"github.com/postern-mail/postern/vault/kv"
)

// A vault of an earlier version keeps the mailbox in eleven buckets, with the same
// digests of agents. Whatever writes first brings it over; so does whatever writes after
// a process of that version that still runs.
var oldBuckets = []string{"agentmail", "agentmail.messages", "agentmail.ids", "agentmail.expiry", "agentmail.received", "agentmail.broadcasts",
	"agentmail.inbox", "agentmail.replies", "agentmail.marks", "agentmail.agents", "agentmail.claims"}

const oldArrival = 25 // bytes of it, before a mark

// old reports whether an earlier version has left something.
func (r *room) old() (bool, error) {
	b, err := r.tx.Get(oldBuckets[0], []byte("meta"))
	return b != nil, err
}

// bringOver sends again what an earlier version kept, notes what agents did with it and
// what readers hold, and forgets the old buckets.
func (r *room) bringOver() error {
	if old, err := r.old(); !old || err != nil {
		return err
	}
	seqs := map[uint64]uint64{} // new numbers by the old ones
	each := func(bucket string, size int, fn func(key, value []byte) error) error {
		for record, err := range kv.Each(r.tx, bucket, kv.Range{}) {
			if err == nil && len(record.Key) != size {
				err = damaged(bucket)
			}
			if err == nil {
				err = fn(record.Key, record.Value)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	done := func(old uint64, agent agentKey, value []byte) error {
		m, err := parseMark(value)
		seq, here := seqs[old]
		if err != nil || !here || m == (mark{}) {
			return err
		}
		if m.read != 0 {
			if err := r.tx.Delete(bucketBoxes, boxKey(agent, boxUnread, seq)); err != nil {
				return err
			}
		}
		return r.putMark(seq, agent, m)
	}
	if err := each("agentmail.messages", 8, func(key, value []byte) error {
		m, err := parseMessage(value)
		if err != nil || r.expired(m.Created.UnixMicro()) {
			return err
		}
		seqs[binary.BigEndian.Uint64(key)], err = r.add(m)
		return err
	}); err != nil {
		return err
	}
	if err := each("agentmail.received", 24, func(key, value []byte) error {
		if len(value) < oldArrival {
			return damaged("agentmail.received")
		}
		return done(binary.BigEndian.Uint64(key[16:]), agentKey(key[:16]), value[oldArrival:])
	}); err != nil {
		return err
	}
	if err := each("agentmail.marks", 24, func(key, value []byte) error {
		return done(binary.BigEndian.Uint64(key), agentKey(key[8:]), value)
	}); err != nil {
		return err
	}
	if err := each("agentmail.claims", 32, func(key, value []byte) error {
		c := claim{ID: idText(messageID(key[16:]))}
		var held struct {
			At   int64
			Seqs []uint64
		}
		a, err := r.agent(agentKey(key[:16]))
		if err != nil || json.Unmarshal(value, &held) != nil {
			return err
		}
		c.At = held.At
		for _, old := range held.Seqs {
			if seq, here := seqs[old]; here {
				c.Seqs = append(c.Seqs, seq)
			}
		}
		if len(c.Seqs) > 0 {
			a.Claims = append(a.Claims, c)
		}
		return nil
	}); err != nil {
		return err
	}
	for _, bucket := range oldBuckets {
		for record, err := range kv.Each(r.tx, bucket, kv.Range{}) {
			if err == nil {
				err = r.tx.Delete(bucket, record.Key)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
