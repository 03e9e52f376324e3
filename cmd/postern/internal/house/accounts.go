package house

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault"
)

// The accounts of a store are those of the vault and those that the environment
// describes. A name stands for one account: where both have it, neither is used.

// Accounts implements mail.Directory. It leaves out accounts outside the caller's scope, as
// Account and Secret do.
func (s *store) Accounts(ctx context.Context) ([]mail.Account, error) {
	if s.environmentErr != nil {
		return nil, s.environmentErr
	}
	if s.temporary && !s.Opened() { // a vault that is still to be made has none
		accounts, err := s.environment.Accounts(ctx)
		return inScope(ctx, accounts), err
	}
	accounts, err := s.Vault.Accounts(ctx)
	accounts = inScope(ctx, accounts) // before anything is said of one
	if err != nil || s.environment.Len() == 0 {
		return accounts, err
	}
	for _, a := range accounts {
		if s.environment.Has(a.Name) {
			return nil, s.twice(a.Name)
		}
	}
	more, err := s.environment.Accounts(ctx)
	if err != nil {
		return nil, err
	}
	accounts = append(accounts, more...)
	slices.SortFunc(accounts, func(a, b mail.Account) int { return strings.Compare(a.Name, b.Name) })
	return inScope(ctx, accounts), nil
}

// Account implements mail.Directory. The error for an account that does not exist for the
// caller knows those that do.
func (s *store) Account(ctx context.Context, name string) (mail.Account, error) {
	a, err := s.account(ctx, name)
	if errors.Is(err, mail.ErrNoAccount) {
		missing := &mail.NoAccount{Name: name}
		accounts, listErr := s.Accounts(ctx)
		if listErr != nil {
			return a, err
		}
		for _, known := range accounts {
			missing.Known = append(missing.Known, known.Name)
		}
		err = missing
	}
	return a, err
}

func (s *store) account(ctx context.Context, name string) (mail.Account, error) {
	d, err := s.directoryOf(ctx, name)
	if err != nil {
		return mail.Account{}, err
	}
	return d.Account(ctx, name)
}

// Secret implements mail.Directory.
func (s *store) Secret(ctx context.Context, name string) (mail.Secret, error) {
	d, err := s.directoryOf(ctx, name)
	if err != nil {
		return mail.Secret{}, err
	}
	return d.Secret(ctx, name)
}

// directoryOf is where an account within the caller's scope is: the vault, or the environment.
func (s *store) directoryOf(ctx context.Context, name string) (mail.Directory, error) {
	if err := outOfScope(ctx, name); err != nil {
		return nil, err
	}
	if fromEnvironment, err := s.fromEnvironment(ctx, name); err != nil {
		return nil, err
	} else if fromEnvironment {
		return s.environment, nil
	}
	return s.Vault, nil
}

// fromEnvironment reports whether the environment has the account, and the vault
// has not.
func (s *store) fromEnvironment(ctx context.Context, name string) (bool, error) {
	if s.environmentErr != nil || !s.environment.Has(name) {
		return false, s.environmentErr
	}
	_, err := s.Vault.Account(ctx, name)
	switch {
	case err == nil:
		return false, s.twice(name)
	case errors.Is(err, mail.ErrNoAccount):
		return true, nil
	}
	return false, err
}

func (s *store) twice(name string) error {
	return &discovery.Fault{Code: discovery.ConfigError, Message: fmt.Sprintf("There are two accounts named %s: one in the vault and one in the environment.", name),
		Hint: fmt.Sprintf("Unset %s and what belongs to it, or give that account another name.", s.environment.Variable(name))}
}

// unlessFixed refuses to change an account that the environment describes.
func (s *store) unlessFixed(ctx context.Context, name string, change func() error) error {
	fixed, err := s.fromEnvironment(ctx, name)
	switch {
	case err != nil:
		return err
	case fixed:
		return &discovery.Fault{Code: discovery.ConfigError, Message: fmt.Sprintf("The account %s comes from the environment, so it cannot be changed here.", name),
			Hint: fmt.Sprintf("Change %s and what belongs to it, and start again; or unset them and run 'account add'.", s.environment.Variable(name))}
	}
	return change()
}

func (s *store) AddAccount(ctx context.Context, a mail.Account, secret mail.Secret) error {
	if s.environment.Has(a.Name) {
		return vault.ErrExists
	}
	return s.Vault.AddAccount(ctx, a, secret)
}

func (s *store) UpdateAccount(ctx context.Context, name string, change func(*mail.Account) error, secret *mail.Secret) error {
	return s.unlessFixed(ctx, name, func() error { return s.Vault.UpdateAccount(ctx, name, change, secret) })
}

func (s *store) RemoveAccount(ctx context.Context, name string) error {
	return s.unlessFixed(ctx, name, func() error { return s.Vault.RemoveAccount(ctx, name) })
}

func (s *store) SetConsent(ctx context.Context, name string, refresh mail.Secret) error {
	return s.unlessFixed(ctx, name, func() error { return s.Vault.SetConsent(ctx, name, refresh) })
}

// passing makes a vault that lasts as long as the process, for accounts that the
// environment describes where there is no key to a vault. Its keys exist only in this
// process: nobody can open what a crash leaves behind.
func (s *store) passing() {
	s.temporary, s.asks = true, true // making one is too much for help
	s.open = func(ctx context.Context) (*vault.Vault, error) {
		if s.environmentErr != nil {
			return nil, s.environmentErr
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.closed {
			return nil, errEnding
		}
		v, remove, err := vault.Temporary(ctx, nil)
		if err != nil {
			return nil, fmt.Errorf("no vault can be made for accounts of the environment: %w", err)
		}
		s.remove = remove
		return v, nil
	}
}

var errEnding = errors.New("the program is ending")

// Close removes what passing made. It waits while the vault is being made.
func (s *store) Close() {
	if !s.temporary {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.remove == nil {
		return
	}
	for range 3 { // somebody may be taking the lock beside the vault meanwhile
		if s.remove() == nil {
			return
		}
	}
}

// keyless reports whether the environment neither gives a key in any form nor says
// where a vault is, and none is where 'postern init' makes one: accounts of the environment stand
// beside those of a vault, and never in their place.
func (s *System) keyless() bool {
	if s.hasKey(vault.AdminKeyVar) || s.hasKey(vault.AgentKeyVar) || s.Getenv("POSTERN_DB") != "" {
		return false
	}
	path, err := vault.DefaultPath(s.Getenv)
	return err != nil || !isFile(path)
}
