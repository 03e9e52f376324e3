package agents

import (
	"context"
	"strings"

	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
)

type ackArgs struct {
	Agent string `json:"agent" acli:"form=identity,positional" jsonschema:"example=my-repo:main" jsonschema_description:"Your identity, project:name"`
	ID    string `json:"message-id" acli:"form=agent_message,positional" jsonschema:"example=1b4e28ba-2fa1-4d3b-a3f5-ef19b5a7633b" jsonschema_description:"Id of the message"`
}

// Acked answers agent ack (003, command contract of ack).
type Acked struct {
	ID      string `json:"message_id" jsonschema:"format=uuid"`
	Agent   string `json:"agent"`
	AckedAt string `json:"acked_at" jsonschema:"format=date-time"`
}

func ack(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "agent ack",
		Summary:  "You acted on it",
		Details:  "An ack says more than that a message was read. Each agent acknowledges a broadcast for itself. An ack may be repeated: the first time counts.",
		Effect:   discovery.State,
		Examples: []string{"agent ack my-repo:main 1b4e28ba-2fa1-4d3b-a3f5-ef19b5a7633b"},
	}, func(ctx context.Context, call *discovery.Call, args *ackArgs) (*Acked, error) {
		if err := d.asAgent(ctx, call, args.Agent); err != nil {
			return nil, err
		}
		at, err := d.Mailbox.Ack(ctx, args.Agent, args.ID, d.bound(call))
		if err != nil {
			return nil, faultOf(err)
		}
		return &Acked{strings.ToLower(args.ID), args.Agent, timestamp(at)}, nil
	})
}
