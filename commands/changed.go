package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

// batchResult begins the answer of a command that changes several messages of one
// folder.
type batchResult struct {
	answer.Outcome
	Account string `json:"account_id"`
	Folder  string `json:"folder,omitempty" acli:"untrusted"`

	undo    string      // what takes it back
	changed []string    // the ids of the messages that were changed, for a compact answer
	moved   [][2]string // the same, each with its id at the new place
}

// batch resolves the messages that a command works on and has do change them. The result is
// partial when some were changed and there are issues.
func (d *Deps) batch(ctx context.Context, call *discovery.Call, a *messagesArgs,
	do func(ctx context.Context, account string, refs []mail.Ref) (*mailbox.Changed, error)) (*mailbox.Changed, batchResult, error) {
	refs, err := d.messages(ctx, call, a)
	if err != nil {
		return nil, batchResult{}, err
	}
	c, err := do(ctx, refs[0].Account, refs)
	if err != nil {
		return nil, batchResult{}, err
	}
	withheld(call, c.Issues)
	var shown []mail.Ref
	for _, m := range c.Messages {
		shown = append(shown, m.Ref, m.New)
	}
	ids := d.shown(ctx, call, shown...)
	r := batchResult{Outcome: answer.OutcomeOf(append(c.Issues, ids.Issues...), len(c.Messages) > 0), Account: c.Account, Folder: c.Folder, undo: undoOf(c.Change), changed: []string{}, moved: [][2]string{}}
	r.IDs = ids
	for _, m := range c.Messages {
		pair := [2]string{ids.Of(m.Ref), ""}
		if m.New != (mail.Ref{}) {
			pair[1] = ids.Of(m.New)
		}
		r.changed, r.moved = append(r.changed, pair[0]), append(r.moved, pair)
	}
	return c, r, nil
}

// changing are the arguments of a command that changes a mailbox so that it can be taken back.
type changing interface {
	which() *messagesArgs
	action() mail.Action
}

// change is batch for what changes a mailbox, and can be taken back: the messages count towards
// those that the caller may change within an hour. Where a person has to decide, the change waits
// in the outbox.
func (d *Deps) change(ctx context.Context, call *discovery.Call, args changing) (*mailbox.Changed, batchResult, error) {
	of := mailbox.Batch{Action: args.action()}
	of.Op = doing[of.Do].like
	return d.batch(ctx, call, args.which(), func(ctx context.Context, account string, refs []mail.Ref) (*mailbox.Changed, error) {
		of.Account, of.Refs = account, refs
		if call.Reply != nil {
			o, err := d.decided(ctx, call, true)
			if err != nil {
				return nil, err
			}
			return heldChange(o, of)
		}
		if err := d.charge(ctx, call, len(refs)); err != nil {
			return nil, err
		}
		if of.To != "" {
			call.Target += " to " + of.To
		}
		to := account
		if other, ok := args.(*mailCopyArgs); ok {
			to = cmp.Or(other.ToAccount, account)
			call.Target += " of " + to
		}
		if to != account {
			return d.Mailboxes.Copy(ctx, account, refs, to, of.To)
		}
		changed, err := d.Mailboxes.Do(ctx, of)
		if !errors.Is(err, mail.ErrManyChanges) || d.Outbox == nil {
			return changed, err
		}
		o, err := d.Outbox.HoldChange(ctx, of, call.Principal)
		if err != nil {
			return nil, err
		}
		noteOutgoing(call, o)
		return nil, d.waits(ctx, call, o, true)
	})
}

// heldChange is what came of a change about which a person was asked.
func heldChange(o *mail.Outgoing, of mailbox.Batch) (*mailbox.Changed, error) {
	if f := notRun(o); f != nil {
		return nil, f
	}
	c := &mailbox.Changed{Account: o.Account, Folder: of.Refs[0].Folder, To: o.Plan.To, Change: o.ID, Attempted: len(of.Refs), Succeeded: o.Plan.Outcome.Done}
	if o.Plan.Outcome.Done < len(of.Refs) { // which ones they are is not told
		c.Issues = []mail.Issue{{Kind: mail.KindRefused, Stage: "run", Message: planSummary(o.State, o.Plan) + "."}}
		return c, nil
	}
	for _, r := range of.Refs {
		c.Messages = append(c.Messages, mailbox.ChangedMessage{Ref: r, Added: true, Removed: true})
	}
	return c, nil
}

// charge counts n messages that the caller is about to change, or refuses them all.
func (d *Deps) charge(ctx context.Context, call *discovery.Call, n int) error {
	if d.TakeChanges == nil {
		return nil
	}
	wait, err := d.TakeChanges(ctx, call.Principal, n)
	if err != nil || wait == 0 {
		return err
	}
	return &discovery.Fault{Code: discovery.RateLimited, Message: "More messages were to be changed within an hour than the administrator allows. None was changed.",
		Hint: fmt.Sprintf("Wait %d s, or name fewer messages; 'policy show' tells how many may be changed within an hour.", int64((wait+time.Second-1)/time.Second)), Reason: "rate"}
}

// withheld tells the audit entry that a rule kept something of what was asked for back.
func withheld(call *discovery.Call, issues []mail.Issue) {
	for _, i := range issues {
		call.Reason = cmp.Or(call.Reason, i.Reason)
	}
}

// Steps counts the steps on the servers that were tried and that worked, over all messages
// (001 sections 8 to 10).
type Steps struct {
	Attempted int `json:"steps_attempted"`
	Succeeded int `json:"steps_succeeded"`
}

// Placed is a message at its new place; its new id is set when the server told it.
type Placed struct {
	ID  string `json:"message_id"`
	New string `json:"new_message_id,omitempty"`
}

func placed(m *mailbox.ChangedMessage) Placed {
	p := Placed{ID: m.Ref.String()}
	if m.New != (mail.Ref{}) {
		p.New = m.New.String()
	}
	return p
}

// done is a sentence about n changed messages; their number replaces the # in what.
func done(what string, n int, issues []answer.Issue) string {
	s := strings.Replace(what, "#", answer.Count(n, "message", "messages"), 1)
	if len(issues) > 0 {
		s += "; see the issues for the others"
	}
	return s
}
