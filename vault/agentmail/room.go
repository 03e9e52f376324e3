package agentmail

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/postern-mail/postern/vault"
	"github.com/postern-mail/postern/vault/kv"
)

// The buckets, see the package comment.
const (
	bucketMessages = "agents.messages"
	bucketIndex    = "agents.index"
	bucketBoxes    = "agents.boxes"
	bucketAgents   = "agents.agents"

	indexID, indexReply, indexMark = 'i', 'r', 'm'
	boxAll, boxUnread, boxHeld     = 'd', 'u', 'h'
)

type agentKey = [16]byte // digest of an identity

// place is the position of a message in the bucket.
type place struct {
	created int64 // microseconds
	seq     uint64
}

func (p place) bytes() []byte { return join(number(uint64(p.created)), number(p.seq)) }

// arrival is a box's record of a message, so that most messages need not be read.
type arrival struct {
	place
	from agentKey
}

func (a arrival) bytes() []byte { return join(a.from[:], number(uint64(a.created))) }

// hold is the claim that holds a message, and its start in microseconds.
type hold struct {
	id uint64
	at int64
}

// until returns when the message becomes unread again if the reader has died; zero where
// it is not held. A hold from the future, left by a clock that went back, does not count.
func (h hold) until(now time.Time) (end time.Time) {
	if from := time.UnixMicro(h.at); !now.Before(from) && now.Before(from.Add(Lease)) {
		end = from.Add(Lease)
	}
	return end
}

// mark is when an agent read and acknowledged a message, in microseconds; 0 is not yet.
type mark struct{ read, acked int64 }

// messageRecord is a Message as stored.
type messageRecord struct {
	Message
	TTLHours int   `json:"ttl_hours"`
	Created  int64 `json:"created"` // microseconds
}

// agentRecord is the record of an agent. In Everyone's, Synced is the number of the
// newest message.
type agentRecord struct {
	Name    string `json:"name,omitempty"`
	Traffic int    `json:"traffic,omitempty"` // existing messages that it sent or got directly
	Synced  uint64 `json:"synced,omitempty"`  // the last broadcast it looked at

	// Of a principal's record, which is of no agent: its share of the mailbox.
	Kept      int `json:"kept,omitempty"`
	KeptBytes int `json:"kept_bytes,omitempty"`
}

// agent is an agentRecord with its stored form.
type agent struct {
	agentRecord
	saved []byte // nil makes save look at it again
}

// room is the mailbox within one transaction. The first error stays in err: after it
// the room finds and changes nothing, and nothing is kept.
type room struct {
	tx        kv.Tx
	limits    limits
	digestKey []byte
	now       time.Time // in whole microseconds
	agents    map[agentKey]*agent
	err       error
}

func (r *room) fail(err error) { r.err = cmp.Or(r.err, err) }

// get returns a value, or nil where the record does not exist.
func (r *room) get(bucket string, key []byte) []byte {
	if r.err != nil {
		return nil
	}
	value, err := r.tx.Get(bucket, key)
	r.fail(err)
	return value
}

func (r *room) put(bucket string, key, value []byte) {
	if r.err == nil {
		r.err = r.tx.Put(bucket, key, value)
	}
}

func (r *room) drop(bucket string, key []byte) {
	if r.err == nil {
		r.err = r.tx.Delete(bucket, key)
	}
}

// each walks the records of a range whose keys have so many bytes; 0 is any number.
func (r *room) each(bucket string, span kv.Range, size int) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		for record, err := range kv.Each(r.tx, bucket, span) {
			if err == nil && size > 0 && len(record.Key) != size {
				err = damaged("a key in " + bucket)
			}
			r.fail(err)
			if r.err != nil || !yield(record.Key, record.Value) {
				return
			}
		}
	}
}

// sized returns a value that must have so many bytes, or zeros.
func (r *room) sized(value []byte, size int) []byte {
	if len(value) != size {
		r.fail(damaged("a record"))
		return make([]byte, size)
	}
	return value
}

func (r *room) place(value []byte) place {
	value = r.sized(value, 16)
	return place{parseNumber(value), uint64(parseNumber(value[8:]))}
}

// key returns the digest of an identity, as the vault makes digests.
func (r *room) key(name string) agentKey {
	h := hmac.New(sha256.New, r.digestKey)
	h.Write(number(uint64(len(name))))
	h.Write([]byte(name))
	return agentKey(h.Sum(nil)[:16])
}

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func parseNumber(b []byte) int64 { return int64(binary.BigEndian.Uint64(b)) }

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func boxKey(agent agentKey, kind byte, seq uint64) []byte {
	return join(agent[:], []byte{kind}, number(seq))
}

func markKey(seq uint64, agent agentKey) []byte {
	return join([]byte{indexMark}, number(seq), agent[:])
}

// idKey returns the key of a UUID.
func idKey(kind byte, id string) []byte {
	b, _ := hex.DecodeString(strings.ReplaceAll(id, "-", ""))
	return append([]byte{kind}, b...)
}

func damaged(what string) error {
	return fmt.Errorf("%w: %s of the agent mailbox", vault.ErrDamaged, what)
}

// expired reports whether a message created then has expired (003 TC12).
func (r *room) expired(created int64) bool { return r.now.Sub(time.UnixMicro(created)) > TTL }

// agent returns the record of an agent; save keeps changes.
func (r *room) agent(key agentKey) *agent {
	if a := r.agents[key]; a != nil {
		return a
	}
	a := &agent{saved: r.get(bucketAgents, key[:])}
	if a.saved == nil {
		a.saved = []byte("{}")
	}
	if json.Unmarshal(a.saved, &a.agentRecord) != nil {
		r.fail(damaged("an agent"))
	}
	// Other fields of an earlier version do not count as a change.
	a.saved, _ = json.Marshal(a.agentRecord)
	r.agents[key] = a
	return a
}

// named returns the record of an agent that may be new.
func (r *room) named(name string) (agentKey, *agent) {
	key := r.key(name)
	a := r.agent(key)
	a.Name = name
	return key, a
}

// save keeps the changes. The record of an agent without data is deleted.
func (r *room) save() {
	for key, a := range r.agents {
		b, err := json.Marshal(a.agentRecord)
		r.fail(err)
		switch {
		case bytes.Equal(b, a.saved):
		case r.forgotten(a):
			r.drop(bucketAgents, key[:])
		default:
			r.put(bucketAgents, key[:], b)
		}
	}
}

// forgotten reports whether an agent's record can be deleted. Synced matters only
// while a broadcast exists that the agent has looked at.
func (r *room) forgotten(a *agent) bool {
	if a.Name == Everyone || a.Traffic > 0 || a.Kept > 0 {
		return false
	}
	for shared := range r.box(r.key(Everyone), boxAll, 0) {
		if !r.expired(shared.created) {
			return shared.seq > a.Synced
		}
	}
	return true
}

// charge counts a message that comes, n = 1, or goes, n = -1, to its principal's share.
func (r *room) charge(m *Message, n int) {
	if m.Principal == "" {
		return
	}
	a := r.agent(r.key("principal " + m.Principal)) // no identity has a space
	a.Kept += n
	a.KeptBytes += n * (len(m.Subject) + len(m.Body) + len(m.Refs) + recordSize)
	if n > 0 && (a.Kept > r.limits.shareMessages || a.KeptBytes > r.limits.shareBytes) {
		r.fail(&vault.ShareFull{Of: vault.ShareMailbox, Principal: m.Principal, Count: r.limits.shareMessages, Bytes: int64(r.limits.shareBytes)})
	}
}

// recordSize is about what a message takes beside its texts, in bytes.
const recordSize = 1000

// add keeps a new message and returns its number.
func (r *room) add(m *Message) (seq uint64) {
	r.charge(m, 1)
	everyone, all := r.named(Everyone)
	from, sender := r.named(m.Sender)
	all.Synced++
	sender.Traffic++
	here := arrival{place: place{m.Created.UnixMicro(), all.Synced}, from: from}
	switch {
	case m.Broadcast():
		r.put(bucketBoxes, boxKey(everyone, boxAll, here.seq), here.bytes())
	case m.Recipient != m.Sender:
		to, recipient := r.named(m.Recipient)
		recipient.Traffic++
		r.put(bucketBoxes, boxKey(to, boxAll, here.seq), here.bytes())
		r.put(bucketBoxes, boxKey(to, boxUnread, here.seq), here.bytes())
	}
	if m.ReplyTo != "" {
		r.put(bucketIndex, join(idKey(indexReply, m.ReplyTo), here.place.bytes()), nil)
	}
	r.put(bucketIndex, idKey(indexID, m.ID), here.place.bytes())
	record, err := json.Marshal(messageRecord{Message: *m, TTLHours: int(TTL / time.Hour), Created: here.created})
	r.fail(err)
	r.put(bucketMessages, here.place.bytes(), record)
	return here.seq
}

// message returns the message at a place, or nil where it is gone or has expired.
func (r *room) message(at place) *Message {
	b := r.get(bucketMessages, at.bytes())
	if b == nil || r.expired(at.created) {
		return nil
	}
	return r.parseMessage(b)
}

// parseMessage returns nil where the record is damaged.
func (r *room) parseMessage(b []byte) *Message {
	var m messageRecord
	if json.Unmarshal(b, &m) != nil || !uuid.MatchString(m.ID) {
		r.fail(damaged("a message"))
		return nil
	}
	m.Message.Created = time.UnixMicro(m.Created)
	return &m.Message
}

// byID returns a message by its id, and its place; nil where it does not exist.
func (r *room) byID(id string) (*Message, place) {
	b := r.get(bucketIndex, idKey(indexID, id))
	if b == nil {
		return nil, place{}
	}
	at := r.place(b)
	return r.message(at), at
}

// mark returns an agent's mark on a message.
func (r *room) mark(seq uint64, agent agentKey) (m mark) {
	if b := r.get(bucketIndex, markKey(seq, agent)); b != nil {
		m = r.parseMark(b)
	}
	return m
}

func (r *room) parseMark(value []byte) mark {
	value = r.sized(value, 16)
	return mark{parseNumber(value), parseNumber(value[8:])}
}

func (r *room) putMark(seq uint64, agent agentKey, m mark) {
	r.put(bucketIndex, markKey(seq, agent), join(number(uint64(m.read)), number(uint64(m.acked))))
}

// ack notes that an agent acted on a message. A direct message has one ack, the
// recipient's, whichever agent calls.
func (r *room) ack(agent, id string, own bool) time.Time {
	m, at := r.byID(id)
	if m == nil || own && !m.Broadcast() && m.Recipient != agent {
		r.fail(ErrNoMessage)
		return time.Time{}
	}
	if !m.Broadcast() {
		agent = m.Recipient
	}
	whose := r.key(agent)
	done := r.mark(at.seq, whose)
	if done.acked == 0 {
		done.acked = r.now.UnixMicro()
		r.putMark(at.seq, whose, done)
	}
	return time.UnixMicro(done.acked)
}

// status returns every agent with a part in an existing message, or only the named one.
// Expired messages must be gone before.
func (r *room) status(agent string) (list []Status) {
	shared := slices.Collect(r.box(r.key(Everyone), boxAll, 0))
	one := func(key agentKey) {
		a := r.agent(key)
		if a.Traffic == 0 {
			return
		}
		s := Status{Agent: a.Name}
		for _, b := range slices.AppendSeq(slices.Clone(shared), r.box(key, boxAll, 0)) {
			if b.from == key {
				continue
			}
			done := r.mark(b.seq, key)
			if done.acked == 0 {
				s.Unacked++
			}
			if done.read == 0 && r.held(key, b.seq).until(r.now).IsZero() { // held messages count as read
				s.Unread++
			}
		}
		list = append(list, s)
	}
	if agent != "" {
		one(r.key(agent))
		return list
	}
	for key := range r.each(bucketAgents, kv.Range{}, len(agentKey{})) {
		one(agentKey(key))
	}
	return list
}
