package agentmail

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/postern-mail/postern/vault"
	"github.com/postern-mail/postern/vault/kv"
)

const (
	// TTL is how long a message lives (003 TC12).
	TTL = 24 * time.Hour

	// Lease is how long a reader holds messages while it waits for confirmation
	// that its answer arrived; then they count as unread again.
	Lease = 30 * time.Second

	// Everyone is the recipient of a broadcast.
	Everyone = "*"

	// DefaultLimit is how many messages are read by default.
	DefaultLimit = 20
)

var (
	// ErrNoMessage says that the mailbox does not have the message, or no longer has it.
	ErrNoMessage = errors.New("there is no such message in the agent mailbox")
)

var uuid = regexp.MustCompile(`\A[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\z`)

// Store keeps the records; *vault.Vault implements it.
type Store interface {
	View(ctx context.Context, fn func(kv.Tx) error) error
	Update(ctx context.Context, fn func(kv.Tx) error) error
	// Key returns 32 bytes for one purpose, the same in every process.
	Key(ctx context.Context, purpose string) ([]byte, error)
	// Changes is kv.Engine.Changes.
	Changes(ctx context.Context) (wait func(context.Context) error, err error)
	Now() time.Time
}

var _ Store = (*vault.Vault)(nil)

// Mailbox is the mailbox in a store. It is safe for concurrent use.
type Mailbox struct {
	store  Store
	limits limits
}

// limits bound what one transaction removes and what a principal has.
type limits struct{ purge, shareMessages, shareBytes int }

// New returns the mailbox in a store.
func New(store Store) *Mailbox {
	return &Mailbox{store, limits{maxPurge, shareMessages, shareBytes}}
}

// Message is a message between agents. Only the size of a record bounds Text here;
// the caller decides on its content. Its JSON is the part of a messageRecord that
// needs no other form.
type Message struct {
	ID        string    `json:"id"` // UUID version 4, lower case
	Sender    string    `json:"sender"`
	Recipient string    `json:"recipient"` // an identity, or Everyone
	Subject   string    `json:"subject"`
	Body      string    `json:"body"`
	Refs      string    `json:"refs,omitempty"`      // JSON array of strings, or empty
	ReplyTo   string    `json:"reply_to,omitempty"`  // UUID in lower case, or empty
	Principal string    `json:"principal,omitempty"` // the principal that sent it, for its share; empty counts for nobody
	Created   time.Time `json:"-"`                   // in whole microseconds

	// ReadAt and AckedAt are zero until then. For a broadcast they are those of the reading
	// agent.
	ReadAt  time.Time `json:"-"`
	AckedAt time.Time `json:"-"`
}

// Broadcast reports whether the message is for everyone.
func (m *Message) Broadcast() bool { return m.Recipient == Everyone }

// concerns reports whether an agent is the sender or a recipient of the message.
func (m *Message) concerns(agent string) bool {
	return m.Sender == agent || m.Recipient == agent || m.Broadcast()
}

// What a principal may have in the mailbox at a time, whatever identities it sends as. An
// identity is a name that anybody can take; a principal is not.
const (
	shareMessages = 10_000
	shareBytes    = 64 << 20
)

// Send keeps a message and returns it with its ID and its creation time, which the
// caller cannot set. A message to an unknown agent waits for it like any other. The
// error matches vault.ErrInvalid for an invalid sender, recipient or ReplyTo, and is a
// *vault.ShareFull where the principal's share is full.
func (b *Mailbox) Send(ctx context.Context, m Message) (Message, error) {
	switch {
	case !vault.ValidAgentIdentity(m.Sender):
		return m, fmt.Errorf("%w: the sender is not an identity", vault.ErrInvalid)
	case !vault.ValidAgentIdentity(m.Recipient) && !m.Broadcast():
		return m, fmt.Errorf("%w: the recipient is not an identity", vault.ErrInvalid)
	case m.ReplyTo != "" && !uuid.MatchString(m.ReplyTo):
		return m, fmt.Errorf("%w: the message replied to is not a UUID", vault.ErrInvalid)
	}
	m.ReplyTo = strings.ToLower(m.ReplyTo)
	m.ReadAt, m.AckedAt = time.Time{}, time.Time{}
	send := func(r *room) {
		m.ID, m.Created = newID(), r.now
		r.add(&m)
	}
	err := b.update(ctx, send)
	if full := (*vault.ShareFull)(nil); errors.As(err, &full) {
		if err = b.purge(ctx, new(Cleanup)); err == nil { // expired messages may fill it
			err = b.update(ctx, send)
		}
	}
	return m, err
}

func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])  // it never fails
	b[6] = b[6]&0x0f | 0x40 // version 4
	b[8] = b[8]&0x3f | 0x80 // RFC 9562 variant
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Query selects messages of one agent's inbox, never the agent's own.
type Query struct {
	Agent string
	From  string // only of this sender; empty means of any
	All   bool   // read messages too
	Peek  bool   // do not count messages as read
	Limit int    // messages at most; 0 or less means DefaultLimit
	After string // only messages behind the one with this ID, with All or Peek; empty means all

	// The first message is returned with any size.

	Room
}

// Room bounds an answer by the size of its messages in it. The zero Room has no bound.
type Room struct {
	Room int                // for all messages together
	Size func(*Message) int // of one message; it must not call the Mailbox
}

// takes subtracts a message's size from the room that is left; false means that it
// does not fit.
func (a *Room) takes(m *Message, left *int) bool {
	if a.Size == nil {
		return true
	}
	*left -= a.Size(m)
	return *left >= 0
}

// Inbox is the result of a Query.
type Inbox struct {
	Messages []Message // oldest first

	// Last is the ID of the last message where the answer ended for want of room or by the
	// limit, so that there may be more behind it; else empty.
	Last string

	// Claim is confirmed once the messages have reached the caller; nil when
	// nothing needs confirmation.
	Claim *Claim

	// Retry is when messages that another reader holds become unread again if that
	// reader has died; zero without held messages.
	Retry time.Time
}

// Claim is the messages that a reader holds.
type Claim struct {
	id   uint64
	seqs []uint64
}

// Read returns messages of an inbox, oldest first. Unless q.Peek is set the unread ones
// are then held for the caller: other readers do not get them during Lease, and Confirm
// marks them as read. Without Confirm they become unread again, so a reader that dies
// before its answer arrived loses nothing. Held messages count as read meanwhile.
func (b *Mailbox) Read(ctx context.Context, q Query) (in Inbox, err error) {
	if !vault.ValidAgentIdentity(q.Agent) || q.From != "" && !vault.ValidAgentIdentity(q.From) {
		return in, fmt.Errorf("%w: the agent is not an identity", vault.ErrInvalid)
	}
	if q.Limit <= 0 {
		q.Limit = DefaultLimit
	}
	// An inbox without news costs no write.
	news := false
	if err := b.look(ctx, func(r *room) {
		v := r.survey(&q)
		in, news = v.Inbox, v.news
	}); err != nil || q.Peek || !news {
		return in, err
	}
	err = b.update(ctx, func(r *room) { in = r.claim(&q) })
	return in, err
}

// Confirm marks the messages of a Read as read, by its claim. It may come late, or more
// than once: messages that another reader has taken meanwhile stay that reader's.
func (b *Mailbox) Confirm(ctx context.Context, agent string, c *Claim) error {
	return b.update(ctx, func(r *room) { r.confirm(agent, c) })
}

// Await returns nil as soon as Read would find a message for q, sent by this process or
// another, and the error of ctx when that ends first. It takes no message: another
// reader may read first.
func (b *Mailbox) Await(ctx context.Context, q Query) error {
	q.Limit, q.Peek, q.Room = 1, true, Room{}
	for {
		changed, err := b.store.Changes(ctx) // changes from here on
		if err != nil {
			return err
		}
		in, err := b.Read(ctx, q)
		if err != nil || len(in.Messages) > 0 {
			return err
		}
		waiting, stop := ctx, context.CancelFunc(func() {})
		if !in.Retry.IsZero() {
			waiting, stop = context.WithTimeout(ctx, in.Retry.Sub(b.store.Now()))
		}
		_ = changed(waiting)
		stop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// Thread selects the whole thread of a message.
type Thread struct {
	Agent string // the agent whose marks on broadcasts are shown
	ID    string // of any message of the thread

	// Own leaves out messages that the agent neither sent nor got.
	Own bool

	After string // only messages behind the one with this ID; empty means all

	// The first message is returned with any size.

	Room
}

// Thread returns the thread's oldest existing message and all replies to it, oldest
// first. It marks no message as read. The error matches ErrNoMessage where the
// message does not exist.
func (b *Mailbox) Thread(ctx context.Context, q Thread) (in Inbox, err error) {
	if !vault.ValidAgentIdentity(q.Agent) || !uuid.MatchString(q.ID) {
		return in, fmt.Errorf("%w: not an agent or not a UUID", vault.ErrInvalid)
	}
	err = b.look(ctx, func(r *room) { in = r.thread(&q) })
	return in, err
}

// Ack notes that an agent acted on a message, and returns when it first did. own refuses
// direct messages to other agents; without it any agent may acknowledge any message, as
// in 003. The error matches ErrNoMessage where the message does not exist.
func (b *Mailbox) Ack(ctx context.Context, agent, id string, own bool) (at time.Time, err error) {
	if !vault.ValidAgentIdentity(agent) || !uuid.MatchString(id) {
		return at, fmt.Errorf("%w: not an agent or not a UUID", vault.ErrInvalid)
	}
	err = b.update(ctx, func(r *room) { at = r.ack(agent, id, own) })
	return at, err
}

// Status counts the messages that wait for one agent, without its own; a broadcast
// counts for every other agent.
type Status struct {
	Agent           string
	Unread, Unacked int
}

// Status lists the agents that sent or got a message that still exists, by name.
// agent and project, where not empty, select among them.
func (b *Mailbox) Status(ctx context.Context, agent, project string) (list []Status, err error) {
	if err := b.purge(ctx, new(Cleanup)); err != nil {
		return nil, err
	}
	err = b.do(ctx, b.store.View, func(r *room) { list = r.status(agent) })
	list = slices.DeleteFunc(list, func(s Status) bool { return project != "" && !strings.HasPrefix(s.Agent, project+":") })
	slices.SortFunc(list, func(a, b Status) int { return strings.Compare(a.Agent, b.Agent) })
	return list, err
}

// Cleanup counts the messages that were removed, or would be.
type Cleanup struct {
	Count          int
	Oldest, Newest time.Time // of their creation; zero where Count is 0
	// Messages are those a dry run would remove, without their bodies.
	Messages []Message
}

// Cleanup removes messages older than TTL, or lists those it would remove. They are
// invisible anyway: sending, reading and status remove them first.
func (b *Mailbox) Cleanup(ctx context.Context, dryRun bool) (c Cleanup, err error) {
	if !dryRun {
		return c, b.purge(ctx, &c)
	}
	err = b.do(ctx, b.store.View, func(r *room) {
		for _, m := range r.due() {
			c.count(m)
			m.Body = ""
			c.Messages = append(c.Messages, *m)
		}
	})
	return c, err
}

func (c *Cleanup) count(m *Message) {
	if c.Count == 0 || m.Created.Before(c.Oldest) {
		c.Oldest = m.Created
	}
	if m.Created.After(c.Newest) {
		c.Newest = m.Created
	}
	c.Count++
}

// purge removes all expired messages, in transactions of bounded length, and adds
// them to done. It writes only when it removes something.
func (b *Mailbox) purge(ctx context.Context, done *Cleanup) error {
	for {
		stale := false
		if err := b.do(ctx, b.store.View, func(r *room) { stale = r.stale() }); err != nil || !stale {
			return err
		}
		var gone []Message
		if err := b.do(ctx, b.store.Update, func(r *room) { gone = r.purge() }); err != nil {
			return err
		}
		for i := range gone {
			done.count(&gone[i])
		}
	}
}

// do lends the mailbox in a transaction of the store.
func (b *Mailbox) do(ctx context.Context, transact func(context.Context, func(kv.Tx) error) error, fn func(*room)) error {
	key, err := b.store.Key(ctx, "agent mailbox")
	if err != nil {
		return err
	}
	return transact(ctx, func(tx kv.Tx) error {
		r := &room{tx: tx, limits: b.limits, digestKey: key, now: b.store.Now().Truncate(time.Microsecond), agents: map[agentKey]*agent{}}
		fn(r)
		r.save()
		return r.err
	})
}

// update lends the mailbox, after removing some expired messages (003 AC44). Expired
// messages are never visible, so those not yet removed cost only space: a call takes
// no longer after a week without calls.
func (b *Mailbox) update(ctx context.Context, fn func(*room)) error {
	return b.do(ctx, b.store.Update, func(r *room) {
		r.purge()
		fn(r)
	})
}

// look is update for an fn that changes nothing. It writes only when it must first
// remove messages or bring them over.
func (b *Mailbox) look(ctx context.Context, fn func(*room)) error {
	stale := false
	err := b.do(ctx, b.store.View, func(r *room) {
		if stale = r.stale(); !stale {
			fn(r)
		}
	})
	if err != nil || !stale {
		return err
	}
	return b.update(ctx, fn)
}
