package agentmail

import (
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/postern-mail/postern/vault/kv"
)

// box walks one kind of an agent's box, from after a number on.
func (r *room) box(agent agentKey, kind byte, after uint64) iter.Seq[arrival] {
	prefix := join(agent[:], []byte{kind})
	span := kv.Prefix(prefix)
	span.From = boxKey(agent, kind, after+1)
	return func(yield func(arrival) bool) {
		for key, value := range r.each(bucketBoxes, span, len(prefix)+8) {
			if !yield(r.arrival(uint64(parseNumber(key[len(prefix):])), value)) {
				return
			}
		}
	}
}

func (r *room) arrival(seq uint64, value []byte) (a arrival) {
	value = r.sized(value, 24)
	a.from, a.place = agentKey(value), place{parseNumber(value[16:]), seq}
	return a
}

// held returns the hold on a message that an agent has not read.
func (r *room) held(agent agentKey, seq uint64) (h hold) {
	if b := r.get(bucketBoxes, boxKey(agent, boxHeld, seq)); b != nil {
		b = r.sized(b, 16)
		h = hold{uint64(parseNumber(b)), parseNumber(b[8:])}
	}
	return h
}

// letter is one message found in an inbox.
type letter struct {
	arrival
	done   mark
	shared bool // found among the broadcasts
}

// view is the result of a look at an inbox.
type view struct {
	Inbox
	unread []arrival // those in Messages that are neither read nor held
	passed []letter  // unread broadcasts of this look
	synced uint64    // the last broadcast of this look
	news   bool      // the look must be written
}

// survey walks the messages that the agent may read: its unread messages and the new
// broadcasts, or with q.All every message.
func (r *room) survey(q *Query) (v view) {
	key := r.key(q.Agent)
	a := r.agent(key)
	v.synced = a.Synced
	left := q.Room.Room
	kind, after := byte(boxUnread), a.Synced
	if q.All {
		kind, after = boxAll, 0
	}
	behind := uint64(0)
	if q.After != "" {
		m, at := r.byID(q.After)
		if m == nil {
			r.fail(ErrNoMessage)
			return v
		}
		behind = at.seq
	}
	last := ""
	for e := range merge(r.box(key, kind, behind), r.box(r.key(Everyone), boxAll, max(after, behind))) {
		if len(v.Messages) == q.Limit {
			v.Last = last
			break
		}
		if r.expired(e.created) {
			continue
		}
		e.done = r.mark(e.seq, key)
		read := e.done.read
		var h hold
		if read == 0 {
			h = r.held(key, e.seq)
		}
		if end := h.until(r.now); !end.IsZero() {
			if read = h.at; v.Retry.IsZero() || end.Before(v.Retry) {
				v.Retry = end
			}
			if !q.All {
				continue
			}
		}
		mine := e.from == key || e.shared && !q.All && e.done.read != 0
		other := !mine && q.From != "" && e.from != r.key(q.From)
		unread := false
		if !mine && !other {
			m := r.message(e.place)
			if m == nil {
				r.fail(damaged("a message"))
				return v
			}
			m.ReadAt, m.AckedAt = moment(read), moment(e.done.acked)
			if fits := q.takes(m, &left); !fits && len(v.Messages) > 0 {
				v.Last = last
				break
			}
			v.Messages = append(v.Messages, *m)
			last = m.ID
			if unread = read == 0; unread {
				v.unread = append(v.unread, e.arrival)
			}
		}
		if e.shared && (unread || other && !q.All) {
			v.passed = append(v.passed, e)
		}
		if e.shared && !q.All {
			v.synced = max(v.synced, e.seq)
		}
	}
	v.news = len(v.unread) > 0 || v.synced > a.Synced
	// They are in the order of their creation, unless the clock went back.
	slices.SortStableFunc(v.Messages, func(a, b Message) int { return a.Created.Compare(b.Created) })
	return v
}

// merge joins two boxes in the order of numbers. A message in both is not shared.
func merge(own, shared iter.Seq[arrival]) iter.Seq[letter] {
	return func(yield func(letter) bool) {
		next, stop := iter.Pull(shared)
		defer stop()
		b, more := next()
		for a := range own {
			for ; more && b.seq < a.seq; b, more = next() {
				if !yield(letter{arrival: b, shared: true}) {
					return
				}
			}
			if more && b.seq == a.seq {
				b, more = next()
			}
			if !yield(letter{arrival: a}) {
				return
			}
		}
		for ; more; b, more = next() {
			if !yield(letter{arrival: b, shared: true}) {
				return
			}
		}
	}
}

func moment(micro int64) time.Time {
	if micro == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micro)
}

// claim is survey, and holds the unread messages for the caller.
func (r *room) claim(q *Query) Inbox {
	v := r.survey(q)
	key, a := r.named(q.Agent)
	a.Synced = v.synced
	for _, e := range v.passed {
		r.put(bucketBoxes, boxKey(key, boxUnread, e.seq), e.arrival.bytes())
		r.putMark(e.seq, key, e.done)
	}
	if len(v.unread) > 0 {
		v.Claim = &Claim{id: rand.Uint64()}
	}
	for _, e := range v.unread {
		r.put(bucketBoxes, boxKey(key, boxHeld, e.seq), join(number(v.Claim.id), number(uint64(r.now.UnixMicro()))))
		v.Claim.seqs = append(v.Claim.seqs, e.seq)
	}
	return v.Inbox
}

// confirm marks the messages of a claim as read. Messages that it no longer holds were
// taken by another reader or have expired.
func (r *room) confirm(name string, c *Claim) {
	key := r.key(name)
	for _, seq := range c.seqs {
		h := r.held(key, seq)
		if h.id != c.id {
			continue
		}
		done := r.mark(seq, key)
		done.read = h.at
		r.putMark(seq, key, done)
		r.drop(bucketBoxes, boxKey(key, boxUnread, seq))
		r.drop(bucketBoxes, boxKey(key, boxHeld, seq))
	}
}
