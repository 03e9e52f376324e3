package vault

import (
	"encoding/binary"
	"errors"
	"time"
)

// maxPurge is how many messages one transaction removes.
const maxPurge = 1000

var errEnough = errors.New("enough")

// expired calls fn with up to limit of the messages whose time is over, oldest
// first. The index is in the order of expiry, so it looks at no other.
func (r *mailroom) expired(limit int, fn func(*AgentMessage) error) error {
	err := r.tx.Bucket(agentExpiry).ForEach(nil, func(key, value []byte) error {
		if len(key) != 16 || len(value) != len(messageID{}) {
			return damagedRecord("the expiry")
		}
		created := time.UnixMicro(int64(binary.BigEndian.Uint64(key)))
		if limit <= 0 || r.now.Sub(created) <= AgentMailTTL {
			return errEnough
		}
		limit--
		m, _, err := r.message(messageID(value))
		if err != nil {
			return err
		}
		if m == nil {
			return damagedRecord("a message")
		}
		return fn(m)
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// purge removes up to maxPurge messages whose time is over and reports whether there
// are more. told is called for each.
func (r *mailroom) purge(told func(*AgentMessage)) (more bool, err error) {
	var old []*AgentMessage
	err = r.expired(maxPurge+1, func(m *AgentMessage) error {
		m.Body = ""
		old = append(old, m)
		return nil
	})
	if err != nil || len(old) == 0 {
		return false, err
	}
	if more = len(old) > maxPurge; more {
		old = old[:maxPurge]
	}
	for _, m := range old {
		if err := r.remove(m); err != nil {
			return false, err
		}
		told(m)
	}
	return more, r.dropClaims()
}

// remove forgets a message: first what agents did with it, then the message itself.
func (r *mailroom) remove(m *AgentMessage) error {
	id := idBytes(m.ID)
	_, seq, err := r.message(id)
	if err != nil {
		return err
	}
	number, from := uint64Bytes(seq), r.key(m.Sender)
	sender, err := r.agent(from)
	if err != nil {
		return err
	}
	drop := func(bucket string, key []byte) {
		if err == nil {
			err = r.tx.Bucket(bucket).Delete(key)
		}
	}
	if merr := r.removeMarks(m, id, number); merr != nil {
		return merr
	}
	sender.Traffic--
	switch {
	case m.Broadcast():
		room, err := r.room()
		if err != nil {
			return err
		}
		room.Broadcasts--
		sender.Own--
		drop(agentBroadcasts, number)
	case m.Recipient != m.Sender:
		to := r.key(m.Recipient)
		recipient, err := r.agent(to)
		if err != nil {
			return err
		}
		recipient.Traffic--
		drop(agentReceived, join(to[:], number))
		drop(agentInbox, join(to[:], number))
	}
	if m.ReplyTo != "" {
		parent := idBytes(m.ReplyTo)
		drop(agentReplies, join(parent[:], number))
	}
	drop(agentExpiry, expiryKey(m.Created.UnixMicro(), seq))
	drop(agentMessages, id[:])
	return err
}

// removeMarks takes a message out of the numbers of those whose it was to read.
func (r *mailroom) removeMarks(m *AgentMessage, id messageID, number []byte) error {
	marks := map[agentKey]*markRecord{}
	err := r.tx.Bucket(agentMarks).ForEach(id[:], func(key, value []byte) error {
		if len(key) != len(id)+len(agentKey{}) {
			return damagedRecord("a mark")
		}
		record, err := parseRecord[markRecord](agentMarks, value)
		marks[agentKey(key[len(id):])] = record
		return err
	})
	if err != nil {
		return err
	}
	if from, to := r.key(m.Sender), r.key(m.Recipient); !m.Broadcast() {
		a, err := r.agent(to)
		if err != nil {
			return err
		}
		done := marks[to]
		if from != to && (done == nil || done.Read == 0) {
			a.Unread--
		}
		if from != to && (done == nil || done.Acked == 0) {
			a.Unacked--
		}
	}
	for key, done := range marks {
		if err := r.tx.Bucket(agentMarks).Delete(join(id[:], key[:])); err != nil {
			return err
		}
		if !m.Broadcast() || key == r.key(m.Sender) {
			continue
		}
		a, err := r.agent(key)
		if err != nil {
			return err
		}
		a.Marked--
		if done.Read != 0 {
			a.Read--
		}
		if done.Acked != 0 {
			a.Acked--
		}
		if err := r.tx.Bucket(agentInbox).Delete(join(key[:], number)); err != nil {
			return err
		}
	}
	return nil
}

// dropClaims forgets the claims that hold no more, of readers that died and of
// agents that never came back. There are few: each lasts seconds.
func (r *mailroom) dropClaims() error {
	var over [][]byte
	err := r.tx.Bucket(agentClaims).ForEach(nil, func(key, value []byte) error {
		c, err := parseRecord[claimRecord](agentClaims, value)
		if err == nil && !c.live(r.now) {
			over = append(over, key)
		}
		return err
	})
	for _, key := range over {
		if err == nil {
			err = r.tx.Bucket(agentClaims).Delete(key)
		}
	}
	return err
}
