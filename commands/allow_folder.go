package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
)

// folderRule is one of an account's two lists of folders.
type folderRule string

const (
	allowed folderRule = "allow"
	hidden  folderRule = "hide"
)

func (f folderRule) of(a *mail.Account) *[]string {
	if f == hidden {
		return &a.HideFolders
	}
	return &a.AllowFolders
}

// spec names a command of this list.
func (f folderRule) spec(verb, summary, details string, examples ...string) discovery.Spec {
	s := discovery.Spec{Path: fmt.Sprintf("%s folder %s", f, verb), Summary: summary, Details: details, Effect: discovery.Admin}
	for _, e := range examples {
		s.Examples = append(s.Examples, fmt.Sprintf("%s folder %s %s", f, verb, e))
	}
	return s
}

type folderRuleArgs struct {
	Folders []string `json:"folder" acli:"positional" jsonschema:"minItems=1,maxItems=90,minLength=1,maxLength=1000,example=Public/board" jsonschema_description:"A folder by its whole name, as the server has it"`
	AccountOption
}

// FolderRuleResult answers the commands on allowed and hidden folders.
type FolderRuleResult struct {
	Account   string     `json:"account_id"`
	List      folderRule `json:"list" jsonschema:"enum=allow,enum=hide"`
	Folders   []string   `json:"folders"`
	Added     []string   `json:"added,omitempty"`
	Removed   []string   `json:"removed,omitempty"`
	Truncated bool       `json:"truncated,omitempty"`
}

type folderRuleBrief struct {
	Account string   `json:"account"`
	Folders []string `json:"folders"`
	Added   []string `json:"added,omitempty"`
	Removed []string `json:"removed,omitempty"`
	Rest
}

// Brief is the list without its name.
func (r *FolderRuleResult) Brief() folderRuleBrief {
	b := folderRuleBrief{r.Account, r.Folders, r.Added, r.Removed, Rest{}}
	if r.List == hidden && len(r.Added) > 0 {
		b.Hint = "What also stands in another folder, such as one of all mail, is seen there: hide that one too."
	}
	return b
}

// Summary implements discovery.Summarizer.
func (r *FolderRuleResult) Summary() string { return count(len(r.Folders), "folder", "folders") }

// Truncate implements discovery.Truncator.
func (r *FolderRuleResult) Truncate(fraction float64) bool {
	return shorten(&r.Folders, &r.Truncated, fraction)
}

// folderCommand is a command that may change a list of folders; change gets those that were
// named, and fills in what it did.
func folderCommand[A any](d *Deps, rule folderRule, spec discovery.Spec, of func(*A) (AccountOption, []string), change func(list *[]string, named []string, r *FolderRuleResult) error) *discovery.Command {
	return newCommand(spec, func(ctx context.Context, call *discovery.Call, args *A) (*FolderRuleResult, error) {
		option, named := of(args)
		name, err := d.account(ctx, call, option)
		if err != nil {
			return nil, err
		}
		r := &FolderRuleResult{Account: name, List: rule}
		var a mail.Account
		if change == nil {
			a, err = d.Store.Account(ctx, name)
		} else {
			err = d.Store.UpdateAccount(ctx, name, func(changing *mail.Account) error {
				r.Added, r.Removed = nil, nil
				err := change(rule.of(changing), named, r)
				a = *changing
				return err
			}, nil)
		}
		if errors.Is(err, errNotOnList) {
			return nil, &discovery.Fault{Code: discovery.NotFound, Message: "A folder is not on the list, so none was removed.",
				Hint: fmt.Sprintf("Run '%s folder list' to list the folders.", rule), Err: err}
		}
		if err != nil {
			return nil, err
		}
		r.Folders = append([]string{}, *rule.of(&a)...)
		return r, nil
	})
}

func ofRule(a *folderRuleArgs) (AccountOption, []string) { return a.AccountOption, a.Folders }

var folderDetails = map[folderRule][2]string{
	allowed: {"Let messages be filed in a folder of others",
		"A folder that is shared, or belongs to somebody else, or that the server sends from: without this nothing is filed, flagged or deleted there. It holds for this folder alone. Others may read what is put there."},
	hidden: {"Make a folder invisible",
		"It and those below it do not exist for any command. A copy of what is sent is still kept in a hidden folder for sent messages."},
}

func folderAdd(d *Deps, rule folderRule) *discovery.Command {
	example := map[folderRule]string{allowed: "Public/board --account work", hidden: "HR 'Board papers' --account work"}[rule]
	return folderCommand(d, rule, rule.spec("add", folderDetails[rule][0], folderDetails[rule][1], example), ofRule, func(list *[]string, named []string, r *FolderRuleResult) error {
		for i, f := range named {
			if err := mail.CheckFolderEntry(f, rule == hidden); err != nil {
				return &discovery.Fault{Code: discovery.ValidationError, Message: fmt.Sprintf("Folder %d cannot be used: %s.", i+1, err), Hint: "'mail folders' lists the names of the account's folders.", Err: err}
			}
			if !slices.Contains(*list, f) {
				*list, r.Added = append(*list, f), append(r.Added, f)
			}
		}
		return nil
	})
}

func folderRemove(d *Deps, rule folderRule) *discovery.Command {
	return folderCommand(d, rule, rule.spec("remove", "Remove folders from the list", "If one of them is not on the list, none is removed.", "Public/board --account work"), ofRule, func(list *[]string, named []string, r *FolderRuleResult) error {
		for _, f := range named {
			i := slices.Index(*list, f)
			if i < 0 {
				return errNotOnList
			}
			*list, r.Removed = slices.Delete(slices.Clone(*list), i, i+1), append(r.Removed, f)
		}
		return nil
	})
}

func folderRuleList(d *Deps, rule folderRule) *discovery.Command {
	return folderCommand(d, rule, rule.spec("list", "Show the folders of the list", "", "--account work"),
		func(a *AccountOption) (AccountOption, []string) { return *a, nil }, nil)
}
