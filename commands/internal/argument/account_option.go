package argument

import (
	"context"
	"fmt"
	"strings"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault"
)

// AccountOption is the option of every command that works on one account.
type AccountOption struct {
	Account string `json:"account,omitempty" acli:"form=account,global" jsonschema_description:"Account name; the default account if left out"`
}

// OnAccount is promoted to the arguments of every command that embeds the option.
func (o AccountOption) OnAccount() string { return o.Account }

// AccountsOption is the option of a command that works on one account or on all.
type AccountsOption struct {
	Account string `json:"account,omitempty" acli:"form=account,global" jsonschema_description:"Account name, or all for every account; the default account if left out"`
}

func (o AccountsOption) OnAccount() string { return o.Account }

// OnAll reports whether the option can mean every account.
func (o AccountsOption) OnAll() bool { return o.Account == AllAccounts }

// AllAccounts is the value of --account for every account at once.
const AllAccounts = "all"

// AccountStore is what the option --account is resolved with; a vault is one.
type AccountStore interface {
	Accounts(ctx context.Context) ([]mail.Account, error)
	AllSettings(ctx context.Context) ([]vault.Setting, error)
}

// Resolve resolves the option: as given, else the configured default, else the
// account named default, else the only one. It notes the name for the audit entry.
func (o AccountOption) Resolve(ctx context.Context, call *discovery.Call, s AccountStore) (string, error) {
	name := o.Account
	if name == "" {
		var err error
		if name, err = DefaultAccount(ctx, s); err != nil {
			return "", err
		}
	}
	call.Account = name
	return name, nil
}

// DefaultAccount is the account that a command works on which names none, or why there is none.
func DefaultAccount(ctx context.Context, s AccountStore) (string, error) {
	accounts, err := s.Accounts(ctx)
	if err != nil {
		return "", err
	}
	values, err := Settings(ctx, s)
	if err != nil {
		return "", err
	}
	name, refusal := DefaultOf(accounts, values["default_account"])
	if refusal != nil {
		return "", refusal
	}
	return name, nil
}

// Settings are the values in force, by name.
func Settings(ctx context.Context, s AccountStore) (map[string]string, error) {
	all, err := s.AllSettings(ctx)
	values := make(map[string]string, len(all))
	for _, s := range all {
		values[s.Name] = s.Value
	}
	return values, err
}

// DefaultOf is DefaultAccount of these accounts and this setting default_account.
func DefaultOf(accounts []mail.Account, configured string) (string, *discovery.Fault) {
	names := make([]string, len(accounts))
	for i, a := range accounts {
		names[i] = a.Name
		if a.Name == configured || configured == "" && a.Name == "default" {
			return a.Name, nil
		}
	}
	if configured != "" {
		return "", &discovery.Fault{Code: discovery.ConfigError, Message: "The setting default_account names an account that does not exist.",
			Hint: "Name one with --account, or the administrator changes it with 'config set default_account NAME'."}
	}
	switch len(names) {
	case 0:
		return "", ErrNoAccountYet
	case 1:
		return names[0], nil
	}
	return "", &discovery.Fault{Code: discovery.ValidationError, Message: "There are several accounts and none of them is the default.",
		Hint: fmt.Sprintf("Name one with --account: %s.", strings.Join(names, ", "))}
}

var ErrNoAccountYet = &discovery.Fault{Code: discovery.ConfigError, Message: "There is no account yet.", Hint: "The administrator adds one with 'postern init', which asks, or with 'account add'."}
