package outbox

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/postern-mail/postern/mail"
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
	e.Digest = workOf(e.Kind).digest(&e)
	return b.hold(ctx, op, e, nil)
}

// hold adds an entry that waits for a person, unless the same one of the same principal waits.
func (b *Outbox) hold(ctx context.Context, op string, e mail.Outgoing, bytes []byte) (*mail.Outgoing, error) {
	waiting, _, err := b.List(ctx, mail.OutboxQuery{Account: e.Account, Principal: e.Principal, States: []mail.OutboxState{mail.OutboxWaiting}, Limit: 1,
		Only: func(o *mail.Outgoing) bool { return o.Digest == e.Digest }})
	if err != nil {
		return nil, wrapStore(ctx, op, err)
	}
	if len(waiting) > 0 {
		waiting[0].Replayed = true
		return &waiting[0], nil
	}
	kept, _, err := b.o.Store.AddOutgoing(ctx, e, bytes)
	if err != nil {
		return nil, wrapStore(ctx, op, err)
	}
	b.log(ctx, workOf(e.Kind).noun+" waits for a person", &kept)
	return &kept, nil
}

// maxSenders bounds the senders that are kept of a message to delete.
const maxSenders = 3

// shownDeletion is everything of a deletion that a person is shown, and the references by which it
// is done.
func shownDeletion(e *mail.Outgoing) any {
	deletes := slices.Clone(e.Deletes)
	for i := range deletes {
		deletes[i].Outcome, deletes[i].Reason = "", ""
	}
	return []any{"delete", e.Account, e.Folder, deletes}
}

// delete deletes the messages of an entry, or what is left of them where the outcome of an attempt
// before is unknown: their ids never name other messages, so nothing is deleted twice. A folder
// that was replaced since fails it for good.
func (b *Outbox) delete(ctx context.Context, _ string, e *mail.Outgoing, _ attempt) (t tally, failed error) {
	var refs []mail.Ref
	for _, d := range e.Deletes {
		ref, err := mail.ParseRef(d.ID)
		if err != nil {
			return t, err
		}
		refs = append(refs, ref)
	}
	told := map[string]mail.Deletion{} // outcomes and reasons, by id
	changed, failed := b.o.Mailboxes.DeleteApproved(ctx, e.Account, refs)
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
	case allGone(failed, &known):
		for _, d := range e.Deletes {
			told[d.ID] = mail.Deletion{Outcome: mail.DeletionGone, Reason: shortLine(known.Message, maxReason)}
		}
	default:
		return t, failed
	}
	deletes := slices.Clone(e.Deletes)
	for i := range deletes {
		d := &deletes[i]
		if now, ok := told[d.ID]; ok {
			d.Outcome, d.Reason = now.Outcome, now.Reason
		}
		switch d.Outcome {
		case mail.DeletionKept:
			t.left++
		case mail.DeletionDone, mail.DeletionGone:
			t.done++
		default:
			t.unknown++
		}
	}
	t.tried, t.write = true, func(e *mail.Outgoing) { e.Deletes = deletes }
	return t, failed
}

// allGone reports whether a change failed because none of its messages is there any more.
func allGone(err error, known **mail.Error) bool {
	return errors.As(err, known) && (*known).Kind == mail.KindNotFound && (*known).Advice == mail.AdviceList
}
