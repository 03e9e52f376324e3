package commands

import (
	"context"

	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
)

// OutboxDecided answers the commands that decide about a message without sending
// it.
type OutboxDecided struct {
	Sending
}

func outboxCancel(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "outbox cancel",
		Summary:  "Take it back",
		Details:  "Only what waits or is queued can be taken back. An agent can take back only its own.",
		Effect:   discovery.State,
		Standing: true,
		Examples: []string{"outbox cancel 0123abcd"},
	}, func(ctx context.Context, call *discovery.Call, args *OutboxOption) (*OutboxDecided, error) {
		if _, err := d.outgoing(ctx, call, args.ID); err != nil {
			return nil, err
		}
		principal := call.Principal
		if call.Admin {
			principal = "" // may take back anybody's
		}
		o, err := d.Outbox.Cancel(ctx, args.ID, principal)
		if err != nil {
			return nil, err
		}
		return &OutboxDecided{sendingOf(o)}, nil
	})
}

// Brief says what happened.
func (r *OutboxDecided) Brief() sendingBrief { return sendingBrief{ID: r.ID, Result: r.Summary()} }

// Summary implements discovery.Summarizer.
func (r *OutboxDecided) Summary() string {
	if r.Kind == mail.OutboxDelete {
		return "The deletion is " + string(r.State) + "; nothing more is deleted"
	}
	if r.Kind == mail.OutboxUnsubscribe {
		return "The unsubscription is " + string(r.State) + "; nobody more is asked"
	}
	if r.Kind == mail.OutboxPlan {
		return "The plan is " + string(r.State) + "; nothing more is changed"
	}
	return "The message is " + string(r.State) + " and will not be sent"
}
