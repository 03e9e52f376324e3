package commands

import (
	"context"
	"errors"
	"fmt"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/outbox"
)

type mailUnsubscribeArgs struct{ messagesArgs }

// Validate is that of the messages, which may be of several folders.
func (a *mailUnsubscribeArgs) Validate() error {
	a.anyFolder = true
	return a.messagesArgs.Validate()
}

func (a *mailUnsubscribeArgs) foresee(ctx context.Context, d *Deps, call *discovery.Call) (*outbox.Decision, error) {
	refs, err := d.messages(ctx, call, &a.messagesArgs)
	if err != nil {
		return nil, err
	}
	return d.Outbox.ForeseeUnsubscribe(ctx, refs[0].Account)
}

// MailUnsubscribeResult answers mail unsubscribe.
type MailUnsubscribeResult struct {
	answer.Outcome
	Account  string        `json:"account_id"`
	OutboxID string        `json:"outbox_id,omitempty"`
	Lists    []ListToLeave `json:"lists"`
	Drafts   []LeaveDraft  `json:"drafts,omitempty" jsonschema_description:"Letters that ask to be taken off a list, not sent"`

	said string
}

// LeaveDraft is a draft that asks to be taken off the list of a message.
type LeaveDraft struct {
	ID     string `json:"message_id"`
	Folder string `json:"folder" acli:"untrusted"`
	Draft  string `json:"draft_id,omitempty"`
	To     string `json:"to" acli:"untrusted"`
}

type draftRow struct {
	ID    string `json:"id"`
	Draft string `json:"draft"`
	To    string `json:"to" acli:"untrusted"`
}

func mailUnsubscribe(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "mail unsubscribe",
		Also:     []string{"leave", "optout"},
		Summary:  "Leave a list",
		Details:  "It asks the list's server once (RFC 8058), where the sender is verified and signed the address. A list that is left by mail gets a draft, which is not sent. Below mode RW a person decides first.",
		Effect:   discovery.Write,
		Timeout:  sendTime,
		Examples: []string{"mail unsubscribe 5"},
	}, func(ctx context.Context, call *discovery.Call, args *mailUnsubscribeArgs) (*MailUnsubscribeResult, error) {
		if call.Reply != nil {
			o, err := d.decided(ctx, call, true)
			if err != nil {
				return nil, err
			}
			return d.unsubscribed(ctx, call, o.Account, &outbox.Unsubscribed{Entry: o})
		}
		refs, err := d.messages(ctx, call, &args.messagesArgs)
		if err != nil {
			return nil, err
		}
		if err := d.charge(ctx, call, len(refs)); err != nil {
			return nil, err
		}
		u, err := d.Outbox.Unsubscribe(ctx, refs[0].Account, refs, call.Principal)
		switch {
		case err != nil && u != nil:
			return nil, also(failedSend(call, u.Entry, err), u)
		case err != nil:
			return nil, err
		case u.Entry == nil && len(u.Drafts) == 0:
			return nil, &discovery.Fault{Code: discovery.ExecutionError, Message: u.Not[0].Why, Hint: "Tell the person, who can unsubscribe in a mail program; 'mail trash' puts the message away."}
		case u.Entry != nil:
			noteOutgoing(call, u.Entry)
			if u.Entry.State == mail.OutboxWaiting {
				return nil, also(d.waits(ctx, call, u.Entry, true), u)
			}
		}
		return d.unsubscribed(ctx, call, refs[0].Account, u)
	})
}

// also adds to the answer about lists that were not left what was done for others.
func also(err error, u *outbox.Unsubscribed) error {
	var f *discovery.Fault
	var q *discovery.Question
	switch {
	case errors.As(err, &q):
		f = q.Otherwise
	case !errors.As(err, &f):
		return err
	}
	if n := len(u.Drafts); n > 0 {
		f.Message += fmt.Sprintf(" Beside that %s in %s, not sent.", answer.Count(n, "letter to a list is", "letters to lists are"), u.Drafts[0].Saved.Folder)
	}
	if n := len(u.Not); n > 0 {
		f.Message += fmt.Sprintf(" Nothing is done about %s: %s", answer.Count(n, "message", "messages"), u.Not[0].Why)
	}
	return err
}

// unsubscribed is the answer about lists that were left, if they were.
func (d *Deps) unsubscribed(ctx context.Context, call *discovery.Call, account string, u *outbox.Unsubscribed) (*MailUnsubscribeResult, error) {
	r := &MailUnsubscribeResult{Account: account, Lists: []ListToLeave{}}
	var issues []mail.Issue
	if o := u.Entry; o != nil {
		if f := notLeft(o); f != nil {
			return nil, also(f, u)
		}
		r.OutboxID, r.Lists, r.said = o.ID, listsOf(o), unsubscriptionSummary(o)
		for _, l := range r.Lists {
			if l.Outcome != mail.UnsubscribeDone {
				issues = append(issues, mail.Issue{Kind: mail.KindRefused, Stage: "unsubscribe", MessageID: l.ID, Message: answer.Capital(l.Reason) + "."})
			}
		}
	}
	refs := listRefs(r.Lists)
	for _, n := range u.Not {
		refs = append(refs, n.Ref)
	}
	for _, s := range u.Drafts {
		refs = append(refs, s.Ref)
		l := LeaveDraft{ID: s.Ref.String(), Folder: s.Saved.Folder, To: s.Saved.Recipients[0]}
		if s.Saved.Ref != (mail.Ref{}) && !s.Saved.Hidden {
			l.Draft, refs = s.Saved.Ref.String(), append(refs, s.Saved.Ref)
		}
		r.Drafts = append(r.Drafts, l)
	}
	if n := len(r.Drafts); n > 0 {
		if r.said != "" {
			r.said += "; "
		}
		r.said = answer.Capital(r.said + answer.Count(n, "letter to a list is a draft", "letters to lists are drafts") + " now, and not sent")
	}
	for _, n := range u.Not {
		issues = append(issues, mail.Issue{Kind: mail.KindUnsupported, Stage: "unsubscribe", MessageID: n.Ref.String(), Message: n.Why})
	}
	r.Outcome = answer.OutcomeOf(issues, true)
	r.IDs = d.shown(ctx, call, refs...)
	return r, nil
}

type mailUnsubscribeBrief struct {
	Result string                     `json:"result"`
	Lists  *discovery.Table[listRow]  `json:"lists,omitempty"`
	Drafts *discovery.Table[draftRow] `json:"drafts,omitempty"`
	answer.Rest
}

// Brief says what was left, and where the drafts are.
func (r *MailUnsubscribeResult) Brief() mailUnsubscribeBrief {
	b := mailUnsubscribeBrief{Result: r.said, Lists: listRows(r.Lists, r.ShortID), Rest: r.Rest(nil)}
	if len(r.Drafts) > 0 {
		t := discovery.TableOf(answer.Each(r.Drafts, func(l *LeaveDraft) draftRow { return draftRow{r.ShortID(l.ID), r.ShortID(l.Draft), l.To} }))
		b.Drafts = &t
	}
	return b
}

// Summary implements discovery.Summarizer.
func (r *MailUnsubscribeResult) Summary() string { return r.WithIssues(r.said) }
