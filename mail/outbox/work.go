package outbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/postern-mail/postern/mail"
)

// work is what is carried out, and is no message to send: what the kinds of such entries do
// not have in common.
type work struct {
	noun, did, doing string // in sentences: "deletion", "deleted", "deleting the messages"
	first, rest      Step   // of an entry that nobody began, and of one that was begun
	// shown is everything that a person is shown of an entry, and by what it is done. The digest
	// covers it.
	shown func(e *mail.Outgoing) any
	// do carries out an entry that an attempt holds, or what is left to do of one that was begun
	// before: nothing twice. The error is one that ended it.
	do func(b *Outbox, ctx context.Context, op string, e *mail.Outgoing, a attempt) (tally, error)
}

// workOf is nil for a message to send.
func workOf(k mail.OutboxKind) *work {
	switch k {
	case mail.OutboxDelete:
		return &work{"deletion", "deleted", "deleting the messages", StepDelete, StepDeleteRest, shownDeletion, (*Outbox).delete}
	case mail.OutboxPlan:
		return &work{"plan", "changed", "changing the messages", StepRun, StepRunRest, shownPlan, (*Outbox).runPlan}
	case mail.OutboxUnsubscribe:
		return &work{"unsubscription", "asked for", "unsubscribing", StepUnsubscribe, StepUnsubscribeRest, shownUnsubscription, (*Outbox).unsubscribe}
	}
	return nil
}

// tally says what became of what an entry is about.
type tally struct {
	tried               bool // else nothing was, and the entry is what it was
	done, left, unknown int  // done: also by others; left: it did not happen, for good; unknown: also what was not tried yet
	asks                bool // a person has to decide about the rest
	write               func(e *mail.Outgoing)
}

func (w *work) digest(e *mail.Outgoing) string {
	record, _ := json.Marshal(w.shown(e)) // strings, numbers and times: it never fails
	sum := sha256.Sum256(record)
	return hex.EncodeToString(sum[:])
}

// unchanged reports whether an entry is what its digest names.
func (w *work) unchanged(op string, e *mail.Outgoing) error {
	if w.digest(e) == e.Digest {
		return nil
	}
	return w.altered(op, e)
}

func (w *work) altered(op string, e *mail.Outgoing) error {
	return mail.Operation{Op: op, Account: e.Account}.Conflict("The "+w.noun+" was changed after it was put into the outbox; nothing is "+w.did+".", mail.AdviceCancelAndResend)
}

// carryOut does what an entry that an attempt holds is about, and records the outcome.
func (b *Outbox) carryOut(ctx context.Context, op string, e mail.Outgoing, a attempt) (*mail.Outgoing, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	w, t := workOf(e.Kind), tally{}
	failed := w.unchanged(op, &e)
	if failed == nil {
		t, failed = w.do(b, ctx, op, &e, a)
	}
	kept, err := b.record(ctx, e.ID, func(e *mail.Outgoing) (bool, error) {
		err := finish(e, a, t, failed, b.now())
		return err == nil && e.Ended(), err
	})
	switch {
	case errors.Is(err, errNotHeld):
		return b.late(ctx, op, e.ID)
	case err != nil:
		b.o.Logger.LogAttrs(ctx, slog.LevelError, "outcome of a "+w.noun+" could not be recorded", slog.String("id", e.ID), slog.String("account", e.Account))
		e.Reason = "What was " + w.did + " could not be recorded in the outbox."
		return &e, nil
	}
	b.log(ctx, w.noun+" tried", &kept)
	if kept.State == mail.OutboxDone || t.asks {
		failed = nil // none of them was there any more; or it waits
	}
	return &kept, failed
}

// finish records what became of an entry. Where nothing was tried it is what it was, unless it can
// never be done.
func finish(e *mail.Outgoing, a attempt, t tally, failed error, now time.Time) error {
	if e.Attempt != a.id || e.Ended() {
		return errNotHeld
	}
	release(e, now)
	e.Reason, e.Temporary = "", false
	if t.write != nil {
		t.write(e)
	}
	var known *mail.Error
	switch {
	case t.asks:
		e.Wait()
	case !t.tried:
		e.State, e.Reason = a.from, reasonOf(failed)
		if a.from != mail.OutboxUnknown {
			e.Decided = ""
			if errors.As(failed, &known) && known.Kind == mail.KindConflict {
				e.State = mail.OutboxRefused
			}
		}
	case t.unknown > 0:
		e.State = mail.OutboxUnknown
		if failed != nil {
			e.Reason = reasonOf(failed)
		}
	case t.left == 0:
		e.State = mail.OutboxDone
	case t.done == 0 && a.from != mail.OutboxUnknown:
		e.State = mail.OutboxRefused
	default:
		e.State = mail.OutboxPartly
	}
	return nil
}
