package commands

import (
	"context"
	"errors"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/outbox"
)

type mailRunArgs struct {
	ID string `json:"id" acli:"form=outbox,positional" jsonschema_description:"Plan, as 'mail plan' named it"`
}

func (a *mailRunArgs) foresee(ctx context.Context, d *Deps, call *discovery.Call) (*outbox.Decision, error) {
	plan, err := d.outgoing(ctx, call, a.ID)
	switch {
	case err != nil:
	case plan.Kind == mail.OutboxPlan:
		err = d.mayDo(call, plan.Plan.Do)
	case plan.Kind == mail.OutboxUnsubscribe:
		err = d.mayDo(call, leave)
	default:
		err = mail.ErrNoOutgoing
	}
	if err != nil {
		return nil, err
	}
	return d.Outbox.ForeseeRun(ctx, a.ID, ownerless(call))
}

// ownerless is who runs a plan: nobody is asked where that is the administrator, who has no name
// there.
func ownerless(call *discovery.Call) string {
	if call.Admin {
		return ""
	}
	return call.Principal
}

// MailRunResult answers mail run.
type MailRunResult struct {
	answer.Outcome
	ID      string           `json:"plan_id"`
	Account string           `json:"account_id"`
	State   mail.OutboxState `json:"state" jsonschema:"enum=done,enum=partly,enum=unknown"`
	Plan    *PlanShown       `json:"plan,omitempty"`
	Lists   []ListToLeave    `json:"lists,omitempty" jsonschema_description:"Of unsubscribe: what became of each list"`
	Undo    string           `json:"undo,omitempty" jsonschema_description:"The command that takes it back"`

	said string
}

func mailRun(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "mail run",
		Also:     []string{"execute", "do"},
		Summary:  "Do a plan",
		Details:  "It changes the planned messages and no others, once; what left its folder since is left alone. Where a person has to decide, it waits for them. After a failure it goes on with the rest.",
		Effect:   discovery.Write,
		Timeout:  sendTime,
		Examples: []string{"mail run 0123abcd"},
	}, func(ctx context.Context, call *discovery.Call, args *mailRunArgs) (*MailRunResult, error) {
		if call.Reply != nil {
			o, err := d.decided(ctx, call, true)
			if err != nil {
				return nil, err
			}
			return ran(o, nil)
		}
		foreseen, err := args.foresee(ctx, d, call)
		if err != nil {
			return nil, err
		}
		if by := ownerless(call); by != "" && foreseen.Step == outbox.StepRun && !foreseen.Waits() {
			err := d.charge(ctx, call, foreseen.Plan.Count)
			var limited *discovery.Fault
			if errors.As(err, &limited) {
				limited.Hint += " The person can run a plan of any size: tell them its id."
			}
			if err != nil {
				return nil, err
			}
		}
		o, err := d.Outbox.Run(ctx, args.ID, ownerless(call))
		switch {
		case err != nil && (o == nil || o.State != mail.OutboxUnknown): // else it was begun
			return nil, failedSend(call, o, err)
		case o.State == mail.OutboxWaiting:
			return nil, d.waits(ctx, call, o, true)
		}
		return ran(o, err)
	})
}

// ran is the answer about a plan that was run, if it was; failed is why it ended before its end.
func ran(o *mail.Outgoing, failed error) (*MailRunResult, error) {
	if o.Kind == mail.OutboxUnsubscribe {
		if f := notLeft(o); f != nil {
			return nil, f
		}
		return &MailRunResult{Outcome: answer.OutcomeOf(nil, true), ID: o.ID, Account: o.Account, State: o.State, Lists: listsOf(o), said: unsubscriptionSummary(o)}, nil
	}
	if f := notRun(o); f != nil {
		return nil, f
	}
	p := o.Plan
	r := &MailRunResult{Outcome: answer.OutcomeOf(nil, true), ID: o.ID, Account: o.Account, State: o.State, Plan: shownPlan(p), said: planSummary(o.State, p)}
	if p.Outcome.Done > 0 {
		r.Undo = undoOf(o.ID)
	}
	if f := answer.Faults(failed); f != nil {
		r.Status, r.Issues = mail.StatusPartial, []answer.Issue{{Code: f.Code, Stage: "run", Message: f.Message, Retryable: true}}
	} else if why := p.Outcome.Reason; why != "" {
		r.Status, r.Issues = mail.StatusPartial, []answer.Issue{{Code: discovery.ExecutionError, Stage: "run", Message: why}}
	}
	if o.State == mail.OutboxUnknown {
		r.NextAction = answer.Next("It goes on with the rest", "mail", "run", o.ID)
	}
	return r, nil
}

type mailRunBrief struct {
	Result string                    `json:"result" acli:"untrusted"`
	Lists  *discovery.Table[listRow] `json:"lists,omitempty"`
	Undo   string                    `json:"undo,omitempty"`
	answer.Rest
}

// Brief says what was done.
func (r *MailRunResult) Brief() mailRunBrief {
	return mailRunBrief{r.said, listRows(r.Lists, r.ShortID), r.Undo, r.Rest(r.NextAction)}
}

// Summary implements discovery.Summarizer.
func (r *MailRunResult) Summary() string { return r.WithIssues(r.said) }
