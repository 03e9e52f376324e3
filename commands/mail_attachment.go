package commands

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

type mailAttachmentArgs struct {
	messageArgs
	Part     string `json:"part,omitempty" acli:"rare" jsonschema:"minLength=1,maxLength=64,pattern=^[0-9]+([.][0-9]+)*$,example=2" form:"must be numbers with dots between them, such as 1.2" jsonschema_description:"Part as 'mail get' shows it; the only attachment if left out"`
	Save     string `json:"save,omitempty" acli:"path=attachment directory,value=FILE" jsonschema:"minLength=1,maxLength=200,pattern=^[^\\x00-\\x1f\\x7f]*[^/\\x00-\\x1f\\x7f]$,example=invoices/march.pdf" form:"must be the name of a file, without control characters" jsonschema_description:"Save it under this name below the attachment directory, instead of answering with its content"`
	MaxBytes int64  `json:"max-bytes,omitempty" acli:"rare" jsonschema:"minimum=1024,maximum=67108864,default=200000" jsonschema_description:"At most this many bytes of the content, from the beginning"`
	AsText   bool   `json:"as-text,omitempty" jsonschema_description:"What it says, in place of its content: text, HTML, a message, a calendar or PDF"`
	Chars    int    `json:"chars,omitempty" acli:"form=attachment_chars,rare,requires=as-text" jsonschema_description:"At most this many characters, with --as-text"`
	FromChar int    `json:"from-char,omitempty" acli:"form=from_char,rare,requires=as-text" jsonschema_description:"The rest of a long text, from this character on"`
}

// Validate refuses what asks for text and content at once.
func (a *mailAttachmentArgs) Validate() error {
	if a.AsText && a.Save != "" {
		return &discovery.Fault{Code: discovery.ValidationError, Message: "--as-text and --save cannot be used together.", Hint: "Use one command for each."}
	}
	for part := range strings.SplitSeq(a.Save, "/") {
		if strings.ContainsFunc(part, plain.Unclear) || device.MatchString(part) || strings.HasPrefix(part, ".") && part != "." {
			return &discovery.Fault{Code: discovery.ValidationError, Message: "The name for --save has characters that nobody sees, begins with a dot, which hides a file and may make it one of settings, or is that of a device on some systems.",
				Hint: "Choose another name for --save, such as invoices/march.pdf."}
		}
	}
	return a.messageArgs.Validate()
}

// device is what Windows takes for a device, in any folder and with any extension.
var device = regexp.MustCompile(`(?i)\A *(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³]) *(?:[.:].*)?\z`)

// MailAttachmentResult answers mail attachment (000 section 7.1).
type MailAttachmentResult struct {
	answer.Outcome
	Account       string `json:"account_id"`
	ID            string `json:"message_id"`
	PartID        string `json:"part_id"`
	Filename      string `json:"filename,omitempty" acli:"untrusted"`
	ContentType   string `json:"content_type" acli:"untrusted"`
	Size          int64  `json:"size_bytes"`
	SavedTo       string `json:"saved_to,omitempty"`
	Truncated     bool   `json:"truncated,omitempty"`
	Text          string `json:"extracted_text,omitempty" acli:"untrusted"`
	TextTruncated bool   `json:"extracted_text_truncated,omitempty"`
	HiddenChars   int    `json:"hidden_chars,omitempty" jsonschema_description:"Characters of HTML that a person would not see, left out"`
	Encoding      string `json:"content_encoding,omitempty" jsonschema:"enum=base64"`
	Content       []byte `json:"content_base64,omitzero" acli:"untrusted"`

	more func(next int) string // the command that goes on in the text
	from int                   // where the text begins
}

// mailAttachmentBrief is the compact answer of mail attachment.
type mailAttachmentBrief struct {
	Part    string `json:"part"`
	Name    string `json:"name,omitempty" acli:"untrusted"`
	Type    string `json:"type" acli:"untrusted"`
	Bytes   int64  `json:"bytes"`
	SavedTo string `json:"saved_to,omitempty"`
	Text    string `json:"text,omitempty" acli:"untrusted"`
	Hidden  int    `json:"hidden_chars,omitempty" jsonschema_description:"Characters of HTML that a person would not see, left out"`
	Content []byte `json:"content_base64,omitzero" acli:"untrusted"`
	answer.Rest
}

// Brief is the compact answer.
func (r *MailAttachmentResult) Brief() mailAttachmentBrief {
	return mailAttachmentBrief{r.PartID, r.Filename, r.ContentType, r.Size, r.SavedTo, r.Text, r.HiddenChars, r.Content, r.Rest(r.NextAction)}
}

// readProfile is the name of the profile that promises its client to change
// nothing anywhere.
const readProfile = "read"

func mailAttachment(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "mail attachment",
		Also:     []string{"download", "save"},
		Forms:    bounds,
		Summary:  "One",
		Details:  "The answer has the beginning of its content in base64, its text with --as-text, or nothing of it with --save. --save writes only new files below the attachment directory, and never over an existing one.",
		Effect:   discovery.Read,
		Examples: []string{"mail attachment 33 --as-text", "mail attachment 22 --part 2 --save plans/floor.png", "mail attachment 22 --max-bytes 20000"},
	}, func(ctx context.Context, call *discovery.Call, args *mailAttachmentArgs) (*MailAttachmentResult, error) {
		call.Bytes = !args.AsText
		if args.Save != "" && call.Profile == readProfile {
			return nil, &discovery.Fault{Code: discovery.PermissionDenied, Message: "This server changes nothing, and so writes no file.", Reason: "profile",
				Hint: "Leave --save out to have the content in the answer.", Examples: []string{"mail attachment 22 --part 2"}}
		}
		ref, err := d.message(ctx, call, &args.messageArgs)
		if err != nil {
			return nil, err
		}
		if args.AsText {
			return d.attachmentText(ctx, call, args, ref)
		}
		a, err := d.Mailboxes.Attachment(ctx, ref, args.Part)
		if err != nil {
			return nil, err
		}
		r := attachmentResult(a)
		r.Size = int64(len(a.Content))
		if args.Save != "" {
			r.SavedTo, err = d.save(ctx, ref.Account, args.Save, a)
			return r, err
		}
		if r.Encoding, r.Content = "base64", a.Content; r.Content == nil {
			r.Content = []byte{}
		}
		if int64(len(r.Content)) > args.MaxBytes {
			r.Content, r.Truncated = r.Content[:args.MaxBytes], true
			following := *args
			following.messageArgs, following.Part = messageArgs{ID: r.ID}, a.PartID
			if !call.Full {
				following.ID = d.shown(ctx, call, a.Ref).Of(a.Ref)
			}
			if following.Save = "attachment-" + a.PartID; call.Profile == readProfile {
				following.Save, following.AsText = "", true
			}
			r.NextAction = answer.NextLine("The content was cut: --save keeps all of it in a file, --as-text has what it says", call.Again(&following))
		}
		return r, nil
	})
}

func attachmentResult(a *mailbox.AttachmentContent) *MailAttachmentResult {
	return &MailAttachmentResult{Outcome: answer.OutcomeOf(nil, true), Account: a.Ref.Account, ID: a.Ref.String(), PartID: a.PartID, Filename: a.Filename,
		ContentType: a.ContentType, Size: a.Size}
}

func (d *Deps) attachmentText(ctx context.Context, call *discovery.Call, args *mailAttachmentArgs, ref mail.Ref) (*MailAttachmentResult, error) {
	a, err := d.Mailboxes.AttachmentText(ctx, ref, mailbox.AttachmentQuery{Part: args.Part, Chars: args.Chars, FromChar: args.FromChar})
	if err != nil {
		return nil, err
	}
	r := attachmentResult(a)
	r.Text, r.TextTruncated, r.HiddenChars, r.from = a.Text, a.TextTruncated, a.HiddenChars, max(args.FromChar, 1)
	id := d.shown(ctx, call, a.Ref).Of(a.Ref)
	if call.Full {
		id = r.ID
	}
	r.more = func(next int) string {
		following := *args
		following.messageArgs, following.Part, following.FromChar = messageArgs{ID: id}, a.PartID, next
		return call.Again(&following)
	}
	if a.NextChar > 0 {
		r.NextAction = answer.NextLine("The text was cut: read the rest", r.more(a.NextChar))
	}
	return r, nil
}

// Truncate implements discovery.Truncator, where the answer is a text.
func (r *MailAttachmentResult) Truncate(fraction float64) bool {
	return r.more != nil && clipTexts([]*string{&r.Text}, fraction, func(int) {
		r.TextTruncated = true
		r.NextAction = answer.NextLine("The text was cut: read the rest", r.more(r.from+utf8.RuneCountInString(r.Text)-1))
	})
}

func (d *Deps) save(ctx context.Context, account, name string, a *mailbox.AttachmentContent) (string, error) {
	path, err := d.Attachments.Save(ctx, account, name, a.Content)
	switch {
	case err == nil:
		return path, nil
	case ctx.Err() != nil:
		return "", err
	case errors.Is(err, fs.ErrExist):
		return "", &discovery.Fault{Code: discovery.Conflict, Message: "There is a file of that name already, and it was left as it is.",
			Hint: "Choose another name for --save.", Err: err}
	}
	if _, file := errors.AsType[*fs.PathError](err); !file { // a fault, or the vault's word on it
		return "", err
	}
	return "", &discovery.Fault{Code: discovery.ExecutionError, Message: "The attachment could not be saved: " + fileReason(err) + ".",
		Hint: "Choose another name, or check the permissions of the attachment directory and the free space.", Err: err}
}

// Summary implements discovery.Summarizer.
func (r *MailAttachmentResult) Summary() string {
	switch {
	case r.Truncated:
		return fmt.Sprintf("The first %d of %d bytes", len(r.Content), r.Size)
	case r.SavedTo != "":
		return "Saved " + answer.Count(int(r.Size), "byte", "bytes")
	}
	if r.more != nil {
		return answer.Count(utf8.RuneCountInString(r.Text), "character", "characters")
	}
	return answer.Count(int(r.Size), "byte", "bytes")
}
