package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

type mailListArgs struct {
	AccountOption
	Folder      string             `json:"folder,omitempty" acli:"form=folder" jsonschema:"default=INBOX" jsonschema_description:"Folder to list"`
	New         bool               `json:"new,omitempty" jsonschema_description:"Only messages that were not acknowledged with 'mail ack'"`
	Unread      bool               `json:"unread,omitempty" jsonschema_description:"Only messages without the \\Seen flag"`
	BeforeUID   uint32             `json:"before-uid,omitempty" jsonschema:"minimum=1,maximum=4294967295" jsonschema_description:"Only messages with a smaller UID"`
	AfterUID    uint32             `json:"after-uid,omitempty" jsonschema:"minimum=1,maximum=4294967295" jsonschema_description:"Only messages with a greater UID"`
	Before      string             `json:"before,omitempty" acli:"form=message" jsonschema:"minLength=1,maxLength=600" jsonschema_description:"Only messages that came before this one, by its id"`
	After       string             `json:"after,omitempty" acli:"form=message" jsonschema:"minLength=1,maxLength=600" jsonschema_description:"Only messages that came after this one, by its id"`
	Since       discovery.Datetime `json:"since,omitempty" jsonschema:"example=2026-02-02" jsonschema_description:"Only messages from then on; a date alone means the start of that day in the zone of 'config timezone'"`
	Until       discovery.Datetime `json:"until,omitempty" jsonschema:"example=2026-02-07" jsonschema_description:"Only messages before then; a date alone includes that whole day in the zone of 'config timezone'"`
	Limit       int                `json:"limit,omitempty" acli:"short=n" jsonschema:"minimum=1,maximum=500,default=50" jsonschema_description:"At most this many"`
	OldestFirst bool               `json:"oldest-first,omitempty" jsonschema_description:"Start with the oldest instead of the newest"`

	before, after mail.Ref // that Before and After name, of one account and the folder to list
}

// Validate checks what one option alone cannot, and reads the messages to go on from.
func (a *mailListArgs) Validate() error {
	switch {
	case a.BeforeUID != 0 && a.AfterUID != 0 && a.BeforeUID-1 <= a.AfterUID:
		return errors.New("no UID is greater than --after-uid and smaller than --before-uid")
	case !a.Since.IsZero() && !a.Until.IsZero() && !a.until().After(a.Since.Time):
		return errors.New("--until is not after --since")
	}
	a.before, a.after = mail.Ref{}, mail.Ref{}
	for _, n := range []struct {
		option, id string
		to         *mail.Ref
	}{{"--before", a.Before, &a.before}, {"--after", a.After, &a.after}} {
		if n.id == "" {
			continue
		}
		r, err := parseID(n.id)
		switch {
		case err != nil:
			return malformedID("The message id of "+n.option, err)
		case a.Account != "" && r.Account != "" && r.Account != a.Account:
			return fmt.Errorf("the message id of %s belongs to another account than --account", n.option)
		case r.Protocol == mail.IMAP && !sameFolder(r.Folder, a.Folder):
			return fmt.Errorf("the message id of %s belongs to another folder than --folder", n.option)
		}
		*n.to = r
	}
	if a.Before != "" && a.After != "" && (a.before == a.after || a.before.Account != "" && a.after.Account != "" && a.before.Account != a.after.Account || a.before.Protocol != a.after.Protocol) {
		return errors.New("nothing can lie between --before and --after")
	}
	return nil
}

// onAccount is the account of the option, else of the messages to go on from.
func (a *mailListArgs) onAccount() string {
	return cmp.Or(a.Account, a.before.Account, a.after.Account)
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
	Outcome
	Account     string `json:"account_id"`
	Folder      string `json:"folder"`
	UIDValidity uint32 `json:"uidvalidity,omitempty"`
	UIDNext     uint32 `json:"uid_next,omitempty"`
	pageResult
}

func mailList(d *Deps) *discovery.Command {
	return newCommand(discovery.Spec{
		Path:    "mail list",
		Summary: "List messages of a folder, newest first",
		Details: "Listing changes nothing: unread messages stay unread. " + compactDetails +
			" An account read with POP3 has only INBOX, in the server's order, without UIDs and flags: page with --before and --after. There --since and --until compare the Date field of a message.",
		Effect:   discovery.Read,
		Examples: []string{"mail list --limit 20", "mail list --folder INBOX --unread", "mail list --since 2026-02-01 --until 2026-02-07"},
	}, func(ctx context.Context, call *discovery.Call, args *mailListArgs) (*MailListResult, error) {
		call.Target = args.Folder
		anchors, err := d.resolve(ctx, call, args.Account, []mail.Ref{args.before, args.after})
		if err != nil {
			return nil, err
		}
		args.before, args.after = anchors[0], anchors[1]
		name, err := d.account(ctx, call, AccountOption{args.onAccount()})
		if err != nil {
			return nil, err
		}
		q := mailbox.ListQuery{Folder: args.Folder, New: args.New, Unread: args.Unread, BeforeUID: args.BeforeUID, AfterUID: args.AfterUID, Before: args.before, After: args.after,
			Since: args.Since.Time, Until: args.until(), Limit: args.Limit, OldestFirst: args.OldestFirst, Full: call.Full}
		page, err := d.Mailboxes.List(mail.WithProgress(ctx, call.Progress), name, q)
		if err != nil {
			return nil, err
		}
		ids := d.shown(ctx, call, refsOf(page.Messages)...)
		r := &MailListResult{Outcome: outcome(append(page.Issues, ids.Issues...), true), Account: name, Folder: page.Folder, UIDValidity: page.UIDValidity,
			UIDNext: page.UIDNext, pageResult: pageResult{HasMore: page.HasMore, more: args.more(call, name)}}
		last := page.Next
		if last == (mail.Ref{}) {
			last.UID = lastUID(page, args.OldestFirst)
		}
		r.suggest(last, page.Messages)
		r.Messages = entriesOf(page.Messages, call.Full, call)
		return r, nil
	})
}

// more makes the next action that lists what comes behind a message: one with a
// UID is named by that; nil where the bounds leave nothing there.
func (a *mailListArgs) more(call *discovery.Call, account string) func(mail.Ref) *NextAction {
	again := call.Again
	return func(last mail.Ref) *NextAction {
		following := *a
		following.Account = account
		switch named := last.Protocol == mail.POP3; {
		case named && a.OldestFirst:
			following.After = last.String()
		case named:
			following.Before = last.String()
		case a.OldestFirst:
			following.AfterUID = last.UID
		default:
			following.BeforeUID = last.UID
		}
		if last.UID == 0 && last.UIDL == "" || following.Validate() != nil {
			return nil
		}
		return nextLine("List the next page", again(&following))
	}
}

// lastUID is how far a page came: to its last message, or to one behind it that
// could not be read.
func lastUID(p *mailbox.Page, oldestFirst bool) uint32 {
	var last uint32
	reach := func(uid uint32) {
		if uid != 0 && (last == 0 || oldestFirst && uid > last || !oldestFirst && uid < last) {
			last = uid
		}
	}
	for i := range p.Messages {
		reach(p.Messages[i].Ref.UID)
	}
	for _, i := range p.Issues {
		reach(i.UID)
	}
	return last
}

// suggest sets the next action: the next page, else the first message.
func (r *MailListResult) suggest(last mail.Ref, list []mailbox.Summary) {
	switch {
	case r.HasMore:
		r.NextAction = r.more(last)
	case !r.HasMore && len(list) > 0:
		r.NextAction = next("Read the first of them", "mail", "get", list[0].Ref.String())
	}
}

// Summary implements discovery.Summarizer.
func (r *MailListResult) Summary() string { return r.withIssues(r.counted()) }

// Truncate implements discovery.Truncator.
func (r *MailListResult) Truncate(fraction float64) bool { return r.truncate(&r.Outcome, fraction) }
