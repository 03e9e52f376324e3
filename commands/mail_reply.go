package commands

import (
	"context"
	"strings"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/outbox"
)

// answerArgs are what a reply takes from the message it answers.
type answerArgs struct {
	All   bool `json:"all,omitempty" jsonschema_description:"To all it reached"`
	Quote bool `json:"quote,omitempty" jsonschema_description:"Its text below"`
}

// letterArgs name the message that a letter is about.
type letterArgs struct {
	ID string `json:"id" acli:"positional,form=id" jsonschema:"minLength=1,maxLength=600" jsonschema_description:"Id as a list shows it"`
	argument.AccountOption

	ref mail.Ref // since Validate
}

// Validate reads the id.
func (a *letterArgs) Validate() (err error) {
	if a.ref, err = argument.ParseID(a.ID); err != nil {
		return argument.MalformedID("The message id", err)
	}
	return nil
}

// about resolves the message that a letter is about.
func (d *Deps) about(ctx context.Context, call *discovery.Call, a *letterArgs) (mail.Ref, error) {
	call.Target = targetOf([]mail.Ref{a.ref})
	refs, err := d.resolve(ctx, call, a.Account, []mail.Ref{a.ref})
	if err != nil {
		return mail.Ref{}, err
	}
	call.Account, call.Target = refs[0].Account, targetOf(refs)
	return refs[0], nil
}

// letterAbout is the message that a letter is about, and what the letter says itself.
func (d *Deps) letterAbout(ctx context.Context, call *discovery.Call, a *letterArgs, to *recipientArgs, text *textArgs) (mail.Ref, outbox.Draft, error) {
	ref, err := d.about(ctx, call, a)
	if err != nil {
		return ref, outbox.Draft{}, err
	}
	m, err := d.letter(ctx, call, ref.Account, to, text)
	return ref, m, err
}

type mailReplyArgs struct {
	letterArgs
	answerArgs
	textArgs
	recipientArgs
	sendArgs
}

// Validate checks what one field alone cannot.
func (a *mailReplyArgs) Validate() error {
	if a.Body == nil && a.BodyFile == "" {
		return noText
	}
	return validate(&a.letterArgs, &a.textArgs, &a.recipientArgs)
}

func mailReply(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "mail reply",
		Also:     []string{"answer", "respond"},
		Summary:  "Answer",
		Details:  "It goes where the message says that answers go, and to --to, --cc and --bcc. For a draft: 'mail draft --reply-to'.",
		Effect:   discovery.Send,
		Does:     "send",
		Needed:   []string{"body"},
		Rare:     []string{"attach", "to"},
		TooLong:  inPieces,
		Timeout:  sendTime,
		Examples: []string{"mail reply 50 --body 'Thank you.'", "mail reply 50 --all --quote --body Yes."},
	}, func(ctx context.Context, call *discovery.Call, args *mailReplyArgs) (*MailSendResult, error) {
		return d.send(ctx, call, args)
	})
}

func (a *mailReplyArgs) request(ctx context.Context, d *Deps, call *discovery.Call) (account string, r outbox.Request, err error) {
	ref, m, err := d.letterAbout(ctx, call, &a.letterArgs, &a.recipientArgs, &a.textArgs)
	m.ReplyTo, m.ToSender, m.ToAll, m.Quote = &ref, true, a.All, a.Quote
	return ref.Account, outbox.Request{Draft: m}, err
}

// answerHint says what the caller of an answer may not expect of its recipients.
func answerHint(elsewhere bool, leftOut int) string {
	var notes []string
	if elsewhere {
		notes = append(notes, "The message asks that answers go elsewhere than to its sender, and this one does.")
	}
	if leftOut > 0 {
		notes = append(notes, "Left out, since mail cannot be sent to them: "+answer.Count(leftOut, "address", "addresses")+" of the message.")
	}
	return strings.Join(notes, " ")
}

// forwardArgs are how a message is handed on.
type forwardArgs struct {
	AsAttachment bool `json:"as-attachment,omitempty" acli:"rare" jsonschema_description:"As one file"`
}

type mailForwardArgs struct {
	letterArgs
	recipientArgs
	textArgs
	forwardArgs
	sendArgs
}

// Validate checks what one field alone cannot.
func (a *mailForwardArgs) Validate() error {
	if len(a.To)+len(a.CC)+len(a.BCC) == 0 {
		return noRecipient
	}
	return validate(&a.letterArgs, &a.recipientArgs, &a.textArgs)
}

func mailForward(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "mail forward",
		Also:     []string{"fwd"},
		Summary:  "Hand on",
		Details:  "Its text follows yours, and its attachments go along. For a draft: 'mail draft --forward'.",
		Effect:   discovery.Send,
		Does:     "send",
		Rare:     []string{"attach"},
		Needed:   []string{"to"},
		TooLong:  inPieces,
		Timeout:  sendTime,
		Examples: []string{"mail forward 50 --to ann@example.org --body 'For you.'", "mail forward 50 --to ann@example.org --as-attachment"},
	}, func(ctx context.Context, call *discovery.Call, args *mailForwardArgs) (*MailSendResult, error) {
		return d.send(ctx, call, args)
	})
}

func (a *mailForwardArgs) request(ctx context.Context, d *Deps, call *discovery.Call) (account string, r outbox.Request, err error) {
	ref, m, err := d.letterAbout(ctx, call, &a.letterArgs, &a.recipientArgs, &a.textArgs)
	if err == nil {
		call.Target += " " + recipientsTarget(a.recipients())
	}
	m.Forward, m.Whole = &ref, a.AsAttachment
	return ref.Account, outbox.Request{Draft: m}, err
}
