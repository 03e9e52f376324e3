package agentmail

import (
	"iter"

	"github.com/postern-mail/postern/vault/kv"
)

// maxPurge is how many messages and marks of broadcasts one transaction removes, and one
// call that sends or reads. Other expired messages stay a little longer, invisible: a
// broadcast that ten thousand agents have read is removed in many calls.
const maxPurge = 250

// due walks the expired messages, oldest first.
func (r *room) due() iter.Seq2[place, *Message] {
	return func(yield func(place, *Message) bool) {
		for key, value := range r.each(bucketMessages, kv.Range{}, 16) {
			at := r.place(key)
			if !r.expired(at.created) {
				return
			}
			if m := r.parseMessage(value); m == nil || !yield(at, m) {
				return
			}
		}
	}
}

// stale reports whether purge has work to do.
func (r *room) stale() bool {
	if r.old() {
		return true
	}
	first, err := r.tx.Scan(bucketMessages, kv.Range{}, 1)
	r.fail(err)
	return len(first) > 0 && r.expired(r.place(first[0].Key).created)
}

// purge brings over the messages of an earlier version and removes up to maxPurge of
// the expired ones. It returns the removed messages.
func (r *room) purge() (gone []Message) {
	r.bringOver()
	left := r.limits.purge
	for at, m := range r.due() {
		if left <= 0 || !r.remove(m, at, &left) {
			break
		}
		gone = append(gone, *m)
	}
	return gone
}

// remove deletes a message: first its marks, then the message itself. It subtracts its
// deletions from left, and returns false where left was too small.
func (r *room) remove(m *Message, at place, left *int) (whole bool) {
	// leave removes the message from the record of an agent.
	leave := func(key agentKey, traffic int) {
		a := r.agent(key)
		a.Traffic -= traffic
		a.saved = nil
		r.drop(bucketBoxes, boxKey(key, boxUnread, at.seq))
		r.drop(bucketBoxes, boxKey(key, boxHeld, at.seq))
	}
	marks := join([]byte{indexMark}, number(at.seq))
	for key := range r.each(bucketIndex, kv.Prefix(marks), len(marks)+len(agentKey{})) {
		if m.Broadcast() {
			if *left <= 0 {
				return false
			}
			*left--
		}
		r.drop(bucketIndex, key)
		leave(agentKey(key[len(marks):]), 0)
	}
	*left--
	r.charge(m, -1)
	leave(r.key(m.Sender), 1)
	if m.Recipient != m.Sender { // a box of everyone's, too
		r.drop(bucketBoxes, boxKey(r.key(m.Recipient), boxAll, at.seq))
		if !m.Broadcast() {
			leave(r.key(m.Recipient), 1)
		}
	}
	if m.ReplyTo != "" {
		r.drop(bucketIndex, join(idKey(indexReply, m.ReplyTo), at.bytes()))
	}
	r.drop(bucketIndex, idKey(indexID, m.ID))
	r.drop(bucketMessages, at.bytes())
	return true
}
