package commands

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/outbox"
)

type mailPlanArgs struct {
	criteria
	argument.AccountOption
	Do   string   `json:"do" acli:"value=trash|archive|…" jsonschema:"enum=trash,enum=archive,enum=move,enum=flag,enum=mark-read,enum=unsubscribe" jsonschema_description:"What is done to them"`
	To   string   `json:"to,omitempty" acli:"form=folder" jsonschema_description:"Folder, of move"`
	Flag []string `json:"flag,omitempty" acli:"rare" jsonschema:"maxItems=20,minLength=1,maxLength=64,example=flagged" jsonschema_description:"Flags to set, of flag; flagged if left out"`
}

// leave is to leave the lists of messages, which changes none of them.
const leave mail.Doing = "unsubscribe"

// planned are what --do takes, and what that is to messages.
var planned = map[string]func(a *mailPlanArgs) mail.Action{
	"trash":       func(*mailPlanArgs) mail.Action { return mail.Action{Do: mail.DoTrash} },
	"archive":     func(*mailPlanArgs) mail.Action { return mail.Action{Do: mail.DoArchive} },
	"move":        func(a *mailPlanArgs) mail.Action { return mail.Action{Do: mail.DoMove, To: a.To} },
	"flag":        func(a *mailPlanArgs) mail.Action { return mail.Action{Do: mail.DoFlags, Add: a.Flag} },
	"unsubscribe": func(*mailPlanArgs) mail.Action { return mail.Action{Do: leave} },
	"mark-read":   func(*mailPlanArgs) mail.Action { return mail.Action{Do: mail.DoMarkRead} },
}

// Validate checks what one option alone cannot.
func (a *mailPlanArgs) Validate() error {
	switch {
	case a.Do == "move" && a.To == "":
		return &discovery.Fault{Code: discovery.ValidationError, Message: "--to is missing: the folder that the messages are moved to."}
	case a.Do != "move" && a.To != "":
		return &discovery.Fault{Code: discovery.ValidationError, Message: "--to goes with the action move alone."}
	case a.Do != "flag" && len(a.Flag) > 0:
		return &discovery.Fault{Code: discovery.ValidationError, Message: "--flag goes with --do flag alone."}
	case !a.selects() && len(a.Folders) == 0:
		return &discovery.Fault{Code: discovery.ValidationError, Message: "Nothing says which messages are meant.", Hint: "Give words, --folder, or another criterion of 'mail search'."}
	}
	if a.Do == "flag" && len(a.Flag) == 0 {
		a.Flag = []string{"flagged"}
	}
	for i := range a.Flag {
		if err := readFlag(&a.Flag[i]); err != nil {
			return err
		}
	}
	if err := checkAdded(a.Flag); err != nil {
		return err
	}
	return a.criteria.Validate()
}

// MailPlanResult answers mail plan.
type MailPlanResult struct {
	answer.Outcome
	ID            string        `json:"plan_id"`
	Account       string        `json:"account_id"`
	Plan          *PlanShown    `json:"plan,omitempty"`
	Lists         []ListToLeave `json:"lists,omitempty" jsonschema_description:"Of unsubscribe: the lists that would be left"`
	NeedsApproval bool          `json:"needs_approval,omitempty"`
	Why           string        `json:"why,omitempty"` // a person is asked
	Expires       string        `json:"expires" jsonschema:"format=date-time"`
}

func mailPlan(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "mail plan",
		Also:     []string{"bulk", "sweep", "clean"},
		Summary:  "All that 'mail search' finds",
		Details:  "It freezes which, and changes nothing; 'mail run' does it, within a day. For many messages: a person is asked once for all.",
		Effect:   discovery.State,
		Rare:     []string{"folder", "from", "subject", "unread", "attachments", "invitations", "since", "until"},
		Timeout:  transferTime,
		Examples: []string{"mail plan --unread --do mark-read", "mail plan invoice --do move --to Archive"},
	}, func(ctx context.Context, call *discovery.Call, args *mailPlanArgs) (*MailPlanResult, error) {
		account, do, err := args.plan(ctx, d, call)
		if err != nil {
			return nil, err
		}
		q, err := d.query(ctx, &args.criteria)
		if err != nil {
			return nil, err
		}
		var plan *outbox.Decision
		var issues []mail.Issue
		if do.Do == leave {
			plan, issues, err = d.Outbox.PlanUnsubscribe(ctx, account, q, call.Principal)
		} else {
			plan, issues, err = d.Outbox.Plan(ctx, account, q, do, call.Principal)
		}
		if err != nil {
			return nil, err
		}
		noteOutgoing(call, &plan.Outgoing)
		if plan, err = d.Outbox.ForeseeRun(ctx, plan.ID, ownerless(call)); err != nil {
			return nil, err
		}
		r := &MailPlanResult{Outcome: answer.OutcomeOf(issues, true), ID: plan.ID, Account: account, Lists: listsOf(&plan.Outgoing), NeedsApproval: plan.Waits(), Expires: answer.UTC(plan.Created.Add(mail.PlanWaits))}
		if r.NeedsApproval {
			r.Why = plan.Why()
		}
		var refs []mail.Ref
		if plan.Plan != nil {
			r.Plan = shownPlan(plan.Plan)
			for _, m := range plan.Plan.Examples {
				if ref, err := mail.ParseRef(m.ID); err == nil {
					refs = append(refs, ref)
				}
			}
		}
		refs = append(refs, listRefs(r.Lists)...)
		r.IDs = d.shown(ctx, call, refs...)
		r.NextAction = answer.Next(r.hint(), "mail", "run", r.ID)
		return r, nil
	})
}

// plan is what is to be done, and in which account.
func (a *mailPlanArgs) plan(ctx context.Context, d *Deps, call *discovery.Call) (account string, do mail.Action, err error) {
	do = planned[a.Do](a)
	if account, err = d.account(ctx, call, a.AccountOption); err == nil {
		err = d.mayDo(call, do.Do)
	}
	return account, do, err
}

func (a *mailPlanArgs) foresee(ctx context.Context, d *Deps, call *discovery.Call) (*outbox.Decision, error) {
	account, _, err := a.plan(ctx, d, call)
	if err != nil {
		return nil, err
	}
	return nil, d.Mailboxes.MayChange(ctx, "mail plan", account, nil, "")
}

// mayDo refuses what the caller may not do to messages that it names.
func (d *Deps) mayDo(call *discovery.Call, do mail.Doing) error {
	path := doing[do].like
	if c := d.commands[path]; c == nil || call.Visible(c) {
		return nil
	}
	return &discovery.Fault{Code: discovery.PermissionDenied, Message: fmt.Sprintf("'%s' is withheld from you, and a plan that does the same with it.", path),
		Hint: "'policy show' tells what you may do.", Reason: "denied"}
}

// hint says what running the plan does.
func (r *MailPlanResult) hint() string {
	switch {
	case r.Plan == nil && r.NeedsApproval:
		return "'mail run' puts it before a person; nothing takes it back"
	case r.Plan == nil:
		return "'mail run' does it without asking; nothing takes it back"
	case r.NeedsApproval:
		return "'mail run' waits for a person, who decides once about all of it; 'mail undo' takes it back"
	}
	return "'mail run' does it without asking; 'mail undo' takes it back"
}

type mailPlanBrief struct {
	ID string `json:"id"`
	planBrief
	Lists *discovery.Table[listRow] `json:"lists,omitempty"`
	Next  string                    `json:"next"`
	answer.Rest
}

// maxPlanBytes bounds a plan in a compact answer: examples are left out where it is longer.
const maxPlanBytes = 1150

// Brief is the plan in a screen.
func (r *MailPlanResult) Brief() mailPlanBrief {
	b := mailPlanBrief{ID: r.ID, Lists: listRows(r.Lists, r.ShortID), Next: "mail run " + r.ID, Rest: r.Rest(nil)}
	b.Hint = r.hint() + "."
	for n := mail.MaxPlanExamples; r.Plan != nil && n >= 0; n-- {
		b.planBrief = r.Plan.brief(r.ShortID, n)
		if record, err := json.Marshal(b); err == nil && len(record) <= maxPlanBytes {
			break
		}
	}
	return b
}

// Summary implements discovery.Summarizer.
func (r *MailPlanResult) Summary() string {
	if r.Plan == nil {
		return r.WithIssues("Planned, and nobody asked yet: unsubscribe from " + answer.Count(len(r.Lists), "list", "lists"))
	}
	return r.WithIssues("Planned, and nothing changed yet: " + r.Plan.Does)
}
