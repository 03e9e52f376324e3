package commands

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/outbox"
)

type mailWatchArgs struct {
	argument.AccountsOption
	Folder  string   `json:"folder,omitempty" acli:"form=folder" jsonschema_description:"Folder to watch; INBOX if left out"`
	Wait    string   `json:"wait,omitempty" acli:"form=wait,value=50s" jsonschema:"default=50s" jsonschema_description:"Answer with an empty list after this long: 500ms, 30s or 4m, at most 290s"`
	From    string   `json:"from,omitempty" acli:"form=line,rare" jsonschema:"minLength=1,maxLength=256" jsonschema_description:"Only messages with this in the sender"`
	Subject string   `json:"subject,omitempty" acli:"form=line,rare" jsonschema:"minLength=1,maxLength=256" jsonschema_description:"Only messages with this in the subject"`
	After   []string `json:"after,omitempty" acli:"form=message,rare" jsonschema:"maxItems=50,minLength=1,maxLength=600" jsonschema_description:"Messages behind this one, at once if there are any, in place of those that arrive from now on; 0 is the beginning of INBOX"`
	Limit   int      `json:"limit,omitempty" acli:"form=list_limit,short=n,rare" jsonschema_description:"At most this many"`

	wait  time.Duration // since Validate
	after []mail.Ref    // since Validate; UID 0 is the beginning of a folder
}

// Validate checks what one option alone cannot, and reads the ids.
func (a *mailWatchArgs) Validate() (err error) {
	if a.wait, err = argument.ParseWait(a.Wait); err != nil {
		return err
	}
	// The beginning of a folder is no message, and has a place in its ids all the same.
	ids := slices.Clone(a.After)
	for i, id := range ids {
		if atBeginning(id) {
			ids[i] = strings.TrimSuffix(id, "0") + "1"
		}
	}
	a.after, err = anchors(a.AccountsOption, "--after", ids, a.Folder)
	for i := range a.after {
		if atBeginning(a.After[i]) {
			a.after[i].UID = 0
		}
	}
	return err
}

// atBeginning reports whether an id has the UID 0.
func atBeginning(id string) bool {
	place, ok := strings.CutSuffix(id, "0")
	return ok && (place == "" || strings.HasSuffix(place, "/") || strings.HasSuffix(place, ":"))
}

// OnAccount is the account of the option, else of the message to go on from.
func (a *mailWatchArgs) OnAccount() string {
	if a.Account == "" && len(a.after) > 0 {
		return a.after[0].Account
	}
	return a.Account
}

func (a *mailWatchArgs) foresee(ctx context.Context, d *Deps, call *discovery.Call) (*outbox.Decision, error) {
	_, _, _, err := d.watchFrom(ctx, call, a)
	return nil, err
}

// matches reports whether a message is one to wait for.
func (a *mailWatchArgs) matches(s *mailbox.Summary) bool {
	holds := func(text, part string) bool { return strings.Contains(strings.ToLower(text), strings.ToLower(part)) }
	return holds(answer.People(s.From), a.From) && holds(s.Subject, a.Subject)
}

// MailWatchResult answers mail watch: what arrived, as mail list shows it, the
// oldest first.
type MailWatchResult struct {
	answer.Outcome
	Account     string `json:"account_id"`
	Folder      string `json:"folder" acli:"untrusted"`
	UIDValidity uint32 `json:"uidvalidity,omitempty"`
	pageResult
}

func mailWatch(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:    "mail watch",
		Also:    []string{"wait", "poll", "idle", "monitor"},
		Forms:   bounds,
		Summary: "Wait for mail",
		Details: "It ends with the first message that matches, or with an empty list after --wait. Run the command in 'more' to go on from there: it misses nothing that came in between. " +
			"Other commands can run meanwhile. A server without IDLE is asked every 15 s.",
		Effect:   discovery.Read,
		Timeout:  300,
		Examples: []string{"mail watch", "mail watch --from @example.org --wait 4m", "mail watch --wait 30s"},
	}, func(ctx context.Context, call *discovery.Call, args *mailWatchArgs) (*MailWatchResult, error) {
		folder := folderOf(args.Folder, args.after...)
		call.Target = folder
		after, names, all, err := d.watchFrom(ctx, call, args)
		if err != nil {
			return nil, err
		}
		q := mailbox.WatchQuery{Folder: folder, Limit: args.Limit, Full: call.Full}
		if args.From+args.Subject != "" {
			q.Match = args.matches
		}
		aside := call.Aside
		if !all {
			q.Aside, aside = call.Aside, func(ctx context.Context, wait func(context.Context) error) error { return wait(ctx) }
		}
		var pages []accountPage
		var failed []answer.Issue
		err = aside(ctx, func(ctx context.Context) (err error) {
			pages, failed, err = d.watchEach(ctx, names, after, q, args.wait)
			return err
		})
		if err != nil {
			return nil, err
		}
		r := &MailWatchResult{Account: names[0], Folder: folder, pageResult: pageResult{now: d.nowMinute(), more: args.more(call)}}
		list := r.merge(pages, args.Limit, true)
		r.Outcome = outcomeOf(pages, d.shown(ctx, call, r.refs(list)...), failed)
		if r.Messages = entriesOf(list); all {
			r.Account = argument.AllAccounts
		} else {
			r.Folder, r.UIDValidity = pages[0].Folder, pages[0].UIDValidity
		}
		r.NextAction = r.next(mail.Ref.String)
		return r, nil
	})
}

// watchFrom resolves the accounts to watch and the messages to go on from.
func (d *Deps) watchFrom(ctx context.Context, call *discovery.Call, args *mailWatchArgs) (after map[string]mail.Ref, names []string, all bool, err error) {
	messages := slices.DeleteFunc(slices.Clone(args.after), func(r mail.Ref) bool { return r.UID == 0 && r.Protocol == mail.IMAP })
	after, _, err = d.anchors(ctx, call, args.AccountsOption, messages, nil)
	if err != nil {
		return nil, nil, false, err
	}
	names, all, err = d.accounts(ctx, call, argument.AccountsOption{Account: cmp.Or(args.OnAccount(), soleKey(after))})
	for _, r := range args.after {
		if r.UID == 0 && err == nil && r.Protocol == mail.IMAP {
			r.Account = cmp.Or(r.Account, names[0])
			after[r.Account] = r
		}
	}
	return after, names, all, err
}

// watchEach watches a folder of each account until something arrives in one of them.
func (d *Deps) watchEach(ctx context.Context, names []string, after map[string]mail.Ref, q mailbox.WatchQuery, wait time.Duration) ([]accountPage, []answer.Issue, error) {
	arrived := make(chan struct{})
	var once sync.Once
	q.Stop = arrived
	return eachAccount(ctx, names, func(ctx context.Context, name string) (accountPage, error) {
		q := q
		from, given := after[name]
		q.FromNow, q.After, q.Until = !given, from, argument.WaitUntil(ctx, wait)
		page, err := d.Mailboxes.Watch(ctx, name, q)
		if err != nil {
			return accountPage{}, err
		}
		p := accountPage{Page: page.Page, account: name, from: page.From, beyond: page.After}
		if len(page.Messages)+len(page.Issues) > 0 {
			once.Do(func() { close(arrived) })
		}
		return p, nil
	})
}

// more makes the next action, which watches behind the positions.
func (a *mailWatchArgs) more(call *discovery.Call) func(at []mail.Ref, id func(mail.Ref) string) *answer.NextAction {
	again := call.Again
	return func(at []mail.Ref, id func(mail.Ref) string) *answer.NextAction {
		following := *a
		following.After = make([]string, len(at))
		for i, r := range at {
			following.After[i] = id(r)
		}
		if following.Folder = ""; !a.OnAll() {
			following.Account = ""
		}
		return answer.NextLine("Go on waiting behind these", again(&following))
	}
}

// Brief is the answer without --full.
func (r *MailWatchResult) Brief() pageBrief { return r.brief(r.Folder, &r.Outcome, true) }

// Summary implements discovery.Summarizer.
func (r *MailWatchResult) Summary() string {
	if len(r.Messages) == 0 {
		return r.WithIssues("Nothing arrived")
	}
	return r.WithIssues(r.counted())
}

// Truncate implements discovery.Truncator.
func (r *MailWatchResult) Truncate(fraction float64) bool { return r.truncate(&r.Outcome, fraction) }
