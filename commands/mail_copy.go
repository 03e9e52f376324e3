package commands

import (
	"cmp"
	"context"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
)

type mailCopyArgs struct {
	messagesArgs
	To        string `json:"to" acli:"form=folder" jsonschema_description:"Folder the copies go to"`
	ToAccount string `json:"to-account,omitempty" acli:"form=name" jsonschema_description:"Account of that folder; the messages' own if left out"`
}

func (a *mailCopyArgs) action() mail.Action { return mail.Action{Do: mail.DoCopy, To: a.To} }

// MailCopyResult answers mail copy (001 section 8).
type MailCopyResult struct {
	answer.Outcome
	Account   string   `json:"source_account_id"`
	ToAccount string   `json:"destination_account_id"`
	Folder    string   `json:"source_folder,omitempty"`
	To        string   `json:"destination_folder"`
	Undo      string   `json:"undo,omitempty" jsonschema_description:"The command that takes it back"`
	Messages  []Placed `json:"messages"`
	Steps

	copied [][2]string
}

// transferTime is the default time limit, in seconds, of commands that put messages into
// a folder: a caller that gives up before the answer does not know whether they are there.
const transferTime = 300

func mailCopy(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "mail copy",
		Also:     []string{"cp"},
		Summary:  "Copy",
		Details:  "Within an account the server copies all of them or none.",
		Effect:   discovery.Write,
		Does:     "file",
		Rare:     []string{"to-account"},
		Timeout:  transferTime,
		Examples: []string{"mail copy 50 49 --to Archive", "mail copy Sent/1 --to INBOX"},
	}, func(ctx context.Context, call *discovery.Call, args *mailCopyArgs) (*MailCopyResult, error) {
		c, result, err := d.change(ctx, call, args)
		if err != nil {
			return nil, err
		}
		to := cmp.Or(args.ToAccount, c.Account)
		r := &MailCopyResult{result.Outcome, c.Account, to, c.Folder, args.To, result.undo, answer.Each(c.Messages, placed), Steps{c.Attempted, c.Succeeded}, result.moved}
		if len(r.Messages) > 0 {
			r.NextAction = answer.Next("See the copies", "mail", "list", "--account", to, "--folder", args.To)
		}
		return r, nil
	})
}

type mailCopyBrief struct {
	Copied [][2]string `json:"copied" jsonschema_description:"For each message its id before, and its id at the new place where the server told it"`
	Undo   string      `json:"undo,omitempty"`
	answer.Rest
}

// Brief is the ids of the messages, before and at the new place.
func (r *MailCopyResult) Brief() mailCopyBrief { return mailCopyBrief{r.copied, r.Undo, r.Rest(nil)} }

// Summary implements discovery.Summarizer.
func (r *MailCopyResult) Summary() string { return done("Copied #", len(r.Messages), r.Issues) }
