package outbox

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

// ForeseeDeletion says what becomes of messages of one folder that are to be deleted for good,
// without a word to a server: where it Waits HoldDeletion is the way, else Mailboxes.Delete.
func (b *Outbox) ForeseeDeletion(ctx context.Context, account string, refs []mail.Ref) (*Decision, error) {
	asks, err := b.o.Mailboxes.MayDestroy(ctx, account, refs)
	if err != nil {
		return nil, err
	}
	d := &Decision{Outgoing: mail.Outgoing{Kind: mail.OutboxDelete, Account: account, State: mail.OutboxQueued, Folder: refs[0].Folder}}
	if asks {
		d.Wait()
	}
	return d, nil
}

// HoldDeletion puts the deletion of messages of one folder into the outbox, where it waits for
// a person as a send does, where ForeseeDeletion says so. Nothing is
// deleted. A message that does not exist is an error, and nothing waits then. Where the same
// deletion of the same principal waits already, that entry is returned, with Replayed.
func (b *Outbox) HoldDeletion(ctx context.Context, account string, refs []mail.Ref, principal string) (*mail.Outgoing, error) {
	const op = "mail delete"
	shown, err := b.o.Mailboxes.ToDelete(ctx, account, refs)
	if err != nil {
		return nil, err
	}
	now := b.now()
	e := mail.Outgoing{ID: mail.NewID(now), Kind: mail.OutboxDelete, Account: account, Principal: principal, State: mail.OutboxWaiting,
		Created: now, Changed: now, Folder: shown[0].Ref.Folder, Sent: mail.SentNone}
	for _, m := range shown {
		d := mail.Deletion{ID: m.Ref.String(), Date: cmp.Or(m.Date, m.InternalDate).UTC().Round(0), Subject: shortLine(m.Subject, maxReason)}
		for _, a := range m.From[:min(len(m.From), maxSenders)] {
			d.From = append(d.From, mail.Address{Name: shortLine(a.Name, maxReason), Addr: shortLine(a.Addr, 2*maxReason)})
		}
		e.Deletes = append(e.Deletes, d)
	}
	e.Digest = deletionDigest(&e)
	waiting, _, err := b.List(ctx, mail.OutboxQuery{Account: account, Principal: principal, States: []mail.OutboxState{mail.OutboxWaiting}, Limit: 1,
		Only: func(o *mail.Outgoing) bool { return o.Digest == e.Digest }})
	if err != nil {
		return nil, wrapStore(ctx, op, err)
	}
	if len(waiting) > 0 {
		waiting[0].Replayed = true
		return &waiting[0], nil
	}
	kept, _, err := b.o.Store.AddOutgoing(ctx, e, nil)
	if err != nil {
		return nil, wrapStore(ctx, op, err)
	}
	b.log(ctx, "deletion waits for a person", &kept)
	return &kept, nil
}

// maxSenders bounds the senders that are kept of a message to delete.
const maxSenders = 3

// deletionDigest covers everything of a deletion that a person is shown, and the references by
// which it is done.
func deletionDigest(e *mail.Outgoing) string {
	deletes := slices.Clone(e.Deletes)
	for i := range deletes {
		deletes[i].Outcome, deletes[i].Reason = "", ""
	}
	record, _ := json.Marshal([]any{"delete", e.Account, e.Folder, deletes}) // strings and times: it never fails
	sum := sha256.Sum256(record)
	return hex.EncodeToString(sum[:])
}

// unchanged reports whether a deletion is what its digest names.
func unchanged(op string, e *mail.Outgoing) error {
	if deletionDigest(e) == e.Digest {
		return nil
	}
	return mail.Operation{Op: op, Account: e.Account}.Conflict("The deletion was changed after it was put into the outbox; nothing is deleted.", mail.AdviceCancelAndResend)
}

// carryOut deletes the messages of an entry that an attempt holds, or what is left of them
// where the outcome of an attempt before is unknown: their ids never name other messages, so
// nothing is deleted twice. A folder that was replaced since fails it for good.
func (b *Outbox) carryOut(ctx context.Context, op string, e mail.Outgoing, a attempt) (*mail.Outgoing, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	failed := unchanged(op, &e)
	var refs []mail.Ref
	for _, d := range e.Deletes {
		ref, err := mail.ParseRef(d.ID)
		refs, failed = append(refs, ref), cmp.Or(failed, err)
	}
	var changed *mailbox.Changed
	if failed == nil {
		changed, failed = b.o.Mailboxes.DeleteApproved(ctx, e.Account, refs)
	}
	kept, err := b.record(ctx, e.ID, func(e *mail.Outgoing) (bool, error) {
		err := concludeDeletion(e, a, changed, failed, b.now())
		return err == nil && e.Ended(), err
	})
	switch {
	case errors.Is(err, errNotHeld):
		return b.late(ctx, op, e.ID)
	case err != nil:
		b.o.Logger.LogAttrs(ctx, slog.LevelError, "outcome of a deletion could not be recorded", slog.String("id", e.ID), slog.String("account", e.Account))
		e.Reason = "What was deleted could not be recorded in the outbox."
		return &e, nil
	}
	b.log(ctx, "deletion tried", &kept)
	if kept.State == mail.OutboxDone {
		failed = nil // none of them was there any more
	}
	return &kept, failed
}

// concludeDeletion records what became of the messages.
func concludeDeletion(e *mail.Outgoing, a attempt, changed *mailbox.Changed, failed error, now time.Time) error {
	if e.Attempt != a.id || e.Ended() {
		return errNotHeld
	}
	release(e, now)
	e.Reason, e.Temporary = "", false
	told := map[string]mail.Deletion{} // outcomes and reasons, by id
	var known *mail.Error
	switch {
	case failed == nil:
		for _, m := range changed.Messages {
			told[m.Ref.String()] = mail.Deletion{Outcome: mail.DeletionDone}
		}
		for _, i := range changed.Issues {
			d := mail.Deletion{Outcome: mail.DeletionUnknown, Reason: shortLine(i.Message, maxReason)}
			switch i.Kind {
			case mail.KindNotFound:
				d.Outcome = mail.DeletionGone
			case mail.KindRefused:
				d.Outcome = mail.DeletionKept
			}
			told[i.MessageID] = d
		}
	case errors.As(failed, &known) && known.Kind == mail.KindNotFound && known.Advice == mail.AdviceList:
		for _, d := range e.Deletes { // none of them is there
			told[d.ID] = mail.Deletion{Outcome: mail.DeletionGone, Reason: shortLine(known.Message, maxReason)}
		}
	default:
		// Nothing was tried, so the entry is what it was, unless it can never be done.
		e.State, e.Reason = a.from, reasonOf(failed)
		if a.from == mail.OutboxWaiting {
			e.Decided = ""
			if errors.As(failed, &known) && known.Kind == mail.KindConflict {
				e.State = mail.OutboxRefused
			}
		}
		return nil
	}
	e.Deletes = slices.Clone(e.Deletes)
	count := map[mail.DeletionOutcome]int{}
	for i := range e.Deletes {
		d := &e.Deletes[i]
		if t, ok := told[d.ID]; ok {
			d.Outcome, d.Reason = t.Outcome, t.Reason
		}
		count[d.Outcome]++
	}
	switch {
	case count[mail.DeletionUnknown] > 0 || count[""] > 0:
		e.State = mail.OutboxUnknown
	case count[mail.DeletionKept] == 0:
		e.State = mail.OutboxDone
	case count[mail.DeletionKept] == len(e.Deletes) && a.from == mail.OutboxWaiting:
		e.State = mail.OutboxRefused
	default:
		e.State = mail.OutboxPartly
	}
	return nil
}
