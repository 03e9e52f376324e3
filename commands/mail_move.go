package commands

import (
	"context"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

type mailMoveArgs struct {
	messagesArgs
	To string `json:"to" acli:"form=folder" jsonschema_description:"Folder the messages go to, of the same account"`
}

func (a *mailMoveArgs) action() mail.Action { return mail.Action{Do: mail.DoMove, To: a.To} }

type mailTrashArgs struct{ messagesArgs }

func (*mailTrashArgs) action() mail.Action { return mail.Action{Do: mail.DoTrash} }

// MailMoveResult answers mail move (001 section 9).
type MailMoveResult struct {
	answer.Outcome
	Account  string   `json:"account_id"`
	Folder   string   `json:"source_folder,omitempty"`
	To       string   `json:"destination_folder"`
	Undo     string   `json:"undo,omitempty" jsonschema_description:"The command that takes it back"`
	Messages []Placed `json:"messages"`
	Steps

	moved [][2]string
	trash string // the folder that mail trash chose
}

func mailMove(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "mail move",
		Also:     []string{"mv", "archive", "file"},
		Summary:  "Move",
		Details:  "It stays in the account. A message is removed from its folder only when its copy is safe. Its id changes with its folder.",
		Effect:   discovery.Write,
		Does:     "file",
		Timeout:  transferTime,
		Examples: []string{"mail move 50 49 --to Archive", "mail move Sent/1 --to Archive"},
	}, func(ctx context.Context, call *discovery.Call, args *mailMoveArgs) (*MailMoveResult, error) {
		c, result, err := d.change(ctx, call, args)
		if err != nil {
			return nil, err
		}
		return movedResult(c, result, args.To), nil
	})
}

func movedResult(c *mailbox.Changed, b batchResult, to string) *MailMoveResult {
	r := &MailMoveResult{b.Outcome, c.Account, c.Folder, to, b.undo, answer.Each(c.Messages, placed), Steps{c.Attempted, c.Succeeded}, b.moved, c.To}
	if len(r.Messages) > 0 {
		r.NextAction = answer.Next("See them at their new place", "mail", "list", "--account", c.Account, "--folder", to)
	}
	return r
}

func mailTrash(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "mail trash",
		Also:     []string{"rm", "del", "remove"},
		Summary:  "To the trash",
		Details:  "It moves them to the account's folder for the trash; 'mail undo' takes them out again. Their ids change.",
		Effect:   discovery.Write,
		Does:     "file",
		Timeout:  transferTime,
		Examples: []string{"mail trash 50 49"},
	}, func(ctx context.Context, call *discovery.Call, args *mailTrashArgs) (*MailMoveResult, error) {
		c, result, err := d.change(ctx, call, args)
		if err != nil {
			return nil, err
		}
		return movedResult(c, result, c.To), nil
	})
}

type mailMoveBrief struct {
	Moved [][2]string `json:"moved" jsonschema_description:"For each message its id before, and its id at the new place where the server told it"`
	To    string      `json:"to,omitempty" jsonschema_description:"The folder that is the trash"`
	Undo  string      `json:"undo,omitempty"`
	answer.Rest
}

// Brief is the ids of the messages, before and at the new place.
func (r *MailMoveResult) Brief() mailMoveBrief {
	return mailMoveBrief{r.moved, r.trash, r.Undo, r.Rest(nil)}
}

// Summary implements discovery.Summarizer.
func (r *MailMoveResult) Summary() string { return done("Moved #", len(r.Messages), r.Issues) }
