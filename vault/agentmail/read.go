package agentmail

import (
	"encoding/binary"
	"iter"
	"slices"
	"time"

	"github.com/postern-mail/postern/vault/kv"
)

// box walks one kind of an agent's box from behind a number on.
func (r *room) box(agent agentKey, kind byte, after uint64) iter.Seq2[arrival, error] {
	prefix := join(agent[:], []byte{kind})
	span := kv.Prefix(prefix)
	span.From = boxKey(agent, kind, after+1)
	return func(yield func(arrival, error) bool) {
		for record, err := range kv.Each(r.tx, bucketBoxes, span) {
			var a arrival
			if err == nil && len(record.Key) != len(prefix)+8 {
				err = damaged("a box")
			}
			if err == nil {
				a, err = parseArrival(binary.BigEndian.Uint64(record.Key[len(prefix):]), record.Value)
			}
			if !yield(a, err) || err != nil {
				return
			}
		}
	}
}

// letter is one message that a look at an inbox came upon.
type letter struct {
	Message
	seq    uint64
	here   arrival
	done   mark
	shared bool // it was found among the broadcasts
}

// view is what a look at an inbox found.
type view struct {
	letters []letter
	passed  []letter // broadcasts that were looked at and are of another sender
	synced  uint64   // every broadcast up to here was looked at
	retry   time.Time
	news    bool // there is something to hold or to note
}

// inbox is the view as its reader gets it.
func (v *view) inbox() Inbox {
	in := Inbox{Retry: v.retry}
	for i := range v.letters {
		in.Messages = append(in.Messages, v.letters[i].Message)
	}
	return in
}

// held is what readers hold: by number, when it was taken, in microseconds.
func (a *agent) held(now time.Time) map[uint64]int64 {
	held := map[uint64]int64{}
	for _, c := range a.Claims {
		if c.live(now) {
			for _, seq := range c.Seqs {
				held[seq] = c.At
			}
		}
	}
	return held
}

// survey walks what may be read: what is unread and the broadcasts nobody looked at yet,
// or with q.All everything that ever came.
func (r *room) survey(q *Query) (v view, err error) {
	key := r.key(q.Agent)
	a, err := r.agent(key)
	if err != nil {
		return v, err
	}
	for _, c := range a.Claims {
		if e := c.expires(); c.live(r.now) && (v.retry.IsZero() || e.Before(v.retry)) {
			v.retry = e
		}
	}
	held, left := a.held(r.now), q.Room.Room
	kind, after := byte(boxUnread), a.Synced
	if q.All {
		kind, after = boxAll, 0
	}
	v.synced = a.Synced
	for e, err := range merge(r.box(key, kind, 0), r.box(r.key(Everyone), boxAll, after)) {
		if err != nil {
			return v, err
		}
		if len(v.letters) == q.Limit {
			break
		}
		if r.expired(e.here.created) || held[e.seq] != 0 && !q.All {
			continue
		}
		if e.done, err = r.mark(e.seq, key); err != nil {
			return v, err
		}
		mine := e.here.from == key || e.shared && !q.All && e.done.read != 0
		other := !mine && q.From != "" && e.here.from != r.key(q.From)
		if !mine && !other {
			m, err := r.message(e.here.place)
			if err != nil {
				return v, err
			}
			if m == nil {
				return v, damaged("a message")
			}
			e.Message = *m
			read := e.done.read
			if read == 0 {
				read = held[e.seq]
			}
			e.ReadAt, e.AckedAt = moment(read), moment(e.done.acked)
			if fits := q.takes(&e.Message, &left); !fits && len(v.letters) > 0 {
				break
			}
			v.letters = append(v.letters, e)
			v.news = v.news || e.ReadAt.IsZero()
		}
		if e.shared && !q.All {
			v.synced = max(v.synced, e.seq)
			if other {
				v.passed = append(v.passed, e)
			}
		}
	}
	v.news = v.news || v.synced > a.Synced
	// They come in the order of their creation, unless the clock went back.
	slices.SortStableFunc(v.letters, func(a, b letter) int { return a.Created.Compare(b.Created) })
	return v, nil
}

// merge joins two boxes in the order of numbers. What is in both is not shared.
func merge(own, shared iter.Seq2[arrival, error]) iter.Seq2[letter, error] {
	return func(yield func(letter, error) bool) {
		next, stop := iter.Pull2(shared)
		defer stop()
		b, err, more := next()
		for a, ownErr := range own {
			for more && err == nil && b.seq < a.seq {
				if !yield(letter{seq: b.seq, here: b, shared: true}, nil) {
					return
				}
				b, err, more = next()
			}
			if more && err == nil && b.seq == a.seq {
				b, err, more = next()
			}
			if err == nil {
				err = ownErr
			}
			if !yield(letter{seq: a.seq, here: a}, err) || err != nil {
				return
			}
		}
		for ; more; b, err, more = next() {
			if !yield(letter{seq: b.seq, here: b, shared: true}, err) || err != nil {
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
func (r *room) claim(q *Query) (Inbox, error) {
	v, err := r.survey(q)
	if err != nil {
		return Inbox{}, err
	}
	key, a, err := r.named(q.Agent)
	if err != nil {
		return Inbox{}, err
	}
	a.Synced = v.synced
	a.Claims = slices.DeleteFunc(a.Claims, func(c claim) bool { return c.over(r.now) })
	in, c := v.inbox(), claim{ID: newID(), At: r.now.UnixMicro()}
	for _, e := range v.letters {
		if e.ReadAt.IsZero() {
			c.Seqs = append(c.Seqs, e.seq)
			v.passed = append(v.passed, e)
		}
	}
	for _, e := range v.passed {
		if !e.shared {
			continue
		}
		if err := r.tx.Put(bucketBoxes, boxKey(key, boxUnread, e.seq), e.here.bytes()); err != nil {
			return Inbox{}, err
		}
		if err := r.putMark(e.seq, key, e.done); err != nil {
			return Inbox{}, err
		}
	}
	if len(c.Seqs) > 0 {
		a.Claims, in.Claim = append(a.Claims, c), c.ID
	}
	return in, nil
}

// confirm marks what a claim holds as read. What is not unread any more was read by
// somebody else or has expired.
func (r *room) confirm(name, id string) error {
	key := r.key(name)
	a, err := r.agent(key)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(a.Claims, func(c claim) bool { return c.ID == id })
	if i < 0 {
		return nil
	}
	c := a.Claims[i]
	a.Claims = slices.Delete(a.Claims, i, i+1)
	held := a.held(r.now)
	for _, seq := range c.Seqs {
		// A claim that ended holds nothing that another one holds by now.
		if !c.live(r.now) && held[seq] != 0 {
			continue
		}
		unread, err := r.tx.Get(bucketBoxes, boxKey(key, boxUnread, seq))
		if err != nil {
			return err
		}
		if unread == nil {
			continue
		}
		done, err := r.mark(seq, key)
		if err != nil {
			return err
		}
		done.read = c.At
		if err := r.putMark(seq, key, done); err != nil {
			return err
		}
		if err := r.tx.Delete(bucketBoxes, boxKey(key, boxUnread, seq)); err != nil {
			return err
		}
	}
	return nil
}
