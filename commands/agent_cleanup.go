package commands

import (
	"context"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
)

type agentCleanupArgs struct {
	DryRun bool `json:"dry-run,omitempty" acli:"rare" jsonschema_description:"Say what would be deleted, and delete nothing"`
}

// AgentCleanedUp answers agent cleanup (003, command contract of cleanup). The fields
// are those of a dry run or those of a real one.
type AgentCleanedUp struct {
	DryRun        *bool           `json:"dry_run,omitempty"`
	WouldDelete   *int            `json:"would_delete,omitempty"`
	Oldest        string          `json:"oldest,omitempty" jsonschema:"format=date-time"`
	Newest        string          `json:"newest,omitempty" jsonschema:"format=date-time"`
	Messages      []AgentExpiring `json:"messages,omitzero"`
	Truncated     bool            `json:"truncated,omitempty"`
	DeletedCount  *int            `json:"deleted_count,omitempty"`
	OldestDeleted string          `json:"oldest_deleted,omitempty" jsonschema:"format=date-time"`
	NewestDeleted string          `json:"newest_deleted,omitempty" jsonschema:"format=date-time"`
}

// AgentExpiring is a message whose time is over.
type AgentExpiring struct {
	ID      string `json:"id" jsonschema:"format=uuid"`
	Sender  string `json:"sender"`
	Subject string `json:"subject" acli:"untrusted"`
}

func agentCleanup(d *AgentsDeps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "agent cleanup",
		Summary:  "Delete messages older than 24 hours",
		Details:  "'agent send', 'agent read' and 'agent status' delete them too, and nobody sees them, so nobody has to run this.",
		Effect:   discovery.State,
		Examples: []string{"agent cleanup --dry-run", "agent cleanup"},
	}, func(ctx context.Context, call *discovery.Call, args *agentCleanupArgs) (*AgentCleanedUp, error) {
		c, err := d.Mailbox.Cleanup(ctx, args.DryRun)
		if err != nil {
			return nil, err
		}
		if !args.DryRun || c.Count == 0 {
			return &AgentCleanedUp{DeletedCount: &c.Count, OldestDeleted: agentTime(c.Oldest), NewestDeleted: agentTime(c.Newest)}, nil
		}
		r := &AgentCleanedUp{DryRun: &args.DryRun, WouldDelete: &c.Count, Oldest: agentTime(c.Oldest), Newest: agentTime(c.Newest), Messages: []AgentExpiring{}}
		for _, m := range c.Messages {
			if own := d.identity(call); own != "" && m.Sender != own && m.Recipient != own && !m.Broadcast() {
				continue
			}
			r.Messages = append(r.Messages, AgentExpiring{m.ID, m.Sender, m.Subject})
		}
		return r, nil
	})
}

// Truncate implements discovery.Truncator: the count stays that of all.
func (r *AgentCleanedUp) Truncate(fraction float64) bool {
	return answer.Shorten(&r.Messages, &r.Truncated, fraction)
}
