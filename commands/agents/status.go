package agents

import (
	"context"
	"fmt"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/vault/agentmail"
)

type statusArgs struct {
	Agent   string `json:"agent,omitempty" acli:"form=identity,rare" jsonschema:"example=my-repo:main" jsonschema_description:"Only this identity"`
	Project string `json:"project,omitempty" acli:"rare" jsonschema:"pattern=^[a-z0-9][a-z0-9-]*$,example=my-repo" form:"must be lower-case letters, digits and dashes" jsonschema_description:"Only the identities of this project"`
}

// Status is what waits for one agent (003, command contract of status).
type Status struct {
	Agent   string `json:"agent"`
	Unread  int    `json:"unread"`
	Unacked int    `json:"unacked"`
}

// StatusList answers agent status.
type StatusList []Status

// Status counts as reading although it removes what has expired: nobody could see
// that any more, so nothing that a caller can observe changes.
func status(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "agent status",
		Summary:  "Counts",
		Details:  "It lists every agent that sent a message or was sent one in the last 24 hours. An agent's own messages do not count.",
		Effect:   discovery.Read,
		Standing: true,
		Examples: []string{"agent status", "agent status --project my-repo", "agent status --agent my-repo:main --fields unread"},
	}, func(ctx context.Context, _ *discovery.Call, args *statusArgs) (StatusList, error) {
		found, err := d.Mailbox.Status(ctx, args.Agent, args.Project)
		if err != nil {
			return nil, err
		}
		return answer.Each(found, func(s *agentmail.Status) Status { return Status(*s) }), nil
	})
}

// Summary implements discovery.Summarizer.
func (l StatusList) Summary() string {
	unread := 0
	for _, s := range l {
		unread += s.Unread
	}
	return fmt.Sprintf("%d unread in all", unread)
}
