package agentmail

import (
	"encoding/binary"

	"github.com/postern-mail/postern/vault/kv"
)

// A vault of an earlier version keeps the mailbox in eleven buckets, with the same
// digests of agents. The first write brings it over; so does a write after one by a
// process of that version that is still running.
var oldBuckets = []string{"agentmail", "agentmail.messages", "agentmail.ids", "agentmail.expiry", "agentmail.received", "agentmail.broadcasts",
	"agentmail.inbox", "agentmail.replies", "agentmail.marks", "agentmail.agents", "agentmail.claims"}

const oldArrival = 25 // bytes of an old arrival, before a mark

// old reports whether an earlier version left records.
func (r *room) old() bool { return r.get(oldBuckets[0], []byte("meta")) != nil }

// bringOver sends the messages of an earlier version again, with the agents' marks, and
// deletes the old buckets. Messages held by a reader become unread.
func (r *room) bringOver() {
	if !r.old() {
		return
	}
	seqs := map[uint64]uint64{} // new numbers by the old ones
	for key, value := range r.each("agentmail.messages", kv.Range{}, 8) {
		if m := r.parseMessage(value); m != nil && !r.expired(m.Created.UnixMicro()) {
			seqs[binary.BigEndian.Uint64(key)] = r.add(m)
		}
	}
	done := func(old []byte, agent agentKey, value []byte) {
		m := r.parseMark(value)
		seq, here := seqs[binary.BigEndian.Uint64(old)]
		if !here || m == (mark{}) {
			return
		}
		if m.read != 0 {
			r.drop(bucketBoxes, boxKey(agent, boxUnread, seq))
		}
		r.putMark(seq, agent, m)
	}
	for key, value := range r.each("agentmail.received", kv.Range{}, 24) {
		done(key[16:], agentKey(key), value[min(oldArrival, len(value)):])
	}
	for key, value := range r.each("agentmail.marks", kv.Range{}, 24) {
		done(key, agentKey(key[8:]), value)
	}
	for _, bucket := range oldBuckets {
		for key := range r.each(bucket, kv.Range{}, 0) {
			r.drop(bucket, key)
		}
	}
}
