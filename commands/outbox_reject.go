package commands

import (
	"context"

	"github.com/postern-mail/postern/discovery"
)

type outboxRejectArgs struct {
	OutboxOption
	Reason oneLine `json:"reason,omitempty" jsonschema:"minLength=1,maxLength=200" jsonschema_description:"Why, for the agent to see"`
}

func outboxReject(d *Deps) *discovery.Command {
	return discovery.New(discovery.Spec{
		Path:     "outbox reject",
		Summary:  "Decide against a message that waits, or let one rest of which nobody knows whether it left",
		Effect:   discovery.Admin,
		Examples: []string{"outbox reject 0123abcd", "outbox reject 0123abcd --reason 'Not to a customer'"},
	}, func(ctx context.Context, call *discovery.Call, args *outboxRejectArgs) (*OutboxDecided, error) {
		if _, err := d.outgoing(ctx, call, string(args.ID)); err != nil {
			return nil, err
		}
		o, err := d.Outbox.Reject(ctx, string(args.ID), call.Principal, string(args.Reason))
		if err != nil {
			return nil, err
		}
		return &OutboxDecided{sendingOf(o)}, nil
	})
}
