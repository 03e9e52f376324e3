package agentmail

import (
	"cmp"
	"slices"

	"github.com/postern-mail/postern/vault/kv"
)

// thread collects a thread from its root. Replies point to what is older, so there
// is no circle, but the store might say otherwise.
func (r *room) thread(q *Thread) ([]Message, error) {
	m, root, err := r.byID(q.ID)
	if err != nil {
		return nil, err
	}
	if m == nil || q.Own && !m.concerns(q.Agent) {
		return nil, ErrNoMessage
	}
	for seen := map[uint64]bool{}; m.ReplyTo != "" && !seen[root.seq]; {
		seen[root.seq] = true
		parent, at, err := r.byID(m.ReplyTo)
		if err != nil {
			return nil, err
		}
		if parent == nil {
			break
		}
		m, root = parent, at
	}
	var list []letter
	left := q.Room.Room
	queued := map[uint64]bool{root.seq: true}
	for queue := []place{root}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		m, err := r.message(at)
		if err != nil {
			return nil, err
		}
		if m == nil {
			continue // its time is over, and that of its answers will be
		}
		if !q.Own || m.concerns(q.Agent) {
			// When it was read and acted on: by its recipient, or a broadcast by the
			// agent who asks.
			whose := m.Recipient
			if m.Broadcast() {
				whose = q.Agent
			}
			done, err := r.mark(at.seq, r.key(whose))
			if err != nil {
				return nil, err
			}
			m.ReadAt, m.AckedAt = moment(done.read), moment(done.acked)
			if fits := q.takes(m, &left); !fits && len(list) > 0 {
				return nil, ErrThreadTooLong
			}
			list = append(list, letter{Message: *m, seq: at.seq})
		}
		replies := idKey(indexReply, m.ID)
		for record, err := range kv.Each(r.tx, bucketIndex, kv.Prefix(replies)) {
			if err != nil {
				return nil, err
			}
			child, err := parsePlace(record.Key[len(replies):])
			if err != nil {
				return nil, err
			}
			if !queued[child.seq] {
				queued[child.seq] = true
				queue = append(queue, child)
			}
		}
	}
	slices.SortFunc(list, func(a, b letter) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.seq, b.seq))
	})
	messages := make([]Message, len(list))
	for i := range list {
		messages[i] = list[i].Message
	}
	return messages, nil
}
