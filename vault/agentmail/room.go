package agentmail

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
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
	boxAll, boxUnread              = 'd', 'u'
)

type (
	agentKey  = [16]byte // digest of an identity
	messageID = [16]byte
)

// place is where a message lies.
type place struct {
	created int64 // microseconds
	seq     uint64
}

func (p place) bytes() []byte { return join(number(uint64(p.created)), number(p.seq)) }

func parsePlace(b []byte) (place, error) {
	if len(b) != 16 {
		return place{}, damaged("a place")
	}
	return place{int64(binary.BigEndian.Uint64(b)), binary.BigEndian.Uint64(b[8:])}, nil
}

// arrival is what a box knows of a message, so that most need not be opened.
type arrival struct {
	place
	from agentKey
}

func (a arrival) bytes() []byte { return join(a.from[:], number(uint64(a.created))) }

func parseArrival(seq uint64, b []byte) (arrival, error) {
	if len(b) != 24 {
		return arrival{}, damaged("a box")
	}
	return arrival{place{int64(binary.BigEndian.Uint64(b[16:])), seq}, agentKey(b[:16])}, nil
}

// mark is what an agent did with a message and when, in microseconds; 0 is not yet.
type mark struct{ read, acked int64 }

func parseMark(b []byte) (mark, error) {
	if len(b) != 16 {
		return mark{}, damaged("a mark")
	}
	return mark{int64(binary.BigEndian.Uint64(b)), int64(binary.BigEndian.Uint64(b[8:]))}, nil
}

type messageRecord struct {
	ID        string `json:"id"`
	Sender    string `json:"sender"`
	Recipient string `json:"recipient"`
	Subject   string `json:"subject"`
	Body      string `json:"body"`
	Refs      string `json:"refs,omitempty"`
	ReplyTo   string `json:"reply_to,omitempty"`
	TTLHours  int    `json:"ttl_hours"`
	Created   int64  `json:"created"` // microseconds
}

func (m *messageRecord) message() *Message {
	return &Message{ID: m.ID, Sender: m.Sender, Recipient: m.Recipient, Subject: m.Subject, Body: m.Body, Refs: m.Refs,
		ReplyTo: m.ReplyTo, Created: time.UnixMicro(m.Created)}
}

// agentRecord is what is known of an agent. That of Everyone has in Synced the number of
// the newest message.
type agentRecord struct {
	Name    string  `json:"name,omitempty"`
	Traffic int     `json:"traffic,omitempty"` // messages that are here, which it sent or was sent directly
	Synced  uint64  `json:"synced,omitempty"`  // it has looked at broadcasts up to here
	Claims  []claim `json:"claims,omitempty"`
}

// agent is an agentRecord with what lies in the store of it.
type agent struct {
	agentRecord
	saved []byte
	less  bool // something of it was removed
}

// claim is what a reader holds.
type claim struct {
	ID   string   `json:"id"`
	At   int64    `json:"at"` // microseconds
	Seqs []uint64 `json:"seqs"`
}

func (c *claim) expires() time.Time { return time.UnixMicro(c.At).Add(Lease) }

// live reports whether the claim still holds. One from the future, which a clock that
// went back leaves behind, does not.
func (c *claim) live(now time.Time) bool {
	return now.Before(c.expires()) && !now.Before(time.UnixMicro(c.At))
}

// over reports whether nobody will come back for the claim. A reader that was only
// slow has some leases' time, since a late word is better than reading again.
func (c *claim) over(now time.Time) bool { return now.Sub(time.UnixMicro(c.At)).Abs() > 10*Lease }

// room is the mailbox within one transaction.
type room struct {
	tx        kv.Tx
	digestKey []byte
	now       time.Time // of microseconds
	agents    map[agentKey]*agent
}

// key is the digest of an identity, as the vault makes digests.
func (r *room) key(name string) agentKey {
	h := hmac.New(sha256.New, r.digestKey)
	h.Write(number(uint64(len(name))))
	h.Write([]byte(name))
	return agentKey(h.Sum(nil)[:16])
}

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func boxKey(agent agentKey, kind byte, seq uint64) []byte {
	return join(agent[:], []byte{kind}, number(seq))
}

func markKey(seq uint64, agent agentKey) []byte {
	return join([]byte{indexMark}, number(seq), agent[:])
}

func idKey(kind byte, id string) []byte {
	b := idBytes(id)
	return join([]byte{kind}, b[:])
}

func idBytes(text string) (id messageID) {
	b, _ := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	copy(id[:], b)
	return id
}

func idText(id messageID) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

func damaged(what string) error {
	return fmt.Errorf("%w: %s of the agent mailbox", vault.ErrDamaged, what)
}

// expired reports whether the time of what was created then is over (003 TC12).
func (r *room) expired(created int64) bool { return r.now.Sub(time.UnixMicro(created)) > TTL }

// agent returns what is known of an agent; changes are kept by save.
func (r *room) agent(key agentKey) (*agent, error) {
	if a := r.agents[key]; a != nil {
		return a, nil
	}
	b, err := r.tx.Get(bucketAgents, key[:])
	if err != nil {
		return nil, err
	}
	a := &agent{saved: b}
	if b != nil && json.Unmarshal(b, &a.agentRecord) != nil {
		return nil, damaged("an agent")
	}
	r.agents[key] = a
	return a, nil
}

// named is agent for one that may be new.
func (r *room) named(name string) (agentKey, *agent, error) {
	key := r.key(name)
	a, err := r.agent(key)
	if err == nil {
		a.Name = name
	}
	return key, a, err
}

// save keeps what changed. An agent of whom nothing is left is forgotten.
func (r *room) save() error {
	for key, a := range r.agents {
		if len(a.Claims) == 0 {
			a.Claims = nil
		}
		b, err := json.Marshal(a.agentRecord)
		if err != nil {
			return err
		}
		if bytes.Equal(b, a.saved) && !a.less {
			continue
		}
		forgotten, err := r.forgotten(a)
		switch {
		case err != nil:
		case !forgotten:
			err = r.tx.Put(bucketAgents, key[:], b)
		case a.saved != nil:
			err = r.tx.Delete(bucketAgents, key[:])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// forgotten reports whether nothing is left of an agent. Synced is of use only while
// there is a broadcast that it has looked at.
func (r *room) forgotten(a *agent) (bool, error) {
	if a.Name == Everyone || a.Traffic > 0 || len(a.Claims) > 0 {
		return false, nil
	}
	for shared, err := range r.box(r.key(Everyone), boxAll, 0) {
		if err != nil || !r.expired(shared.created) {
			return err == nil && shared.seq > a.Synced, err
		}
	}
	return true, nil
}

// add keeps a new message and returns its number.
func (r *room) add(m *Message) (seq uint64, err error) {
	everyone, all, err := r.named(Everyone)
	if err != nil {
		return 0, err
	}
	from, sender, err := r.named(m.Sender)
	if err != nil {
		return 0, err
	}
	all.Synced++
	sender.Traffic++
	here := arrival{place{m.Created.UnixMicro(), all.Synced}, from}
	put := func(bucket string, key, value []byte) {
		if err == nil {
			err = r.tx.Put(bucket, key, value)
		}
	}
	switch {
	case m.Broadcast():
		put(bucketBoxes, boxKey(everyone, boxAll, here.seq), here.bytes())
	case m.Recipient != m.Sender:
		to, recipient, err := r.named(m.Recipient)
		if err != nil {
			return 0, err
		}
		recipient.Traffic++
		put(bucketBoxes, boxKey(to, boxAll, here.seq), here.bytes())
		put(bucketBoxes, boxKey(to, boxUnread, here.seq), here.bytes())
	}
	if m.ReplyTo != "" {
		put(bucketIndex, join(idKey(indexReply, m.ReplyTo), here.place.bytes()), nil)
	}
	put(bucketIndex, idKey(indexID, m.ID), here.place.bytes())
	record, jsonErr := json.Marshal(messageRecord{ID: m.ID, Sender: m.Sender, Recipient: m.Recipient, Subject: m.Subject, Body: m.Body,
		Refs: m.Refs, ReplyTo: m.ReplyTo, TTLHours: int(TTL / time.Hour), Created: here.created})
	if jsonErr != nil {
		return 0, jsonErr
	}
	put(bucketMessages, here.place.bytes(), record)
	return here.seq, err
}

// message returns a message that lies somewhere, or nil where it is gone or has expired.
func (r *room) message(at place) (*Message, error) {
	b, err := r.tx.Get(bucketMessages, at.bytes())
	if err != nil || b == nil || r.expired(at.created) {
		return nil, err
	}
	return parseMessage(b)
}

func parseMessage(b []byte) (*Message, error) {
	var m messageRecord
	if json.Unmarshal(b, &m) != nil || !uuid.MatchString(m.ID) {
		return nil, damaged("a message")
	}
	return m.message(), nil
}

// byID returns a message by its id, and where it lies; nil where there is none.
func (r *room) byID(id string) (*Message, place, error) {
	b, err := r.tx.Get(bucketIndex, idKey(indexID, id))
	if err != nil || b == nil {
		return nil, place{}, err
	}
	at, err := parsePlace(b)
	if err != nil {
		return nil, at, err
	}
	m, err := r.message(at)
	return m, at, err
}

// mark returns what an agent did with a message.
func (r *room) mark(seq uint64, agent agentKey) (mark, error) {
	b, err := r.tx.Get(bucketIndex, markKey(seq, agent))
	if err != nil || b == nil {
		return mark{}, err
	}
	return parseMark(b)
}

func (r *room) putMark(seq uint64, agent agentKey, m mark) error {
	return r.tx.Put(bucketIndex, markKey(seq, agent), join(number(uint64(m.read)), number(uint64(m.acked))))
}

// ack notes that an agent acted on a message. A direct message has one ack, that of
// its recipient, whoever gives it.
func (r *room) ack(agent, id string, own bool) (time.Time, error) {
	m, at, err := r.byID(id)
	if err != nil {
		return time.Time{}, err
	}
	if m == nil || own && !m.Broadcast() && m.Recipient != agent {
		return time.Time{}, ErrNoMessage
	}
	whose := r.key(agent)
	if !m.Broadcast() {
		whose = r.key(m.Recipient)
	}
	done, err := r.mark(at.seq, whose)
	if err != nil {
		return time.Time{}, err
	}
	if done.acked != 0 {
		return time.UnixMicro(done.acked), nil
	}
	done.acked = r.now.UnixMicro()
	return r.now, r.putMark(at.seq, whose, done)
}

// status calls fn with every agent that has a part in a message that is here, or with
// the one that is named. Nothing that is here may have expired.
func (r *room) status(agent string, fn func(Status)) error {
	var shared []arrival
	for a, err := range r.box(r.key(Everyone), boxAll, 0) {
		if err != nil {
			return err
		}
		shared = append(shared, a)
	}
	one := func(key agentKey) error {
		a, err := r.agent(key)
		if err != nil || a.Traffic == 0 {
			return err
		}
		mine := slices.Clone(shared)
		for b, err := range r.box(key, boxAll, 0) {
			if err != nil {
				return err
			}
			mine = append(mine, b)
		}
		s, held := Status{Agent: a.Name}, a.held(r.now)
		for _, b := range mine {
			if b.from == key {
				continue
			}
			done, err := r.mark(b.seq, key)
			if err != nil {
				return err
			}
			if done.acked == 0 {
				s.Unacked++
			}
			if done.read == 0 && held[b.seq] == 0 { // what is on its way to a reader counts as read
				s.Unread++
			}
		}
		fn(s)
		return nil
	}
	if agent != "" {
		return one(r.key(agent))
	}
	for record, err := range kv.Each(r.tx, bucketAgents, kv.Range{}) {
		if err == nil && len(record.Key) != len(agentKey{}) {
			err = damaged("an agent")
		}
		if err == nil {
			err = one(agentKey(record.Key))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
