package admin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

// ruleList is one of an account's lists of addresses or folders, by the path of its commands.
type ruleList string

const (
	inbound  ruleList = "allow in"
	outbound ruleList = "allow out"
	allowed  ruleList = "allow folder"
	hidden   ruleList = "hide folder"
)

// of returns the entries of the list, and whether it is on.
func (l ruleList) of(a *mail.Account) (entries *[]string, on bool) {
	switch l {
	case inbound:
		return &a.AllowIn.Entries, a.AllowIn.Enabled
	case outbound:
		return &a.AllowOut.Entries, a.AllowOut.Enabled
	case hidden:
		return &a.HideFolders, true
	}
	return &a.AllowFolders, true
}

// ofFolders reports whether it is a list of folders.
func (l ruleList) ofFolders() bool { return l == allowed || l == hidden }

// key is the form in which entries of the list are compared.
func (l ruleList) key(entry string) string {
	if l.ofFolders() {
		return mail.FolderKey(entry)
	}
	if normal, err := mail.ValidateEntry(entry); err == nil {
		return normal
	}
	return entry
}

type allowEntriesArgs struct {
	Entries []string `json:"entry" acli:"positional" jsonschema:"minItems=1,maxItems=90,minLength=1,maxLength=320,example=ann@example.org,example=@example.org" jsonschema_description:"An address, @domain for that domain alone, or * for everybody"`
	argument.AccountOption

	normal []string // the entries as they are kept, since Validate
}

// Validate checks what the entries are. It repeats none of them.
func (a *allowEntriesArgs) Validate() error {
	a.normal = make([]string, len(a.Entries))
	for i, e := range a.Entries {
		var err error
		if a.normal[i], err = mail.ValidateEntry(e); err != nil {
			return fmt.Errorf("entry %d cannot be used: %w", i+1, err)
		}
	}
	return nil
}

type ruleFoldersArgs struct {
	Folders []string `json:"folder" acli:"positional" jsonschema:"minItems=1,maxItems=90,minLength=1,maxLength=1000,example=Public/board" jsonschema_description:"A folder by its whole name, as the server has it"`
	argument.AccountOption
}

// RuleListResult answers the commands on the lists of an account.
type RuleListResult struct {
	Account    string             `json:"account_id"`
	List       string             `json:"list" jsonschema:"enum=in,enum=out,enum=allow,enum=hide"`
	Enabled    bool               `json:"enabled"` // always, of a list of folders
	Entries    []string           `json:"entries"`
	Added      []string           `json:"added,omitempty"`
	Removed    []string           `json:"removed,omitempty"`
	Absent     []string           `json:"absent,omitempty"`   // added folders that the server does not have now
	Verified   []string           `json:"verified,omitempty"` // entries that demand a verified sender
	Senders    []SenderReport     `json:"senders,omitempty"`  // of added entries that do
	Truncated  bool               `json:"truncated,omitempty"`
	NextAction *answer.NextAction `json:"next_action,omitempty"`

	list ruleList
}

// ruleListBrief is a list, or what was changed of it.
type ruleListBrief struct {
	Account  string         `json:"account"`
	On       *bool          `json:"on,omitempty"` // of a list of addresses
	Entries  []string       `json:"entries"`
	Verified []string       `json:"verified,omitempty"`
	Added    []string       `json:"added,omitempty"`
	Removed  []string       `json:"removed,omitempty"`
	Senders  []SenderReport `json:"senders,omitempty"`
	answer.Rest
}

// Brief is the list without its name.
func (r *RuleListResult) Brief() ruleListBrief {
	b := ruleListBrief{Account: r.Account, Entries: r.Entries, Verified: r.Verified, Added: r.Added, Removed: r.Removed, Senders: r.Senders}
	if !r.list.ofFolders() {
		b.On = &r.Enabled
	}
	switch {
	case r.list == hidden && len(r.Added) > 0:
		b.Hint = "What also stands in another folder, such as one of all mail, is seen there: hide that one too."
		if len(r.Absent) > 0 {
			b.Hint = "The server has no folder of this name now: " + strings.Join(r.Absent, ", ") + ". " + b.Hint
		}
	case r.list == allowed && len(r.Added) > 0:
		b.Hint = "This does not open the folders for sent mail and drafts: only sending and 'mail draft' write there."
	case r.list.ofFolders():
	case fared(r.Senders) != "":
		b.Hint = fared(r.Senders)
	case r.Enabled && len(r.Entries)+len(r.Verified) == 0:
		b.Hint = "The list is on and empty: it lets nothing pass."
	case r.Enabled && len(r.Entries) > 1 && slices.Contains(r.Entries, "*"):
		b.Hint = "The entry * lets everybody pass: remove it if the others are to count."
	case r.NextAction != nil:
		b.Hint = "The list is off: " + r.NextAction.Arguments.Command + " turns it on."
	}
	return b
}

// Summary implements discovery.Summarizer.
func (r *RuleListResult) Summary() string {
	s := answer.Count(len(r.Entries)+len(r.Verified), "entry", "entries")
	if !r.Enabled {
		s += ", and the list is off"
	}
	return s
}

// Truncate implements discovery.Truncator.
func (r *RuleListResult) Truncate(fraction float64) bool {
	return answer.Shorten(&r.Entries, &r.Truncated, fraction)
}

// spec names a command of the list. Those on addresses answer to whitelist too (000 section
// 7.2).
func (l ruleList) spec(verb, summary, details string, examples ...string) discovery.Spec {
	s := discovery.Spec{Path: fmt.Sprintf("%s %s", l, verb), Summary: summary, Details: details, Effect: discovery.Admin, Standing: true}
	if !l.ofFolders() {
		s.Aliases = []string{strings.Replace(s.Path, "allow", "whitelist", 1)}
	}
	for _, e := range examples {
		s.Examples = append(s.Examples, strings.TrimSpace(s.Path+" "+e))
	}
	return s
}

// ruleCommands are the commands on a list. named gives what their arguments name.
func ruleCommands[A any](d *Deps, l ruleList, named func(*A) (argument.AccountOption, []string)) []*discovery.Command {
	add := l.spec("add", "Add entries to the list", "Entries that are on the list already are not added twice.", "ann@example.org", "@example.org bob@example.com")
	entries, example, empty := "entries", "ann@example.org", "A list that is on and empty lets nothing pass."
	switch l {
	case allowed:
		add = l.spec("add", "Let messages be filed in a folder of others",
			"A folder that is shared, or belongs to somebody else, or that the server sends from: without this nothing is filed, flagged or deleted there. It holds for this folder alone. Others may read what is put there.",
			"Public/board")
	case hidden:
		add = l.spec("add", "Make a folder invisible",
			"It and those below it do not exist for any command. A copy of what is sent is still kept in a hidden folder for sent messages.", "HR 'Board papers'")
	}
	if l.ofFolders() {
		entries, example, empty = "folders", "Public/board", ""
	}
	return []*discovery.Command{
		argument.Command(add, func(ctx context.Context, call *discovery.Call, args *A) (*RuleListResult, error) {
			account, entries := named(args)
			absent := []string{}
			if l == hidden {
				absent = d.absent(ctx, call, account, entries)
			}
			return d.ruleList(ctx, call, account, l, func(a *mail.Account, r *RuleListResult) error {
				list, _ := l.of(a)
				err := l.add(list, entries, r)
				r.Absent = slices.DeleteFunc(absent, func(f string) bool { return !slices.Contains(r.Added, f) })
				return err
			})
		}),
		argument.Command(l.spec("remove", "Remove "+entries+" from the list", "If one of them is not on the list, none is removed.", example),
			func(ctx context.Context, call *discovery.Call, args *A) (*RuleListResult, error) {
				account, entries := named(args)
				return d.ruleList(ctx, call, account, l, func(a *mail.Account, r *RuleListResult) error { return l.remove(a, entries, r) })
			}),
		argument.Command(l.spec("list", "Show the "+entries+" of the list", empty, ""),
			func(ctx context.Context, call *discovery.Call, args *argument.AccountOption) (*RuleListResult, error) {
				return d.ruleList(ctx, call, *args, l, nil)
			}),
	}
}

// absent returns which of the folders the server does not have, none where it does not say so
// soon.
func (d *Deps) absent(ctx context.Context, call *discovery.Call, o argument.AccountOption, folders []string) []string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	name, err := o.Resolve(ctx, call, d.Store)
	if err != nil {
		return nil
	}
	list, err := d.Mailboxes.Folders(ctx, name, mailbox.FolderQuery{Limit: 10_000})
	if err != nil || list.Truncated || len(list.Issues) > 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(folders), func(f string) bool {
		return slices.ContainsFunc(list.Folders, func(there mailbox.Folder) bool { return hidden.key(there.Name) == hidden.key(f) })
	})
}

// ruleList has change, which may be nil, alter a list of an account and note what it did, and
// returns the list.
func (d *Deps) ruleList(ctx context.Context, call *discovery.Call, o argument.AccountOption, l ruleList, change func(*mail.Account, *RuleListResult) error) (*RuleListResult, error) {
	name, err := o.Resolve(ctx, call, d.Store)
	if err != nil {
		return nil, err
	}
	which := strings.TrimSuffix(string(l), " folder")
	which = strings.TrimPrefix(which, "allow ")
	r := &RuleListResult{Account: name, List: which, list: l}
	var a mail.Account
	if change == nil {
		a, err = d.Store.Account(ctx, name)
	} else {
		err = d.Store.UpdateAccount(ctx, name, func(changing *mail.Account) error {
			r.Added, r.Removed = nil, nil
			err := change(changing, r)
			a = *changing
			return err
		}, nil)
	}
	if err != nil {
		return nil, err
	}
	list, on := l.of(&a)
	r.Entries, r.Enabled = append([]string{}, *list...), on
	if l == inbound {
		r.Verified = a.AllowIn.Verified
	}
	if !on && len(r.Entries)+len(r.Verified) > 0 { // one that is on and empty lets nothing pass
		r.NextAction = answer.Next("The list is off and holds nothing back: turn it on", "account", "edit", name, "--allow-"+which, "on")
	}
	return r, nil
}

func (l ruleList) add(list *[]string, entries []string, r *RuleListResult) error {
	for i, e := range entries {
		if l.ofFolders() {
			if err := mail.CheckFolderEntry(e, l == hidden); err != nil {
				return &discovery.Fault{Code: discovery.ValidationError, Message: fmt.Sprintf("Folder %d cannot be used: %s.", i+1, err), Hint: "'mail folders' lists the names of the account's folders.", Err: err}
			}
		}
		if !slices.Contains(*list, e) {
			*list, r.Added = append(*list, e), append(r.Added, e)
		}
	}
	return nil
}

// remove removes entries from a list, in whatever form they are kept.
func (l ruleList) remove(a *mail.Account, entries []string, r *RuleListResult) error {
	left := map[string]bool{}
	for _, e := range entries {
		left[l.key(e)] = true
	}
	without := func(list []string) (kept []string) {
		for _, e := range list {
			if _, named := left[l.key(e)]; !named {
				kept = append(kept, e)
			} else if left[l.key(e)] = false; !slices.Contains(r.Removed, e) {
				r.Removed = append(r.Removed, e)
			}
		}
		return kept
	}
	list, _ := l.of(a)
	kept, verified := without(*list), a.AllowIn.Verified
	if l == inbound {
		verified = without(verified)
	}
	for _, missing := range left {
		if missing {
			return &discovery.Fault{Code: discovery.NotFound, Message: "An entry is not on the list, so none was removed.", Hint: fmt.Sprintf("Run '%s list' to see what is on it.", l)}
		}
	}
	*list, a.AllowIn.Verified = kept, verified
	return nil
}

func addressesNamed(a *allowEntriesArgs) (argument.AccountOption, []string) {
	return a.AccountOption, a.normal
}
func foldersNamed(a *ruleFoldersArgs) (argument.AccountOption, []string) {
	return a.AccountOption, a.Folders
}
