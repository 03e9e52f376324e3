package commands

import (
	"context"
	"fmt"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
)

// MailAccountsResult answers mail accounts (001 section 1).
type MailAccountsResult struct {
	Accounts   []AccountBrief `json:"accounts"`
	Truncated  bool           `json:"truncated,omitempty"` // there are more; each can be named with --account
	NextAction *NextAction    `json:"next_action,omitempty"`
}

// AccountBrief is what an agent may know of an account.
type AccountBrief struct {
	ID       string        `json:"account_id"`
	Email    string        `json:"email,omitempty"`
	Protocol mail.Protocol `json:"protocol"`
	Host     string        `json:"host"`
	Port     uint16        `json:"port"`
	Secure   bool          `json:"secure"`
	Mode     mail.Mode     `json:"mode"`
}

// maxAccounts bounds the list (001 section 1).
const maxAccounts = 50

func mailAccounts(d *Deps) *discovery.Command {
	return newCommand(discovery.Spec{
		Path:     "mail accounts",
		Summary:  "List the accounts",
		Effect:   discovery.Read,
		Examples: []string{"mail accounts"},
	}, func(ctx context.Context, _ *discovery.Call, _ *struct{}) (MailAccountsResult, error) {
		accounts, err := d.Store.Accounts(ctx)
		if err != nil {
			return MailAccountsResult{}, err
		}
		r := MailAccountsResult{Accounts: []AccountBrief{}}
		for _, a := range accounts[:min(maxAccounts, len(accounts))] {
			in := a.Incoming()
			r.Accounts = append(r.Accounts, AccountBrief{a.Name, a.Email, a.Protocol, in.Host, in.Port, in.Security != mail.Plaintext, a.Mode})
		}
		r.Truncated = len(accounts) > maxAccounts
		if len(accounts) > 0 {
			r.NextAction = next("List the account's folders", "mail", "folders", "--account", accounts[0].Name)
		}
		return r, nil
	})
}

// Summary implements discovery.Summarizer.
func (r MailAccountsResult) Summary() string { return count(len(r.Accounts), "account", "accounts") }

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
