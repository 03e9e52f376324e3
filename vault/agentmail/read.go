package agentmail

import (
	"iter"
	"slices"
	"time"

	"github.com/postern-mail/postern/vault/kv"
)

// box walks one kind of an agent's box from behind a number on.
func (r *room) box(agent agentKey, kind byte, after uint64) iter.Seq[arrival] {
	prefix := join(agent[:], []byte{kind})
	span := kv.Prefix(prefix)
	span.From = boxKey(agent, kind, after+1)
	return func(yield func(arrival) bool) {
		for key, value := range r.each(bucketBoxes, span, len(prefix)+8) {
			value = r.sized(value, len(agentKey{})+8)
			if !yield(arrival{place{parseNumber(value[len(agentKey{}):]), uint64(parseNumber(key[len(prefix):]))}, agentKey(value)}) {
				return
			}
		}
	}
}

// letter is one message that a look at an inbox came upon.
type letter struct {
	arrival
	done   mark
	shared bool // it was found among the broadcasts
}

// view is what a look at an inbox found.
type view struct {
	Inbox
	unread []uint64 // the numbers of those in Messages that nobody has read or holds
	passed []letter // broadcasts that were looked at and are unread
	synced uint64   // every broadcast up to here was looked at
	news   bool     // there is something to hold or to note
}

// held is what readers hold, by number, when it was taken, in microseconds; and when
// the first of it comes back, zero where none is held.
func (a *agent) held(now time.Time) (held map[uint64]int64, retry time.Time) {
	held = map[uint64]int64{}
	for _, c := range a.Claims {
		if !c.live(now) {
			continue
		}
		if retry.IsZero() || c.expires().Before(retry) {
			retry = c.expires()
		}
		for _, seq := range c.Seqs {
			held[seq] = c.At
		}
	}
	return held, retry
}

// survey walks what may be read: what is unread and the broadcasts nobody looked at yet,
// or with q.All everything that ever came.
func (r *room) survey(q *Query) (v view) {
	key := r.key(q.Agent)
	a := r.agent(key)
	held, retry := a.held(r.now)
	v.Retry, v.synced = retry, a.Synced
	left := q.Room.Room
	kind, after := byte(boxUnread), a.Synced
	if q.All {
		kind, after = boxAll, 0
	}
	for e := range merge(r.box(key, kind, 0), r.box(r.key(Everyone), boxAll, after)) {
		if len(v.Messages) == q.Limit {
			break
		}
		if r.expired(e.created) || held[e.seq] != 0 && !q.All {
			continue
		}
		e.done = r.mark(e.seq, key)
		mine := e.from == key || e.shared && !q.All && e.done.read != 0
		other := !mine && q.From != "" && e.from != r.key(q.From)
		unread := false
		if !mine && !other {
			m := r.message(e.place)
			if m == nil {
				r.fail(damaged("a message"))
				return v
			}
			read := e.done.read
			if read == 0 {
				read = held[e.seq]
			}
			m.ReadAt, m.AckedAt = moment(read), moment(e.done.acked)
			if fits := q.takes(m, &left); !fits && len(v.Messages) > 0 {
				break
			}
			v.Messages = append(v.Messages, *m)
			if unread = read == 0; unread {
				v.unread = append(v.unread, e.seq)
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
	// They come in the order of their creation, unless the clock went back.
	slices.SortStableFunc(v.Messages, func(a, b Message) int { return a.Created.Compare(b.Created) })
	return v
}

// merge joins two boxes in the order of numbers. What is in both is not shared.
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

// claim is survey, and holds what was unread for the caller.
func (r *room) claim(q *Query) Inbox {
	v := r.survey(q)
	key, a := r.named(q.Agent)
	a.Synced = v.synced
	a.Claims = slices.DeleteFunc(a.Claims, func(c claim) bool { return c.over(r.now) })
	for _, e := range v.passed {
		r.put(bucketBoxes, boxKey(key, boxUnread, e.seq), e.arrival.bytes())
		r.putMark(e.seq, key, e.done)
	}
	if len(v.unread) > 0 {
		v.Claim = newID()
		a.Claims = append(a.Claims, claim{ID: v.Claim, At: r.now.UnixMicro(), Seqs: v.unread})
	}
	return v.Inbox
}

// confirm marks what a claim holds as read. What is not unread any more was read by
// somebody else or has expired.
func (r *room) confirm(name, id string) {
	key := r.key(name)
	a := r.agent(key)
	i := slices.IndexFunc(a.Claims, func(c claim) bool { return c.ID == id })
	if i < 0 {
		return
	}
	c := a.Claims[i]
	a.Claims = slices.Delete(a.Claims, i, i+1)
	held, _ := a.held(r.now)
	for _, seq := range c.Seqs {
		// A claim that ended holds nothing that another one holds by now.
		if !c.live(r.now) && held[seq] != 0 || r.get(bucketBoxes, boxKey(key, boxUnread, seq)) == nil {
			continue
		}
		done := r.mark(seq, key)
		done.read = c.At
		r.putMark(seq, key, done)
		r.drop(bucketBoxes, boxKey(key, boxUnread, seq))
	}
}
