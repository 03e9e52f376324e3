package mail

import (
	"context"
	"errors"
	"slices"
	"time"
)

// OutboxKind is what happens when an entry of the outbox is approved.
type OutboxKind string

// The kinds.
const (
	OutboxSend   OutboxKind = ""       // the message is sent
	OutboxDelete OutboxKind = "delete" // messages of the mailbox are deleted for good
	OutboxPlan   OutboxKind = "plan"   // messages of the mailbox are changed, as Plan says

	OutboxUnsubscribe OutboxKind = "unsubscribe" // lists are left, by a request for each
)

// OutboxState is what is known of an entry of the outbox.
type OutboxState string

// The states. Whether a message in unknown arrived cannot be told: its last
// byte may have left without an answer that came back. It is never sent again
// unless a person says so.
const (
	OutboxWaiting   OutboxState = "waiting"   // for a person; nothing left
	OutboxQueued    OutboxState = "queued"    // to be sent; nothing left yet
	OutboxAccepted  OutboxState = "accepted"  // the submission server took it for every recipient
	OutboxUnknown   OutboxState = "unknown"   // it may have left
	OutboxRefused   OutboxState = "refused"   // the server did not take it for anybody
	OutboxCancelled OutboxState = "cancelled" // taken back before it left
	OutboxRejected  OutboxState = "rejected"  // a person refused it; nothing left

	// Of what is no message to send, which is waiting, unknown, refused, cancelled and rejected,
	// too. A plan is queued until it is run; unknown means that it was begun and is not finished.
	OutboxDone    OutboxState = "done"    // none of the messages is left
	OutboxPartly  OutboxState = "partly"  // some are left
	OutboxExpired OutboxState = "expired" // nobody decided within DeletionWaits, or ran it within PlanWaits; see Outgoing.Expired
)

// DeletionWaits is how long a deletion, or a plan, waits for a person. What it shows may be long out of
// date by then.
const DeletionWaits = 30 * 24 * time.Hour

// SentState is the state of the copy in the account's Sent folder.
type SentState string

// The states of the copy.
const (
	SentPending  SentState = "pending"  // not yet
	SentFiled    SentState = "filed"    // it is there
	SentProvider SentState = "provider" // left to the provider
	SentNone     SentState = "none"     // not wanted, or the account has no such folder
	SentFailed   SentState = "failed"   // it could not be put there
)

// The principals of one machine that have no grant: what an agent's client runs, and the person
// at the prompt or a terminal who has no administrator's key. Each has its own limits. In
// older vaults AgentPrincipal stands for both.
const (
	AgentPrincipal  = "agent"
	PersonPrincipal = "person"
)

// AskedAs is the principal whose changes a principal's are counted with, see Policy.AskChanges:
// an agent with a shell can be the person without a key as well.
func AskedAs(principal string) string {
	if principal == PersonPrincipal {
		return AgentPrincipal
	}
	return principal
}

// Owns reports whether a message that owner sent is principal's to see and to take back: its
// own, and the person's also those of the agent.
func Owns(principal, owner string) bool {
	return principal == owner || principal == PersonPrincipal && owner == AgentPrincipal
}

// Outgoing is an entry of the outbox: a message to send, without its bytes, or messages to
// delete or to change.
type Outgoing struct {
	ID        string      `json:"id"` // of the outbox; short, sorts by age
	Kind      OutboxKind  `json:"kind,omitempty"`
	Account   string      `json:"account"`
	Principal string      `json:"principal"` // who asked
	State     OutboxState `json:"state"`
	Created   time.Time   `json:"created"`
	Changed   time.Time   `json:"changed"`
	// Attempt names the attempt that is under way, to send the message or to file
	// its copy; empty when there is none. It ends at Until at the latest: after that the
	// attempt is over, whatever it still does. The table in outbox/state.go says how the two
	// keep a message from being sent twice.
	Attempt string    `json:"attempt,omitempty"`
	Until   time.Time `json:"until,omitzero"`

	MessageID  string    `json:"message_id"` // with its angle brackets; fixed at submission
	From       string    `json:"from"`       // envelope sender, plain
	Recipients []string  `json:"recipients"` // envelope recipients, plain, each once
	To         []Address `json:"to"`         // as shown in the header
	CC         []Address `json:"cc,omitempty"`
	BCC        []Address `json:"bcc,omitempty"`
	Subject    string    `json:"subject"`
	ReplyTo    string    `json:"reply_to,omitempty"`  // id of the message that it answers, see Ref
	Elsewhere  bool      `json:"elsewhere,omitempty"` // that message asks for answers elsewhere than to its sender
	LeftOut    int       `json:"left_out,omitempty"`  // addresses of that message that mail cannot be sent to
	Draft      string    `json:"draft,omitempty"`     // id of the draft that it is, until that is removed
	Size       int64     `json:"size"`                // bytes on the wire
	// Digest is the SHA-256, in hexadecimal, of exactly what would leave: the
	// envelope and every byte of the message.
	Digest      string     `json:"digest"`
	Attachments []FileName `json:"attachments,omitempty"`
	SMTPUTF8    bool       `json:"smtputf8,omitempty"`
	// Deletes are the messages to delete, all of Folder. Digest covers them as they were shown.
	Folder  string     `json:"folder,omitempty"`
	Deletes []Deletion `json:"deletes,omitempty"`
	Plan    *Plan      `json:"plan,omitempty"` // of OutboxPlan
	// Unsubscribes are the lists to leave. Digest covers them as they were shown, and the requests.
	Unsubscribes []Unsubscription `json:"unsubscribes,omitempty"`
	// Request is the digest of the request, so that one idempotency key cannot stand for two
	// messages. Key is a digest of that key; empty without.
	Request string `json:"request"`
	Key     string `json:"key,omitempty"`

	Attempts  int    `json:"attempts"`
	Code      int    `json:"code,omitempty"`      // of the submission server's last answer
	Reason    string `json:"reason,omitempty"`    // one sentence on the last failure, without secrets or body text
	Temporary bool   `json:"temporary,omitempty"` // of that failure: the same may work later
	// Settled says that a person has closed an unknown entry: nobody can send it again, not
	// even a person.
	Settled bool   `json:"settled,omitempty"`
	Decided string `json:"decided,omitempty"` // who approved, rejected or cancelled; empty without such a decision
	// Coded says that it carries a one-time code, or a link that logs in, of a message that it
	// answers, hands on or is: agents do not see its text.
	Coded bool `json:"coded,omitempty"`
	// In an account that RepliesUnasked, Asks is why a person has to decide, and Unasked is the
	// Digest of a message that goes without that; empty otherwise.
	Asks    []Ask     `json:"asks,omitempty"`
	Unasked string    `json:"unasked,omitempty"`
	Sent    SentState `json:"sent"`

	// Replayed says that an earlier Send with the same key made this entry, and that this Send
	// sent nothing. It is not stored.
	Replayed bool `json:"-"`
	// Unmarked says why the message that it answers could not be marked as answered, in the
	// call that sent it. It is not stored.
	Unmarked *Issue `json:"-"`
	// DraftLeft says why its draft is still there, or may be, in the call that should have
	// removed it. It is not stored.
	DraftLeft *Issue `json:"-"`
}

// MaxUnsubscribed bounds the lists of one entry.
const MaxUnsubscribed = 50

// Unsubscription is a list to leave, by a message of it.
type Unsubscription struct {
	ID      string    `json:"id"`            // the message's Ref, with UIDVALIDITY
	Date    time.Time `json:"date,omitzero"` // when it arrived, where it says no date
	From    Address   `json:"from"`          // Verified
	Subject string    `json:"subject,omitempty"`
	Leaving           // with a URI

	Outcome UnsubscribeOutcome `json:"outcome,omitempty"`
	Reason  string             `json:"reason,omitempty"` // a clause on what was not done
}

// UnsubscribeOutcome is what became of a list to leave; empty while nothing was tried.
type UnsubscribeOutcome string

// The outcomes.
const (
	UnsubscribeDone    UnsubscribeOutcome = "unsubscribed" // the server took the request
	UnsubscribeRefused UnsubscribeOutcome = "refused"      // it did not
	UnsubscribeUnsent  UnsubscribeOutcome = "unsent"       // nothing was sent, since it could not be reached or may not be
	UnsubscribeUnknown UnsubscribeOutcome = "unknown"      // the request may have arrived; no answer came
)

// Deletion is a message to delete, as the policy showed it when that was asked for.
type Deletion struct {
	ID      string    `json:"id"`            // its Ref, with UIDVALIDITY
	Date    time.Time `json:"date,omitzero"` // when it arrived, where it says no date
	From    []Address `json:"from,omitempty"`
	Subject string    `json:"subject,omitempty"`

	Outcome DeletionOutcome `json:"outcome,omitempty"`
	Reason  string          `json:"reason,omitempty"` // one sentence on what is not deleted
}

// DeletionOutcome is what became of a message to delete; empty while nothing was tried.
type DeletionOutcome string

// The outcomes.
const (
	DeletionDone    DeletionOutcome = "deleted"
	DeletionGone    DeletionOutcome = "gone"    // it was not there any more
	DeletionKept    DeletionOutcome = "kept"    // it is still there
	DeletionUnknown DeletionOutcome = "unknown" // no answer came
)

// Wait makes an entry that nobody tries to send one that waits for a person.
func (o *Outgoing) Wait(asks ...Ask) {
	o.State, o.Asks, o.Unasked, o.Attempt, o.Until = OutboxWaiting, asks, "", "", time.Time{}
}

// FileName is an attachment in a list.
type FileName struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Size int64  `json:"size"` // decoded bytes
}

// OutboxQuery selects entries, newest first. The zero query means the newest 50.
type OutboxQuery struct {
	Account string        // empty means all
	States  []OutboxState // none means all
	// Principal is the one whose messages are wanted, see Owns; empty means those of all.
	Principal string
	Before    string               // only entries older than this id; empty means no bound
	Only      func(*Outgoing) bool // a further condition; nil means none
	Limit     int                  // 1..500; 0 means 50
}

// Matches reports whether the query selects an entry. It is for implementations of
// OutboxStore and does not look at Limit.
func (q *OutboxQuery) Matches(o *Outgoing) bool {
	return (q.Account == "" || o.Account == q.Account) && (q.Principal == "" || Owns(q.Principal, o.Principal)) &&
		(len(q.States) == 0 || slices.Contains(q.States, o.State)) && (q.Before == "" || o.ID < q.Before) &&
		(q.Only == nil || q.Only(o))
}

// The bounds of an OutboxQuery.
const (
	DefaultOutboxLimit = 50
	MaxOutboxLimit     = 500
)

// How long an OutboxStore keeps entries: it forgets older ones when something is added.
const (
	// KeepOutgoing is how long an entry is kept after its end. Its key can be used for another
	// message afterwards. An entry that is waiting, queued or unknown is never forgotten.
	KeepOutgoing = 90 * 24 * time.Hour
	// KeepOutgoingMessage is how long the bytes of such an entry are kept: of a
	// message that was refused, and of one whose copy could not be filed.
	KeepOutgoingMessage = 30 * 24 * time.Hour
)

// Ended reports whether the entry will never be sent any more: its outcome is known, or a
// person has closed it.
func (o *Outgoing) Ended() bool {
	switch o.State {
	case OutboxAccepted, OutboxRefused, OutboxCancelled, OutboxRejected, OutboxDone, OutboxPartly, OutboxExpired:
		return true
	case OutboxUnknown:
		return o.Settled
	}
	return false
}

// Expired reports whether the entry is no message to send, and nobody decided about it or ran it
// in time: nothing writes that down, so it still says waiting or queued.
func (o *Outgoing) Expired(now time.Time) bool {
	return o.Kind != OutboxSend && (o.State == OutboxWaiting && now.Sub(o.Created) > DeletionWaits || o.State == OutboxQueued && now.Sub(o.Created) > PlanWaits)
}

// OutboxStore keeps the outbox. Implementations are safe for concurrent use, also
// of several processes, and what they returned without an error is durable.
type OutboxStore interface {
	// AddOutgoing adds an entry with its message, which is byte for byte what goes
	// over the wire. Where the account has an entry of the same Key already, that
	// one is returned and nothing is added; else the entry itself. An ID that there
	// is already is an error. An entry that is Unasked is added as Wait(AskOften) makes it
	// where the account has MaxUnasked such entries of the last UnaskedWithin: they are counted
	// in the step that adds it. It may also forget entries that have ended, as KeepOutgoing
	// says.
	AddOutgoing(ctx context.Context, o Outgoing, message []byte) (kept Outgoing, added bool, err error)
	// Outgoing returns one entry. The error matches ErrNoOutgoing.
	Outgoing(ctx context.Context, id string) (Outgoing, error)
	// OutgoingByKey returns the entry of an account with this Key, which is not
	// empty. The error matches ErrNoOutgoing.
	OutgoingByKey(ctx context.Context, account, key string) (Outgoing, error)
	// OutgoingMessage returns the bytes of an entry that still has them.
	OutgoingMessage(ctx context.Context, id string) ([]byte, error)
	// ListOutgoing returns entries, newest first, and whether there are more.
	ListOutgoing(ctx context.Context, q OutboxQuery) (entries []Outgoing, more bool, err error)
	// ChangeOutgoing lends an entry to change, alone: nobody else sees or changes
	// it in between. change must be short and must not use the network; its error
	// leaves the entry as it is and is returned. With drop, the entry's bytes are
	// forgotten in the same moment.
	ChangeOutgoing(ctx context.Context, id string, change func(o *Outgoing) (drop bool, err error)) (Outgoing, error)
}

// ErrOutboxFull is returned by an OutboxStore that has no room for more messages that wait
// or failed.
var ErrOutboxFull = errors.New("the outbox is full")

// ErrNoOutgoing is returned by an OutboxStore that does not have the entry, or no longer
// its bytes.
var ErrNoOutgoing = errors.New("the outbox has no such message")
