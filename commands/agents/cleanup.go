package agents

import (
	"context"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
)

type cleanupArgs struct {
	DryRun bool `json:"dry-run,omitempty" acli:"rare" jsonschema_description:"Say what would be deleted, and delete nothing"`
}

// CleanedUp answers agent cleanup (003, command contract of cleanup). The fields
// are those of a dry run or those of a real one.
type CleanedUp struct {
	DryRun        *bool      `json:"dry_run,omitempty"`
	WouldDelete   *int       `json:"would_delete,omitempty"`
	Oldest        string     `json:"oldest,omitempty" jsonschema:"format=date-time"`
	Newest        string     `json:"newest,omitempty" jsonschema:"format=date-time"`
	Messages      []Expiring `json:"messages,omitzero"`
	Truncated     bool       `json:"truncated,omitempty"`
	DeletedCount  *int       `json:"deleted_count,omitempty"`
	OldestDeleted string     `json:"oldest_deleted,omitempty" jsonschema:"format=date-time"`
	NewestDeleted string     `json:"newest_deleted,omitempty" jsonschema:"format=date-time"`
}

// Expiring is a message whose time is over.
type Expiring struct {
	ID      string `json:"id" jsonschema:"format=uuid"`
	Sender  string `json:"sender"`
	Subject string `json:"subject" acli:"untrusted"`
}

func cleanup(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "agent cleanup",
		Summary:  "Delete old ones",
		Details:  "'agent send', 'agent read' and 'agent status' delete them too, and nobody sees them, so nobody has to run this.",
		Effect:   discovery.State,
		Examples: []string{"agent cleanup --dry-run", "agent cleanup"},
	}, func(ctx context.Context, call *discovery.Call, args *cleanupArgs) (*CleanedUp, error) {
		c, err := d.Mailbox.Cleanup(ctx, args.DryRun)
		if err != nil {
			return nil, err
		}
		if !args.DryRun || c.Count == 0 {
			return &CleanedUp{DeletedCount: &c.Count, OldestDeleted: timestamp(c.Oldest), NewestDeleted: timestamp(c.Newest)}, nil
		}
		r := &CleanedUp{DryRun: &args.DryRun, WouldDelete: &c.Count, Oldest: timestamp(c.Oldest), Newest: timestamp(c.Newest), Messages: []Expiring{}}
		for _, m := range c.Messages {
			if own := d.identity(call); own != "" && m.Sender != own && m.Recipient != own && !m.Broadcast() {
				continue
			}
			r.Messages = append(r.Messages, Expiring{m.ID, m.Sender, m.Subject})
		}
		return r, nil
	})
}

// Truncate implements discovery.Truncator: the count stays that of all.
func (r *CleanedUp) Truncate(fraction float64) bool {
	return answer.Shorten(&r.Messages, &r.Truncated, fraction)
}
