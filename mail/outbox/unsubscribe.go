package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/oneclick"
	"github.com/postern-mail/postern/mail/mailbox"
)

// Unsubscribed is what becomes of the lists of some messages.
type Unsubscribed struct {
	// Entry has the lists that are left by a request: done, waiting for a person, or what came of it.
	// nil for none.
	Entry *mail.Outgoing
	// Drafts ask to be taken off the lists that are left by mail alone. They are not sent.
	Drafts []UnsubscribeDraft
	Not    []NotUnsubscribed
}

// UnsubscribeDraft is a draft that asks to be taken off the list of a message.
type UnsubscribeDraft struct {
	Ref   mail.Ref // the message
	Saved *SavedDraft
}

// NotUnsubscribed is a message whose list is not left.
type NotUnsubscribed struct {
	Ref mail.Ref
	Why string // a sentence
}

// ForeseeUnsubscribe says, without a word to a server, whether leaving lists waits for a person.
func (b *Outbox) ForeseeUnsubscribe(ctx context.Context, account string) (*Decision, error) {
	o := mail.Operation{Op: "mail unsubscribe", Account: account}
	_, policy, err := o.LookUp(ctx, b.o.Directory)
	if err != nil {
		return nil, err
	}
	d := &Decision{Outgoing: mail.Outgoing{Kind: mail.OutboxUnsubscribe, Account: account, State: mail.OutboxQueued}}
	if policy.UnsubscribeNeedsApproval() {
		d.Wait()
	}
	return d, nil
}

// Unsubscribe leaves the lists of messages, each once, by the newest of its messages that are named:
// by the request of RFC 8058, at once or when a person said so, see
// Policy.UnsubscribeNeedsApproval; else by a draft. Where the same entry waits, is done, or did not
// come to its end, that is what it answers or goes on with, with Replayed; and so is one whose
// outcome is not known and that has one of the lists, of which nothing is asked again by itself.
// What it could not do for some messages is in Not; an error means that it did nothing.
func (b *Outbox) Unsubscribe(ctx context.Context, account string, refs []mail.Ref, principal string) (*Unsubscribed, error) {
	const op = "mail unsubscribe"
	d, err := b.ForeseeUnsubscribe(ctx, account)
	if err != nil {
		return nil, err
	}
	out, err := b.leaving(ctx, op, account, refs, principal, true)
	if err != nil {
		return nil, err
	}
	if e := out.Entry; e != nil {
		if out.Entry, err = b.leave(ctx, op, *e, d.Waits()); out.Entry == nil {
			return nil, err
		}
	}
	return out, err
}

// PlanUnsubscribe freezes which lists are left: of the messages that a search matches the newest of
// each sender of bulk mail. It is Plan otherwise. No draft is made: Issues name messages whose lists are
// left by mail alone, too.
func (b *Outbox) PlanUnsubscribe(ctx context.Context, account string, q mailbox.SearchQuery, principal string) (d *Decision, issues []mail.Issue, err error) {
	const op = "mail plan"
	o := mail.Operation{Op: op, Account: account}
	found, err := b.o.Mailboxes.Select(ctx, account, q, mail.Action{})
	if err != nil {
		return nil, nil, err
	}
	newest := map[string]*mailbox.Selected{}
	for i := range found.Messages {
		m := &found.Messages[i]
		if had := newest[addressKey(m.From.Addr)]; m.Bulk && (had == nil || m.Date.After(had.Date)) {
			newest[addressKey(m.From.Addr)] = m
		}
	}
	var refs []mail.Ref
	for _, m := range newest {
		refs = append(refs, m.Ref)
	}
	switch {
	case len(refs) == 0:
		return nil, nil, o.Failure(mail.KindNotFound, "search", "No message that matches is of a list.", mail.AdviceList)
	case len(refs) > mail.MaxUnsubscribed:
		return nil, nil, o.Invalid(fmt.Sprintf("They are of %d senders; at most %d lists are left at once.", len(refs), mail.MaxUnsubscribed), mail.AdviceNarrow)
	}
	out, err := b.leaving(ctx, op, account, refs, principal, false)
	switch {
	case err != nil:
		return nil, nil, err
	case out.Entry == nil:
		return nil, nil, o.Failure(mail.KindRefused, "search", "None of the lists can be left by a request. "+out.Not[0].Why, mail.AdviceMailProgram)
	}
	issues = found.Issues
	for _, n := range out.Not {
		issues = append(issues, mail.Issue{Kind: mail.KindUnsupported, Stage: "unsubscribe", MessageID: n.Ref.String(), Message: n.Why})
	}
	kept, _, err := b.o.Store.AddOutgoing(ctx, *out.Entry, nil)
	if err != nil {
		return nil, nil, wrapStore(ctx, op, err)
	}
	b.log(ctx, "plan made", &kept)
	d, err = b.ForeseeRun(ctx, kept.ID, principal)
	return d, issues, err
}

// foreseeLeaving is ForeseeRun for lists to leave. What may have been asked is asked again where a
// person approves it, and by nothing else.
func (b *Outbox) foreseeLeaving(ctx context.Context, d *Decision) error {
	if d.State == mail.OutboxUnknown {
		d.Step = StepNone
	}
	if d.Step == StepNone || d.Waits() {
		return nil
	}
	as, err := b.ForeseeUnsubscribe(ctx, d.Account)
	if err == nil && as.Waits() {
		d.Wait()
	}
	return err
}

// leaving sorts messages by how their lists are left, and makes the drafts. Its Entry is not kept yet.
func (b *Outbox) leaving(ctx context.Context, op, account string, refs []mail.Ref, principal string, drafts bool) (*Unsubscribed, error) {
	found, err := b.o.Mailboxes.Leaving(ctx, op, account, refs)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(found, func(x, y mailbox.Leaving) int {
		return cmp.Or(y.Date.Compare(x.Date), cmp.Compare(y.Ref.UID, x.Ref.UID))
	})
	now := b.now()
	out := &Unsubscribed{}
	e := &mail.Outgoing{ID: mail.NewID(now), Kind: mail.OutboxUnsubscribe, Account: account, Principal: principal, State: mail.OutboxQueued, Created: now, Changed: now, Sent: mail.SentNone}
	made := map[string]bool{}
	for i := range found {
		l := &found[i]
		key := l.Key
		if l.URI == "" && l.Letter != nil {
			key = "mailto " + l.Letter.To
		}
		switch {
		case l.URI == "" && (l.Letter == nil || !drafts):
			out.Not = append(out.Not, NotUnsubscribed{l.Ref, string(l.Why)})
		case made[key]:
		case l.URI != "":
			made[key] = true
			from := l.From[0] // the one that is Verified
			e.Unsubscribes = append(e.Unsubscribes, mail.Unsubscription{ID: l.Ref.String(), Date: l.Date.UTC().Round(0), Subject: shortLine(l.Subject, maxReason),
				From: mail.Address{Name: shortLine(from.Name, maxReason), Addr: shortLine(from.Addr, 2*maxReason)}, Leaving: mail.Leaving{List: l.List, Key: l.Key, URI: l.URI}})
		default:
			s, err := b.sender(ctx, op, account)
			if err != nil {
				return nil, err
			}
			saved, err := b.SaveDraft(ctx, account, Draft{To: []mail.Address{{Addr: l.Letter.To}}, Subject: l.Letter.Subject, Body: l.Letter.Body, As: s.addressed(l.Header)})
			if err != nil {
				reason := strings.TrimSuffix(strings.TrimPrefix(reasonOf(err), "nothing is sent: "), ".")
				out.Not = append(out.Not, NotUnsubscribed{l.Ref, string(l.Why) + " No draft of a letter to the list was made: " + reason + "."})
			} else {
				made[key], out.Drafts = true, append(out.Drafts, UnsubscribeDraft{l.Ref, saved})
			}
		}
	}
	if len(e.Unsubscribes) > mail.MaxUnsubscribed {
		return nil, mail.Operation{Op: op, Account: account}.Invalid(fmt.Sprintf("At most %d lists are left at once.", mail.MaxUnsubscribed), mail.AdviceSeveralCommands)
	}
	if len(e.Unsubscribes) > 0 {
		e.Digest = workOf(e.Kind).digest(e)
		out.Entry = e
	}
	return out, nil
}

// leave keeps an entry, and carries it out unless it waits.
func (b *Outbox) leave(ctx context.Context, op string, e mail.Outgoing, waits bool) (*mail.Outgoing, error) {
	keys := map[string]bool{}
	for _, l := range e.Unsubscribes {
		keys[l.Key] = true
	}
	had, _, err := b.List(ctx, mail.OutboxQuery{Account: e.Account, Principal: e.Principal, Limit: 1, Only: func(o *mail.Outgoing) bool {
		switch is := present(*o, b.now()); is.State {
		case mail.OutboxWaiting, mail.OutboxDone:
			return o.Digest == e.Digest
		case mail.OutboxQueued: // nothing was sent
			return o.Digest == e.Digest && !waits
		case mail.OutboxUnknown:
			return !o.Settled && slices.ContainsFunc(o.Unsubscribes, func(l mail.Unsubscription) bool {
				return keys[l.Key] && l.Outcome != mail.UnsubscribeDone && l.Outcome != mail.UnsubscribeRefused
			})
		}
		return false
	}})
	switch {
	case err != nil:
		return nil, wrapStore(ctx, op, err)
	case len(had) > 0 && had[0].State != mail.OutboxQueued:
		had[0].Replayed = true
		return &had[0], nil
	case len(had) > 0:
		e = had[0]
	default:
		if err := b.take(ctx, e.Principal, true); err != nil {
			return nil, wrapStore(ctx, op, err)
		}
		if waits {
			e.Wait()
			return b.hold(ctx, op, e, nil)
		}
		if e, _, err = b.o.Store.AddOutgoing(ctx, e, nil); err != nil {
			return nil, wrapStore(ctx, op, err)
		}
	}
	return b.attempt(ctx, op, e.ID, func(e *mail.Outgoing) error {
		if e.State != mail.OutboxQueued {
			return errNotHeld
		}
		return nil
	})
}

// shownUnsubscription is everything of lists to leave that a person is shown, and the requests.
func shownUnsubscription(e *mail.Outgoing) any {
	lists := slices.Clone(e.Unsubscribes)
	for i := range lists {
		lists[i].Outcome, lists[i].Reason = "", ""
	}
	return []any{"unsubscribe", e.Account, lists}
}

// requestsAtOnce are how many servers are asked at the same time.
const requestsAtOnce = 8

// unsubscribe makes the requests of an entry of which it is not known that they were answered. Each
// is unknown, and that is kept, before anything of it leaves.
func (b *Outbox) unsubscribe(ctx context.Context, op string, e *mail.Outgoing, a attempt) (t tally, failed error) {
	o := mail.Operation{Op: op, Account: e.Account}
	if _, _, err := o.LookUp(ctx, b.o.Directory); err != nil {
		return t, err
	}
	lists := slices.Clone(e.Unsubscribes)
	write := func(e *mail.Outgoing) { e.Unsubscribes = slices.Clone(lists) }
	var own sync.Mutex // of lists, failed and refused
	var refused error
	var all errgroup.Group
	all.SetLimit(requestsAtOnce)
	for i := range lists {
		l := &lists[i]
		if l.Outcome == mail.UnsubscribeDone || l.Outcome == mail.UnsubscribeRefused {
			continue
		}
		all.Go(func() error {
			own.Lock()
			defer own.Unlock()
			if failed = cmp.Or(failed, b.mayAsk(ctx)); failed != nil {
				return nil
			}
			before := *l
			l.Outcome, l.Reason = mail.UnsubscribeUnknown, "its server may have been asked, and no answer was kept"
			if _, failed = b.record(ctx, e.ID, func(e *mail.Outgoing) (bool, error) {
				if e.Attempt != a.id || e.Ended() {
					return false, errNotHeld
				}
				write(e)
				return false, nil
			}); failed != nil {
				*l = before
				return nil
			}
			own.Unlock()
			err := b.o.Requests.Post(unstoppable(ctx), l.URI)
			own.Lock()
			var no *oneclick.Refused
			var unanswered *oneclick.Unanswered
			switch {
			case err == nil:
				l.Outcome, l.Reason = mail.UnsubscribeDone, ""
				return nil
			case errors.As(err, &no):
				l.Outcome = mail.UnsubscribeRefused
			case !errors.As(err, &unanswered):
				l.Outcome = cmp.Or(before.Outcome, mail.UnsubscribeUnsent) // an attempt before may have asked
				if errors.Is(err, oneclick.ErrPrivate) {
					err = oneclick.ErrPrivate
				}
				e := o.Failure(mail.KindConnection, "connect", "Nothing was asked of "+l.Host()+": "+shortLine(err.Error(), maxReason)+".", mail.AdviceTryLater)
				e.Retryable = !errors.Is(err, oneclick.ErrPrivate)
				if !e.Retryable {
					e.Kind, e.Advice = mail.KindConflict, mail.AdviceMailProgram
				}
				refused = e
			}
			l.Reason = shortLine(err.Error(), maxReason)
			return nil
		})
	}
	_ = all.Wait() // none of them returns an error
	for _, l := range lists {
		switch l.Outcome {
		case mail.UnsubscribeDone:
			t.done++
		case mail.UnsubscribeRefused, mail.UnsubscribeUnsent:
			t.left++
		default:
			t.unknown++
		}
		t.tried = t.tried || l.Outcome != "" && l.Outcome != mail.UnsubscribeUnsent
	}
	t.write = write
	if !t.tried {
		return t, cmp.Or(failed, refused)
	}
	return t, failed
}

// mayAsk returns why nothing more is asked, or nil.
func (b *Outbox) mayAsk(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if s, ok := b.o.Directory.(mail.Stopper); ok {
		return s.MayBegin(ctx)
	}
	return nil
}
