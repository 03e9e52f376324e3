package outbox

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/oneclick"
	"github.com/postern-mail/postern/mail/login"
	"github.com/postern-mail/postern/mail/mailbox"
)

// Options sets an Outbox up. Directory and Store are needed.
type Options struct {
	Directory   mail.Directory
	Mailboxes   *mailbox.Client   // for replies, copies of sent messages, and drafts; nil: none of these
	Credentials login.Credentials // nil: the Directory's Secret as a password
	Store       mail.OutboxStore
	Journal     mail.Journal // that of Mailboxes; nil: no change asks
	// Key returns 32 bytes that name idempotency keys and the Message-IDs made of
	// them, the same in every process that uses the Store. nil: a request with a key
	// is refused.
	Key func(ctx context.Context) ([]byte, error)
	// Take charges one send to a principal, or with charge unset only says whether it could;
	// wait > 0 refuses it. nil: no limit.
	Take func(ctx context.Context, principal string, charge bool) (wait time.Duration, err error)
	// Requests makes the request of RFC 8058 at an address; nil: as the package oneclick does. Another
	// one is for tests.
	Requests interface {
		Post(ctx context.Context, uri string) error
	}
	Logger *slog.Logger     // nil means none; it gets ids and states, never an address or a word of a message
	Now    func() time.Time // nil means time.Now
}

// Outbox sends mail, and is the only way to. Every message passes the account's
// outbound policy when it is submitted and once more right before the wire. Each message is
// recorded before and after it leaves, so that none leaves twice by itself or is lost
// without a record. It is safe for concurrent use, also by several processes on one Store.
//
// Failures are *mail.Error, *mail.SendRefused when the policy refuses, *Limited, an
// error that matches mail.ErrNoAccount or mail.ErrNoOutgoing, and what Directory, Credentials and
// Store themselves report.
type Outbox struct {
	o         Options
	dial      func(ctx context.Context, o mail.Operation, a *mail.Account) (submission, error) // connects and logs in
	change    func(ctx context.Context, of mailbox.Batch) (*mailbox.Changed, error)            // Mailboxes.Do
	admitting *semaphore.Weighted                                                              // while an entry is charged and added
}

// New makes an Outbox. It connects to nothing yet, and needs no closing.
func New(o Options) *Outbox {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Requests == nil {
		o.Requests = &oneclick.Client{}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	b := &Outbox{o: o, admitting: semaphore.NewWeighted(1)}
	b.dial = func(ctx context.Context, o mail.Operation, a *mail.Account) (submission, error) {
		return b.connect(ctx, o, a)
	}
	if o.Mailboxes != nil {
		b.change = o.Mailboxes.Do
	}
	return b
}

// now is the time as it is stored: without a monotonic reading or a zone, so that it
// compares equal after it was read back.
func (b *Outbox) now() time.Time { return b.o.Now().UTC().Round(0) }

// List returns entries, newest first, and whether there are more.
func (b *Outbox) List(ctx context.Context, q mail.OutboxQuery) (entries []mail.Outgoing, more bool, err error) {
	if q.Limit < 0 || q.Limit > mail.MaxOutboxLimit {
		return nil, false, mail.Operation{Op: "outbox list", Account: q.Account}.Invalid("The limit must be 1 to 500.", mail.AdvicePageOn)
	}
	if q.Limit == 0 {
		q.Limit = mail.DefaultOutboxLimit
	}
	now, states, only := b.now(), q.States, q.Only
	q.States = nil
	q.Only = func(e *mail.Outgoing) bool {
		return (len(states) == 0 || slices.Contains(states, present(*e, now).State)) && (only == nil || only(e))
	}
	entries, more, err = b.o.Store.ListOutgoing(ctx, q)
	for i := range entries {
		entries[i] = present(entries[i], now)
	}
	return entries, more, err
}

// present is an entry with the state that it has by now.
func present(e mail.Outgoing, now time.Time) mail.Outgoing {
	if e.Expired(now) {
		e.State = mail.OutboxExpired
	}
	return e
}

// Cancel takes a message back that has not left yet: one that waits, or one that is
// queued, also while an attempt to send it is under way, which then stops before
// the message leaves. principal is the caller, to whom the message must belong, see mail.Owns;
// empty means the administrator, who may cancel any. Another principal's message is
// ErrNoOutgoing.
func (b *Outbox) Cancel(ctx context.Context, id, principal string) (*mail.Outgoing, error) {
	const op = "outbox cancel"
	return b.end(ctx, op, id, func(e *mail.Outgoing) error {
		if principal != "" && !mail.Owns(principal, e.Principal) {
			return mail.ErrNoOutgoing
		}
		switch e.State {
		case mail.OutboxWaiting, mail.OutboxQueued:
		case mail.OutboxCancelled:
			return errAlready
		default:
			return tooLate(op, e)
		}
		e.State, e.Decided = mail.OutboxCancelled, principal
		if principal == "" {
			e.Decided = byAdmin
		}
		return nil
	})
}

// byAdmin names the person who decided when no name was given.
const byAdmin = "admin"

// Reject refuses a message that waits, or closes an unknown one, so that it is never sent
// again: its state stays unknown, and its bytes are forgotten. While an attempt to send
// that one may be under way the error is KindConflict. reason is for the sender; it is cut
// at 200 characters and may be empty.
func (b *Outbox) Reject(ctx context.Context, id, by, reason string) (*mail.Outgoing, error) {
	const op = "outbox reject"
	return b.end(ctx, op, id, func(e *mail.Outgoing) error {
		switch {
		case e.State == mail.OutboxWaiting && !e.Expired(b.now()):
		case e.State == mail.OutboxRejected, e.Settled:
			return errAlready
		case e.State == mail.OutboxUnknown && busy(e, b.now()):
			return underWay(mail.Operation{Op: op, Account: e.Account}, e)
		case e.State == mail.OutboxUnknown:
			e.Settled, e.Decided = true, by
			if reason != "" {
				e.Reason = shortLine(reason, maxReason)
			}
			return nil
		default:
			is := present(*e, b.now())
			return tooLate(op, &is)
		}
		e.State, e.Decided, e.Reason, e.Temporary = mail.OutboxRejected, by, shortLine(reason, maxReason), false
		return nil
	})
}

// errAlready says that an entry is in the wanted state already.
var errAlready = errors.New("the entry is already in that state")

// end ends an entry that has not left. An attempt to send it loses the entry at the gate.
func (b *Outbox) end(ctx context.Context, op, id string, change func(*mail.Outgoing) error) (*mail.Outgoing, error) {
	now := b.now()
	e, err := b.o.Store.ChangeOutgoing(ctx, id, func(e *mail.Outgoing) (bool, error) {
		if err := change(e); err != nil {
			return false, err
		}
		release(e, now)
		return true, nil
	})
	if errors.Is(err, errAlready) {
		e, err = b.o.Store.Outgoing(ctx, id)
	}
	if err != nil {
		return nil, wrapStore(ctx, op, err)
	}
	b.log(ctx, "outgoing message ended", &e)
	return &e, nil
}

// tooLate refuses to take back a message that may have left or has ended.
func tooLate(op string, e *mail.Outgoing) *mail.Error {
	what, is := "The message ", "is "+string(e.State)
	if e.State == mail.OutboxUnknown {
		is = "may have left already"
	}
	if w := workOf(e.Kind); w != nil {
		what, is = "The "+w.noun+" ", strings.Replace(is, "left", "happened", 1)
	}
	return mail.Operation{Op: op, Account: e.Account}.Conflict(what+is+" and cannot be taken back.", mail.AdviceShowEntry).About(e.ID)
}

// wrapStore gives the end of the caller's context its form; other errors of a Store pass
// unchanged.
func wrapStore(ctx context.Context, op string, err error) error {
	var done *mail.Error
	if ctx.Err() != nil && !errors.As(err, &done) {
		return mail.Operation{Op: op}.Wrap(ctx, err, nil)
	}
	return err
}

// log writes the outcome of an entry: its id, account and states.
func (b *Outbox) log(ctx context.Context, what string, e *mail.Outgoing) {
	b.o.Logger.LogAttrs(ctx, slog.LevelInfo, what, slog.String("id", e.ID), slog.String("account", e.Account),
		slog.String("state", string(e.State)), slog.Int("code", e.Code), slog.String("sent", string(e.Sent)))
}

// maxReason bounds a person's reason, in characters.
const maxReason = 200

// shortLine makes one line of at most n characters of a text.
func shortLine(s string, n int) string {
	s, _ = plain.Head(plain.Line(s), n)
	return s
}
