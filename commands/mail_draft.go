package commands

import (
	"cmp"
	"context"
	"strings"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/outbox"
)

type mailDraftArgs struct {
	composeArgs
	answerArgs
	Forward string `json:"forward,omitempty" acli:"value=ID,rare" jsonschema:"minLength=1,maxLength=600" jsonschema_description:"Message to hand on"`
	forwardArgs
}

// Validate checks what one field alone cannot.
func (a *mailDraftArgs) Validate() error {
	if a.Forward == "" {
		if (a.All || a.Quote) && a.ReplyTo == "" {
			return &discovery.Fault{Code: discovery.ValidationError, Message: "--all and --quote need the message that is answered.", Hint: "Name it with --reply-to."}
		}
		return a.composeArgs.Validate()
	}
	if a.ReplyTo != "" {
		return &discovery.Fault{Code: discovery.ValidationError, Message: "A letter answers a message or hands one on, not both.", Hint: "Give either --reply-to or --forward."}
	}
	return cmp.Or(a.about("--forward", a.Forward), validate(&a.recipientArgs, &a.textArgs))
}

// MailDraftResult answers mail draft. The message id is there where the server
// told it.
type MailDraftResult struct {
	Account           string      `json:"account_id"`
	Folder            string      `json:"folder" acli:"untrusted"`
	ID                string      `json:"message_id,omitempty"`
	InternetMessageID string      `json:"internet_message_id"`
	Subject           string      `json:"subject" acli:"untrusted"`
	Size              int64       `json:"size_bytes"`
	Hint              string      `json:"hint,omitempty" acli:"untrusted" jsonschema_description:"What may not be expected of an answer's recipients"`
	NextAction        *NextAction `json:"next_action,omitempty"`

	short string // the id in a compact answer
}

// Brief says where the draft is.
func (r *MailDraftResult) Brief() sendingBrief {
	return sendingBrief{ID: r.short, Result: r.Summary(), Rest: Rest{Hint: r.Hint}}
}

func mailDraft(d *Deps) *discovery.Command {
	return newCommand(discovery.Spec{
		Path:     "mail draft",
		Summary:  "Leave it in Drafts",
		Details:  "A person can send it. Without recipients an answer goes as 'mail reply'.",
		Effect:   discovery.Write,
		Needed:   []string{"body"},
		Rare:     []string{"attach", "all", "quote"},
		Timeout:  transferTime,
		Examples: []string{"mail draft --to ann@example.org --body Noon?", "mail draft --reply-to 50 --body Yes."},
	}, func(ctx context.Context, call *discovery.Call, args *mailDraftArgs) (*MailDraftResult, error) {
		name, err := d.composeIn(ctx, call, &args.composeArgs)
		if err != nil {
			return nil, err
		}
		m, err := d.letter(ctx, call, name, &args.recipientArgs, &args.textArgs)
		if err != nil {
			return nil, err
		}
		m.Subject = args.Subject
		var notes []string
		switch {
		case args.Forward != "":
			err = d.Outbox.Forward(mail.WithProgress(ctx, call.Progress), "mail draft", name, &m, *args.parent, args.AsAttachment)
		case args.parent != nil:
			if m.ReplyTo = args.parent; !args.All && !args.Quote && len(args.recipients()) > 0 {
				break // it goes to those alone
			}
			named := m
			if notes, err = d.Outbox.Answer(ctx, "mail draft", name, &m, args.All, args.Quote); !args.All && len(args.recipients()) > 0 {
				m.To, m.CC, notes = named.To, named.CC, nil
			}
		}
		if err != nil {
			return nil, err
		}
		r, err := d.keep(ctx, call, name, m)
		if err == nil {
			r.Hint = strings.Join(notes, " ")
		}
		return r, err
	})
}

// keep leaves a letter in the folder for drafts.
func (d *Deps) keep(ctx context.Context, call *discovery.Call, account string, m outbox.Draft) (*MailDraftResult, error) {
	if err := d.charge(ctx, call, 1); err != nil {
		return nil, err
	}
	saved, err := d.Outbox.SaveDraft(ctx, account, m)
	if err != nil {
		return nil, err
	}
	if call.Target == "" {
		call.Target = saved.Folder
	}
	r := &MailDraftResult{Account: account, Folder: saved.Folder, InternetMessageID: saved.MessageID, Subject: saved.Subject, Size: saved.Size}
	switch {
	case saved.Hidden: // nothing shows it here
	case saved.Ref.UID != 0:
		r.ID = saved.Ref.String()
		r.short = d.shown(ctx, call, saved.Ref).of(saved.Ref)
		r.NextAction = next("See the draft", "mail", "get", r.ID)
	default:
		r.NextAction = next("See the drafts", "mail", "list", "--account", account, "--folder", saved.Folder)
	}
	return r, nil
}

// Summary implements discovery.Summarizer.
func (r *MailDraftResult) Summary() string {
	return "The draft is in " + r.Folder + "; nothing was sent"
}
