package commands

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/postern-mail/postern/commands/admin"
	"github.com/postern-mail/postern/commands/agents"
	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

// What many results have, for those who show one.
type (
	Issue      = answer.Issue
	NextAction = answer.NextAction
)

// Mailboxes is guarded access to mail; *mailbox.Client implements it.
type Mailboxes interface {
	Verify(ctx context.Context, account string) (*mail.Verification, error)
	Folders(ctx context.Context, account string, q mailbox.FolderQuery) (*mailbox.FolderList, error)
	JudgeSender(ctx context.Context, account, entry string) (map[mail.Verdict]int, error)
	AuthServID(ctx context.Context, account string) (string, error)
	List(ctx context.Context, account string, q mailbox.ListQuery) (*mailbox.Page, error)
	Watch(ctx context.Context, account string, q mailbox.WatchQuery) (*mailbox.WatchPage, error)
	Code(ctx context.Context, account string, q mailbox.CodeQuery) (*mailbox.GivenCode, error)
	Search(ctx context.Context, accounts []string, q mailbox.SearchQuery) (*mailbox.SearchPage, error)
	GetEach(ctx context.Context, account string, refs []mail.Ref, q mailbox.GetQuery) (*mailbox.Messages, error)
	Raw(ctx context.Context, ref mail.Ref, maxBytes int64) (*mailbox.RawMessage, error)
	Attachment(ctx context.Context, ref mail.Ref, part string) (*mailbox.AttachmentContent, error)
	AttachmentText(ctx context.Context, ref mail.Ref, q mailbox.AttachmentQuery) (*mailbox.AttachmentContent, error)
	Thread(ctx context.Context, ref mail.Ref, q mailbox.ThreadQuery) (*mailbox.Thread, error)
	Ack(ctx context.Context, account string, refs []mail.Ref) (*mailbox.Changed, error)
	Do(ctx context.Context, of mailbox.Batch) (*mailbox.Changed, error)
	Copy(ctx context.Context, account string, refs []mail.Ref, toAccount, toFolder string) (*mailbox.Changed, error)
	Delete(ctx context.Context, account string, refs []mail.Ref) (*mailbox.Changed, error)
	Undo(ctx context.Context, q mailbox.UndoQuery) (*mailbox.Undone, error)
	MayChange(ctx context.Context, op, account string, refs []mail.Ref, toAccount string) error
}

// Attachments is where what a caller saves goes, and what it sends comes from: one
// directory, whose files are never written over.
type Attachments interface {
	// Save writes a new file below the directory, making the directories in
	// between, and returns its path on this machine. name is relative, with
	// slashes. The error matches fs.ErrExist when there is a file of that name;
	// whatever the error, no part of the file remains. from is the account that the
	// content is of.
	Save(ctx context.Context, from, name string, content []byte) (path string, err error)
	// SavedFrom returns the accounts that Save was given for a file with this content,
	// whoever saved it and whatever it is called by now; none where that is not known: the
	// file came otherwise, or was changed since.
	SavedFrom(ctx context.Context, name string, content []byte) (accounts []string, err error)
	// Read returns a whole file below the directory, which must be a regular one.
	// name is as for Save. The error matches fs.ErrNotExist when there is no such
	// file, and ErrTooLarge when it has more than limit bytes.
	Read(ctx context.Context, name string, limit int64) ([]byte, error)
}

// ErrTooLarge is returned by Attachments for a file that is larger than the limit.
var ErrTooLarge = argument.ErrTooLarge

// Store is what the commands keep and change: a vault.
type Store interface {
	admin.Store
	// ApprovalCode is what the administrator approves an entry of the outbox with.
	ApprovalCode(ctx context.Context, id, digest string) (string, error)
	ShownStore
}

// Deps is what the commands work on. Every field is required to run them; All
// itself needs none, so that help and schemas work without.
type Deps struct {
	Store     Store
	Mailboxes Mailboxes
	Outbox    Outbox

	// TakeChanges counts n messages that a principal is about to change, or returns how long it
	// must wait before it may; nil means that nothing bounds them.
	TakeChanges func(ctx context.Context, principal string, n int) (wait time.Duration, err error)

	// Exists reports whether a path names a command or a group, so that a list of
	// denied commands cannot hold a misspelt one.
	Exists func(path string) bool

	// Attachments keeps what mail attachment saves, and has what is sent.
	Attachments Attachments

	// Admin is what the administrator's commands work on; All gives them what others have too.
	Admin admin.Deps

	// Agents is what the commands of the agent mailbox work on; All gives them ReadFile.
	Agents agents.Deps

	// Explain says whether the rules above the accounts would let the same caller run a
	// command string now. It runs nothing.
	Explain func(ctx context.Context, call *discovery.Call, line string) (Explanation, error)

	// Now is the clock; nil means time.Now.
	Now func() time.Time

	memory   shownMemory
	commands map[string]*discovery.Command // all of them by their paths, see All
}

// Explanation says how far a command string would get.
type Explanation struct {
	Command *discovery.Command // nil when the string names no command
	Args    any                // the bound arguments; nil when they do not bind
	Refusal *discovery.Fault   // nil when nothing stands in the way
}

// Info is what the program says of itself; d may be empty.
func Info(d *Deps, version string) discovery.Info {
	return discovery.Info{
		Name:        "postern",
		Version:     version,
		Description: "A person's mail, behind their rules",
		Groups: map[string]string{
			"mail":         "Read and change a person's mail",
			"outbox":       "See messages that wait to be sent or were sent, and decide about them",
			"agent":        "Leave messages for other agents, and read yours",
			"policy":       "See what you may do here, before you do it",
			"account":      "Add and change mail accounts",
			"allow":        "Choose whose mail is visible and whom agents may write to",
			"allow in":     "Whose mail is visible, where the account's inbound list is on",
			"allow out":    "Whom agents may write to, where the account's outbound list is on",
			"allow folder": "Folders of others that messages may be filed in",
			"hide":         "Choose what agents do not see",
			"hide folder":  "Folders that agents do not see",
			"grant":        "Let clients in over HTTP, each to some accounts, for some time",
			"config":       "Read and change settings",
			"audit":        "List the commands that were run, and check the audit log",
			"vault":        "Check the vault, and replace its keys",
		},
		Usage: "<command> [arguments] [options]. ID: as lists show it, 50 in INBOX, Sent/5 in Sent. T: 2026-02-01 or 2026-02-01T10:00Z. " +
			"Everywhere: --account A, --fields F,G (or columns), --full, --timeout S. 'help <command>' has the rest",
		Instead: calledElsewhere,
		Recipes: []string{"mail search invoice"},
		Here:    d.here,
	}
}

// calledElsewhere are the names of commands and tools in the specifications, where ours differ.
var calledElsewhere = map[string]string{
	// 000
	"list": "mail list", "get": "mail get", "search": "mail search", "ack": "mail ack", "send": "mail send",
	"whitelist": "policy show", "whitelist in add": "allow in add", "whitelist in remove": "allow in remove", "whitelist in list": "allow in list",
	"whitelist out add": "allow out add", "whitelist out remove": "allow out remove", "whitelist out list": "allow out list",
	// 001
	"imap_list_accounts": "mail accounts", "imap_verify_account": "mail verify", "imap_list_mailboxes": "mail folders", "imap_search_messages": "mail search",
	"imap_get_message": "mail get", "imap_get_message_raw": "mail raw", "imap_update_message_flags": "mail flags", "imap_copy_message": "mail copy",
	"imap_move_message": "mail move", "imap_delete_message": "mail delete",
	// 003
	"describe": "agent describe", "status": "agent status", "cleanup": "agent cleanup",
	// 004
	"email_fetch": "mail list", "email_mark_read": "mail mark-read", "email_list_folders": "mail folders", "email_status": "mail verify", "mail status": "mail verify",
}

// sampleAccount is the account that examples name.
const sampleAccount = "work"

// here makes examples name an account where the caller has several: without that they would be
// refused, or speak of another one than was meant. It is the one that the command was for, else
// the default one. Where there is no account with the name that examples have, it stands for that.
func (d *Deps) here(ctx context.Context, account string) func(c *discovery.Command, example string) string {
	var accounts []mail.Account
	if d.Store != nil {
		accounts, _ = d.Store.Accounts(ctx) // unknown ones cannot be named
	}
	has := func(name string) bool {
		return slices.ContainsFunc(accounts, func(a mail.Account) bool { return a.Name == name })
	}
	name := sync.OnceValue(func() string {
		if has(account) {
			return account
		}
		standard, err := argument.DefaultAccount(ctx, d.Store)
		if err != nil {
			return accounts[0].Name
		}
		return standard
	})
	return func(c *discovery.Command, example string) string {
		if words := strings.Fields(example); len(accounts) > 0 && !has(sampleAccount) && c.Path != "account add" && slices.Contains(words, sampleAccount) {
			words[slices.Index(words, sampleAccount)] = name()
			return strings.Join(words, " ")
		}
		optional := func(a *discovery.Argument) bool { return a.Name == "account" && a.Global }
		if len(accounts) < 2 || !slices.ContainsFunc(c.Arguments(), optional) || strings.Contains(example, "--account") || strings.Contains(example, " -- ") {
			return example
		}
		for _, a := range accounts {
			if strings.Contains(example, a.Name+":") { // an id names its account
				return example
			}
		}
		return example + " --account " + name()
	}
}

// All lists every command, and gives the parts of d what they share with it.
func All(d *Deps) []*discovery.Command {
	a := &d.Admin
	a.Store, a.Mailboxes, a.Outbox, a.Exists, a.Now = d.Store, d.Mailboxes, d.Outbox, d.Exists, d.now
	d.Agents.ReadFile = d.file
	all := slices.Concat([]*discovery.Command{
		mailAccounts(d),
		mailVerify(d),
		mailFolders(d),
		mailList(d),
		mailSearch(d),
		mailWatch(d),
		mailCode(d),
		mailGet(d),
		mailSend(d),
		mailReply(d),
		mailForward(d),
		mailDraft(d),
		mailRaw(d),
		mailAttachment(d),
		mailThread(d),
		mailAck(d),
		mailMarkRead(d),
		mailFlags(d),
		mailCopy(d),
		mailMove(d),
		mailTrash(d),
		mailPlan(d),
		mailRun(d),
		mailUndo(d),
		mailUnsubscribe(d),
		mailDelete(d),
		outboxList(d),
		outboxShow(d),
		outboxCancel(d),
		outboxApprove(d),
		outboxReject(d),
		admin.PolicyShow(&d.Admin),
		policyExplain(d),
	}, admin.Commands(&d.Admin), agents.Commands(&d.Agents))
	d.commands = map[string]*discovery.Command{}
	for _, c := range all {
		d.commands[c.Path] = c
	}
	return all
}

// Faults is FaultsWhere every command exists.
func Faults(err error) *discovery.Fault { return answer.Faults(err) }

// FaultsWhere makes errors of mail and vault public codes and hints. A hint sends the
// reader only to commands that exist, or that the administrator runs elsewhere. The
// function it returns gives nil for an error it does not know, whose text is then not shown.
func FaultsWhere(exists func(path string) bool) func(error) *discovery.Fault {
	return answer.FaultsWhere(exists)
}

// account resolves the option --account.
func (d *Deps) account(ctx context.Context, call *discovery.Call, o argument.AccountOption) (string, error) {
	return o.Resolve(ctx, call, d.Store)
}

func (d *Deps) setting(ctx context.Context, name string) (string, error) {
	values, err := argument.Settings(ctx, d.Store)
	return values[name], err
}

// today is the start of the day it is in the configured zone.
func (d *Deps) today(ctx context.Context) (time.Time, error) {
	name, err := d.setting(ctx, "timezone")
	if err != nil {
		return time.Time{}, err
	}
	zone := time.Local
	if name != "local" {
		if zone, err = time.LoadLocation(name); err != nil {
			return time.Time{}, err
		}
	}
	year, month, day := d.now().In(zone).Date()
	return time.Date(year, month, day, 0, 0, 0, 0, zone), nil
}

func (d *Deps) now() time.Time {
	if d.Now != nil {
		return d.Now()
	}
	return time.Now()
}

// nowMinute is the time of a compact answer, to which its dates can be compared.
func (d *Deps) nowMinute() string { return answer.Minute(d.now()) }
