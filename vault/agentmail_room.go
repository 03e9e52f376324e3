package vault

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// The buckets of the agent mailbox. Keys lie in the file as they are, so agents
// appear in them as digests. seq numbers the messages as they come: a clock that
// goes back must not put a message where somebody has looked already.
//
// What one reader touches lies together: its inbox, and what it did with the direct
// messages it got, are one run of keys each, whatever others send meanwhile. Only
// the messages themselves are spread, and those are read and never changed.
const (
	agentMeta       = "agentmail"            // "meta": a roomRecord
	agentMessages   = "agentmail.messages"   // seq: a messageRecord, never changed
	agentIDs        = "agentmail.ids"        // id: seq
	agentExpiry     = "agentmail.expiry"     // created, seq: nothing
	agentReceived   = "agentmail.received"   // agent, seq: an arrival and a mark, of a direct message
	agentBroadcasts = "agentmail.broadcasts" // seq: an arrival
	agentInbox      = "agentmail.inbox"      // agent, seq: an arrival, of an unread message
	agentReplies    = "agentmail.replies"    // id, seq of a reply: nothing
	agentMarks      = "agentmail.marks"      // seq, agent: a mark, of any other message
	agentAgents     = "agentmail.agents"     // agent: an agentRecord
	agentClaims     = "agentmail.claims"     // agent, claim: a claimRecord
)

// An agent reads a broadcast through its inbox like a direct message: the first look
// at a broadcast puts it there, with an empty mark. So for everybody but the sender
// a broadcast with a mark is in the inbox or was read, and one without is unread.
const (
	kindDirect    = 'd' // has a mark in agentReceived
	kindBroadcast = 'b' // has marks in agentMarks; so has what somebody sent to itself
)

type (
	agentKey  = [16]byte // digest of an identity
	messageID = [16]byte
)

// arrival is what the indexes know of a message, so that most need not be opened.
type arrival struct {
	from    agentKey
	created int64 // microseconds
	kind    byte
}

const arrivalSize = 16 + 8 + 1

func (a arrival) bytes() []byte {
	b := binary.BigEndian.AppendUint64(append(make([]byte, 0, arrivalSize+markSize), a.from[:]...), uint64(a.created))
	return append(b, a.kind)
}

// parseArrival also returns what follows the arrival.
func parseArrival(b []byte) (a arrival, rest []byte, err error) {
	if len(b) < arrivalSize || b[arrivalSize-1] != kindDirect && b[arrivalSize-1] != kindBroadcast {
		return a, nil, damagedRecord("an index")
	}
	return arrival{agentKey(b[:16]), int64(binary.BigEndian.Uint64(b[16:])), b[arrivalSize-1]}, b[arrivalSize:], nil
}

// mark is what an agent did with a message and when, in microseconds; 0 is not yet.
type mark struct{ read, acked int64 }

const markSize = 16

func (m mark) bytes() []byte {
	return binary.BigEndian.AppendUint64(uint64Bytes(uint64(m.read)), uint64(m.acked))
}

func parseMark(b []byte) (mark, error) {
	if len(b) != markSize {
		return mark{}, damagedRecord("a mark")
	}
	return mark{int64(binary.BigEndian.Uint64(b)), int64(binary.BigEndian.Uint64(b[8:]))}, nil
}

type roomRecord struct {
	Seq        uint64 `json:"seq"`        // of the newest message
	Broadcasts int    `json:"broadcasts"` // that are here
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

// agentRecord counts, so that status need not. What an agent sent itself is in none
// of these numbers but Traffic and Own.
type agentRecord struct {
	Name    string `json:"name"`
	Traffic int    `json:"traffic,omitempty"` // messages it sent or was sent directly
	Unread  int    `json:"unread,omitempty"`  // direct ones
	Unacked int    `json:"unacked,omitempty"` // direct ones
	Own     int    `json:"own,omitempty"`     // broadcasts it sent
	Marked  int    `json:"marked,omitempty"`  // broadcasts of others it has a mark of
	Read    int    `json:"read,omitempty"`    // of these
	Acked   int    `json:"acked,omitempty"`   // of these
	Synced  uint64 `json:"synced,omitempty"`  // it has looked at broadcasts up to here
}

type claimRecord struct {
	At   int64    `json:"at"` // microseconds
	Seqs []uint64 `json:"seqs"`
}

func (c *claimRecord) expires() time.Time { return time.UnixMicro(c.At).Add(AgentMailLease) }

// live reports whether the claim still holds. One from the future, which a clock that
// went back leaves behind, does not.
func (c *claimRecord) live(now time.Time) bool {
	return now.Before(c.expires()) && !now.Before(time.UnixMicro(c.At))
}

// over reports whether nobody will come back for the claim. A reader that was only
// slow has some leases' time, since a late word is better than reading again.
func (c *claimRecord) over(now time.Time) bool {
	return now.Sub(time.UnixMicro(c.At)).Abs() > 10*AgentMailLease
}

// mailroom is the agent mailbox within one transaction.
type mailroom struct {
	tx        *Tx
	digestKey []byte
	now       time.Time // of microseconds

	meta   *roomRecord               // nil until read
	agents map[agentKey]*agentRecord // those that were read

	// As they lie in the file: what did not change is not written.
	savedMeta   roomRecord
	savedAgents map[agentKey]agentRecord
}

func (v *Vault) mailroom(tx *Tx) *mailroom {
	return &mailroom{tx: tx, digestKey: v.Key("agent mailbox"), now: v.now().Truncate(time.Microsecond),
		agents: map[agentKey]*agentRecord{}, savedAgents: map[agentKey]agentRecord{}}
}

func (r *mailroom) key(agent string) agentKey {
	return agentKey(keyedDigest(r.digestKey, []byte(agent)))
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func idBytes(text string) (id messageID) {
	b, err := hex.DecodeString(text[:8] + text[9:13] + text[14:18] + text[19:23] + text[24:])
	if err == nil {
		copy(id[:], b)
	}
	return id
}

func idText(id messageID) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

func damagedRecord(what string) error {
	return fmt.Errorf("%w: %s of the agent mailbox", ErrDamaged, what)
}

// getRecord reads a JSON record into a fresh T, or returns nil.
func getRecord[T any](tx *Tx, bucket string, key []byte) (*T, error) {
	b, err := tx.Bucket(bucket).Get(key)
	if err != nil || b == nil {
		return nil, err
	}
	return parseRecord[T](bucket, b)
}

func parseRecord[T any](bucket string, b []byte) (*T, error) {
	record := new(T)
	if err := json.Unmarshal(b, record); err != nil {
		return nil, damagedRecord("a record in " + bucket)
	}
	return record, nil
}

func putRecord(tx *Tx, bucket string, key []byte, record any) error {
	b, err := json.Marshal(record)
	if err != nil {
		return err
	}
	return tx.Bucket(bucket).Put(key, b)
}

func (r *mailroom) room() (*roomRecord, error) {
	if r.meta != nil {
		return r.meta, nil
	}
	m, err := getRecord[roomRecord](r.tx, agentMeta, []byte("meta"))
	if err != nil {
		return nil, err
	}
	if m == nil {
		m = &roomRecord{}
	}
	r.meta, r.savedMeta = m, *m
	return m, nil
}

// agent returns what is known of an agent; changes are kept by save.
func (r *mailroom) agent(key agentKey) (*agentRecord, error) {
	if a := r.agents[key]; a != nil {
		return a, nil
	}
	a, err := getRecord[agentRecord](r.tx, agentAgents, key[:])
	if err != nil {
		return nil, err
	}
	if a == nil {
		a = &agentRecord{}
	}
	r.agents[key], r.savedAgents[key] = a, *a
	return a, nil
}

// named is agent for one that may be new.
func (r *mailroom) named(name string) (agentKey, *agentRecord, error) {
	key := r.key(name)
	a, err := r.agent(key)
	if err == nil {
		a.Name = name
	}
	return key, a, err
}

// save writes the numbers back. An agent of whom nothing is left is forgotten.
func (r *mailroom) save() error {
	for key, a := range r.agents {
		var err error
		switch {
		case *a == r.savedAgents[key]:
		case a.Traffic == 0 && a.Marked == 0:
			err = r.tx.Bucket(agentAgents).Delete(key[:])
		default:
			err = putRecord(r.tx, agentAgents, key[:], a)
		}
		if err != nil {
			return err
		}
		r.savedAgents[key] = *a
	}
	if r.meta == nil || *r.meta == r.savedMeta {
		return nil
	}
	r.savedMeta = *r.meta
	return putRecord(r.tx, agentMeta, []byte("meta"), r.meta)
}

// expired reports whether the time of what was created then is over (003 TC12).
func (r *mailroom) expired(created time.Time) bool { return r.now.Sub(created) > AgentMailTTL }

// message returns a message by its number, or nil where it is gone or has expired.
func (r *mailroom) message(seq uint64) (*AgentMessage, error) {
	m, err := r.kept(seq)
	if err != nil || m == nil || r.expired(m.Created) {
		return nil, err
	}
	return m, nil
}

// kept is message for one that may have expired.
func (r *mailroom) kept(seq uint64) (*AgentMessage, error) {
	m, err := getRecord[messageRecord](r.tx, agentMessages, uint64Bytes(seq))
	if err != nil || m == nil {
		return nil, err
	}
	if !agentID.MatchString(m.ID) {
		return nil, damagedRecord("a message")
	}
	return &AgentMessage{ID: m.ID, Sender: m.Sender, Recipient: m.Recipient, Subject: m.Subject, Body: m.Body, Refs: m.Refs,
		ReplyTo: m.ReplyTo, Created: time.UnixMicro(m.Created)}, nil
}

// byID returns a message by its id, and its number, or nil.
func (r *mailroom) byID(id messageID) (*AgentMessage, uint64, error) {
	b, err := r.tx.Bucket(agentIDs).Get(id[:])
	if err != nil || b == nil {
		return nil, 0, err
	}
	if len(b) != 8 {
		return nil, 0, damagedRecord("an id")
	}
	seq := binary.BigEndian.Uint64(b)
	m, err := r.message(seq)
	return m, seq, err
}

// kind says where the marks of a message are.
func (m *AgentMessage) kind() byte {
	if m.Broadcast() || m.Recipient == m.Sender {
		return kindBroadcast
	}
	return kindDirect
}

// mark returns what an agent did with a message; the second result is false where
// there is no mark.
func (r *mailroom) mark(kind byte, agent agentKey, seq uint64) (mark, bool, error) {
	bucket, key := agentMarks, join(uint64Bytes(seq), agent[:])
	if kind == kindDirect {
		bucket, key = agentReceived, join(agent[:], uint64Bytes(seq))
	}
	b, err := r.tx.Bucket(bucket).Get(key)
	if err == nil && b != nil && kind == kindDirect {
		_, b, err = parseArrival(b)
	}
	if err != nil || b == nil {
		return mark{}, false, err
	}
	m, err := parseMark(b)
	return m, err == nil, err
}

// putMark sets a mark. That of a direct message is there already, with its arrival.
func (r *mailroom) putMark(kind byte, agent agentKey, seq uint64, m mark) error {
	if kind != kindDirect {
		return r.tx.Bucket(agentMarks).Put(join(uint64Bytes(seq), agent[:]), m.bytes())
	}
	key := join(agent[:], uint64Bytes(seq))
	b, err := r.tx.Bucket(agentReceived).Get(key)
	if err != nil {
		return err
	}
	a, _, err := parseArrival(b)
	if err != nil {
		return err
	}
	return r.tx.Bucket(agentReceived).Put(key, append(a.bytes(), m.bytes()...))
}

func expiryKey(created int64, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(uint64Bytes(uint64(created)), seq)
}

// add keeps a new message.
func (r *mailroom) add(m *AgentMessage) error {
	room, err := r.room()
	if err != nil {
		return err
	}
	from, sender, err := r.named(m.Sender)
	if err != nil {
		return err
	}
	room.Seq++
	seq, id, number := room.Seq, idBytes(m.ID), uint64Bytes(room.Seq)
	here := arrival{from, m.Created.UnixMicro(), m.kind()}
	sender.Traffic++
	put := func(bucket string, key, value []byte) {
		if err == nil {
			err = r.tx.Bucket(bucket).Put(key, value)
		}
	}
	switch {
	case m.Broadcast():
		room.Broadcasts++
		sender.Own++
		put(agentBroadcasts, number, here.bytes())
	case m.Recipient != m.Sender:
		to, recipient, err := r.named(m.Recipient)
		if err != nil {
			return err
		}
		recipient.Traffic++
		recipient.Unread++
		recipient.Unacked++
		put(agentReceived, join(to[:], number), append(here.bytes(), mark{}.bytes()...))
		put(agentInbox, join(to[:], number), here.bytes())
	}
	if m.ReplyTo != "" {
		parent := idBytes(m.ReplyTo)
		put(agentReplies, join(parent[:], number), nil)
	}
	put(agentExpiry, expiryKey(here.created, seq), nil)
	put(agentIDs, id[:], number)
	if err != nil {
		return err
	}
	return putRecord(r.tx, agentMessages, number, messageRecord{ID: m.ID, Sender: m.Sender, Recipient: m.Recipient, Subject: m.Subject, Body: m.Body,
		Refs: m.Refs, ReplyTo: m.ReplyTo, TTLHours: int(AgentMailTTL / time.Hour), Created: here.created})
}
