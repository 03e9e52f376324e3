package commands

import (
	"context"
	"strings"
	"time"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

type mailCodeArgs struct {
	argument.AccountOption
	From string `json:"from" acli:"value=DOMAIN" jsonschema:"minLength=3,maxLength=253,pattern=^@?[^@/: ]+[.][^@/: ]+$,example=example.org" form:"must be a domain such as example.org" jsonschema_description:"Domain of the sender; those below it count"`
	Wait string `json:"wait,omitempty" acli:"form=wait,value=60s" jsonschema_description:"Wait so long for it: 60s or 4m"`

	domain string        // since Validate
	wait   time.Duration // since Validate
}

// Validate reads the domain and the wait.
func (a *mailCodeArgs) Validate() (err error) {
	entry, err := mail.ValidateEntry("@" + strings.TrimPrefix(a.From, "@"))
	if err != nil {
		return err
	}
	a.domain = entry[1:]
	a.wait, err = argument.ParseWait(a.Wait)
	return err
}

// MailCodeResult answers mail code.
type MailCodeResult struct {
	Account  string `json:"account_id"`
	ID       string `json:"message_id"`
	Code     string `json:"code" acli:"untrusted"`
	Others   int    `json:"others,omitempty" jsonschema_description:"More of what looks like a code in the same message"`
	From     string `json:"from" acli:"untrusted"`
	Subject  string `json:"subject" acli:"untrusted"`
	Received string `json:"received"`

	id string
}

// mailCodeBrief is the compact answer of mail code.
type mailCodeBrief struct {
	Code     string `json:"code" acli:"untrusted"`
	Others   int    `json:"others,omitempty"`
	From     string `json:"from" acli:"untrusted"`
	ID       string `json:"id"`
	Received string `json:"received"`
}

// Brief is the compact answer.
func (r *MailCodeResult) Brief() mailCodeBrief {
	return mailCodeBrief{r.Code, r.Others, r.From, r.id, r.Received}
}

func mailCode(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "mail code",
		Summary:  "Login code, once",
		Details:  "One-time codes are hidden in messages of the last three days. This tells the newest one in INBOX of a verified sender, at most ten minutes old, once, where the account gives codes.",
		Effect:   discovery.Read,
		Timeout:  300,
		Needed:   []string{"from"},
		Examples: []string{"mail code --from example.org"},
	}, func(ctx context.Context, call *discovery.Call, args *mailCodeArgs) (*MailCodeResult, error) {
		call.Target = args.domain
		name, err := d.account(ctx, call, args.AccountOption)
		if err != nil {
			return nil, err
		}
		q := mailbox.CodeQuery{From: args.domain, Aside: call.Aside}
		if args.wait > 0 {
			q.Until = argument.WaitUntil(ctx, args.wait)
		}
		c, err := d.Mailboxes.Code(ctx, name, q)
		if err != nil {
			return nil, err
		}
		return &MailCodeResult{Account: name, ID: c.Ref.String(), Code: c.Code, Others: c.Other, From: answer.People(c.From), Subject: c.Subject,
			Received: answer.UTC(c.InternalDate), id: d.shown(ctx, call, c.Ref).Of(c.Ref)}, nil
	})
}
