package commands

import (
	"context"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

type mailMarkReadArgs struct{ messagesArgs }

func (*mailMarkReadArgs) action() mail.Action { return mail.Action{Do: mail.DoMarkRead} }

// MailMarkReadResult answers mail mark-read (004 section 3).
type MailMarkReadResult struct {
	batchResult
	Messages []Marked `json:"messages"`
	Undo     string   `json:"undo,omitempty" jsonschema_description:"The command that takes it back"`
}

// Marked is a message with its flags as they are now; without them where the
// server did not tell.
type Marked struct {
	ID    string   `json:"message_id"`
	Flags []string `json:"flags,omitzero" acli:"untrusted"`
}

func mailMarkRead(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "mail mark-read",
		Also:     []string{"seen", "mark"},
		Summary:  "Mark read",
		Details:  "Where one is missing, none is marked. It sets the flag \\Seen and nothing else.",
		Effect:   discovery.Flag,
		Does:     "flags",
		Examples: []string{"mail mark-read 50 49", "mail mark-read Sent/1"},
	}, func(ctx context.Context, call *discovery.Call, args *mailMarkReadArgs) (*MailMarkReadResult, error) {
		c, result, err := d.change(ctx, call, args)
		if err != nil {
			return nil, err
		}
		return &MailMarkReadResult{result, answer.Each(c.Messages, func(m *mailbox.ChangedMessage) Marked { return Marked{m.Ref.String(), shownFlags(m.Flags)} }), result.undo}, nil
	})
}

type mailMarkReadBrief struct {
	Marked []string `json:"marked"`
	Undo   string   `json:"undo,omitempty"`
	answer.Rest
}

// Brief is the ids of the messages.
func (r *MailMarkReadResult) Brief() mailMarkReadBrief {
	return mailMarkReadBrief{r.changed, r.Undo, r.Rest(nil)}
}

// Summary implements discovery.Summarizer.
func (r *MailMarkReadResult) Summary() string {
	return done("Marked # as read", len(r.Messages), r.Issues)
}
