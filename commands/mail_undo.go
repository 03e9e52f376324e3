package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

type mailUndoArgs struct {
	ID      string             `json:"id,omitempty" acli:"form=change,positional" jsonschema_description:"A change or a plan, as an answer named it"`
	Since   discovery.Datetime `json:"since,omitempty" acli:"also=start|after|from" jsonschema:"example=2026-02-02T10:00" jsonschema_description:"All since then; 09:00 is today's"`
	Last    bool               `json:"last,omitempty" acli:"rare" jsonschema_description:"The last command's, as without anything"`
	By      string             `json:"by,omitempty" acli:"form=line,value=WHO,rare" jsonschema:"minLength=1,maxLength=256" jsonschema_description:"Only what this one changed; for the person"`
	Account string             `json:"account,omitempty" acli:"form=account,rare" jsonschema_description:"Only in this account"`
}

// Validate checks what one option alone cannot.
func (a *mailUndoArgs) Validate() error {
	given := 0
	for _, is := range []bool{a.ID != "", !a.Since.IsZero(), a.Last} {
		if is {
			given++
		}
	}
	if given > 1 {
		return &discovery.Fault{Code: discovery.ValidationError, Message: "An id, --since and --last each say by themselves what is taken back.", Hint: "Give one of them."}
	}
	return nil
}

// MailUndoResult answers mail undo.
type MailUndoResult struct {
	answer.Outcome
	Restored  []TakenBack `json:"restored"`
	Count     int         `json:"restored_count"`
	Left      []LeftAlone `json:"left"`
	LeftCount int         `json:"left_count"`
	Undo      string      `json:"undo,omitempty" jsonschema_description:"The command that takes this undo back"`

	short [][2]string // of Restored, for a compact answer
}

// TakenBack is a message that is as it was before, but for flags that others changed since.
type TakenBack struct {
	Was     string   `json:"message_id,omitempty"`     // where the change had left it
	ID      string   `json:"new_message_id,omitempty"` // where it is now
	Folder  string   `json:"folder" acli:"untrusted"`
	Trashed bool     `json:"trashed,omitempty" jsonschema_description:"The change had made it, and it is in the trash now"`
	Kept    []string `json:"kept_flags,omitempty" acli:"untrusted" jsonschema_description:"Flags that others changed since, and that are left"`
}

// LeftAlone are messages that were left as they are, for one reason.
type LeftAlone struct {
	Why   string   `json:"why" acli:"untrusted"` // it may be a server's words
	Count int      `json:"count"`
	IDs   []string `json:"message_ids"`

	short []string
}

// Bounds of what an answer names, of each list; the counts are of all.
const (
	maxUndoFull  = 500
	maxUndoBrief = 20
)

func mailUndo(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:    "mail undo",
		Also:    []string{"revert", "restore", "undelete", "untrash"},
		Summary: "Take changes back",
		Details: "Yours of the last 30 days: moves, flags, copies, drafts; without anything those of the last command. What others changed since is left and told. " +
			"What was deleted for good or sent stays so. An undo can be undone.",
		Effect:   discovery.Write,
		Timeout:  sendTime,
		Examples: []string{"mail undo", "mail undo --since 2026-02-02T10:00", "mail undo 0123abcd"},
	}, func(ctx context.Context, call *discovery.Call, args *mailUndoArgs) (*MailUndoResult, error) {
		if args.By != "" && args.By != call.Principal && !call.Admin {
			return nil, &discovery.Fault{Code: discovery.PermissionDenied, Message: "--by is for the person whose mail it is, with the administrator's key.", Hint: "Leave it out to take back what you changed.", Reason: "admin"}
		}
		call.Account, call.Target = args.Account, cmp.Or(args.ID, "last")
		if !args.Since.IsZero() {
			call.Target = "since " + answer.UTC(args.Since.Time)
		}
		if args.Account != "" {
			if _, err := d.Store.Account(ctx, args.Account); err != nil {
				return nil, err
			}
		}
		u, err := d.Mailboxes.Undo(ctx, mailbox.UndoQuery{ID: args.ID, Since: args.Since.Time, Last: args.ID == "" && args.Since.IsZero(), By: args.By, Account: args.Account, Owner: call.Admin})
		if e, ok := errors.AsType[*mail.Error](err); ok && e.Kind == mail.KindNotFound {
			if args.ID == "" {
				return nil, nothingToUndo
			}
			return nil, &discovery.Fault{Code: discovery.NotFound, Message: e.Message, Hint: nothingToUndo.Hint}
		}
		if err != nil {
			return nil, err
		}
		r := &MailUndoResult{Restored: []TakenBack{}, Count: len(u.Restored), Left: []LeftAlone{}, LeftCount: len(u.Left), Undo: undoOf(u.Change)}
		var issues []mail.Issue
		if u.Err != nil {
			issues = []mail.Issue{{Kind: u.Err.Kind, Stage: cmp.Or(u.Err.Stage, "undo"), Message: u.Err.Message, Retryable: true}}
		}
		var refs []mail.Ref
		for _, m := range u.Restored[:min(len(u.Restored), maxUndoFull)] {
			refs = append(refs, m.From, m.Ref)
		}
		for _, m := range u.Left[:min(len(u.Left), maxUndoFull)] {
			refs = append(refs, m.Ref)
		}
		ids := d.shown(ctx, call, slices.DeleteFunc(slices.Clone(refs), func(r mail.Ref) bool { return r.UID == 0 })...)
		r.Outcome = answer.OutcomeOf(append(issues, ids.Issues...), len(u.Restored) > 0)
		r.IDs = ids
		named := func(r mail.Ref) (long, short string) {
			if r.UID == 0 { // the server did not say
				return "", ""
			}
			return r.String(), ids.Of(r)
		}
		for _, m := range u.Restored[:min(len(u.Restored), maxUndoFull)] {
			was, before := named(m.From)
			is, now := named(m.Ref)
			r.Restored = append(r.Restored, TakenBack{was, is, m.Ref.Folder, m.Trashed, shownFlags(m.Kept)})
			r.short = append(r.short, [2]string{before, now})
		}
		for i, m := range u.Left {
			why := cmp.Or(leftWhy[m.Why], string(m.Why))
			if m.Said != "" {
				why += ": " + m.Said
			}
			at := slices.IndexFunc(r.Left, func(l LeftAlone) bool { return l.Why == why })
			if at < 0 && len(r.Left) == maxUndoBrief {
				at = len(r.Left) - 1 // the servers' words for others
			} else if at < 0 {
				at, r.Left = len(r.Left), append(r.Left, LeftAlone{Why: why, IDs: []string{}})
			}
			l := &r.Left[at]
			if long, short := named(m.Ref); long != "" && i < maxUndoFull {
				l.IDs, l.short = append(l.IDs, long), append(l.short, short)
			}
			l.Count++
		}
		if u.Err != nil {
			r.NextAction = answer.NextLine("It goes on where it ended", call.Again(args))
		}
		return r, nil
	})
}

var nothingToUndo = &discovery.Fault{Code: discovery.NotFound, Message: "There is nothing to take back.",
	Hint: "An answer that says 'undo' names what it would take back, also an undo; what is older than 30 days is not kept."}

// leftWhy says why a message was left as it is.
var leftWhy = map[mailbox.LeftWhy]string{
	mailbox.LeftGone:       "moved or deleted by others since",
	mailbox.LeftChanged:    "changed by others since",
	mailbox.LeftFolderGone: "a folder of it is gone",
	mailbox.LeftMadeAnew:   "its folder was made anew, or the account leads to another mailbox",
	mailbox.LeftNotCertain: "which message it is now is not certain",
	mailbox.LeftSent:       "sent, which is final",
	mailbox.LeftRefused:    "the server refused",
	mailbox.LeftTakenBack:  "taken back already",
	mailbox.LeftNotAllowed: "the account's rules do not let you",
	mailbox.LeftNoTrash:    "it was made by the change, and the account has no trash",
	mailbox.LeftUnknown:    "the connection was lost: taken back or not",
	mailbox.LeftUnreached:  "not tried, run it again",
}

type mailUndoBrief struct {
	Count    int         `json:"restored_count"`
	Restored [][2]string `json:"restored" jsonschema_description:"The first of them: each its id before, and its id now where the server told it"`
	Left     []leftBrief `json:"left,omitempty"`
	Undo     string      `json:"undo,omitempty"`
	answer.Rest
}

type leftBrief struct {
	Why   string   `json:"why" acli:"untrusted"`
	Count int      `json:"count"`
	IDs   []string `json:"ids"`
}

// Brief names the first messages of each kind.
func (r *MailUndoResult) Brief() mailUndoBrief {
	b := mailUndoBrief{Count: r.Count, Restored: append([][2]string{}, r.short[:min(len(r.short), maxUndoBrief)]...), Undo: r.Undo, Rest: r.Rest(nil)}
	if r.NextAction != nil {
		b.More = r.NextAction.Arguments.Command
	}
	if r.Count+len(r.Left) == 0 {
		b.Hint = "Everything is as it was already."
	}
	for _, l := range r.Left {
		b.Left = append(b.Left, leftBrief{l.Why, l.Count, append([]string{}, l.short[:min(len(l.short), maxUndoBrief)]...)})
	}
	return b
}

// Summary implements discovery.Summarizer.
func (r *MailUndoResult) Summary() string {
	s := answer.Count(r.Count, "message", "messages") + " taken back"
	if r.Count == 0 {
		s = "Nothing was taken back"
	}
	if r.LeftCount > 0 {
		var whys []string
		for _, l := range r.Left {
			whys = append(whys, fmt.Sprintf("%d %s", l.Count, l.Why))
		}
		s += "; left as they are: " + strings.Join(whys, ", ")
	}
	return r.WithIssues(s)
}
