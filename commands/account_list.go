package commands

import (
	"context"

	"github.com/postern-mail/postern/discovery"
)

// AccountListResult answers account list.
type AccountListResult struct {
	Accounts []AccountDetail `json:"accounts"`
}

func accountList(d *Deps) *discovery.Command {
	return newCommand(discovery.Spec{
		Path:     "account list",
		Summary:  "List the accounts with everything but their secrets",
		Effect:   discovery.Admin,
		Examples: []string{"account list", "account list --fields accounts.name,accounts.mode"},
	}, func(ctx context.Context, _ *discovery.Call, _ *struct{}) (*AccountListResult, error) {
		accounts, err := d.Store.Accounts(ctx)
		if err != nil {
			return nil, err
		}
		r := &AccountListResult{Accounts: []AccountDetail{}}
		for i := range accounts {
			r.Accounts = append(r.Accounts, detailOfAccount(&accounts[i]))
		}
		return r, nil
	})
}

// Summary implements discovery.Summarizer.
func (r *AccountListResult) Summary() string { return count(len(r.Accounts), "account", "accounts") }
