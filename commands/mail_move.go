package commands

import (
	"context"

	"github.com/postern-mail/postern/discovery"
)

type mailMoveArgs struct {
	batchArgs
	To string `json:"to" acli:"form=folder" jsonschema_description:"Folder the messages go to, of the same account"`
}

// MailMoveResult answers mail move (001 section 9).
type MailMoveResult struct {
	Outcome
	Account  string   `json:"account_id"`
	Folder   string   `json:"source_folder,omitempty"`
	To       string   `json:"destination_folder"`
	Messages []Placed `json:"messages"`
	Steps
}

func mailMove(d *Deps) *discovery.Command {
	return newCommand(discovery.Spec{
		Path:     "mail move",
		Summary:  "Move messages to another folder of their account",
		Details:  "A message is removed from its folder only when its copy is safe. Its id changes with its folder.",
		Effect:   discovery.Write,
		Timeout:  transferTime,
		Examples: []string{"mail move --folder INBOX --uid 3,4 --to Archive", "mail move imap:default:INBOX:1700000000:3 --to Archive"},
	}, func(ctx context.Context, call *discovery.Call, args *mailMoveArgs) (*MailMoveResult, error) {
		name, refs, err := d.messages(ctx, call, &args.MessagesOption, args.AccountOption)
		if err != nil {
			return nil, err
		}
		call.Target += " to " + args.To
		c, err := d.Mailboxes.Move(ctx, name, refs, args.To)
		if err != nil {
			return nil, err
		}
		r := &MailMoveResult{Outcome: outcomeOf(c), Account: c.Account, Folder: c.Folder, To: args.To, Messages: placed(c),
			Steps: Steps{c.Attempted, c.Succeeded}}
		if len(r.Messages) > 0 {
			r.NextAction = next("See them at their new place", "mail", "list", "--account", c.Account, "--folder", args.To)
		}
		return r, nil
	})
}

// Summary implements discovery.Summarizer.
func (r *MailMoveResult) Summary() string { return done("Moved #", len(r.Messages), r.Issues) }
