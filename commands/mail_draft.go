package commands

import (
	"cmp"
	"context"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/outbox"
)

type mailDraftArgs struct {
	composeArgs
	answerArgs
	Forward string `json:"forward,omitempty" acli:"value=ID,rare" jsonschema:"minLength=1,maxLength=600" jsonschema_description:"Message to hand on"`
	forwardArgs
	AppendTo string `json:"append-to,omitempty" acli:"value=ID,rare" jsonschema:"minLength=1,maxLength=600" jsonschema_description:"Draft to go on with"`
}

// Validate checks what one field alone cannot.
func (a *mailDraftArgs) Validate() error {
	if a.AppendTo != "" && (len(a.To)+len(a.CC)+len(a.BCC) > 0 || a.Subject+a.ReplyTo+a.Forward+a.As != "" || a.Markdown || a.All || a.Quote || a.AsAttachment) {
		return &discovery.Fault{Code: discovery.ValidationError, Message: "With --append-to only a text and files can be given.",
			Hint: "Its recipients and subject, and whether it is Markdown, stay what they are; write another draft to change them."}
	}
	if a.AppendTo != "" {
		return cmp.Or(a.composeArgs.Validate(), a.about("--append-to", a.AppendTo))
	}
	switch {
	case a.Forward != "" && a.ReplyTo != "":
		return &discovery.Fault{Code: discovery.ValidationError, Message: "A letter answers a message or hands one on, not both.", Hint: "Give either --reply-to or --forward."}
	case (a.All || a.Quote) && a.ReplyTo == "":
		return &discovery.Fault{Code: discovery.ValidationError, Message: "--all and --quote need the message that is answered.", Hint: "Name it with --reply-to."}
	case a.AsAttachment && a.Forward == "":
		return &discovery.Fault{Code: discovery.ValidationError, Message: "--as-attachment needs the message that is handed on.", Hint: "Name it with --forward."}
	case a.Forward == "":
		return a.composeArgs.Validate()
	}
	return cmp.Or(a.about("--forward", a.Forward), validate(&a.recipientArgs, &a.textArgs))
}

// MailDraftResult answers mail draft. The message id is there where the server
// told it.
type MailDraftResult struct {
	Account           string             `json:"account_id"`
	Folder            string             `json:"folder" acli:"untrusted"`
	ID                string             `json:"message_id,omitempty"`
	InternetMessageID string             `json:"internet_message_id"`
	Recipients        []string           `json:"recipients"`
	Subject           string             `json:"subject" acli:"untrusted"`
	Size              int64              `json:"size_bytes"`
	Undo              string             `json:"undo,omitempty" jsonschema_description:"The command that takes it back"`
	Hint              string             `json:"hint,omitempty" acli:"untrusted" jsonschema_description:"What may not be expected of an answer's recipients"`
	Issues            []answer.Issue     `json:"issues,omitempty"` // why the draft that it replaces is still there
	NextAction        *answer.NextAction `json:"next_action,omitempty"`

	short string   // the id in a compact answer
	to    []string // whom a draft is to that takes that from another message, in a compact answer
}

// Brief says where the draft is, and to whom where the command did not name them.
func (r *MailDraftResult) Brief() sendingBrief {
	b := sendingBrief{ID: r.short, Result: r.Summary(), To: r.to, Rest: (&answer.Outcome{Issues: r.Issues}).Rest(nil)}
	b.Hint = r.Hint
	return b
}

func mailDraft(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "mail draft",
		Also:     []string{"compose", "write"},
		Summary:  "Keep in Drafts",
		Details:  "Without recipients an answer goes as 'mail reply'.",
		Effect:   discovery.Write,
		Does:     "draft",
		Needed:   []string{"body"},
		Rare:     []string{"attach", "all", "quote"},
		TooLong:  inPieces,
		Timeout:  transferTime,
		Examples: []string{inPieces.Example, "mail draft --append-to Drafts/1 --body More."},
	}, func(ctx context.Context, call *discovery.Call, args *mailDraftArgs) (*MailDraftResult, error) {
		account, m, err := args.draft(ctx, d, call)
		if err != nil {
			return nil, err
		}
		if err := d.charge(ctx, call, 1); err != nil {
			return nil, err
		}
		saved, err := args.save(ctx, d, account, m)
		if err != nil {
			return nil, err
		}
		if call.Target == "" {
			call.Target = saved.Folder
		}
		r := &MailDraftResult{Account: saved.Account, Folder: saved.Folder, InternetMessageID: saved.MessageID, Recipients: append([]string{}, saved.Recipients...),
			Subject: saved.Subject, Size: saved.Size, Undo: undoOf(saved.Change), Hint: answerHint(saved.Elsewhere, saved.LeftOut)}
		if m.ToSender || m.ToAll {
			r.to = r.Recipients
		}
		if saved.Left != nil {
			left := *saved.Left
			left.Message = "The draft without this text may still be there: " + left.Message
			r.Issues = answer.OutcomeOf([]mail.Issue{left}, true).Issues
		}
		switch {
		case saved.Hidden: // nothing shows it here
		case saved.Ref != (mail.Ref{}):
			r.ID = saved.Ref.String()
			r.short = d.shown(ctx, call, saved.Ref).Of(saved.Ref)
			r.NextAction = answer.Next("See the draft", "mail", "get", r.ID)
		default:
			r.NextAction = answer.Next("See the drafts", "mail", "list", "--account", saved.Account, "--folder", saved.Folder)
		}
		return r, nil
	})
}

// draft is what the command writes, and of which account.
func (a *mailDraftArgs) draft(ctx context.Context, d *Deps, call *discovery.Call) (account string, m outbox.Draft, err error) {
	if len(a.BCC) > 0 && !call.Admin {
		return "", m, &discovery.Fault{Code: discovery.PermissionDenied, Message: "A draft of an agent has no hidden recipients: the person would send it without seeing them.",
			Hint: "Leave --bcc out; the person adds them in a mail program."}
	}
	if account, err = d.composeIn(ctx, call, &a.composeArgs); err != nil {
		return "", m, err
	}
	m, err = d.letter(ctx, call, account, &a.recipientArgs, &a.textArgs)
	m.Subject = a.Subject
	if a.Forward != "" {
		m.Forward, m.Whole = a.parent, a.AsAttachment
	} else if a.AppendTo == "" {
		m.ReplyTo, m.ToSender, m.ToAll, m.Quote = a.parent, a.parent != nil && len(a.recipients()) == 0, a.All, a.Quote
	}
	return account, m, err
}

func (a *mailDraftArgs) save(ctx context.Context, d *Deps, account string, m outbox.Draft) (*outbox.SavedDraft, error) {
	if a.AppendTo != "" {
		return d.Outbox.AppendToDraft(ctx, *a.parent, m)
	}
	return d.Outbox.SaveDraft(ctx, account, m)
}

func (a *mailDraftArgs) foresee(ctx context.Context, d *Deps, call *discovery.Call) (*outbox.Decision, error) {
	account, m, err := a.draft(ctx, d, call)
	if m.DryRun = true; err == nil {
		_, err = a.save(ctx, d, account, m)
	}
	return nil, err
}

// Summary implements discovery.Summarizer.
func (r *MailDraftResult) Summary() string {
	return "The draft is in " + r.Folder + "; nothing was sent"
}
