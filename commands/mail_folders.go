package commands

import (
	"context"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail/mailbox"
)

type mailFoldersArgs struct {
	argument.AccountOption
	Counts  bool   `json:"counts,omitempty" jsonschema_description:"Also how many messages there are and how many are unread"`
	Pattern string `json:"pattern,omitempty" acli:"form=folder,rare" jsonschema:"example=Projects/%" jsonschema_description:"Only names that match; * stands for anything, % for one level"`
	After   string `json:"after,omitempty" acli:"form=folder,rare" jsonschema_description:"Only folders behind this one in the list"`
}

// MailFoldersResult answers mail folders (001 section 3).
type MailFoldersResult struct {
	answer.Outcome
	Account   string        `json:"account_id"`
	Folders   []FolderEntry `json:"folders"`
	Truncated bool          `json:"truncated,omitempty"`

	more func(last string) *answer.NextAction // what goes on behind a folder
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
	return argument.Command(discovery.Spec{
		Path:     "mail folders",
		Also:     []string{"mailboxes", "labels"},
		Summary:  "Folders",
		Details:  "INBOX and folders with a role come first. Counts leave out what the account's rules hide.",
		Effect:   discovery.Read,
		Examples: []string{"mail folders", "mail folders --counts --pattern '*'"},
	}, func(ctx context.Context, call *discovery.Call, args *mailFoldersArgs) (*MailFoldersResult, error) {
		name, err := d.account(ctx, call, args.AccountOption)
		if err != nil {
			return nil, err
		}
		list, err := d.Mailboxes.Folders(ctx, name, mailbox.FolderQuery{Pattern: args.Pattern, Counts: args.Counts, After: args.After})
		if err != nil {
			return nil, err
		}
		r := &MailFoldersResult{Outcome: answer.OutcomeOf(list.Issues, true), Account: name, Folders: []FolderEntry{}, more: args.more(call, name)}
		for _, f := range list.Folders {
			r.Folders = append(r.Folders, folderEntry(f))
		}
		if r.Truncated = list.Truncated; r.Truncated {
			r.NextAction = r.goOn()
		} else {
			r.NextAction = answer.Next("List the newest messages", "mail", "list", "--account", name)
		}
		return r, nil
	})
}

// more makes the next action that lists the folders behind one.
func (a *mailFoldersArgs) more(call *discovery.Call, account string) func(last string) *answer.NextAction {
	return func(last string) *answer.NextAction {
		following := *a
		if following.After = last; call.Full {
			following.Account = account
		}
		return answer.NextLine("List the next folders", call.Again(&following))
	}
}

// goOn is the next action of a list that was cut.
func (r *MailFoldersResult) goOn() *answer.NextAction {
	return r.more(r.Folders[len(r.Folders)-1].Name)
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
	return r.WithIssues(answer.Count(len(r.Folders), "folder", "folders"))
}

// Truncate implements discovery.Truncator.
func (r *MailFoldersResult) Truncate(fraction float64) bool {
	if !answer.Shorten(&r.Folders, &r.Truncated, fraction) {
		return false
	}
	r.NextAction = r.goOn()
	return true
}

type folderRow struct {
	Name     string  `json:"name" acli:"untrusted"`
	Role     string  `json:"role"` // also noselect: it only holds other folders
	Messages *uint32 `json:"messages"`
	Unread   *uint32 `json:"unread"`
}

// Brief is the answer without --full.
func (r *MailFoldersResult) Brief() answer.List[folderRow] {
	var more *answer.NextAction
	if r.Truncated {
		more = r.NextAction
	}
	return answer.ListOf(r.Folders, r.Rest(more), func(f *FolderEntry) folderRow {
		row := folderRow{f.Name, f.Role, f.Messages, f.Unread}
		if f.NoSelect {
			row.Role = "noselect"
		}
		return row
	})
}
