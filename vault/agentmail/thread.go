package agentmail

import (
	"cmp"
	"slices"

	"github.com/postern-mail/postern/vault/kv"
)

// thread collects a thread from its root. A reply points to an older message, but a
// damaged store might hold a loop.
func (r *room) thread(q *Thread) (messages []Message) {
	m, root := r.byID(q.ID)
	if m == nil || q.Own && !m.concerns(q.Agent) {
		r.fail(ErrNoMessage)
		return nil
	}
	for seen := map[uint64]bool{}; m.ReplyTo != "" && !seen[root.seq]; {
		seen[root.seq] = true
		parent, at := r.byID(m.ReplyTo)
		if parent == nil {
			break
		}
		m, root = parent, at
	}
	type found struct {
		Message
		seq uint64
	}
	var list []found
	left := q.Room.Room
	queued := map[uint64]bool{root.seq: true}
	for queue := []place{root}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		m := r.message(at)
		if m == nil {
			continue // expired, as its replies will
		}
		if !q.Own || m.concerns(q.Agent) {
			// The marks of the recipient, or for a broadcast those of the reading agent.
			whose := m.Recipient
			if m.Broadcast() {
				whose = q.Agent
			}
			done := r.mark(at.seq, r.key(whose))
			m.ReadAt, m.AckedAt = moment(done.read), moment(done.acked)
			if fits := q.takes(m, &left); !fits && len(list) > 0 {
				r.fail(ErrThreadTooLong)
				return nil
			}
			list = append(list, found{*m, at.seq})
		}
		replies := idKey(indexReply, m.ID)
		for key := range r.each(bucketIndex, kv.Prefix(replies), len(replies)+16) {
			if child := r.place(key[len(replies):]); !queued[child.seq] {
				queued[child.seq] = true
				queue = append(queue, child)
			}
		}
	}
	slices.SortFunc(list, func(a, b found) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.seq, b.seq))
	})
	for i := range list {
		messages = append(messages, list[i].Message)
	}
	return messages
}
