package commands

import (
	"cmp"
	"context"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/outbox"
)

type policyExplainArgs struct {
	Command string `json:"command" acli:"positional,sensitive,value='COMMAND'" jsonschema:"minLength=1,maxLength=9000" jsonschema_description:"A whole command string, quoted"`
}

// PolicyExplainResult answers policy explain. Code, Message and Hint are those
// that the command would fail with.
type PolicyExplainResult struct {
	Allowed       bool           `json:"allowed"`
	Command       string         `json:"command,omitempty"`
	Effect        string         `json:"effect,omitempty" jsonschema:"enum=meta,enum=read,enum=state,enum=flag,enum=write,enum=send,enum=admin"`
	Account       string         `json:"account_id,omitempty"`
	NeedsApproval bool           `json:"needs_approval,omitempty"`
	Asks          []string       `json:"asks,omitempty"` // why; none where the mode asks about each
	Code          discovery.Code `json:"code,omitempty"`
	Reason        string         `json:"reason,omitempty"`
	Message       string         `json:"message,omitempty"`
	Hint          string         `json:"hint,omitempty"`
}

func policyExplain(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:    "policy explain",
		Summary: "If you may run it",
		Details: "It checks the profile, the role, the denied commands, the account's mode and the outbound list; the text of a new message, and which one is filed, may be left out. " +
			"What writes a message is run dry, as with --dry-run but without the submission server: the message that it answers or hands on, and files that go along, are read. Nothing else is looked for, so a command it allows can still fail.",
		Effect:   discovery.Read,
		Standing: true,
		Examples: []string{"policy explain 'mail delete 50 --confirm'", "policy explain 'account list'"},
	}, func(ctx context.Context, call *discovery.Call, args *policyExplainArgs) (*PolicyExplainResult, error) {
		x, err := d.Explain(ctx, call, args.Command)
		// No rule asks for the text of a new message or which one is filed. That of an answer counts.
		for _, missing := range []struct{ message, as string }{{noText.Message, " --body text"}, {noMessage.Message, " --uid 1"}} {
			if err == nil && x.Refusal != nil && x.Refusal.Message == missing.message && x.Command.Path != "mail reply" {
				x, err = d.Explain(ctx, call, args.Command+missing.as)
			}
		}
		if err != nil {
			return nil, err
		}
		r := &PolicyExplainResult{}
		if x.Command != nil {
			r.Command, r.Effect = x.Command.Path, x.Command.Effect.String()
			call.Target = x.Command.Path
		}
		if x.Refusal == nil && x.Args != nil {
			if x.Refusal, err = d.foresee(ctx, call, &x, r); err != nil {
				return nil, err
			}
		}
		if f := x.Refusal; f != nil {
			r.Code, r.Reason, r.Message, r.Hint = f.Code, cmp.Or(f.Reason, "usage"), f.Message, f.Hint
		}
		r.Allowed = x.Refusal == nil
		return r, nil
	})
}

// What the arguments of a command are, as far as it can be said what the command would do.
type (
	// foreseen say what the command would do, and do nothing of it. The decision is nil where
	// nothing leaves and nothing is deleted.
	foreseen interface {
		foresee(ctx context.Context, d *Deps, call *discovery.Call) (*outbox.Decision, error)
	}
	// aboutMessages name messages that are read.
	aboutMessages interface{ which() *messagesArgs }
	// onAccounts are of a command that works on one account or on all.
	onAccounts interface {
		OnAccount() string
		OnAll() bool
	}
)

// foresee runs a command dry. It fills in the account and whether a person would decide, and
// returns the refusal with which the command would end; nil for none. What comes of a server or
// of the store is an error.
func (d *Deps) foresee(ctx context.Context, call *discovery.Call, x *Explanation, r *PolicyExplainResult) (*discovery.Fault, error) {
	as := *call // what the audit entry says is the caller's own
	var decision *outbox.Decision
	var err error
	switch a := x.Args.(type) {
	case sending:
		var account string
		var request outbox.Request
		if account, request, err = a.request(ctx, d, &as); err == nil {
			request.Key, request.Principal = a.how().Key, call.Principal
			decision, err = d.Outbox.Foresee(ctx, account, request, true)
		}
	case foreseen:
		decision, err = a.foresee(ctx, d, &as)
	case changing:
		var refs []mail.Ref
		if refs, err = d.messages(ctx, &as, a.which()); err != nil {
			break
		}
		to := ""
		if other, ok := a.(*mailCopyArgs); ok && other.ToAccount != as.Account {
			to = other.ToAccount
		}
		if to != "" || call.Admin { // who is never asked
			err = d.Mailboxes.MayChange(ctx, x.Command.Path, as.Account, refs, to)
			break
		}
		decision, err = d.Outbox.ForeseeChange(ctx, mailbox.Batch{Op: x.Command.Path, Account: as.Account, Refs: refs, Action: a.action()}, call.Principal)
	case aboutMessages:
		_, err = d.messages(ctx, &as, a.which())
	case onAccounts:
		_, _, err = d.accounts(ctx, &as, argument.AccountsOption{Account: a.OnAccount()})
	case interface{ OnAccount() string }:
		_, err = d.account(ctx, &as, argument.AccountOption{Account: a.OnAccount()})
	}
	if several, ok := x.Args.(onAccounts); as.Account != "" && !(ok && several.OnAll()) {
		if _, unknown := d.Store.Account(ctx, as.Account); unknown != nil {
			as.Account, err = "", cmp.Or(err, unknown)
		}
	}
	r.Account = as.Account
	if err == nil && decision != nil {
		r.NeedsApproval, r.Asks = decision.Waits(), decision.Reasons()
	}
	f := answer.Faults(err)
	if f == nil {
		return nil, err
	}
	refusal := *f
	switch f.Code {
	case discovery.ConnectionFailed, discovery.AuthFailed, discovery.Timeout, discovery.StoreError:
		return nil, err
	case discovery.NotFound: // it does not tell what is hidden from what does not exist
		refusal.Reason = "account"
	case discovery.ConfigError:
		refusal.Reason = cmp.Or(f.Reason, "config")
	}
	if as.Account == "" {
		refusal.Reason = cmp.Or(f.Reason, "account")
	}
	return &refusal, nil
}
