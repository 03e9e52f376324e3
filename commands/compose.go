package commands

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/outbox"
)

// composeArgs are what a message is written from, to be sent or kept as a draft.
type composeArgs struct {
	AccountOption
	To       []string `json:"to,omitempty" acli:"form=line,value=A" jsonschema:"maxItems=100,minLength=1,maxLength=998,example=ann@example.org,example=Ann Lee <ann@example.org>" jsonschema_description:"Recipients, with or without a name; a comma in a name needs a backslash"`
	CC       []string `json:"cc,omitempty" acli:"form=line,rare" jsonschema:"maxItems=100,minLength=1,maxLength=998" jsonschema_description:"Recipients of a copy"`
	BCC      []string `json:"bcc,omitempty" acli:"form=line,rare" jsonschema:"maxItems=100,minLength=1,maxLength=998" jsonschema_description:"Recipients of a hidden copy"`
	Subject  string   `json:"subject,omitempty" acli:"form=line" jsonschema:"maxLength=998" jsonschema_description:"If left out, that of the --reply-to message"`
	Body     *string  `json:"body,omitempty" acli:"sensitive,value=TEXT,needed" jsonschema:"maxLength=10000" jsonschema_description:"The text; or use --body-file"`
	BodyFile string   `json:"body-file,omitempty" acli:"form=line,path=attachment directory,rare" jsonschema:"minLength=1,maxLength=200,example=letter.txt" jsonschema_description:"A text file in UTF-8 below the attachment directory"`
	Attach   []string `json:"attach,omitempty" acli:"form=line,path=attachment directory,value=F" jsonschema:"maxItems=20,minLength=1,maxLength=200,example=invoices/march.pdf" jsonschema_description:"Files below the attachment directory"`
	ReplyTo  string   `json:"reply-to,omitempty" acli:"value=ID" jsonschema:"minLength=1,maxLength=600" jsonschema_description:"Id of the message that this answers; recipients are named all the same"`

	// What was typed, since Validate.
	to, cc, bcc []mail.Address
	parent      *mail.Ref // of ReplyTo; nil without it
}

// Validate checks what one field alone cannot.
func (a *composeArgs) Validate() error {
	if (a.Body == nil) == (a.BodyFile == "") {
		return &discovery.Fault{Code: discovery.ValidationError, Message: "The text is given twice or not at all.",
			Hint: "Give either --body or --body-file; an empty text is --body ''."}
	}
	a.parent = nil
	if a.ReplyTo != "" {
		ref, err := parseID(a.ReplyTo)
		if err != nil {
			return malformedID("The message id of --reply-to", err)
		}
		a.parent = &ref
		if a.Account != "" && ref.Account != "" && a.Account != ref.Account {
			return &discovery.Fault{Code: discovery.ValidationError, Message: "The message to be answered belongs to another account than --account.",
				Hint: "Leave --account out: the id names its account."}
		}
	}
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

func (a *composeArgs) onAccount() string {
	if a.parent != nil && a.parent.Account != "" {
		return a.parent.Account
	}
	return a.Account
}

// recipients are the addresses of all who would be sent to.
func (a *composeArgs) recipients() []string {
	var list []string
	for _, p := range slices.Concat(a.to, a.cc, a.bcc) {
		list = append(list, p.Addr)
	}
	return list
}

// composeIn resolves the message to be answered and the account, and notes the account
// and the recipients for the audit entry.
func (d *Deps) composeIn(ctx context.Context, call *discovery.Call, a *composeArgs) (string, error) {
	if to := a.recipients(); len(to) > 0 {
		call.Target = recipientsTarget(to)
	}
	if a.parent != nil {
		refs, err := d.resolve(ctx, call, a.Account, []mail.Ref{*a.parent})
		if err != nil {
			return "", err
		}
		a.parent = &refs[0]
	}
	return d.account(ctx, call, AccountOption{a.onAccount()})
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

// draft reads the files that the arguments name.
func (d *Deps) draft(ctx context.Context, account string, a *composeArgs) (outbox.Draft, error) {
	m := outbox.Draft{To: a.to, CC: a.cc, BCC: a.bcc, Subject: a.Subject, ReplyTo: a.parent}
	if a.Body != nil {
		m.Body = *a.Body
	} else {
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
	return m, nil
}

// fileFor is file for a message of an account: what was saved from a message of another one
// leaves only where that account's mail may.
func (d *Deps) fileFor(ctx context.Context, account, name string, limit int64) ([]byte, error) {
	content, err := d.file(ctx, name, limit)
	if err != nil {
		return nil, err
	}
	from, err := d.Attachments.SavedFrom(ctx, name)
	if err != nil || from == "" || from == account {
		return content, err
	}
	var policies [2]*mail.Policy // nil for an account that is gone or cannot be used, which gives nothing
	for i, name := range []string{from, account} {
		if a, err := d.Store.Account(ctx, name); err == nil {
			policies[i], _ = mail.CompilePolicy(&a)
		}
	}
	if !policies[0].MayGive(policies[1]) {
		return nil, mail.Operation{Op: "mail send", Account: from}.NotGiven(account)
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
		return nil, &discovery.Fault{Code: discovery.ValidationError, Message: "The files are too large.", Err: err,
			Hint: fmt.Sprintf("A message takes files of %d MiB together, and a text of %d MiB.", maxFileBytes>>20, maxBodyFile>>20)}
	case errors.Is(err, fs.ErrNotExist):
		return nil, &discovery.Fault{Code: discovery.NotFound, Message: fmt.Sprintf("There is no file %q in the attachment directory.", plain.Clip(name, 200)), Err: err,
			Hint: "'mail attachment --save NAME' puts files there; give the name with its directories, relative to that directory."}
	}
	return nil, &discovery.Fault{Code: discovery.ExecutionError, Message: fmt.Sprintf("The file %q could not be read: %s.", plain.Clip(name, 200), fileReason(err)), Err: err,
		Hint: "Name a regular file below the attachment directory, and check its permissions."}
}

// fileReason is why a file cannot be used, without its path, which the caller knows or
// must not know.
func fileReason(err error) string {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return failed.Err.Error()
	}
	return "the system refused"
}
