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
const (
	agentMeta       = "agentmail"            // "meta": a roomRecord
	agentMessages   = "agentmail.messages"   // id: a messageRecord, never changed
	agentExpiry     = "agentmail.expiry"     // created, seq: id
	agentReceived   = "agentmail.received"   // agent, seq: id and sender of a direct message
	agentBroadcasts = "agentmail.broadcasts" // seq: id and sender
	agentInbox      = "agentmail.inbox"      // agent, seq: id, sender and kind of an unread message
	agentReplies    = "agentmail.replies"    // id, seq: id of a reply
	agentMarks      = "agentmail.marks"      // id, agent: a markRecord
	agentAgents     = "agentmail.agents"     // agent: an agentRecord
	agentClaims     = "agentmail.claims"     // agent, claim: a claimRecord
)

// An agent reads a broadcast through its inbox like a direct message: the first look
// at a broadcast puts it there, with an empty mark. So for everybody but the sender
// a broadcast with a mark is in the inbox or was read, and one without is unread.
const (
	kindDirect    = 'd'
	kindBroadcast = 'b'
)

type (
	agentKey  = [16]byte // digest of an identity
	messageID = [16]byte
)

type roomRecord struct {
	Seq        uint64 `json:"seq"`        // of the newest message
	Broadcasts int    `json:"broadcasts"` // that are here
}

type messageRecord struct {
	Seq       uint64 `json:"seq"`
	Sender    string `json:"sender"`
	Recipient string `json:"recipient"`
	Subject   string `json:"subject"`
	Body      string `json:"body"`
	Refs      string `json:"refs,omitempty"`
	ReplyTo   string `json:"reply_to,omitempty"`
	TTLHours  int    `json:"ttl_hours"`
	Created   int64  `json:"created"` // microseconds
}

type markRecord struct {
	Read  int64 `json:"read,omitempty"` // microseconds
	Acked int64 `json:"acked,omitempty"`
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

// mailroom is the agent mailbox within one transaction.
type mailroom struct {
	tx        *Tx
	digestKey []byte
	now       time.Time // of microseconds

	meta   *roomRecord               // nil until read
	agents map[agentKey]*agentRecord // those that were read
}

func (v *Vault) mailroom(tx *Tx) *mailroom {
	return &mailroom{tx: tx, digestKey: v.Key("agent mailbox"), now: v.now().Truncate(time.Microsecond), agents: map[agentKey]*agentRecord{}}
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
	r.meta = m
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
	r.agents[key] = a
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
		if a.Traffic == 0 && a.Marked == 0 {
			err = r.tx.Bucket(agentAgents).Delete(key[:])
		} else {
			err = putRecord(r.tx, agentAgents, key[:], a)
		}
		if err != nil {
			return err
		}
	}
	if r.meta == nil {
		return nil
	}
	return putRecord(r.tx, agentMeta, []byte("meta"), r.meta)
}

// message returns a message and its number, or nil where it is gone.
func (r *mailroom) message(id messageID) (*AgentMessage, uint64, error) {
	m, err := getRecord[messageRecord](r.tx, agentMessages, id[:])
	if err != nil || m == nil {
		return nil, 0, err
	}
	return &AgentMessage{ID: idText(id), Sender: m.Sender, Recipient: m.Recipient, Subject: m.Subject, Body: m.Body, Refs: m.Refs,
		ReplyTo: m.ReplyTo, Created: time.UnixMicro(m.Created)}, m.Seq, nil
}

// mark returns who did what with a message; the second result is false where there
// is no mark.
func (r *mailroom) mark(id messageID, agent agentKey) (markRecord, bool, error) {
	m, err := getRecord[markRecord](r.tx, agentMarks, join(id[:], agent[:]))
	if err != nil || m == nil {
		return markRecord{}, false, err
	}
	return *m, true, nil
}

func (r *mailroom) putMark(id messageID, agent agentKey, m markRecord) error {
	return putRecord(r.tx, agentMarks, join(id[:], agent[:]), m)
}

func inboxValue(id messageID, sender agentKey, kind byte) []byte {
	return append(join(id[:], sender[:]), kind)
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
		put(agentBroadcasts, number, join(id[:], from[:]))
	case m.Recipient != m.Sender:
		to, recipient, err := r.named(m.Recipient)
		if err != nil {
			return err
		}
		recipient.Traffic++
		recipient.Unread++
		recipient.Unacked++
		put(agentReceived, join(to[:], number), join(id[:], from[:]))
		put(agentInbox, join(to[:], number), inboxValue(id, from, kindDirect))
	}
	if m.ReplyTo != "" {
		parent := idBytes(m.ReplyTo)
		put(agentReplies, join(parent[:], number), id[:])
	}
	put(agentExpiry, expiryKey(m.Created.UnixMicro(), seq), id[:])
	if err != nil {
		return err
	}
	return putRecord(r.tx, agentMessages, id[:], messageRecord{Seq: seq, Sender: m.Sender, Recipient: m.Recipient, Subject: m.Subject, Body: m.Body,
		Refs: m.Refs, ReplyTo: m.ReplyTo, TTLHours: int(AgentMailTTL / time.Hour), Created: m.Created.UnixMicro()})
}
