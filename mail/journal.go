package mail

import (
	"context"
	"errors"
	"time"
)

// JournalKept is how long a change of a mailbox can be taken back.
const JournalKept = 30 * 24 * time.Hour

// ErrNoChange says that the journal has no such change, or has it no longer.
var ErrNoChange = errors.New("the journal has no such change")

// AskWithin is the time within which the messages are counted that a principal changes unasked,
// see Policy.AskChanges.
const AskWithin = 10 * time.Minute

// ErrManyChanges says that a person has to decide about a change, since with it the principal
// would have changed too many messages unasked. Nothing was kept.
var ErrManyChanges = errors.New("too many messages were changed unasked")

// Journal keeps what is changed in mailboxes, so that it can be taken back. Implementations are
// safe for concurrent use, by other processes too.
type Journal interface {
	// BeginChange keeps a change before it is made. The caller gives everything but ID, Begun,
	// Ended and Principal, which it sets. Unless unasked < 0 the error matches ErrManyChanges
	// where the messages of this change that count (see Change.Counts), and those that the
	// principal changed within AskWithin, are more. What a principal changed longest ago is forgotten where
	// there is no room.
	BeginChange(ctx context.Context, c *Change, unasked int) error
	// AmendChange lends a change that was begun and keeps what amend leaves in it, in one
	// transaction. An error of amend is returned and keeps nothing. ID, Account, Principal,
	// Begun and Of stay. The error matches ErrNoChange where there is none that the caller may know of.
	AmendChange(ctx context.Context, id string, amend func(*Change) error) (Change, error)
	// ChangesMade are those that a query matches and that the caller may know of, the newest first.
	ChangesMade(ctx context.Context, q ChangeQuery) ([]Change, error)
}

// ChangeKind is what a change does to its messages.
type ChangeKind string

// The kinds. Deletion for good is none: it cannot be taken back.
const (
	ChangeFlags  ChangeKind = "flags"  // sets or removes flags
	ChangeMove   ChangeKind = "move"   // to another folder, the trash too
	ChangeCopy   ChangeKind = "copy"   // into the account, also from another one
	ChangeAppend ChangeKind = "append" // a message that was made here: a draft, the copy of a sent one
)

// Change is one change of a mailbox by one command. It says which messages were meant and where
// they went, and nothing of what they say.
type Change struct {
	ID        string     `json:"id"` // short; those that come later are greater
	Account   string     `json:"account"`
	Mailbox   string     `json:"mailbox"`   // see Account.Mailbox
	Principal string     `json:"principal"` // who asked for it
	Kind      ChangeKind `json:"kind"`
	Begun     time.Time  `json:"begun"`
	// Ended is when the outcome was known. It is zero of a change that is under way, and of one
	// whose process or connection ended in it: then each message that is not Done may be changed
	// or not.
	Ended time.Time `json:"ended,omitzero"`
	Of    string    `json:"of,omitempty"` // what it is a piece of: a plan, an undo, or the first change of a command that makes several
	// Approved says that a person decided about it, or made it. Undoes says that it takes changes
	// back; Redoes that these were such changes themselves. Sent says that it is part of a sending,
	// and is never taken back, as the letter is not.
	Approved bool `json:"approved,omitempty"`
	Undoes   bool `json:"undoes,omitempty"`
	Redoes   bool `json:"redoes,omitempty"`
	Sent     bool `json:"sent,omitempty"`

	// FromAccount is where a copy came from, where that is another account: Folder, UIDValidity
	// and the UIDs are there then, where nothing changed, and Account has the copies, in To.
	FromAccount string          `json:"from_account,omitempty"`
	Folder      string          `json:"folder"` // of the messages, before; of ChangeAppend where they are
	UIDValidity uint32          `json:"uidvalidity,omitempty"`
	To          string          `json:"to,omitempty"`             // of a move or a copy
	ToValidity  uint32          `json:"to_uidvalidity,omitempty"` // of To; 0 where the server did not say
	Add         []string        `json:"add,omitempty"`            // flags
	Remove      []string        `json:"remove,omitempty"`
	Messages    []ChangeMessage `json:"messages"`
}

// Counts are how many messages a person would have to be asked about, where they are too many:
// what takes back, what was made here, what was sent, and what a person decided are none. Those
// that turned out to stay as they were count, too.
func (c *Change) Counts() int {
	if c.Approved || c.Sent || c.Kind == ChangeAppend || c.Undoes && !c.Redoes {
		return 0
	}
	return len(c.Messages)
}

// ChangeMessage is a message of a change. One of a move that is not Done and has a New was copied,
// and is still in Folder too, perhaps marked \Deleted; or may be, where the change has no Ended.
type ChangeMessage struct {
	UID   uint32   `json:"uid"`             // in Folder; of ChangeAppend that which it got
	New   uint32   `json:"new,omitempty"`   // in To; 0 where the server did not say
	Flags []string `json:"flags,omitempty"` // before

	// What finds a message whose New is not known: its Message-ID, when it arrived, and its bytes.
	MessageID string    `json:"message_id,omitempty"`
	Arrived   time.Time `json:"arrived,omitzero"`
	Size      int64     `json:"size,omitempty"`

	Done bool   `json:"done,omitempty"` // it was changed
	Back string `json:"back,omitempty"` // the change that took it back, or of which that is a piece
}

// ChangeQuery selects changes.
type ChangeQuery struct {
	Principal string             // empty means everybody's that the caller may know of
	Account   string             // empty means any
	ID        string             // the change itself, or what it is Of; empty means any
	Since     time.Time          // begun at or after; zero means as far back as there are any
	Before    string             // only changes older than this id; empty means no bound
	Only      func(*Change) bool // a further condition; nil means none
	Limit     int                // 0 means MaxChanges, which is the most
}

// Matches reports whether a query selects a change.
func (q *ChangeQuery) Matches(c *Change) bool {
	return (q.Principal == "" || c.Principal == q.Principal) && (q.Account == "" || c.Account == q.Account) &&
		(q.ID == "" || c.ID == q.ID || c.Of == q.ID) && !c.Begun.Before(q.Since) && (q.Before == "" || c.ID < q.Before) &&
		(q.Only == nil || q.Only(c))
}

// MaxChanges bounds what one query gives.
const MaxChanges = 1000
