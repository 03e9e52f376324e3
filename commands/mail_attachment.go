package commands

import (
	"context"
	"errors"
	"io/fs"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

type mailAttachmentArgs struct {
	messageArgs
	Part string `json:"part,omitempty" jsonschema:"minLength=1,maxLength=64,pattern=^[0-9]+([.][0-9]+)*$,example=2" form:"must be numbers with dots between them, such as 1.2" jsonschema_description:"part_id as 'mail get' shows it; the only attachment if left out"`
	Save string `json:"save,omitempty" acli:"path=attachment directory" jsonschema:"minLength=1,maxLength=200,pattern=^[^\\x00-\\x1f\\x7f]*[^/\\x00-\\x1f\\x7f]$,example=invoices/march.pdf" form:"must be the name of a file, without control characters" jsonschema_description:"Save it under this name below the attachment directory, instead of answering with its content"`
}

// MailAttachmentResult answers mail attachment (000 section 7.1).
type MailAttachmentResult struct {
	Outcome
	Account     string `json:"account_id"`
	ID          string `json:"message_id"`
	PartID      string `json:"part_id"`
	Filename    string `json:"filename,omitempty" acli:"untrusted"`
	ContentType string `json:"content_type" acli:"untrusted"`
	Size        int64  `json:"size_bytes"`
	SavedTo     string `json:"saved_to,omitempty"`
	Encoding    string `json:"content_encoding,omitempty" jsonschema:"enum=base64"`
	Content     []byte `json:"content_base64,omitzero" acli:"untrusted"`
}

// readProfile is the name of the profile that promises its client to change
// nothing anywhere.
const readProfile = "read"

func mailAttachment(d *Deps) *discovery.Command {
	return newCommand(discovery.Spec{
		Path:    "mail attachment",
		Summary: "Get one attachment, in the answer or as a file",
		Details: "size_bytes is the size of the decoded content. --save writes only new files below the attachment directory, and never over an existing one. " +
			"The name that the sender gave is shown as filename, and never used as a file's name by itself.",
		Effect: discovery.Read,
		Examples: []string{"mail attachment --folder INBOX --uid 1 --part 2", "mail attachment imap:default:INBOX:1700000000:1",
			"mail attachment imap:default:INBOX:1700000000:1 --part 2 --save invoices/march.pdf"},
	}, func(ctx context.Context, call *discovery.Call, args *mailAttachmentArgs) (*MailAttachmentResult, error) {
		call.Bytes = true
		if args.Save != "" && call.Profile == readProfile {
			return nil, &discovery.Fault{Code: discovery.PermissionDenied, Message: "This server changes nothing, and so writes no file.", Reason: "profile",
				Hint: "Leave --save out to have the content in the answer.", Examples: []string{"mail attachment --folder INBOX --uid 1 --part 2"}}
		}
		ref, err := d.message(ctx, call, &args.messageArgs)
		if err != nil {
			return nil, err
		}
		a, err := d.Mailboxes.Attachment(mail.WithProgress(ctx, call.Progress), ref, args.Part)
		if err != nil {
			return nil, err
		}
		r := &MailAttachmentResult{Outcome: outcome(nil, true), Account: ref.Account, ID: a.Ref.String(), PartID: a.PartID, Filename: a.Filename,
			ContentType: a.ContentType, Size: int64(len(a.Content))}
		if args.Save != "" {
			r.SavedTo, err = d.save(ctx, args.Save, a)
			return r, err
		}
		if r.Encoding, r.Content = "base64", a.Content; r.Content == nil {
			r.Content = []byte{}
		}
		return r, nil
	})
}

func (d *Deps) save(ctx context.Context, name string, a *mailbox.AttachmentContent) (string, error) {
	path, err := d.Attachments.Save(ctx, name, a.Content)
	switch {
	case err == nil:
		return path, nil
	case ctx.Err() != nil:
		return "", err
	case errors.Is(err, fs.ErrExist):
		return "", &discovery.Fault{Code: discovery.Conflict, Message: "There is a file of that name already, and it was left as it is.",
			Hint: "Choose another name for --save.", Err: err}
	case discovery.AsFault(err) != nil:
		return "", err
	}
	return "", &discovery.Fault{Code: discovery.ExecutionError, Message: "The attachment could not be saved: " + fileReason(err) + ".",
		Hint: "Choose another name, or check the permissions of the attachment directory and the free space.", Err: err}
}

// Summary implements discovery.Summarizer.
func (r *MailAttachmentResult) Summary() string {
	if r.SavedTo != "" {
		return "Saved " + count(int(r.Size), "byte", "bytes")
	}
	return count(int(r.Size), "byte", "bytes")
}
