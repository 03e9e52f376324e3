package commands

import (
	"context"
	"crypto/subtle"

	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/outbox"
)

type outboxApproveArgs struct {
	OutboxOption
	Code string `json:"code" jsonschema:"pattern=^[0-9a-z]{8}$" form:"must be the code that 'outbox show' gives the administrator, 8 letters and digits" jsonschema_description:"Code that 'outbox show' gives the administrator, so that only what was shown happens"`
}

func outboxApprove(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:    "outbox approve",
		Summary: "Send a message that waits, or delete or change those that an entry names, and show what was done",
		Details: "The code stands for what was shown; with any other nothing happens. On a terminal leave it out: everything is shown, and you are asked. " +
			"It also sends a message that a crash left queued. It sends a message whose outcome is unknown a second time, so the recipients may get it twice.",
		Effect:   discovery.Admin,
		Timeout:  sendTime,
		Examples: []string{"outbox approve 0123abcd --code 7k2m9qx4"},
	}, func(ctx context.Context, call *discovery.Call, args *outboxApproveArgs) (*OutboxShowResult, error) {
		s, err := d.outgoing(ctx, call, args.ID)
		if err != nil {
			return nil, err
		}
		code, err := d.Store.ApprovalCode(ctx, s.ID, s.Digest)
		if err != nil {
			return nil, err
		}
		if subtle.ConstantTimeCompare([]byte(code), []byte(args.Code)) == 0 {
			return nil, &discovery.Fault{Code: discovery.Conflict, Message: "The code is not that of this entry. Nothing was done.",
				Hint: "Look at it with 'outbox show', and approve it with the code that is shown.", Examples: []string{"outbox show " + args.ID}}
		}
		o, err := d.Outbox.Approve(ctx, args.ID, s.Digest, call.Principal)
		if err != nil {
			return nil, failedSend(call, o, err)
		}
		s.Outgoing, s.Step, s.New, s.WhyNot = *o, outbox.StepNone, nil, "" // the digest is the same, so this is what was done
		r := shownOutgoing(s)
		if ended := map[mail.OutboxKind]func(*mail.Outgoing) *discovery.Fault{mail.OutboxDelete: notDeleted, mail.OutboxPlan: notRun, mail.OutboxUnsubscribe: notLeft}[s.Kind]; ended != nil {
			if f := ended(o); f != nil {
				return nil, f
			}
			return r, nil
		}
		done, err := sent(o)
		if err != nil {
			return nil, err
		}
		r.from(0)
		r.Issues = done.Issues
		return r, nil
	})
}
