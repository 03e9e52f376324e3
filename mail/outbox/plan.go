package outbox

import (
	"context"
	"errors"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

// Plan freezes what a search matches now, of the messages that the account's policy shows, and what
// is to be done to them: an entry that is queued until Run, for PlanWaits. Nothing is changed. No
// match is KindNotFound, more than MaxPlanned are KindInvalid, and what the account's mode does not
// allow is what it would be for a direct command. Issues are folders that could not be searched.
func (b *Outbox) Plan(ctx context.Context, account string, q mailbox.SearchQuery, do mail.Action, principal string) (d *Decision, issues []mail.Issue, err error) {
	return nil, nil, errors.New("not yet")
}

// Run does to the messages of a plan of the principal's what it says, in pieces, and tells the
// progress of ctx; once. It waits for a person instead where with them the principal would have
// changed more than Policy.AskChanges unasked: then the entry is waiting, which is no error. What
// left its folder since is left alone and counted. Another principal's plan is
// mail.ErrNoOutgoing, see mail.Owns; one that ended, and one that is run at this moment, are
// KindConflict. One that was cut off is unknown: Run, or Approve, goes on with the rest, once
// nobody can be at it any more. With an error the entry, where there is one, is what is kept.
func (b *Outbox) Run(ctx context.Context, id, principal string) (*mail.Outgoing, error) {
	return nil, errors.New("not yet")
}

// ForeseeRun is Show, with the state that Run would begin with now: OutboxWaiting where a person
// would have to decide.
func (b *Outbox) ForeseeRun(ctx context.Context, id, principal string) (*Decision, error) {
	return nil, errors.New("not yet")
}

// ForeseeChange says what becomes of a direct change of messages, without a word to a server:
// where it Waits the change would be KindAsks, and HoldChange is the way.
func (b *Outbox) ForeseeChange(ctx context.Context, of mailbox.Batch, principal string) (*Decision, error) {
	return nil, errors.New("not yet")
}

// HoldChange puts a change that was KindAsks into the outbox, as a plan of its messages that waits
// for a person, where ForeseeChange says so. Nothing is changed. A message that does not exist is an
// error, and nothing waits then. Where the same change of the same principal waits
// already, that entry is returned, with Replayed.
func (b *Outbox) HoldChange(ctx context.Context, of mailbox.Batch, principal string) (*mail.Outgoing, error) {
	return nil, errors.New("not yet")
}
