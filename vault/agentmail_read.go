package vault

import (
	"bytes"
	"encoding/binary"
	"slices"
	"time"
)

// letter is one message that a look at an inbox came upon.
type letter struct {
	arrival
	seq   uint64
	fresh bool  // a broadcast that is not in the inbox yet
	held  int64 // when another reader took it, in microseconds; 0 where none has
}

// run walks the keys of an index that have a prefix, in the order of the number that
// follows it.
type run struct {
	cursor     *Cursor
	prefix     []byte
	key, value []byte
}

func newRun(b *Bucket, prefix []byte, after uint64) (*run, error) {
	w := &run{cursor: b.Cursor(), prefix: prefix}
	key, value, err := w.cursor.Seek(join(prefix, uint64Bytes(after+1)))
	return w, w.stand(key, value, err)
}

func (w *run) next() error {
	key, value, err := w.cursor.Next()
	return w.stand(key, value, err)
}

func (w *run) stand(key, value []byte, err error) error {
	if err != nil {
		return err
	}
	w.key, w.value = nil, nil
	if key != nil && bytes.HasPrefix(key, w.prefix) {
		if len(key) != len(w.prefix)+8 {
			return damagedRecord("an index")
		}
		w.key, w.value = key, value
	}
	return nil
}

// seq is the number the run stands at, or the greatest where it has ended.
func (w *run) seq() uint64 {
	if w.key == nil {
		return ^uint64(0)
	}
	return binary.BigEndian.Uint64(w.key[len(w.prefix):])
}

// hold is what claims make of an inbox.
type hold struct {
	at    map[uint64]int64 // by number: when the message was taken, in microseconds
	retry time.Time        // when the first of them comes back; zero where there are none
	over  [][]byte         // keys of claims that nobody will come back for
}

func (r *mailroom) held(agent agentKey) (hold, error) {
	h := hold{at: map[uint64]int64{}}
	err := r.tx.Bucket(agentClaims).ForEach(agent[:], func(key, value []byte) error {
		c, err := parseRecord[claimRecord](agentClaims, value)
		if err != nil || !c.live(r.now) {
			if err == nil && c.over(r.now) {
				h.over = append(h.over, key)
			}
			return err
		}
		for _, seq := range c.Seqs {
			h.at[seq] = c.At
		}
		if e := c.expires(); h.retry.IsZero() || e.Before(h.retry) {
			h.retry = e
		}
		return nil
	})
	return h, err
}

// idle reports whether there is nothing in an inbox that could be read, and nothing
// to note for the next look.
func (r *mailroom) idle(agent string) (bool, error) {
	key := r.key(agent)
	a, err := r.agent(key)
	if err != nil {
		return false, err
	}
	broadcasts, err := newRun(r.tx.Bucket(agentBroadcasts), nil, a.Synced)
	if err != nil || broadcasts.key != nil {
		return false, err
	}
	h, err := r.held(key)
	if err != nil {
		return false, err
	}
	inbox, err := newRun(r.tx.Bucket(agentInbox), key[:], 0)
	for ; err == nil && inbox.key != nil; err = inbox.next() {
		a, _, err := parseArrival(inbox.value)
		if err != nil || h.at[inbox.seq()] == 0 && !r.expired(time.UnixMicro(a.created)) {
			return false, err
		}
	}
	return err == nil, err
}

// view is what a look at an inbox found.
type view struct {
	inbox  AgentInbox
	taken  []letter // beside inbox.Messages, before they are sorted
	passed []letter // fresh ones that were not taken
	synced uint64   // every broadcast up to here was looked at
	left   int      // of the room for messages
	over   [][]byte // keys of claims to forget
}

// look finds the messages of a query without changing anything.
func (r *mailroom) look(q *AgentQuery) (AgentInbox, error) {
	v, err := r.survey(q)
	return v.inbox, err
}

// survey walks what may be read: the inbox and the broadcasts nobody looked at yet,
// or with q.All everything that ever came.
func (r *mailroom) survey(q *AgentQuery) (v view, err error) {
	agent := r.key(q.Agent)
	a, err := r.agent(agent)
	if err != nil {
		return v, err
	}
	h, err := r.held(agent)
	if err != nil {
		return v, err
	}
	v.inbox.Retry, v.synced, v.left, v.over = h.retry, a.Synced, q.Room, h.over
	direct, after := agentInbox, a.Synced
	if q.All {
		direct, after = agentReceived, 0
	}
	own, err := newRun(r.tx.Bucket(direct), agent[:], 0)
	if err != nil {
		return v, err
	}
	shared, err := newRun(r.tx.Bucket(agentBroadcasts), nil, after)
	for err == nil && (own.key != nil || shared.key != nil) {
		w, isShared := own, false
		if shared.seq() < own.seq() {
			w, isShared = shared, true
		}
		here, rest, verr := parseArrival(w.value)
		if verr != nil {
			return v, verr
		}
		e := letter{arrival: here, seq: w.seq(), held: h.at[w.seq()]}
		full, verr := r.visit(q, agent, e, isShared, rest, &v)
		if verr != nil || full {
			return v, verr
		}
		if isShared && !q.All {
			v.synced = e.seq
		}
		err = w.next()
	}
	return v, err
}

// visit decides about one message, of which a record of agentReceived has brought the
// mark. It reports that the answer is full.
func (r *mailroom) visit(q *AgentQuery, agent agentKey, e letter, shared bool, brought []byte, v *view) (full bool, err error) {
	switch {
	case len(v.taken) == q.Limit:
		return true, nil
	case e.from == agent || e.held != 0 && !q.All || r.expired(time.UnixMicro(e.created)):
		return false, nil
	}
	var done mark
	switch {
	case shared:
		var there bool
		if done, there, err = r.mark(e.kind, agent, e.seq); err != nil {
			return false, err
		}
		if there && !q.All {
			return false, nil // in the inbox, or read
		}
		e.fresh = !there
	case q.All:
		if done, err = parseMark(brought); err != nil {
			return false, err
		}
	}
	if q.From != "" && e.from != r.key(q.From) {
		if e.fresh && !q.All {
			v.passed = append(v.passed, e)
		}
		return false, nil
	}
	m, err := r.message(e.seq)
	if err != nil || m == nil {
		return false, err
	}
	if !shared && !q.All { // an ack alone leaves a message in the inbox
		if done, _, err = r.mark(e.kind, agent, e.seq); err != nil {
			return false, err
		}
	}
	if done.read == 0 {
		done.read = e.held
	}
	m.ReadAt, m.AckedAt = moment(done.read), moment(done.acked)
	if fits := q.takes(m, &v.left); !fits && len(v.taken) > 0 {
		return true, nil
	}
	v.taken = append(v.taken, e)
	v.inbox.Messages = append(v.inbox.Messages, *m)
	if len(v.taken) > 1 {
		sortMessages(v)
	}
	return false, nil
}

// sortMessages keeps messages by their creation, and those of one moment as they
// came. They come sorted unless the clock went back.
func sortMessages(v *view) {
	list := v.inbox.Messages
	if n := len(list); !list[n-1].Created.Before(list[n-2].Created) {
		return
	}
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return list[a].Created.Compare(list[b].Created) })
	messages, taken := make([]AgentMessage, len(list)), make([]letter, len(list))
	for i, from := range order {
		messages[i], taken[i] = list[from], v.taken[from]
	}
	v.inbox.Messages, v.taken = messages, taken
}

func moment(micro int64) time.Time {
	if micro == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micro)
}

// claim is look, and holds what was unread for the caller.
func (r *mailroom) claim(q *AgentQuery) (AgentInbox, error) {
	v, err := r.survey(q)
	if err != nil {
		return AgentInbox{}, err
	}
	agent, a, err := r.named(q.Agent)
	if err != nil {
		return AgentInbox{}, err
	}
	a.Synced = max(a.Synced, v.synced)
	if err := r.forget(v.over); err != nil {
		return AgentInbox{}, err
	}
	held := claimRecord{At: r.now.UnixMicro()}
	for i, e := range v.taken {
		if v.inbox.Messages[i].ReadAt.IsZero() {
			held.Seqs = append(held.Seqs, e.seq)
			v.passed = append(v.passed, e)
		}
	}
	for _, e := range v.passed {
		if !e.fresh {
			continue
		}
		if err := r.receive(agent, a, e, mark{}); err != nil {
			return AgentInbox{}, err
		}
	}
	if len(held.Seqs) == 0 {
		return v.inbox, nil
	}
	if v.inbox.Claim, err = newAgentID(); err != nil {
		return AgentInbox{}, err
	}
	token := idBytes(v.inbox.Claim)
	return v.inbox, putRecord(r.tx, agentClaims, join(agent[:], token[:]), held)
}

// receive puts a broadcast into an inbox.
func (r *mailroom) receive(agent agentKey, a *agentRecord, e letter, m mark) error {
	a.Marked++
	if err := r.tx.Bucket(agentInbox).Put(join(agent[:], uint64Bytes(e.seq)), e.arrival.bytes()); err != nil {
		return err
	}
	return r.putMark(kindBroadcast, agent, e.seq, m)
}

// confirm marks what a claim holds as read. What is not in the inbox any more was
// read by somebody else or has expired.
func (r *mailroom) confirm(agent, claim string) error {
	key, token := r.key(agent), idBytes(claim)
	at := join(key[:], token[:])
	c, err := getRecord[claimRecord](r.tx, agentClaims, at)
	if err != nil || c == nil {
		return err
	}
	// A claim that ended holds nothing that another one holds by now.
	h, err := r.held(key)
	if err != nil {
		return err
	}
	_, a, err := r.named(agent)
	if err != nil {
		return err
	}
	for _, seq := range c.Seqs {
		if other := h.at[seq]; !c.live(r.now) && other != 0 {
			continue
		}
		place := join(key[:], uint64Bytes(seq))
		value, err := r.tx.Bucket(agentInbox).Get(place)
		if err != nil {
			return err
		}
		if value == nil {
			continue
		}
		here, _, err := parseArrival(value)
		if err != nil {
			return err
		}
		done, _, err := r.mark(here.kind, key, seq)
		if err != nil {
			return err
		}
		done.read = c.At
		if err := r.putMark(here.kind, key, seq, done); err != nil {
			return err
		}
		if err := r.tx.Bucket(agentInbox).Delete(place); err != nil {
			return err
		}
		if here.kind == kindBroadcast {
			a.Read++
		} else {
			a.Unread--
		}
	}
	return r.tx.Bucket(agentClaims).Delete(at)
}

// ack notes that an agent acted on a message. A direct message has one ack, that of
// its recipient, whoever gives it.
func (r *mailroom) ack(agent, text string, own bool) (time.Time, error) {
	m, seq, err := r.byID(idBytes(text))
	if err != nil {
		return time.Time{}, err
	}
	if m == nil || own && !m.Broadcast() && m.Recipient != agent {
		return time.Time{}, ErrNoAgentMessage
	}
	whose := agent
	if !m.Broadcast() {
		whose = m.Recipient
	}
	key, a, err := r.named(whose)
	if err != nil {
		return time.Time{}, err
	}
	done, there, err := r.mark(m.kind(), key, seq)
	if err != nil {
		return time.Time{}, err
	}
	if done.acked != 0 {
		return time.UnixMicro(done.acked), nil
	}
	done.acked = r.now.UnixMicro()
	switch counts := m.Sender != whose; {
	case counts && m.Broadcast():
		a.Acked++
		if !there {
			here := arrival{r.key(m.Sender), m.Created.UnixMicro(), kindBroadcast}
			return r.now, r.receive(key, a, letter{arrival: here, seq: seq}, done)
		}
	case counts:
		a.Unacked--
	}
	return r.now, r.putMark(m.kind(), key, seq, done)
}

// status calls fn with every agent that has a part in a message that is here, or with
// the one that is named. It counts what the file holds, so nothing in it may have
// expired.
func (r *mailroom) status(agent string, fn func(AgentStatus)) error {
	room, err := r.room()
	if err != nil {
		return err
	}
	one := func(key agentKey, a *agentRecord) error {
		if a.Traffic == 0 {
			return nil
		}
		// What is on its way to a reader counts as read.
		h, err := r.held(key)
		if err != nil {
			return err
		}
		unread, unacked := a.Unread+room.Broadcasts-a.Own-a.Read, a.Unacked+room.Broadcasts-a.Own-a.Acked
		for seq := range h.at {
			value, err := r.tx.Bucket(agentInbox).Get(join(key[:], uint64Bytes(seq)))
			if err != nil {
				return err
			}
			if value != nil {
				unread--
			}
		}
		fn(AgentStatus{a.Name, unread, unacked})
		return nil
	}
	if agent != "" {
		key := r.key(agent)
		a, err := r.agent(key)
		if err != nil {
			return err
		}
		return one(key, a)
	}
	return r.tx.Bucket(agentAgents).ForEach(nil, func(key, value []byte) error {
		a, err := parseRecord[agentRecord](agentAgents, value)
		if err == nil && len(key) != len(agentKey{}) {
			err = damagedRecord("an agent")
		}
		if err != nil {
			return err
		}
		return one(agentKey(key), a)
	})
}
