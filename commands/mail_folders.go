package commands

import (
	"context"
	"slices"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

type mailFoldersArgs struct {
	AccountOption
	Counts  bool   `json:"counts,omitempty" jsonschema_description:"Also how many messages there are and how many are unread"`
	Pattern string `json:"pattern,omitempty" acli:"form=folder" jsonschema:"example=Projects/%" jsonschema_description:"Only names that match; * stands for anything, % for one level"`
}

// MailFoldersResult answers mail folders (001 section 3).
type MailFoldersResult struct {
	Outcome
	Account   string        `json:"account_id"`
	Folders   []FolderEntry `json:"folders"`
	Truncated bool          `json:"truncated,omitempty"`

	narrower *NextAction
}

// FolderEntry is one folder.
type FolderEntry struct {
	Name        string  `json:"name" acli:"untrusted"`
	Delimiter   string  `json:"delimiter,omitempty"`
	Role        string  `json:"role,omitempty"`
	NoSelect    bool    `json:"no_select,omitempty"`
	Messages    *uint32 `json:"messages,omitempty"`
	Unread      *uint32 `json:"unread,omitempty"`
	UIDNext     uint32  `json:"uid_next,omitempty"`
	UIDValidity uint32  `json:"uidvalidity,omitempty"`
}

func mailFolders(d *Deps) *discovery.Command {
	return newCommand(discovery.Spec{
		Path:     "mail folders",
		Summary:  "List the folders of an account",
		Details:  "Counts leave out what the account's rules hide.",
		Effect:   discovery.Read,
		Examples: []string{"mail folders", "mail folders --counts --pattern '*'"},
	}, func(ctx context.Context, call *discovery.Call, args *mailFoldersArgs) (*MailFoldersResult, error) {
		name, err := d.account(ctx, call, args.AccountOption)
		if err != nil {
			return nil, err
		}
		list, err := d.Mailboxes.Folders(mail.WithProgress(ctx, call.Progress), name, mailbox.FolderQuery{Pattern: args.Pattern, Counts: args.Counts})
		if err != nil {
			return nil, err
		}
		r := &MailFoldersResult{Outcome: outcome(list.Issues, true), Account: name, Folders: []FolderEntry{}, Truncated: list.Truncated}
		slices.SortStableFunc(list.Folders, func(a, b mailbox.Folder) int { return inboxFirst(a) - inboxFirst(b) })
		for _, f := range list.Folders {
			r.Folders = append(r.Folders, folderEntry(f))
		}
		if r.narrower = args.narrower(call, name); list.Truncated {
			r.NextAction = r.narrower
		} else {
			r.NextAction = next("List the newest messages", "mail", "list", "--account", name)
		}
		return r, nil
	})
}

// narrower lists the topmost level only; nil where a pattern is as narrow already,
// so that following it comes to an end.
func (a *mailFoldersArgs) narrower(call *discovery.Call, account string) *NextAction {
	if a.Pattern != "" && a.Pattern != "*" {
		return nil
	}
	following := *a
	following.Account, following.Pattern = account, "%"
	return nextLine("There are more folders: list the topmost level", call.Again(&following))
}

func inboxFirst(f mailbox.Folder) int {
	if f.Role == "inbox" {
		return 0
	}
	return 1
}

func folderEntry(f mailbox.Folder) FolderEntry {
	e := FolderEntry{Name: f.Name, Delimiter: f.Delimiter, Role: f.Role, NoSelect: f.NoSelect()}
	if c := f.Counts; c != nil {
		e.Messages, e.UIDNext, e.UIDValidity = &c.Messages, c.UIDNext, c.UIDValidity
		if !c.Flagless {
			e.Unread = &c.Unread
		}
	}
	return e
}

// Summary implements discovery.Summarizer.
func (r *MailFoldersResult) Summary() string {
	return r.withIssues(count(len(r.Folders), "folder", "folders"))
}

// Truncate implements discovery.Truncator.
func (r *MailFoldersResult) Truncate(fraction float64) bool {
	if !shorten(&r.Folders, &r.Truncated, fraction) {
		return false
	}
	r.NextAction = r.narrower
	return true
}
