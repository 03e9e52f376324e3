package commands

import (
	"context"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/outbox"
)

type mailDeleteArgs struct {
	messagesArgs
	Confirm bool `json:"confirm,omitempty" acli:"needed" jsonschema_description:"Required: the messages are to be gone for good"`
}

// decision is what becomes of the messages.
func (a *mailDeleteArgs) decision(ctx context.Context, d *Deps, account string, refs []mail.Ref) (*outbox.Decision, error) {
	foreseen, err := d.Outbox.ForeseeDeletion(ctx, account, refs)
	if err == nil && !a.Confirm {
		err = &discovery.Fault{Code: discovery.ValidationError, Message: "--confirm is missing: deleted messages cannot be brought back.",
			Hint: "Add --confirm to delete them for good, or use 'mail trash' to put them into the trash."}
	}
	return foreseen, err
}

func (a *mailDeleteArgs) foresee(ctx context.Context, d *Deps, call *discovery.Call) (*outbox.Decision, error) {
	refs, err := d.messages(ctx, call, &a.messagesArgs)
	if err != nil {
		return nil, err
	}
	return a.decision(ctx, d, refs[0].Account, refs)
}

// MailDeleteResult answers mail delete (001 section 10).
type MailDeleteResult struct {
	batchResult
	Messages []Deleted `json:"messages"`
	Steps
}

// Deleted is a message that is gone.
type Deleted struct {
	ID string `json:"message_id"`
}

func mailDelete(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "mail delete",
		Also:     []string{"purge", "expunge", "erase", "destroy"},
		Summary:  "Delete for good",
		Details:  "It is final: nothing takes it back. It needs the account's right to destroy, see 'policy show'; 'mail trash' does not. Only the named messages are removed, whatever else is marked as deleted in the folder. Below mode RW a person decides first.",
		Effect:   discovery.Write,
		Does:     "destroy",
		Examples: []string{"mail delete 50 49 --confirm"},
	}, func(ctx context.Context, call *discovery.Call, args *mailDeleteArgs) (*MailDeleteResult, error) {
		if call.Reply != nil {
			o, err := d.decided(ctx, call, true)
			if err != nil {
				return nil, err
			}
			return d.deleted(ctx, call, o)
		}
		c, result, err := d.batch(ctx, call, &args.messagesArgs, func(ctx context.Context, account string, refs []mail.Ref) (*mailbox.Changed, error) {
			foreseen, err := args.decision(ctx, d, account, refs)
			if err != nil {
				return nil, err // it counts for nothing
			}
			if err := d.charge(ctx, call, len(refs)); err != nil {
				return nil, err
			}
			if !foreseen.Waits() {
				return d.Mailboxes.Delete(ctx, account, refs)
			}
			o, err := d.Outbox.HoldDeletion(ctx, account, refs, call.Principal)
			if err != nil {
				return nil, err
			}
			noteOutgoing(call, o)
			return nil, d.waits(ctx, call, o, true)
		})
		if err != nil {
			return nil, err
		}
		gone := answer.Each(c.Messages, func(m *mailbox.ChangedMessage) Deleted { return Deleted{m.Ref.String()} })
		return &MailDeleteResult{result, gone, Steps{c.Attempted, c.Succeeded}}, nil
	})
}

type mailDeleteBrief struct {
	Deleted []string `json:"deleted"`
	answer.Rest
}

// Brief is the ids of the messages.
func (r *MailDeleteResult) Brief() mailDeleteBrief { return mailDeleteBrief{r.changed, r.Rest(nil)} }

// Summary implements discovery.Summarizer.
func (r *MailDeleteResult) Summary() string { return done("Deleted #", len(r.Messages), r.Issues) }
