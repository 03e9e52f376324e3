package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/outbox"
)

type mailListArgs struct {
	argument.AccountsOption
	Folder      string             `json:"folder,omitempty" acli:"form=folder" jsonschema_description:"Folder to list; INBOX if left out"`
	Unread      bool               `json:"unread,omitempty" jsonschema_description:"Unread ones"`
	New         bool               `json:"new,omitempty" acli:"with=mail ack" jsonschema_description:"Ones not acknowledged with 'mail ack'"`
	Since       discovery.Datetime `json:"since,omitempty" acli:"also=start-date|start|from-date|date-from|today|on" jsonschema:"example=2026-02-02" jsonschema_description:"From then on, or from the start of that day"`
	Until       discovery.Datetime `json:"until,omitempty" acli:"also=end-date|end|to-date|date-to" jsonschema:"example=2026-02-07" jsonschema_description:"Before then, or to the end of that day"`
	Before      []string           `json:"before,omitempty" acli:"form=message" jsonschema:"maxItems=50,minLength=1,maxLength=600" jsonschema_description:"Ones before this; with --account all one of each account"`
	After       []string           `json:"after,omitempty" acli:"form=message,rare" jsonschema:"maxItems=50,minLength=1,maxLength=600" jsonschema_description:"Ones after this"`
	Snippet     int                `json:"snippet,omitempty" acli:"form=snippet,value=N" jsonschema_description:"Also the opening of what is new in each text, so many characters"`
	Limit       int                `json:"limit,omitempty" acli:"form=list_limit,short=n,also=max-results|count|page-size" jsonschema_description:"At most this many"`
	OldestFirst bool               `json:"oldest-first,omitempty" acli:"rare" jsonschema_description:"Start with the oldest instead of the newest"`

	before, after []mail.Ref // that Before and After name, since Validate
}

// Validate checks what one option alone cannot, and reads the messages to go on from.
func (a *mailListArgs) Validate() (err error) {
	if !a.Since.IsZero() && !a.Until.IsZero() && !a.until().After(a.Since.Time) {
		return errors.New("--until is not after --since")
	}
	if a.before, err = anchors(a.AccountsOption, "--before", a.Before, a.Folder); err != nil {
		return err
	}
	if a.after, err = anchors(a.AccountsOption, "--after", a.After, a.Folder); err != nil {
		return err
	}
	for _, b := range a.before {
		for _, c := range a.after {
			switch sole := b.Account == "" || c.Account == "" || b.Account == c.Account; {
			case !sole && a.OnAll():
			case !sole, !c.Precedes(b):
				return errors.New("nothing can lie between --before and --after")
			case !sameFolder(b.Folder, c.Folder):
				return errors.New("the messages of --before and --after are in different folders")
			}
		}
	}
	return nil
}

// anchors reads the ids of an option that names messages to go on from: one, or with all
// accounts one of each.
func anchors(o argument.AccountsOption, option string, ids []string, folder string) ([]mail.Ref, error) {
	refs := make([]mail.Ref, len(ids))
	for i, id := range ids {
		r, err := argument.ParseID(id)
		switch {
		case err != nil:
			return nil, argument.MalformedID("The message id of "+option, err)
		case i > 0 && (!o.OnAll() || slices.ContainsFunc(refs[:i], func(other mail.Ref) bool { return other.Account == r.Account })):
			return nil, fmt.Errorf("%s names two messages of one account", option)
		case o.Account != "" && !o.OnAll() && r.Account != "" && r.Account != o.Account:
			return nil, fmt.Errorf("the message id of %s belongs to another account than --account", option)
		case r.Folder != "" && (folder != "" && !sameFolder(r.Folder, folder) || i > 0 && refs[0].Folder != "" && !sameFolder(r.Folder, refs[0].Folder)):
			f := &discovery.Fault{Code: discovery.ValidationError, Message: fmt.Sprintf("The message id of %s belongs to another folder than --folder.", option)}
			if i == 0 && !strings.ContainsAny(id, "/:") {
				meant := r
				meant.Folder = folder
				f.Hint = fmt.Sprintf("%s is a message of INBOX; did you mean %s?", id, meant.Short(false))
			}
			return nil, f
		}
		refs[i] = r
	}
	return refs, nil
}

// folderOf is the folder to list: as given, else that of a message to go on from, else INBOX.
func folderOf(given string, anchors ...mail.Ref) string {
	for _, r := range anchors {
		given = cmp.Or(given, r.Folder)
	}
	return cmp.Or(given, "INBOX")
}

// OnAccount is the account of the option, else of the message to go on from.
func (a *mailListArgs) OnAccount() string {
	for _, r := range slices.Concat(a.before, a.after) {
		if a.Account == "" && r.Account != "" {
			return r.Account
		}
	}
	return a.Account
}

// until is the first instant that is too late.
func (a *mailListArgs) until() time.Time {
	if a.Until.DateOnly {
		return a.Until.AddDate(0, 0, 1)
	}
	return a.Until.Time
}

// MailListResult answers mail list (001 section 4, 000 section 7.1).
type MailListResult struct {
	answer.Outcome
	Account     string `json:"account_id"`
	Folder      string `json:"folder" acli:"untrusted"`
	UIDValidity uint32 `json:"uidvalidity,omitempty"`
	UIDNext     uint32 `json:"uid_next,omitempty"`
	pageResult
	whole string // the command that lists the whole folder; empty where this one does
}

func mailList(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:    "mail list",
		Also:    []string{"inbox", "ls", "dir", "unread", "new", "recent", "latest", "sent"},
		Forms:   bounds,
		Summary: "Newest first",
		Details: "Listing changes nothing: unread messages stay unread. Subjects and names of over 120 characters end with '…'. With --account all the folder of each account, merged by date. " +
			"An account read with POP3 has only INBOX, in the server's order, without flags; there --since and --until compare the Date field.",
		Effect:   discovery.Read,
		Examples: []string{"mail list --unread --limit 20", "mail list --folder Sent --snippet 120", "mail list --since 2026-02-01 --until 2026-02-07"},
	}, func(ctx context.Context, call *discovery.Call, args *mailListArgs) (*MailListResult, error) {
		folder := folderOf(args.Folder, slices.Concat(args.before, args.after)...)
		call.Target = folder
		before, after, names, all, err := d.listFrom(ctx, call, args)
		if err != nil {
			return nil, err
		}
		pages, failed, err := eachAccount(ctx, names, func(ctx context.Context, name string) (accountPage, error) {
			q := mailbox.ListQuery{Folder: folder, New: args.New, Unread: args.Unread, Before: before[name], After: after[name], Since: args.Since.Time, Until: args.until(),
				Limit: args.Limit, OldestFirst: args.OldestFirst, Snippet: args.Snippet, Full: call.Full}
			page, err := d.Mailboxes.List(ctx, name, q)
			if err != nil {
				return accountPage{}, err
			}
			p := accountPage{Page: *page, account: name, from: q.Before, beyond: page.Next}
			if args.OldestFirst {
				p.from = q.After
			}
			return p, nil
		})
		if err != nil {
			return nil, err
		}
		r := &MailListResult{Account: names[0], Folder: folder, pageResult: pageResult{now: d.nowMinute(), more: args.more(call)}}
		if args.New || args.Unread || !args.Since.IsZero() || !args.Until.IsZero() || len(args.before)+len(args.after) > 0 {
			whole := mailListArgs{AccountsOption: argument.AccountsOption{Account: args.OnAccount()}, Limit: args.Limit}
			if folder != "INBOX" {
				whole.Folder = folder
			}
			r.whole = call.Again(&whole)
		}
		if args.Unread {
			r.implied = []mailbox.Mark{mailbox.Unread}
		}
		list := r.merge(pages, args.Limit, args.OldestFirst)
		r.Outcome = outcomeOf(pages, d.shown(ctx, call, r.refs(list)...), failed)
		if r.Messages = entriesOf(list); all {
			r.Account = argument.AllAccounts
		} else {
			p := pages[0]
			r.Folder, r.UIDValidity, r.UIDNext = p.Folder, p.UIDValidity, p.UIDNext
		}
		switch {
		case r.HasMore:
			r.NextAction = r.next(mail.Ref.String)
		case len(list) > 0:
			r.NextAction = answer.Next("Read the first of them", "mail", "get", list[0].Ref.String())
		}
		return r, nil
	})
}

// listFrom resolves the accounts to list and the messages to go on from.
func (d *Deps) listFrom(ctx context.Context, call *discovery.Call, args *mailListArgs) (before, after map[string]mail.Ref, names []string, all bool, err error) {
	if before, after, err = d.anchors(ctx, call, args.AccountsOption, args.before, args.after); err == nil {
		names, all, err = d.accounts(ctx, call, argument.AccountsOption{Account: cmp.Or(args.Account, soleKey(before), soleKey(after))})
	}
	return before, after, names, all, err
}

func (a *mailListArgs) foresee(ctx context.Context, d *Deps, call *discovery.Call) (*outbox.Decision, error) {
	_, _, _, _, err := d.listFrom(ctx, call, a)
	return nil, err
}

// anchors resolves the messages to go on from, and returns them by account.
func (d *Deps) anchors(ctx context.Context, call *discovery.Call, o argument.AccountsOption, lists ...[]mail.Ref) (before, after map[string]mail.Ref, err error) {
	account := o.Account
	if o.OnAll() {
		account = "" // each id has to name its own
	}
	var by [2]map[string]mail.Ref
	for i, list := range lists {
		refs, err := d.resolve(ctx, call, account, list)
		if err != nil {
			return nil, nil, err
		}
		by[i] = map[string]mail.Ref{}
		for _, r := range refs {
			by[i][r.Account] = r
		}
	}
	return by[0], by[1], nil
}

// soleKey is the account of the only message, empty for none.
func soleKey(at map[string]mail.Ref) (account string) {
	for account = range at {
	}
	return account
}

// outcomeOf is the outcome of the pages of accounts, and of those that failed.
func outcomeOf(pages []accountPage, ids *answer.IDs, failed []answer.Issue) answer.Outcome {
	var issues []mail.Issue
	for _, p := range pages {
		issues = append(issues, p.Issues...)
	}
	o := answer.OutcomeOf(append(issues, ids.Issues...), true)
	o.IDs = ids
	if o.Issues = append(o.Issues, failed...); len(failed) > 0 {
		o.Status = mail.StatusPartial
	}
	return o
}

// more makes the next action that lists what comes behind a page; nil where the bounds
// leave nothing there. The ids of the messages it goes on from name account and folder.
func (a *mailListArgs) more(call *discovery.Call) func(at []mail.Ref, id func(mail.Ref) string) *answer.NextAction {
	again := call.Again
	return func(at []mail.Ref, id func(mail.Ref) string) *answer.NextAction {
		following := *a
		ids := make([]string, len(at))
		for i, r := range at {
			ids[i] = id(r)
		}
		if following.Folder = ""; !a.OnAll() {
			following.Account = ""
		}
		if a.OldestFirst {
			following.After = ids
		} else {
			following.Before = ids
		}
		if len(at) == 0 || following.Validate() != nil {
			return nil
		}
		return answer.NextLine("List the next page", again(&following))
	}
}

// Brief is the answer without --full.
func (r *MailListResult) Brief() pageBrief {
	b := r.brief(r.Folder, &r.Outcome, r.HasMore)
	if len(r.Messages) == 0 && len(r.Issues) == 0 {
		if b.Hint = "Nothing here. 'mail folders --counts' shows where messages are."; r.whole != "" {
			b.Hint = "Nothing of that kind. '" + r.whole + "' shows the newest."
		}
	}
	return b
}

// Summary implements discovery.Summarizer.
func (r *MailListResult) Summary() string { return r.WithIssues(r.counted()) }

// Truncate implements discovery.Truncator.
func (r *MailListResult) Truncate(fraction float64) bool { return r.truncate(&r.Outcome, fraction) }
