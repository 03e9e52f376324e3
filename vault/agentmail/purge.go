package agentmail

import (
	"cmp"
	"slices"

	"github.com/postern-mail/postern/vault/kv"
)

// maxPurge is how many messages and marks of broadcasts one transaction removes, and
// one call that sends or reads. What has expired beyond that is there a little longer
// and seen by nobody: a broadcast that ten thousand agents have read goes in many calls.
const maxPurge = 250

// due calls fn with the messages whose time is over, oldest first, while it returns true.
func (r *room) due(fn func(m *Message, seq uint64) bool) error {
	for record, err := range kv.Each(r.tx, bucketMessages, kv.Range{}) {
		if err != nil {
			return err
		}
		at, err := parsePlace(record.Key)
		if err != nil || !r.expired(at.created) {
			return err
		}
		m, err := parseMessage(record.Value)
		if err != nil || !fn(m, at.seq) {
			return err
		}
	}
	return nil
}

// stale reports whether there is something to remove or to bring over.
func (r *room) stale() (stale bool, err error) {
	if old, err := r.old(); old || err != nil {
		return old, err
	}
	first, err := r.tx.Scan(bucketMessages, kv.Range{}, 1)
	if err != nil || len(first) == 0 {
		return false, err
	}
	at, err := parsePlace(first[0].Key)
	return r.expired(at.created), err
}

// purge brings over what an earlier version kept and removes up to maxPurge of what has
// expired. It returns the messages that are gone.
func (r *room) purge() (gone []Message, err error) {
	if err := r.bringOver(); err != nil {
		return nil, err
	}
	var old []letter
	if err := r.due(func(m *Message, seq uint64) bool {
		old = append(old, letter{Message: *m, seq: seq})
		return len(old) < maxPurge
	}); err != nil {
		return nil, err
	}
	left := maxPurge
	for i := range old {
		if left <= 0 {
			break
		}
		whole, err := r.remove(&old[i], &left)
		if err != nil {
			return nil, err
		}
		if whole {
			gone = append(gone, old[i].Message)
		}
	}
	return gone, nil
}

// remove forgets a message: first what agents did with it, then the message itself. It
// takes what it removes from left, and reports false where that was not enough.
func (r *room) remove(m *letter, left *int) (whole bool, err error) {
	at := place{m.Created.UnixMicro(), m.seq}
	drop := func(bucket string, key []byte) {
		if err == nil {
			err = r.tx.Delete(bucket, key)
		}
	}
	// leave takes the message out of what is known of an agent.
	leave := func(key agentKey, traffic int) {
		a, agentErr := r.agent(key)
		if agentErr != nil {
			err = agentErr
			return
		}
		a.Traffic -= traffic
		a.less = true
		for i := range a.Claims {
			a.Claims[i].Seqs = slices.DeleteFunc(a.Claims[i].Seqs, func(seq uint64) bool { return seq == m.seq })
		}
		a.Claims = slices.DeleteFunc(a.Claims, func(c claim) bool { return len(c.Seqs) == 0 })
		drop(bucketBoxes, boxKey(key, boxUnread, m.seq))
	}
	marks := join([]byte{indexMark}, number(m.seq))
	for record, markErr := range kv.Each(r.tx, bucketIndex, kv.Prefix(marks)) {
		if markErr == nil && len(record.Key) != len(marks)+len(agentKey{}) {
			markErr = damaged("a mark")
		}
		if markErr != nil || err != nil || *left <= 0 && m.Broadcast() {
			return false, cmp.Or(markErr, err)
		}
		if m.Broadcast() {
			*left--
		}
		drop(bucketIndex, record.Key)
		leave(agentKey(record.Key[len(marks):]), 0)
	}
	*left--
	leave(r.key(m.Sender), 1)
	if m.Recipient != m.Sender { // a box of everyone's, too
		drop(bucketBoxes, boxKey(r.key(m.Recipient), boxAll, m.seq))
		if !m.Broadcast() {
			leave(r.key(m.Recipient), 1)
		}
	}
	if m.ReplyTo != "" {
		drop(bucketIndex, join(idKey(indexReply, m.ReplyTo), at.bytes()))
	}
	drop(bucketIndex, idKey(indexID, m.ID))
	drop(bucketMessages, at.bytes())
	return err == nil, err
}
