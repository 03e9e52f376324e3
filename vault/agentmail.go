package vault

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	// AgentMailTTL is how long a message of the agent mailbox lives (003 TC12).
	AgentMailTTL = 24 * time.Hour

	// AgentMailLease is how long messages that were read wait for word that their
	// answer arrived, before they count as unread again.
	AgentMailLease = 30 * time.Second

	// Everyone is the recipient of a broadcast.
	Everyone = "*"
)

var (
	// ErrNoAgentMessage says that the agent mailbox has no such message, or not any
	// more.
	ErrNoAgentMessage = errors.New("there is no such message in the agent mailbox")
	// ErrAgentThreadTooLong says that a thread does not fit into what was asked for.
	ErrAgentThreadTooLong = errors.New("the thread is too long")
)

// AgentIdentityPattern is the grammar of an agent's identity, to be matched whole
// (003 TC1).
const AgentIdentityPattern = `[a-z0-9][a-z0-9-]*:[a-z0-9][a-z0-9-]*`

var (
	agentIdentity = regexp.MustCompile(`\A` + AgentIdentityPattern + `\z`)
	agentID       = regexp.MustCompile(`\A[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\z`)
)

// ValidAgentIdentity reports whether s is project:name, whole.
func ValidAgentIdentity(s string) bool { return agentIdentity.MatchString(s) }

// AgentMessage is a message between agents. Text has no bound here but that of a
// record; who writes it decides what it may hold.
type AgentMessage struct {
	ID        string // UUID version 4, lower case
	Sender    string
	Recipient string // an identity, or Everyone
	Subject   string
	Body      string
	Refs      string    // JSON array of strings, or empty
	ReplyTo   string    // UUID in lower case, or empty
	Created   time.Time // of microseconds

	// ReadAt and AckedAt are zero where that has not happened. For a broadcast they
	// are those of whoever asks.
	ReadAt, AckedAt time.Time
}

// Broadcast reports whether the message is for everyone.
func (m *AgentMessage) Broadcast() bool { return m.Recipient == Everyone }

// concerns reports whether an agent sent the message or is meant by it.
func (m *AgentMessage) concerns(agent string) bool {
	return m.Sender == agent || m.Recipient == agent || m.Broadcast()
}

// SendAgentMail keeps a message and returns it with its ID and the moment of its
// creation, which are not the caller's to set. A message to an agent nobody has
// heard of waits for it like any other. The error matches ErrInvalid for a sender,
// recipient or ReplyTo that is none.
func (v *Vault) SendAgentMail(ctx context.Context, m AgentMessage) (AgentMessage, error) {
	switch {
	case !ValidAgentIdentity(m.Sender):
		return m, fmt.Errorf("%w: the sender is no identity", ErrInvalid)
	case !ValidAgentIdentity(m.Recipient) && !m.Broadcast():
		return m, fmt.Errorf("%w: the recipient is no identity", ErrInvalid)
	case m.ReplyTo != "" && !agentID.MatchString(m.ReplyTo):
		return m, fmt.Errorf("%w: the message replied to is no UUID", ErrInvalid)
	}
	m.ReplyTo = strings.ToLower(m.ReplyTo)
	m.ReadAt, m.AckedAt = time.Time{}, time.Time{}
	err := v.agentUpdate(ctx, func(r *mailroom) (err error) {
		if m.ID, err = newAgentID(); err != nil {
			return err
		}
		m.Created = r.now
		return r.add(&m)
	})
	if err != nil {
		return AgentMessage{}, err
	}
	ringAgentMail(v.Path())
	return m, nil
}

func newAgentID() (string, error) {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	b[6] = b[6]&0x0f | 0x40 // version 4
	b[8] = b[8]&0x3f | 0x80 // RFC 9562 variant
	return idText(b), nil
}

// AgentQuery asks for messages of one agent's inbox. What the agent sent itself is
// never among them.
type AgentQuery struct {
	Agent string
	From  string // only of this sender; empty means of any
	All   bool   // those that were read too
	Peek  bool   // count nothing as read
	Limit int    // messages at most; 0 or less means DefaultAgentLimit

	// The first message is returned whatever its size.

	AgentRoom
}

// AgentRoom bounds an answer by what its messages take there. The zero AgentRoom has
// no bound.
type AgentRoom struct {
	Room int                     // for all messages together
	Size func(*AgentMessage) int // of one; it must not call the Vault
}

// takes takes a message's size from what is left of the room, or reports that it does
// not fit.
func (a *AgentRoom) takes(m *AgentMessage, left *int) bool {
	if a.Size == nil {
		return true
	}
	*left -= a.Size(m)
	return *left >= 0
}

// DefaultAgentLimit is how many messages are read where nothing else is said.
const DefaultAgentLimit = 20

// AgentInbox is what an AgentQuery found.
type AgentInbox struct {
	Messages []AgentMessage // oldest first

	// Claim is to be confirmed once the messages have reached whoever asked; empty
	// where there is nothing to confirm.
	Claim string

	// Retry is when messages that another reader holds come back if that reader is
	// gone; zero where none are held.
	Retry time.Time
}

// ReadAgentMail returns messages of an inbox, oldest first. Unless q.Peek is set
// those that were unread are then held for the caller: nobody else gets them for
// AgentMailLease, and ConfirmAgentMail marks them as read. Without that they count
// as unread again, so a reader that dies before its answer arrived loses nothing.
// Messages that are held count as read meanwhile.
func (v *Vault) ReadAgentMail(ctx context.Context, q AgentQuery) (AgentInbox, error) {
	if err := q.check(); err != nil {
		return AgentInbox{}, err
	}
	var in AgentInbox
	look := func(r *mailroom) (err error) {
		in, err = r.look(&q)
		return err
	}
	if q.Peek {
		err := v.agentView(ctx, look)
		return in, err
	}
	// An inbox in which nothing happened costs no write.
	idle := false
	err := v.viewTx(ctx, func(tx *Tx) error {
		r, stale := v.mailroom(tx), q.All
		err := r.due(1, func(*AgentMessage, uint64) error {
			stale = true
			return nil
		})
		if err != nil || stale {
			return err
		}
		if idle, err = r.idle(q.Agent); err == nil && idle {
			in, err = r.look(&q)
		}
		return err
	})
	if err != nil || idle {
		return in, err
	}
	err = v.agentUpdate(ctx, func(r *mailroom) (err error) {
		in, err = r.claim(&q)
		return err
	})
	if err != nil {
		return AgentInbox{}, err
	}
	return in, nil
}

func (q *AgentQuery) check() error {
	if !ValidAgentIdentity(q.Agent) || q.From != "" && !ValidAgentIdentity(q.From) {
		return fmt.Errorf("%w: the agent is no identity", ErrInvalid)
	}
	if q.Limit <= 0 {
		q.Limit = DefaultAgentLimit
	}
	return nil
}

// ConfirmAgentMail marks as read what ReadAgentMail returned with this claim. It may
// come late, or more than once: what another reader has taken meanwhile is left to
// that one.
func (v *Vault) ConfirmAgentMail(ctx context.Context, agent, claim string) error {
	if !ValidAgentIdentity(agent) || !agentID.MatchString(claim) {
		return fmt.Errorf("%w: no claim", ErrInvalid)
	}
	return v.agentUpdate(ctx, func(r *mailroom) error { return r.confirm(agent, claim) })
}

// AgentThread asks for the whole thread of a message.
type AgentThread struct {
	Agent string // whose reading and acknowledging of broadcasts is shown
	ID    string // of any message of the thread

	// Own leaves out what the agent neither sent nor got.
	Own bool

	// A thread that does not fit is ErrAgentThreadTooLong, since a part of it could
	// not be told from the whole. Its first message always fits.
	AgentRoom
}

// AgentThread returns the thread's oldest message that is still here and everything
// that answers it, oldest first. Nothing counts as read by that. The error matches
// ErrNoAgentMessage where the message is not here.
func (v *Vault) AgentThread(ctx context.Context, q AgentThread) (list []AgentMessage, err error) {
	if !ValidAgentIdentity(q.Agent) || !agentID.MatchString(q.ID) {
		return nil, fmt.Errorf("%w: no agent or no UUID", ErrInvalid)
	}
	q.ID = strings.ToLower(q.ID)
	err = v.agentView(ctx, func(r *mailroom) (err error) {
		list, err = r.thread(&q)
		return err
	})
	return list, err
}

// AckAgentMail notes that an agent acted on a message, and returns when it first
// did. own refuses direct messages that are not the agent's; without it anybody may
// acknowledge any message, as 003 has it. The error matches ErrNoAgentMessage where
// there is no such message.
func (v *Vault) AckAgentMail(ctx context.Context, agent, id string, own bool) (at time.Time, err error) {
	if !ValidAgentIdentity(agent) || !agentID.MatchString(id) {
		return at, fmt.Errorf("%w: no agent or no UUID", ErrInvalid)
	}
	err = v.agentUpdate(ctx, func(r *mailroom) (err error) {
		at, err = r.ack(agent, strings.ToLower(id), own)
		return err
	})
	return at, err
}

// AgentStatus is what waits for one agent. What it sent itself does not count, and
// of the broadcasts each counts for everyone else.
type AgentStatus struct {
	Agent           string
	Unread, Unacked int
}

// AgentMailStatus lists the agents that sent a message or were sent one that is still
// here, by name. agent and project, where not empty, leave out the others.
func (v *Vault) AgentMailStatus(ctx context.Context, agent, project string) (list []AgentStatus, err error) {
	if err := v.purgeAgentMail(ctx, nil); err != nil {
		return nil, err
	}
	err = v.viewTx(ctx, func(tx *Tx) error {
		list = nil
		return v.mailroom(tx).status(agent, func(s AgentStatus) {
			if project == "" || strings.HasPrefix(s.Agent, project+":") {
				list = append(list, s)
			}
		})
	})
	slices.SortFunc(list, func(a, b AgentStatus) int { return strings.Compare(a.Agent, b.Agent) })
	return list, err
}

// AgentCleanup says what was removed, or would be.
type AgentCleanup struct {
	Count          int
	Oldest, Newest time.Time // of their creation; zero where Count is 0
	// Messages are those that would go, without their bodies, in a dry run.
	Messages []AgentMessage
}

// CleanupAgentMail removes what is older than AgentMailTTL, or says what it would
// remove. Nobody sees such messages anyway: sending, reading and status remove them
// first.
func (v *Vault) CleanupAgentMail(ctx context.Context, dryRun bool) (c AgentCleanup, err error) {
	if dryRun {
		err = v.viewTx(ctx, func(tx *Tx) error {
			c = AgentCleanup{}
			return v.mailroom(tx).due(maxInt, func(m *AgentMessage, _ uint64) error {
				c.count(m)
				c.Messages = append(c.Messages, *m)
				return nil
			})
		})
		return c, err
	}
	return c, v.purgeAgentMail(ctx, &c)
}

// purgeAgentMail removes all that has expired, in transactions of bounded length, and
// adds to done what it removed; nil does not count. It writes only where there is
// something to remove.
func (v *Vault) purgeAgentMail(ctx context.Context, done *AgentCleanup) error {
	for {
		more := false
		err := v.viewTx(ctx, func(tx *Tx) error {
			return v.mailroom(tx).due(1, func(*AgentMessage, uint64) error {
				more = true
				return nil
			})
		})
		if err != nil || !more {
			return err
		}
		var part AgentCleanup
		err = v.updateTx(ctx, func(tx *Tx) error {
			part = AgentCleanup{}
			r := v.mailroom(tx)
			if _, err := r.purge(part.count); err != nil {
				return err
			}
			return r.save()
		})
		if err != nil {
			return err
		}
		if done != nil {
			done.join(part)
		}
	}
}

const maxInt = int(^uint(0) >> 1)

func (c *AgentCleanup) count(m *AgentMessage) {
	c.join(AgentCleanup{Count: 1, Oldest: m.Created, Newest: m.Created})
}

func (c *AgentCleanup) join(d AgentCleanup) {
	if d.Count == 0 {
		return
	}
	if c.Count == 0 || d.Oldest.Before(c.Oldest) {
		c.Oldest = d.Oldest
	}
	if d.Newest.After(c.Newest) {
		c.Newest = d.Newest
	}
	c.Count += d.Count
}

// agentUpdate lends the mailbox, after removing some of what has expired (003 AC44).
// No message that has is seen, whether it was removed or not, so what remains costs
// its room only: a call takes no longer because nobody called for a week.
func (v *Vault) agentUpdate(ctx context.Context, fn func(*mailroom) error) error {
	return v.updateTx(ctx, func(tx *Tx) error {
		r := v.mailroom(tx)
		if _, err := r.purge(func(*AgentMessage) {}); err != nil {
			return err
		}
		if err := fn(r); err != nil {
			return err
		}
		return r.save()
	})
}

// agentView is agentUpdate for an fn that changes nothing. It writes only where
// something has expired.
func (v *Vault) agentView(ctx context.Context, fn func(*mailroom) error) error {
	stale := false
	err := v.viewTx(ctx, func(tx *Tx) error {
		r := v.mailroom(tx)
		err := r.due(1, func(*AgentMessage, uint64) error {
			stale = true
			return nil
		})
		if err != nil || stale {
			return err
		}
		return fn(r)
	})
	if err != nil || !stale {
		return err
	}
	return v.agentUpdate(ctx, fn)
}
