package commands

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
)

type outboxListArgs struct {
	Account string   `json:"account,omitempty" acli:"form=account,rare" jsonschema_description:"Only messages of this account; all of them if left out"`
	States  []string `json:"state,omitempty" acli:"value=waiting,rare" jsonschema:"maxItems=10,enum=waiting,enum=queued,enum=accepted,enum=unknown,enum=refused,enum=cancelled,enum=rejected,enum=done,enum=partly,enum=expired" jsonschema_description:"Only messages in one of these states"`
	Limit   int      `json:"limit,omitempty" acli:"short=n,rare" jsonschema:"minimum=1,maximum=500,default=50" jsonschema_description:"At most this many, newest first"`
	Before  string   `json:"before,omitempty" acli:"form=outbox,rare" jsonschema_description:"Only messages older than the one with this outbox_id"`
}

// OutboxListResult answers outbox list.
type OutboxListResult struct {
	Messages   []OutboxEntry      `json:"messages"`
	HasMore    bool               `json:"has_more"`
	Truncated  bool               `json:"truncated,omitempty"`
	NextAction *answer.NextAction `json:"next_action,omitempty"`

	more func(id string) *answer.NextAction // what goes on behind an entry
}

// OutboxEntry is a message in the list of the outbox.
type OutboxEntry struct {
	ID         string           `json:"outbox_id"`
	Kind       mail.OutboxKind  `json:"kind,omitempty" jsonschema:"enum=delete,enum=plan,enum=unsubscribe"` // empty for a message to send
	Account    string           `json:"account_id"`
	State      mail.OutboxState `json:"state" jsonschema:"enum=waiting,enum=queued,enum=accepted,enum=unknown,enum=refused,enum=cancelled,enum=rejected,enum=done,enum=partly,enum=expired"`
	Created    string           `json:"created" jsonschema:"format=date-time"`
	Recipients []string         `json:"recipients" acli:"untrusted"`
	More       int              `json:"more_recipients,omitempty"`
	Subject    string           `json:"subject" acli:"untrusted"`
	Principal  string           `json:"principal,omitempty"`
	Why        string           `json:"why,omitempty"` // in mode reply, where it waits, for the administrator alone, like Principal; or why a person refused it
}

const maxListedRecipients = 5

func outboxList(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "outbox list",
		Also:     []string{"waiting", "pending", "queue"},
		Summary:  "Waiting or sent",
		Details:  "The newest first: those that wait, were sent or may have been sent, deletions for good that a person decides about, plans, and lists to leave. An agent sees only its own messages. Long subjects and lists of recipients are cut; 'outbox show' has all.",
		Effect:   discovery.Read,
		Standing: true,
		Examples: []string{"outbox list", "outbox list --state waiting,unknown", "outbox list --limit 10"},
	}, func(ctx context.Context, call *discovery.Call, args *outboxListArgs) (*OutboxListResult, error) {
		call.Account = args.Account
		q := mail.OutboxQuery{Account: args.Account, Before: args.Before, Limit: args.Limit}
		if !call.Admin {
			q.Principal = call.Principal
		}
		for _, s := range args.States {
			q.States = append(q.States, mail.OutboxState(s))
		}
		if args.Account != "" {
			if _, err := d.Store.Account(ctx, args.Account); err != nil {
				return nil, err
			}
		}
		entries, more, err := d.Outbox.List(ctx, q)
		if err != nil {
			return nil, err
		}
		r := &OutboxListResult{Messages: []OutboxEntry{}, more: func(id string) *answer.NextAction {
			following := *args
			following.Before = id
			return answer.NextLine("There are more: show the ones before", call.Again(&following))
		}}
		for i := range entries {
			r.Messages = append(r.Messages, listedOutgoing(&entries[i], call.Admin))
		}
		if more {
			r.goOn()
		}
		return r, nil
	})
}

func listedOutgoing(o *mail.Outgoing, whose bool) OutboxEntry {
	n := min(len(o.Recipients), maxListedRecipients)
	e := OutboxEntry{ID: o.ID, Kind: o.Kind, Account: o.Account, State: o.State, Created: answer.UTC(o.Created), Recipients: append([]string{}, o.Recipients[:n]...),
		More: len(o.Recipients) - n, Subject: plain.Clip(o.Subject, answer.MaxShownChars)}
	switch o.Kind {
	case mail.OutboxDelete:
		e.Subject = plain.Clip(deletionTitle(o), answer.MaxShownChars)
	case mail.OutboxUnsubscribe:
		e.Subject = plain.Clip(unsubscriptionTitle(o), answer.MaxShownChars)
	case mail.OutboxPlan:
		e.Subject = plain.Clip(planTitle(o.Plan), answer.MaxShownChars)
	}
	if o.State == mail.OutboxRejected {
		e.Why = o.Reason
	}
	if whose {
		e.Principal = o.Principal
		if o.State == mail.OutboxWaiting && len(o.Asks) > 0 {
			e.Why = o.Asks[0].Sentence()
		}
	}
	return e
}

// goOn says that there are more messages, and how to see them.
func (r *OutboxListResult) goOn() {
	if n := len(r.Messages); n > 0 {
		r.HasMore, r.NextAction = true, r.more(r.Messages[n-1].ID)
	}
}

// outboxRow is a message; Account is empty where all are of one.
type outboxRow struct {
	ID        string           `json:"id"`
	Date      string           `json:"date"`
	Kind      mail.OutboxKind  `json:"kind"`
	State     mail.OutboxState `json:"state"`
	Account   string           `json:"account"`
	To        string           `json:"to" acli:"untrusted"`
	Subject   string           `json:"subject" acli:"untrusted"`
	Principal string           `json:"principal"`
	Why       string           `json:"why"`
}

// Brief is one row for each message.
func (r *OutboxListResult) Brief() answer.List[outboxRow] {
	several := slices.ContainsFunc(r.Messages, func(m OutboxEntry) bool { return m.Account != r.Messages[0].Account })
	return answer.ListOf(r.Messages, (&answer.Outcome{}).Rest(r.NextAction), func(m *OutboxEntry) outboxRow {
		row := outboxRow{m.ID, answer.MinuteOf(m.Created), m.Kind, m.State, "", strings.Join(m.Recipients, ", "), m.Subject, m.Principal, m.Why}
		if several {
			row.Account = m.Account
		}
		if m.More > 0 {
			row.To += fmt.Sprintf(" and %d more", m.More)
		}
		return row
	})
}

// Summary implements discovery.Summarizer.
func (r *OutboxListResult) Summary() string {
	waiting := 0
	for i := range r.Messages {
		if r.Messages[i].State == mail.OutboxWaiting {
			waiting++
		}
	}
	s := answer.Count(len(r.Messages), "message", "messages")
	if waiting > 0 {
		s += ", of which " + answer.Count(waiting, "waits", "wait") + " for a person"
	}
	return s
}

// Truncate implements discovery.Truncator.
func (r *OutboxListResult) Truncate(fraction float64) bool {
	if !answer.Shorten(&r.Messages, &r.Truncated, fraction) {
		return false
	}
	r.goOn()
	return true
}
