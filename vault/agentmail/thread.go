package agentmail

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/postern-mail/postern/vault/kv"
)

// thread collects a thread from its root. A reply points to an older message, but a
// damaged store might hold a loop.
func (r *room) thread(q *Thread) (in Inbox) {
	m, root := r.byID(q.ID)
	if m == nil || q.Own && !m.concerns(q.Agent) {
		r.fail(ErrNoMessage)
		return in
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
		place
		id      string
		created time.Time
	}
	var list []found
	queued := map[uint64]bool{root.seq: true}
	for queue := []place{root}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		m := r.message(at)
		if m == nil {
			continue // expired, as its replies will
		}
		if !q.Own || m.concerns(q.Agent) {
			list = append(list, found{at, m.ID, m.Created})
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
		return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.seq, b.seq))
	})
	if q.After != "" {
		i := slices.IndexFunc(list, func(f found) bool { return f.id == strings.ToLower(q.After) })
		if i < 0 {
			r.fail(ErrNoMessage)
			return in
		}
		list = list[i+1:]
	}
	left := q.Room.Room
	for i, f := range list {
		m := r.message(f.place)
		if m == nil {
			continue
		}
		// The marks of the recipient, or for a broadcast those of the reading agent.
		whose := m.Recipient
		if m.Broadcast() {
			whose = q.Agent
		}
		done := r.mark(f.seq, r.key(whose))
		m.ReadAt, m.AckedAt = moment(done.read), moment(done.acked)
		if fits := q.takes(m, &left); !fits && len(in.Messages) > 0 {
			in.Last = list[i-1].id
			break
		}
		in.Messages = append(in.Messages, *m)
	}
	return in
}
