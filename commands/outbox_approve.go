package commands

import (
	"context"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
)

type outboxApproveArgs struct {
	OutboxOption
	Hash string `json:"hash" jsonschema:"pattern=^[0-9a-f]{64}$" form:"must be the hash that 'outbox show' gives, 64 digits from 0 to f" jsonschema_description:"Digest that 'outbox show' gives, so that only the message that was shown is sent"`
}

func outboxApprove(d *Deps) *discovery.Command {
	return newCommand(discovery.Spec{
		Path:    "outbox approve",
		Summary: "Send a message that waits, and show exactly what was sent",
		Details: "The hash is the digest of the message as it was shown; with any other nothing is sent. It also sends a message that a crash left queued. " +
			"It sends a message whose outcome is unknown a second time, so the recipients may get it twice.",
		Effect:   discovery.Admin,
		Timeout:  sendTime,
		Examples: []string{"outbox approve 0123abcd --hash 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
	}, func(ctx context.Context, call *discovery.Call, args *outboxApproveArgs) (*OutboxShowResult, error) {
		s, err := d.outgoing(ctx, call, args.ID)
		if err != nil {
			return nil, err
		}
		if s.Digest != args.Hash {
			return nil, &discovery.Fault{Code: discovery.Conflict, Message: "The hash is not that of this message. Nothing was sent.",
				Hint: "Look at it with 'outbox show', and approve it with the digest that is shown.", Examples: []string{string("outbox show " + args.ID)}}
		}
		o, err := d.Outbox.Approve(mail.WithProgress(ctx, call.Progress), args.ID, args.Hash, call.Principal)
		if err != nil {
			return nil, failedSend(call, o, err)
		}
		done, err := sent(o)
		if err != nil {
			return nil, err
		}
		s.Outgoing = *o // the digest is the same, so this is the text that went
		r := shownOutgoing(s)
		r.from(0)
		r.Issues = done.Issues
		return r, nil
	})
}
