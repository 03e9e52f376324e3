package commands

import (
	"context"
	"fmt"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
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
	Asks          []string       `json:"asks,omitempty"` // why, in mode reply
	Code          discovery.Code `json:"code,omitempty"`
	Reason        string         `json:"reason,omitempty"`
	Message       string         `json:"message,omitempty"`
	Hint          string         `json:"hint,omitempty"`
}

func policyExplain(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:    "policy explain",
		Summary: "May you run it? If not, why",
		Details: "It checks the profile, the role, the denied commands, the account's mode and the outbound list; the text of a new message, and which one is filed, may be left out. " +
			"It looks at no message and no server, so a command it allows can still fail; only for a reply in mode reply it reads the message, and says what would make it wait.",
		Effect:   discovery.Read,
		Standing: true,
		Examples: []string{"policy explain 'mail delete 50 --confirm'", "policy explain 'account list'"},
	}, func(ctx context.Context, call *discovery.Call, args *policyExplainArgs) (*PolicyExplainResult, error) {
		x, err := d.Explain(ctx, call, args.Command)
		// No rule asks for the text of a new message or which one is filed. That of an answer counts in mode reply.
		for _, missing := range []struct{ message, as string }{{noText.Message, " --body text"}, {noMessage.Message, " --uid 1"}} {
			if err == nil && x.Refusal != nil && x.Refusal.Message == missing.message && x.Command.Path != "mail reply" {
				x, err = d.Explain(ctx, call, args.Command+missing.as)
			}
		}
		if err != nil {
			return nil, err
		}
		r := &PolicyExplainResult{Allowed: x.Refusal == nil}
		if x.Command != nil {
			r.Command, r.Effect = x.Command.Path, x.Command.Effect.String()
			call.Target = x.Command.Path
		}
		if x.Refusal == nil && x.Args != nil {
			if x.Refusal, err = d.accountRefusal(ctx, call, x.Command, x.Args, r); err != nil {
				return nil, err
			}
		}
		if f := x.Refusal; f != nil {
			r.Allowed, r.NeedsApproval, r.Asks = false, false, nil
			r.Code, r.Reason, r.Message, r.Hint = f.Code, f.Reason, f.Message, f.Hint
			if r.Reason == "" {
				r.Reason = "usage"
			}
		}
		return r, nil
	})
}

// accountRefusal judges a command by the account it would work on; nil where that
// allows it. It fills in the account and whether it would wait for a person.
func (d *Deps) accountRefusal(ctx context.Context, call *discovery.Call, c *discovery.Command, args any, r *PolicyExplainResult) (*discovery.Fault, error) {
	on, ok := args.(onAccount)
	if !ok {
		return nil, nil
	}
	if o, ok := args.(interface{ OnAll() bool }); ok && o.OnAll() {
		_, all, err := d.accounts(ctx, &discovery.Call{}, argument.AccountsOption{Account: argument.AllAccounts})
		if err != nil {
			return known(err)
		}
		if all {
			r.Account = argument.AllAccounts
			return nil, nil
		}
	}
	name, err := "", error(nil)
	if m, ok := args.(interface{ ids() []mail.Ref }); ok && len(m.ids()) > 0 {
		name, _, err = d.accountOf(ctx, m.ids()[0], on.OnAccount())
	} else {
		name, err = d.account(ctx, &discovery.Call{}, argument.AccountOption{Account: on.OnAccount()})
	}
	if err != nil {
		return known(err)
	}
	a, err := d.Store.Account(ctx, name)
	if err != nil {
		return known(err)
	}
	r.Account = name
	if c.Effect != discovery.Flag && c.Effect != discovery.Write && c.Effect != discovery.Send {
		return nil, nil
	}
	p, err := mail.CompilePolicy(&a)
	if err != nil {
		return &discovery.Fault{Code: discovery.ConfigError, Message: fmt.Sprintf("The account cannot be used as it is set up: %s.", err),
			Hint: "The administrator changes it with 'account edit'.", Reason: "config"}, nil
	}
	if x, ok := args.(interface{ attached() *mail.Ref }); ok && x.attached() != nil {
		from, _, err := d.accountOf(ctx, *x.attached(), "")
		if err != nil {
			return known(err)
		}
		if f := answer.Faults(d.mayGive(ctx, from, name)); f != nil {
			return f, nil
		}
	}
	if c.Effect == discovery.Send {
		r.NeedsApproval = p.NeedsApproval()
		if send, ok := args.(interface{ recipients() []string }); ok {
			to := send.recipients()
			// Whom a reply goes to is known when the message is read.
			if f := answer.SendRefusal(p.CheckSend(to)); f != nil && (len(to) > 0 || f.Reason != mail.ReasonAddress) {
				return f, nil
			}
		}
		if p.RepliesUnasked() {
			o := &mail.Outgoing{Asks: []mail.Ask{mail.AskNoReply}}
			if reply, ok := args.(*mailReplyArgs); ok {
				if o, err = d.foresee(ctx, call, reply); err != nil {
					if f := answer.SendRefusal(err); f != nil {
						return f, nil
					}
					return known(err)
				}
			}
			r.NeedsApproval, r.Asks = len(o.Asks) > 0, sentences(o.Asks)
		}
		return nil, nil
	}
	// Copying to another account changes only that one.
	if x, ok := args.(*mailCopyArgs); ok && x.ToAccount != "" && string(x.ToAccount) != name {
		if a, err = d.Store.Account(ctx, string(x.ToAccount)); err != nil {
			return known(err)
		}
		from := p
		if p, err = mail.CompilePolicy(&a); err != nil {
			p = nil
		}
		if p.MayFile() && !from.MayGive(p) {
			return answer.Faults(mail.Operation{Op: c.Path, Account: name}.NotGiven(a.Name)), nil
		}
	}
	op := mail.Operation{Op: c.Path, Account: a.Name}
	if x, ok := args.(*mailDeleteArgs); ok {
		if !p.MayDestroy() {
			return answer.Faults(op.NoDestroy(&a, p)), nil
		}
		if f := x.confirmed(); f != nil {
			return f, nil
		}
		r.NeedsApproval = p.DestroyNeedsApproval()
	}
	if !p.MayFile() {
		return answer.Faults(op.ReadOnly(&a)), nil
	}
	return nil, nil
}

// onAccount is what the arguments of a command say of the account it works on: its
// name, empty for the default one.
type onAccount interface{ OnAccount() string }

// known is an error as the refusal it would be, else the error itself.
func known(err error) (*discovery.Fault, error) {
	if f := answer.Faults(err); f != nil && (f.Code == discovery.NotFound || f.Code == discovery.ValidationError || f.Code == discovery.ConfigError) {
		g := *f
		if g.Reason == "" || g.Code == discovery.NotFound { // which would tell what is hidden from what does not exist
			g.Reason = "account"
		}
		return &g, nil
	}
	return nil, err
}
