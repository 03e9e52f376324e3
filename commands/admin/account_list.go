package admin

import (
	"context"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
)

// AccountListResult answers account list.
type AccountListResult struct {
	Accounts []AccountDetail `json:"accounts"`
}

func accountList(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "account list",
		Summary:  "List the accounts with everything but their secrets",
		Effect:   discovery.Admin,
		Standing: true,
		Examples: []string{"account list", "account list --fields name,mode"},
	}, func(ctx context.Context, _ *discovery.Call, _ *struct{}) (*AccountListResult, error) {
		accounts, err := d.Store.Accounts(ctx)
		if err != nil {
			return nil, err
		}
		return &AccountListResult{answer.Each(accounts, detailOfAccount)}, nil
	})
}

type accountRow struct {
	Name     string    `json:"name"`
	Email    string    `json:"email"`
	Server   string    `json:"server"`
	Mode     mail.Mode `json:"mode"`
	Destroy  string    `json:"destroy"`
	AllowIn  string    `json:"allow_in"`
	AllowOut string    `json:"allow_out"`
}

// Brief is one row for each account.
func (r *AccountListResult) Brief() answer.List[accountRow] {
	return answer.ListOf(r.Accounts, answer.Rest{}, func(a *AccountDetail) accountRow {
		b := a.brief("", nil)
		return accountRow{b.Name, b.Email, b.IMAP + b.POP3, b.Mode, b.Destroy, plain.Clip(b.AllowIn, answer.MaxShownChars), plain.Clip(b.AllowOut, answer.MaxShownChars)}
	})
}

// Summary implements discovery.Summarizer.
func (r *AccountListResult) Summary() string {
	return answer.Count(len(r.Accounts), "account", "accounts")
}
