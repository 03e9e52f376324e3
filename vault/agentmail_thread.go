package vault

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// thread collects a thread from its root. Replies point to what is older, so there
// is no circle, but the file might say otherwise.
func (r *mailroom) thread(q *AgentThread) ([]AgentMessage, error) {
	id := idBytes(q.ID)
	m, seq, err := r.byID(id)
	if err != nil {
		return nil, err
	}
	if m == nil || q.Own && !m.concerns(q.Agent) {
		return nil, ErrNoAgentMessage
	}
	root, seen := numbered{*m, seq}, map[string]bool{m.ID: true}
	for root.ReplyTo != "" && !seen[root.ReplyTo] {
		seen[root.ReplyTo] = true
		parent, seq, err := r.byID(idBytes(root.ReplyTo))
		if err != nil {
			return nil, err
		}
		if parent == nil {
			break
		}
		root = numbered{*parent, seq}
	}
	var list []numbered
	left := q.Room
	queued := map[uint64]bool{root.seq: true}
	for queue := []uint64{root.seq}; len(queue) > 0; queue = queue[1:] {
		m, err := r.message(queue[0])
		if err != nil {
			return nil, err
		}
		if m == nil {
			continue // its time is over, and that of its answers will be
		}
		if !q.Own || m.concerns(q.Agent) {
			if err := r.annotate(m, queue[0], q.Agent); err != nil {
				return nil, err
			}
			if fits := q.takes(m, &left); !fits && len(list) > 0 {
				return nil, ErrAgentThreadTooLong
			}
			list = append(list, numbered{*m, queue[0]})
		}
		id := idBytes(m.ID)
		err = r.tx.Bucket(agentReplies).ForEach(id[:], func(key, _ []byte) error {
			if len(key) != len(id)+8 {
				return damagedRecord("a reply")
			}
			if child := binary.BigEndian.Uint64(key[len(id):]); !queued[child] {
				queued[child] = true
				queue = append(queue, child)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(list, func(a, b numbered) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.seq, b.seq))
	})
	messages := make([]AgentMessage, len(list))
	for i := range list {
		messages[i] = list[i].AgentMessage
	}
	return messages, nil
}

type numbered struct {
	AgentMessage
	seq uint64
}

// annotate says when a message was read and acted on: by its recipient, or a
// broadcast by the agent who asks.
func (r *mailroom) annotate(m *AgentMessage, seq uint64, agent string) error {
	whose := m.Recipient
	if m.Broadcast() {
		whose = agent
	}
	done, _, err := r.mark(m.kind(), r.key(whose), seq)
	m.ReadAt, m.AckedAt = moment(done.read), moment(done.acked)
	return err
}
