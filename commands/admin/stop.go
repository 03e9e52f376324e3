package admin

import (
	"context"
	"time"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault"
)

// StopResult answers stop.
type StopResult struct {
	Since   string     `json:"stopped_since" jsonschema:"format=date-time"`
	By      string     `json:"stopped_by"`
	Already bool       `json:"already,omitempty"`     // an earlier stop holds
	Leaving []Outgoing `json:"leaving"`               // the caller's entries that are on their way to a server; their outcome is not known yet
	Yours   bool       `json:"yours_alone,omitempty"` // it holds the caller alone, and not the others
	Others  int        `json:"leaving_of_others,omitempty"`
}

// Outgoing is an entry of the outbox that is under way.
type Outgoing struct {
	ID      string          `json:"outbox_id"`
	Account string          `json:"account_id"`
	Kind    mail.OutboxKind `json:"kind,omitempty" jsonschema:"enum=delete,enum=plan,enum=unsubscribe"` // empty for a message
}

// stop is Urgent: it does not wait for what it is to end.
func stop(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:    "stop",
		Summary: "Stop all",
		Details: "Of a client with a grant it stops that client alone. Nothing that reads, changes or sends mail begins any more, in any session or process, and what waits for mail ends. " +
			"The answer comes when that is so. It names the messages and deletions that were under way by then; 'outbox show' tells what becomes of them. " +
			"Only the administrator can go on, with 'resume'.",
		Effect:   discovery.State,
		Standing: true,
		Urgent:   true,
		Examples: []string{"stop"},
	}, func(ctx context.Context, call *discovery.Call, _ *struct{}) (StopResult, error) {
		stopped, again, err := d.Store.Stop(ctx, call.Principal)
		if err != nil {
			return StopResult{}, err
		}
		time.Sleep(vault.StopTime + stopMargin) // also for an earlier stop, whose caller may still be waiting
		r := StopResult{Since: answer.UTC(stopped.Since), By: stopped.By, Already: again, Yours: stopped.Only != nil, Leaving: []Outgoing{}}
		now := d.Now()
		entries, _, err := d.Outbox.List(ctx, mail.OutboxQuery{States: []mail.OutboxState{mail.OutboxUnknown}, Limit: mail.MaxOutboxLimit,
			Only: func(o *mail.Outgoing) bool { return o.Attempt != "" && now.Before(o.Until) }})
		for _, o := range entries {
			if call.Admin || mail.Owns(call.Principal, o.Principal) {
				r.Leaving = append(r.Leaving, Outgoing{o.ID, o.Account, o.Kind})
			} else {
				r.Others++
			}
		}
		return r, err
	})
}

// stopMargin is what a process may take between a look and what it then begins.
const stopMargin = 250 * time.Millisecond

// Summary implements discovery.Summarizer.
func (r StopResult) Summary() string {
	said, deletions := "Everything is stopped", 0
	if r.Yours {
		said = "You are stopped, and nobody else"
	}
	for _, o := range r.Leaving {
		if o.Kind == mail.OutboxDelete {
			deletions++
		}
	}
	if n := len(r.Leaving) - deletions; n > 0 {
		said += "; " + answer.Count(n, "message was", "messages were") + " leaving by then"
	}
	if deletions > 0 {
		said += "; " + answer.Count(deletions, "deletion was", "deletions were") + " under way by then"
	}
	if r.Others > 0 {
		said += "; of others " + answer.Count(r.Others, "entry of the outbox was", "entries of the outbox were") + " under way"
	}
	return said
}

// ResumeResult answers resume.
type ResumeResult struct {
	Since string `json:"stopped_since,omitempty" jsonschema:"format=date-time"` // of the stop that is over; empty where there was none
	By    string `json:"stopped_by,omitempty"`
}

func resume(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "resume",
		Summary:  "Let everything go on after 'stop'",
		Details:  "Commands run again at once, in every session. Those that the stop refused or ended are not repeated.",
		Effect:   discovery.Admin,
		Standing: true,
		Examples: []string{"resume"},
	}, func(ctx context.Context, _ *discovery.Call, _ *struct{}) (ResumeResult, error) {
		stopped, err := d.Store.Resume(ctx)
		if stopped == nil || err != nil {
			return ResumeResult{}, err
		}
		return ResumeResult{answer.UTC(stopped.Since), stopped.By}, nil
	})
}

// Summary implements discovery.Summarizer.
func (r ResumeResult) Summary() string {
	if r.Since == "" {
		return "Nothing was stopped"
	}
	return "Everything goes on"
}
