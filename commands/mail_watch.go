package commands

import (
	"context"
	"errors"
	"time"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

type mailWatchArgs struct {
	AccountOption
	Folder      string `json:"folder,omitempty" acli:"form=folder" jsonschema:"default=INBOX" jsonschema_description:"Folder to watch"`
	AfterUID    int64  `json:"after-uid,omitempty" jsonschema:"minimum=-1,maximum=4294967295,default=-1" jsonschema_description:"Messages with a greater UID, at once if there are any; -1 means messages that arrive from now on"`
	UIDValidity uint32 `json:"uidvalidity,omitempty" acli:"requires=after-uid" jsonschema:"minimum=1,maximum=4294967295" jsonschema_description:"UIDVALIDITY that --after-uid belongs to; CONFLICT when the folder has another one by now"`
	Wait        string `json:"wait,omitempty" acli:"form=wait" jsonschema:"default=50s" jsonschema_description:"Answer with an empty list after this long: 500ms, 30s or 4m, at most 290s"`
	Limit       int    `json:"limit,omitempty" acli:"short=n" jsonschema:"minimum=1,maximum=500,default=50" jsonschema_description:"At most this many"`

	wait time.Duration // since Validate
}

// Validate checks what one option alone cannot.
func (a *mailWatchArgs) Validate() (err error) {
	if a.UIDValidity != 0 && a.AfterUID < 0 {
		return errors.New("--uidvalidity is for an --after-uid that is a UID")
	}
	a.wait, err = parseWait(a.Wait)
	return err
}

// MailWatchResult answers mail watch: what arrived, as mail list shows it, the
// oldest first.
type MailWatchResult struct {
	Outcome
	Account     string `json:"account_id"`
	Folder      string `json:"folder"`
	UIDValidity uint32 `json:"uidvalidity"`
	pageResult
}

func mailWatch(d *Deps) *discovery.Command {
	return newCommand(discovery.Spec{
		Path:    "mail watch",
		Summary: "Wait until a message arrives, and list the new messages",
		Details: "It ends with the first visible message, or with an empty list after --wait. The next_action continues where this one ended, so that no message in between is missed. " +
			"Other commands can run meanwhile. A server without IDLE is asked every 15 s. " + compactDetails,
		Effect:   discovery.Read,
		Timeout:  300,
		Examples: []string{"mail watch", "mail watch --folder INBOX --wait 4m", "mail watch --after-uid 4711 --uidvalidity 7 --wait 30s"},
	}, func(ctx context.Context, call *discovery.Call, args *mailWatchArgs) (*MailWatchResult, error) {
		name, err := d.account(ctx, call, args.AccountOption)
		if err != nil {
			return nil, err
		}
		call.Target = args.Folder
		q := mailbox.WatchQuery{Folder: args.Folder, FromNow: args.AfterUID < 0, AfterUID: uint32(max(args.AfterUID, 0)), UIDValidity: args.UIDValidity,
			Limit: args.Limit, Full: call.Full, Until: waitUntil(ctx, args.wait), Aside: call.Aside}
		page, err := d.Mailboxes.Watch(mail.WithProgress(ctx, call.Progress), name, q)
		if err != nil {
			return nil, err
		}
		ids := d.shown(ctx, call, refsOf(page.Messages)...)
		r := &MailWatchResult{Outcome: outcome(append(page.Issues, ids.Issues...), true), Account: name, Folder: page.Folder, UIDValidity: page.UIDValidity,
			pageResult: pageResult{HasMore: page.HasMore}}
		r.more = args.more(call, name, r)
		r.NextAction = r.more(mail.Ref{UID: page.After})
		r.Messages = entriesOf(page.Messages, call.Full, call)
		return r, nil
	})
}

// more makes the next action, which watches behind a message.
func (a *mailWatchArgs) more(call *discovery.Call, account string, r *MailWatchResult) func(mail.Ref) *NextAction {
	again := call.Again
	return func(last mail.Ref) *NextAction {
		following := *a
		following.Account, following.AfterUID, following.UIDValidity = account, int64(last.UID), r.UIDValidity
		instruction := "Wait for the next message"
		if r.HasMore {
			instruction = "List the next ones"
		}
		return nextLine(instruction, again(&following))
	}
}

// Summary implements discovery.Summarizer.
func (r *MailWatchResult) Summary() string {
	if len(r.Messages) == 0 {
		return r.withIssues("Nothing arrived")
	}
	return r.withIssues(r.counted())
}

// Truncate implements discovery.Truncator.
func (r *MailWatchResult) Truncate(fraction float64) bool { return r.truncate(&r.Outcome, fraction) }
