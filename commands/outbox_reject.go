package commands

import (
	"context"

	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
)

type outboxRejectArgs struct {
	OutboxOption
	Reason string `json:"reason,omitempty" acli:"form=line" jsonschema:"minLength=1,maxLength=200" jsonschema_description:"Why, for the agent to see"`
}

func outboxReject(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "outbox reject",
		Summary:  "Decide against a message that waits, or leave one alone whose outcome is unknown",
		Effect:   discovery.Admin,
		Standing: true,
		Examples: []string{"outbox reject 0123abcd", "outbox reject 0123abcd --reason 'Not to a customer'"},
	}, func(ctx context.Context, call *discovery.Call, args *outboxRejectArgs) (*OutboxDecided, error) {
		if _, err := d.outgoing(ctx, call, args.ID); err != nil {
			return nil, err
		}
		o, err := d.Outbox.Reject(ctx, args.ID, call.Principal, args.Reason)
		if err != nil {
			return nil, err
		}
		return &OutboxDecided{sendingOf(o)}, nil
	})
}
