package commands

import (
	"context"
	"strings"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
)

// MailAccountsResult answers mail accounts (001 section 1).
type MailAccountsResult struct {
	Accounts   []AccountEntry     `json:"accounts"`
	Default    string             `json:"default_account,omitempty"` // what a command works on that names none; empty where it has to
	Truncated  bool               `json:"truncated,omitempty"`       // there are more; each can be named with --account
	NextAction *answer.NextAction `json:"next_action,omitempty"`
}

// AccountEntry is what an agent may know of an account.
type AccountEntry struct {
	ID       string        `json:"account_id"`
	Email    string        `json:"email,omitempty"`
	Protocol mail.Protocol `json:"protocol"`
	Host     string        `json:"host"`
	Port     uint16        `json:"port"`
	Secure   bool          `json:"secure"`
	Mode     mail.Mode     `json:"mode"`
	Own      []string      `json:"own_addresses,omitempty"` // others that it may send as
}

// maxAccounts bounds the list (001 section 1).
const maxAccounts = 50

type mailAccountsArgs struct {
	Account string `json:"account,omitempty" acli:"form=name,rare" jsonschema_description:"Only this account; all of them if left out"`
}

func mailAccounts(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "mail accounts",
		Summary:  "Accounts",
		Effect:   discovery.Read,
		Standing: true,
		Examples: []string{"mail accounts"},
	}, func(ctx context.Context, _ *discovery.Call, args *mailAccountsArgs) (*MailAccountsResult, error) {
		accounts, err := d.Store.Accounts(ctx)
		if err != nil {
			return nil, err
		}
		configured, err := d.setting(ctx, "default_account")
		if err != nil {
			return nil, err
		}
		r := &MailAccountsResult{Accounts: []AccountEntry{}}
		r.Default, _ = argument.DefaultOf(accounts, configured)
		named := args.Account
		if named == argument.AllAccounts {
			named = ""
		}
		for i, a := range accounts {
			switch {
			case named != "" && a.Name != named:
			case len(r.Accounts) == maxAccounts:
				r.Truncated = true
			default:
				in := accounts[i].Incoming()
				r.Accounts = append(r.Accounts, AccountEntry{a.Name, a.Email, a.Protocol, in.Host, in.Port, in.Security != mail.Plaintext, a.Mode, a.OwnAddresses})
			}
		}
		switch {
		case named != "" && len(r.Accounts) == 0:
			return nil, mail.ErrNoAccount
		case named == "" && r.Default != "":
			r.NextAction = answer.Next("List the folders of the default account", "mail", "folders", "--account", r.Default)
		case len(r.Accounts) > 0:
			r.NextAction = answer.Next("List the account's folders", "mail", "folders", "--account", r.Accounts[0].ID)
		}
		return r, nil
	})
}

// accountsBrief is the compact form.
type accountsBrief struct {
	discovery.Table[accountsRow]
	Default string `json:"default,omitempty"`
	answer.Rest
}

type accountsRow struct {
	Account  string    `json:"account"`
	Email    string    `json:"email"`
	Mode     mail.Mode `json:"mode"`
	Protocol string    `json:"protocol"` // unless IMAP
	Own      string    `json:"own"`      // other addresses for --as
}

// Brief is the answer without --full.
func (r *MailAccountsResult) Brief() accountsBrief {
	rows := make([]accountsRow, len(r.Accounts))
	for i, a := range r.Accounts {
		rows[i] = accountsRow{Account: a.ID, Email: a.Email, Mode: a.Mode, Own: strings.Join(a.Own, ", ")}
		if a.Protocol != mail.IMAP {
			rows[i].Protocol = string(a.Protocol)
		}
	}
	b := accountsBrief{Table: discovery.TableOf(rows), Default: r.Default}
	if r.Truncated {
		b.Hint = "There are more accounts; each can be named with --account."
	}
	return b
}

// Summary implements discovery.Summarizer.
func (r *MailAccountsResult) Summary() string {
	return answer.Count(len(r.Accounts), "account", "accounts")
}
