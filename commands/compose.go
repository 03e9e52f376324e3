package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/outbox"
)

// recipientArgs name who a letter goes to.
type recipientArgs struct {
	To  []string `json:"to,omitempty" acli:"form=line,value=A" jsonschema:"maxItems=100,minLength=1,maxLength=998,example=ann@example.org,example=Ann Lee <ann@example.org>" jsonschema_description:"A comma in a name needs a backslash"`
	CC  []string `json:"cc,omitempty" acli:"form=line,rare" jsonschema:"maxItems=100,minLength=1,maxLength=998" jsonschema_description:"Copies"`
	BCC []string `json:"bcc,omitempty" acli:"form=line,rare" jsonschema:"maxItems=100,minLength=1,maxLength=998" jsonschema_description:"Blind copies"`

	to, cc, bcc []mail.Address // what was typed, since Validate
}

// Validate reads the addresses.
func (a *recipientArgs) Validate() error {
	for _, f := range []struct {
		option string
		typed  []string
		list   *[]mail.Address
	}{{"--to", a.To, &a.to}, {"--cc", a.CC, &a.cc}, {"--bcc", a.BCC, &a.bcc}} {
		*f.list = nil
		for i, s := range f.typed {
			one, err := outbox.ParseAddress(string(s))
			if err != nil {
				return &discovery.Fault{Code: discovery.ValidationError, Message: fmt.Sprintf("Address %d of %s cannot be sent to: %s.", i+1, f.option, err),
					Hint: "Write ann@example.org or Ann Lee <ann@example.org>, one address each.", Reason: mail.ReasonAddress}
			}
			*f.list = append(*f.list, one)
		}
	}
	return nil
}

// recipients are the addresses of all who are named.
func (a *recipientArgs) recipients() []string {
	var list []string
	for _, p := range slices.Concat(a.to, a.cc, a.bcc) {
		list = append(list, p.Addr)
	}
	return list
}

// textArgs are what a letter says, and the files that go with it.
type textArgs struct {
	Body       *string  `json:"body,omitempty" acli:"sensitive,value=TEXT" jsonschema:"maxLength=10000" jsonschema_description:"The text"`
	Markdown   bool     `json:"markdown,omitempty" acli:"rare" jsonschema_description:"It is Markdown: add HTML of it"`
	BodyFile   string   `json:"body-file,omitempty" acli:"form=line,path=attachment directory,rare" jsonschema:"minLength=1,maxLength=200,example=letter.txt" jsonschema_description:"A text file instead"`
	Attach     []string `json:"attach,omitempty" acli:"form=line,path=attachment directory,value=F" jsonschema:"maxItems=20,minLength=1,maxLength=200,example=invoices/march.pdf" jsonschema_description:"Files of the attachment directory"`
	AttachFrom string   `json:"attach-from,omitempty" acli:"value=ID,rare" jsonschema:"minLength=1,maxLength=600" jsonschema_description:"Message whose attachments go along"`
	Part       []string `json:"part,omitempty" acli:"rare,requires=attach-from" jsonschema:"maxItems=20,minLength=1,maxLength=64,pattern=^[0-9]+([.][0-9]+)*$,example=2" form:"must be numbers with dots between them, such as 1.2" jsonschema_description:"Which of them"`
	As         string   `json:"as,omitempty" acli:"form=line,rare,value=A" jsonschema:"minLength=3,maxLength=320" jsonschema_description:"Sender, an own address"`

	attachFrom *mail.Ref // since Validate; nil for none
}

// Validate checks what one field alone cannot.
func (a *textArgs) Validate() error {
	if a.Body != nil && a.BodyFile != "" {
		return twoTexts
	}
	a.attachFrom = nil
	if a.AttachFrom != "" {
		ref, err := argument.ParseID(a.AttachFrom)
		if err != nil {
			return argument.MalformedID("The message id of --attach-from", err)
		}
		a.attachFrom = &ref
	}
	return nil
}

// composeArgs are what a new message is written from, to be sent or kept as a draft.
type composeArgs struct {
	argument.AccountOption
	recipientArgs
	Subject string `json:"subject,omitempty" acli:"form=line" jsonschema:"maxLength=998" jsonschema_description:"Default: of --reply-to"`
	textArgs
	ReplyTo string `json:"reply-to,omitempty" acli:"value=ID" jsonschema:"minLength=1,maxLength=600" jsonschema_description:"Message this answers"`

	parent *mail.Ref // the message that it is about, since Validate; nil for none
}

// Validate checks what one field alone cannot.
func (a *composeArgs) Validate() error {
	if a.Body == nil && a.BodyFile == "" {
		return noText
	}
	return cmp.Or(a.about("--reply-to", a.ReplyTo), validate(&a.recipientArgs, &a.textArgs))
}

// about reads the id of the message that the letter is about; an empty one is none.
func (a *composeArgs) about(option, id string) error {
	if a.parent = nil; id == "" {
		return nil
	}
	ref, err := argument.ParseID(id)
	if err != nil {
		return argument.MalformedID("The message id of "+option, err)
	}
	if a.parent = &ref; a.Account != "" && ref.Account != "" && a.Account != ref.Account {
		return &discovery.Fault{Code: discovery.ValidationError, Message: "The message of " + option + " belongs to another account than --account.",
			Hint: "Leave --account out: the id names its account."}
	}
	return nil
}

// validate returns the first fault of parts of a command's arguments.
func validate(parts ...discovery.Validator) error {
	for _, p := range parts {
		if err := p.Validate(); err != nil {
			return err
		}
	}
	return nil
}

var (
	noText = &discovery.Fault{Code: discovery.ValidationError, Message: "The text is missing.",
		Hint: "Give --body or --body-file; an empty text is --body ''."}
	inPieces = discovery.Advice{Hint: "A longer text goes in pieces: 'mail draft' begins it, 'mail draft --append-to ID' adds to it, 'mail send --draft ID' sends it. A file goes with --body-file or --attach.",
		Example: "mail draft --to ann@example.org --body Noon?"}
	twoTexts = &discovery.Fault{Code: discovery.ValidationError, Message: "The text is given twice.", Hint: "Give either --body or --body-file."}
)

func (a *composeArgs) OnAccount() string {
	if a.parent != nil && a.parent.Account != "" {
		return a.parent.Account
	}
	return a.Account
}

// composeIn resolves the message that the letter is about and the account, and notes the account
// and the recipients for the audit entry.
func (d *Deps) composeIn(ctx context.Context, call *discovery.Call, a *composeArgs) (string, error) {
	noteRecipients(call, a.recipients())
	if a.parent != nil {
		refs, err := d.resolve(ctx, call, a.Account, []mail.Ref{*a.parent})
		if err != nil {
			return "", err
		}
		a.parent = &refs[0]
	}
	return d.account(ctx, call, argument.AccountOption{Account: a.OnAccount()})
}

// noteRecipients notes for the audit entry who would be sent to.
func noteRecipients(call *discovery.Call, to []string) {
	if len(to) > 0 {
		call.Target = recipientsTarget(to)
	}
}

// recipientsTarget names the recipients in the audit entry, within maxTarget.
func recipientsTarget(to []string) string {
	return "to " + plain.Clip(strings.Join(to, ", "), maxTarget)
}

// maxTarget bounds the recipients in an audit entry, in characters: a hundred long
// addresses fit.
const maxTarget = 8000

// Bounds of what is read from files.
const (
	maxBodyFile  = 1 << 20  // bytes
	maxFileBytes = 25 << 20 // of all files of a message
)

// letter reads the files and the attachments that the arguments name.
func (d *Deps) letter(ctx context.Context, call *discovery.Call, account string, r *recipientArgs, a *textArgs) (outbox.Draft, error) {
	m := outbox.Draft{To: r.to, CC: r.cc, BCC: r.bcc, Markdown: a.Markdown, As: a.As}
	if a.Body != nil {
		m.Body = *a.Body
	} else if m.FromFile = a.BodyFile != ""; m.FromFile {
		text, err := d.fileFor(ctx, account, a.BodyFile, maxBodyFile)
		if err != nil {
			return m, err
		}
		if m.Body = strings.TrimPrefix(string(text), "\ufeff"); !utf8.ValidString(m.Body) {
			return m, &discovery.Fault{Code: discovery.ValidationError, Message: "The text file is not in UTF-8.", Hint: "Save it as UTF-8, or send it with --attach."}
		}
	}
	left := int64(maxFileBytes)
	for _, name := range a.Attach {
		content, err := d.fileFor(ctx, account, name, left)
		if err != nil {
			return m, err
		}
		left -= int64(len(content))
		m.Attachments = append(m.Attachments, outbox.Attachment{Name: path.Base(path.Clean(name)), Content: content})
	}
	if a.attachFrom == nil {
		return m, nil
	}
	refs, err := d.resolve(ctx, call, "", []mail.Ref{*a.attachFrom})
	if err != nil {
		return m, err
	}
	if err := d.mayGive(ctx, refs[0].Account, account); err != nil {
		return m, err
	}
	parts := a.Part
	if len(parts) == 0 {
		parts = []string{""}
	}
	for _, part := range parts {
		f, err := d.Mailboxes.Attachment(ctx, refs[0], part)
		if err != nil {
			return m, err
		}
		if left -= int64(len(f.Content)); left < 0 {
			return m, filesTooLarge(nil)
		}
		m.Attachments = append(m.Attachments, outbox.AttachmentOf(f))
	}
	m.FromMail = true
	return m, nil
}

// mayGive refuses what comes from another account where that account's mail may not leave by
// this one.
func (d *Deps) mayGive(ctx context.Context, from, account string) error {
	if from == "" || from == account {
		return nil
	}
	var policies [2]*mail.Policy // nil for an account that is gone or cannot be used, which gives nothing
	for i, name := range []string{from, account} {
		_, policies[i], _ = (&mail.Operation{Account: name}).LookUp(ctx, d.Store)
	}
	if policies[0] == nil {
		e := mail.Operation{Op: "mail send", Account: account}.Failure(mail.KindReadOnly, "", "It comes from an account that is not yours to send from, or is there no more: nothing of it is sent.", mail.AdviceOutboundOfBoth)
		e.Reason = mail.ReasonAcross
		return e
	}
	if !policies[0].MayGive(policies[1]) {
		return mail.Operation{Op: "mail send", Account: from}.NotGiven(account)
	}
	return nil
}

// fileFor is file for a message of an account: what was saved from a message of another one
// leaves only where that account's mail may.
func (d *Deps) fileFor(ctx context.Context, account, name string, limit int64) ([]byte, error) {
	content, err := d.file(ctx, name, limit)
	if err != nil {
		return nil, err
	}
	origins, err := d.Attachments.SavedFrom(ctx, name, content)
	if err != nil || slices.Contains(origins, account) {
		return content, err
	}
	for _, from := range origins {
		if err := d.mayGive(ctx, from, account); err != nil {
			return nil, err
		}
	}
	return content, nil
}

// file reads a whole file of the attachment directory that has at most limit bytes.
func (d *Deps) file(ctx context.Context, name string, limit int64) ([]byte, error) {
	content, err := d.Attachments.Read(ctx, name, limit)
	switch {
	case err == nil || ctx.Err() != nil || discovery.AsFault(err) != nil:
		return content, err
	case errors.Is(err, ErrTooLarge):
		return nil, filesTooLarge(err)
	case errors.Is(err, fs.ErrNotExist):
		return nil, &discovery.Fault{Code: discovery.NotFound, Message: fmt.Sprintf("There is no file %q in the attachment directory.", plain.Clip(name, 200)), Err: err,
			Hint: "'mail attachment --save NAME' puts files there; give the name with its directories, relative to that directory."}
	}
	return nil, &discovery.Fault{Code: discovery.ExecutionError, Message: fmt.Sprintf("The file %q could not be read: %s.", plain.Clip(name, 200), fileReason(err)), Err: err,
		Hint: "Name a regular file below the attachment directory, and check its permissions."}
}

func filesTooLarge(err error) error {
	return &discovery.Fault{Code: discovery.ValidationError, Message: "The files are too large.", Err: err,
		Hint: fmt.Sprintf("A message takes files of %d MiB together, and a text of %d MiB.", maxFileBytes>>20, maxBodyFile>>20)}
}

// fileReason is why a file cannot be used, without its path, which the caller knows or
// must not know.
func fileReason(err error) string {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return failed.Err.Error()
	}
	return "the system refused"
}
