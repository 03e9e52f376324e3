package vault

import (
	"encoding/binary"
	"errors"
	"time"
)

// maxPurge is how many messages and marks of broadcasts one transaction removes, and
// one call that sends or reads. What has expired beyond that is there a little longer
// and seen by nobody: a broadcast that ten thousand agents have read goes in many calls.
const maxPurge = 250

var errEnough = errors.New("enough")

// due calls fn with up to limit of the messages whose time is over, oldest first. The
// index is in the order of expiry, so it looks at no other.
func (r *mailroom) due(limit int, fn func(*AgentMessage, uint64) error) error {
	err := r.tx.Bucket(agentExpiry).ForEach(nil, func(key, _ []byte) error {
		if len(key) != 16 {
			return damagedRecord("the expiry")
		}
		if limit <= 0 || !r.expired(time.UnixMicro(int64(binary.BigEndian.Uint64(key)))) {
			return errEnough
		}
		limit--
		seq := binary.BigEndian.Uint64(key[8:])
		m, err := r.kept(seq)
		if err != nil {
			return err
		}
		if m == nil {
			return damagedRecord("a message")
		}
		m.Body = ""
		return fn(m, seq)
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// purge removes up to maxPurge of what has expired and reports whether there is more.
// told is called for each message that is gone.
func (r *mailroom) purge(told func(*AgentMessage)) (more bool, err error) {
	var old []numbered
	err = r.due(maxPurge+1, func(m *AgentMessage, seq uint64) error {
		old = append(old, numbered{*m, seq})
		return nil
	})
	if err != nil || len(old) == 0 {
		return false, err
	}
	left := maxPurge
	for i := range old {
		if left <= 0 {
			more = true
			break
		}
		gone, err := r.remove(&old[i].AgentMessage, old[i].seq, &left)
		if err != nil {
			return false, err
		}
		if gone {
			told(&old[i].AgentMessage)
		} else {
			more = true
		}
	}
	return more, r.dropClaims()
}

// remove forgets a message: first what agents did with it, then the message itself. It
// takes what it removes from left, and reports false where that was not enough.
func (r *mailroom) remove(m *AgentMessage, seq uint64, left *int) (gone bool, err error) {
	id, number, from := idBytes(m.ID), uint64Bytes(seq), r.key(m.Sender)
	sender, err := r.agent(from)
	if err != nil {
		return false, err
	}
	if gone, err := r.removeMarks(from, seq, left); err != nil || !gone {
		return false, err
	}
	*left--
	sender.Traffic--
	switch {
	case m.Broadcast():
		room, err := r.room()
		if err != nil {
			return false, err
		}
		room.Broadcasts--
		sender.Own--
		if err := r.tx.Bucket(agentBroadcasts).Delete(number); err != nil {
			return false, err
		}
	case m.Recipient != m.Sender:
		if err := r.removeReceived(r.key(m.Recipient), seq); err != nil {
			return false, err
		}
	}
	drop := func(bucket string, key []byte) {
		if err == nil {
			err = r.tx.Bucket(bucket).Delete(key)
		}
	}
	if m.ReplyTo != "" {
		parent := idBytes(m.ReplyTo)
		drop(agentReplies, join(parent[:], number))
	}
	drop(agentExpiry, expiryKey(m.Created.UnixMicro(), seq))
	drop(agentIDs, id[:])
	drop(agentMessages, number)
	return err == nil, err
}

// removeReceived takes a direct message out of its recipient's numbers.
func (r *mailroom) removeReceived(to agentKey, seq uint64) error {
	a, err := r.agent(to)
	if err != nil {
		return err
	}
	done, _, err := r.mark(kindDirect, to, seq)
	if err != nil {
		return err
	}
	a.Traffic--
	if done.read == 0 {
		a.Unread--
	}
	if done.acked == 0 {
		a.Unacked--
	}
	place := join(to[:], uint64Bytes(seq))
	if err := r.tx.Bucket(agentReceived).Delete(place); err != nil {
		return err
	}
	return r.tx.Bucket(agentInbox).Delete(place)
}

// removeMarks takes a broadcast out of the numbers of those who looked at it, as many
// as left allows, and reports whether that were all. The sender's own mark is in no
// number; nor is one of what somebody sent to itself.
func (r *mailroom) removeMarks(from agentKey, seq uint64, left *int) (all bool, err error) {
	number := uint64Bytes(seq)
	marks := map[agentKey]mark{}
	err = r.tx.Bucket(agentMarks).ForEach(number, func(key, value []byte) (err error) {
		if len(key) != len(number)+len(agentKey{}) {
			return damagedRecord("a mark")
		}
		if *left <= 0 {
			return errEnough
		}
		*left--
		marks[agentKey(key[len(number):])], err = parseMark(value)
		return err
	})
	if all = !errors.Is(err, errEnough); err != nil && all {
		return false, err
	}
	for key, done := range marks {
		if err := r.tx.Bucket(agentMarks).Delete(join(number, key[:])); err != nil {
			return false, err
		}
		if key == from {
			continue
		}
		a, err := r.agent(key)
		if err != nil {
			return false, err
		}
		a.Marked--
		if done.read != 0 {
			a.Read--
		}
		if done.acked != 0 {
			a.Acked--
		}
		if err := r.tx.Bucket(agentInbox).Delete(join(key[:], number)); err != nil {
			return false, err
		}
	}
	return all, nil
}

// dropClaims forgets the claims that nobody will come back for, of readers that died
// and of agents that never read again. There are few: each lasts minutes.
func (r *mailroom) dropClaims() error {
	var over [][]byte
	err := r.tx.Bucket(agentClaims).ForEach(nil, func(key, value []byte) error {
		c, err := parseRecord[claimRecord](agentClaims, value)
		if err == nil && c.over(r.now) {
			over = append(over, key)
		}
		return err
	})
	if err != nil {
		return err
	}
	return r.forget(over)
}

func (r *mailroom) forget(claims [][]byte) error {
	for _, key := range claims {
		if err := r.tx.Bucket(agentClaims).Delete(key); err != nil {
			return err
		}
	}
	return nil
}
