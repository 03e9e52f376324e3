package commands

import (
	"context"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail/mailbox"
)

// MailAckResult answers mail ack (000 section 7.1).
type MailAckResult struct {
	batchResult
	Messages []Acked `json:"messages"`
}

// Acked is a message marked as dealt with, now or before.
type Acked struct {
	ID      string `json:"message_id"`
	Already bool   `json:"already,omitempty"`
}

func mailAck(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "mail ack",
		Also:     []string{"done"},
		Summary:  "Dealt with, for 'mail list --new'",
		Details:  "Messages that were acknowledged are no longer new. It changes nothing in the mailbox, may be repeated, and takes messages in any order.",
		Effect:   discovery.State,
		Examples: []string{"mail ack 50 49", "mail ack --folder Sent --uid 3,4,5"},
	}, func(ctx context.Context, call *discovery.Call, args *messagesArgs) (*MailAckResult, error) {
		c, result, err := d.batch(ctx, call, args, d.Mailboxes.Ack)
		if err != nil {
			return nil, err
		}
		r := &MailAckResult{result, answer.Each(c.Messages, func(m *mailbox.ChangedMessage) Acked { return Acked{m.Ref.String(), m.Already} })}
		if c.Folder != "" {
			r.NextAction = answer.Next("See what is still new", "mail", "list", "--account", c.Account, "--folder", c.Folder, "--new")
		}
		return r, nil
	})
}

type mailAckBrief struct {
	Acked []string `json:"acked"`
	answer.Rest
}

// Brief is the ids of the messages.
func (r *MailAckResult) Brief() mailAckBrief { return mailAckBrief{r.changed, r.Rest(nil)} }

// Summary implements discovery.Summarizer.
func (r *MailAckResult) Summary() string { return done("Noted #", len(r.Messages), r.Issues) }
