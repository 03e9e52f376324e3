package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/postern-mail/postern/commands/admin"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/autoconfig"
	"github.com/postern-mail/postern/mail/login"
	"github.com/postern-mail/postern/vault"
)

// name is the account's.
func (s *setup) name() string { return s.Account[0] }

// exists reports whether something is at the vault's place.
func (s *setup) exists(ctx context.Context) (bool, error) {
	return vault.Exists(ctx, s.Path)
}

// option returns the value of an option among the account's tokens.
func (s *setup) option(name string) (value string, given bool) {
	for i, t := range s.Account {
		if v, ok := strings.CutPrefix(t, name+"="); ok {
			return v, true
		}
		if t == name && i+1 < len(s.Account) {
			return s.Account[i+1], true
		}
	}
	return "", false
}

// add adds an option unless it is there already.
func (s *setup) add(name, value string) {
	if _, given := s.option(name); !given {
		s.Account = append(s.Account, name+"="+value)
	}
}

// addEndpoint adds a server's options; a zero endpoint adds nothing.
func (s *setup) addEndpoint(kind string, e mail.Endpoint) {
	if e.IsZero() {
		return
	}
	s.add("--"+kind+"-host", e.Host)
	s.add("--"+kind+"-port", fmt.Sprint(e.Port))
	s.add("--"+kind+"-security", string(e.Security))
}

// addSentCopy adds the option for a provider that files sent mail itself.
func (s *setup) addSentCopy(found *autoconfig.Settings, smtp mail.Endpoint) {
	if found.Provider != nil && found.Provider.FilesSent && smtp.Loopback() {
		s.add("--sent-copy", string(mail.SentNever))
	}
}

// secret reads a secret from the source that an option names, once.
func (s *setup) secret(ctx context.Context, source string) (mail.Secret, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held, ok := s.secrets[source]
	if !ok {
		var err error
		if held, err = s.ReadSecret(ctx, source); err != nil {
			return mail.Secret{}, err
		}
		s.secrets[source] = held
	}
	// The command wipes the secret it gets.
	return mail.NewSecret([]byte(held.Reveal())), nil
}

// try makes the account in a vault that lasts for this call, and logs in to its
// servers. The checks are those of the servers; the error is the reason why there
// are none.
func (s *setup) try(ctx context.Context) (account mail.Account, checks []admin.Check, err error) {
	v, remove, err := vault.Temporary(ctx, nil)
	if err != nil {
		return account, nil, fmt.Errorf("the account cannot be tried: %w", err)
	}
	defer func() { err = errors.Join(err, remove()) }()
	administrator, err := s.Administer(AdministratorOptions{Vault: v, ReadSecret: s.secret, Keyring: &trialKeyring{}})
	if err != nil {
		return account, nil, err
	}
	defer administrator.Close()
	if _, err := administrator.Run(ctx, append([]string{"account", "add"}, s.Account...)...); err != nil {
		return account, nil, err
	}
	if account, err = v.Account(ctx, s.name()); err != nil {
		return account, nil, err
	}
	if account.Auth == mail.AuthOAuth2 {
		line := []string{"account", "authorize", account.Name}
		if s.Device {
			line = append(line, "--device")
		}
		if _, err := administrator.Run(ctx, line...); err != nil {
			return account, nil, err
		}
	}
	found, err := administrator.Run(ctx, "doctor", "--account="+account.Name, "--timeout", "60")
	if err != nil {
		return account, nil, err
	}
	for _, c := range found.(admin.DoctorResult).Checks {
		if c.Name != "vault" {
			checks = append(checks, c)
		}
	}
	if account.Auth == mail.AuthOAuth2 {
		// The provider may have rotated the token by now.
		err = v.RefreshToken(ctx, account.Name, func(_ context.Context, o mail.OAuthSecrets) (mail.Secret, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.refresh = mail.NewSecret([]byte(o.RefreshToken.Reveal()))
			return mail.Secret{}, nil // it stays unchanged
		})
	}
	return account, checks, err
}

// failed returns the first check that did not pass, as an error, or nil.
func failed(checks []admin.Check) error {
	for _, c := range checks {
		if !c.OK {
			return &discovery.Fault{Code: c.Code, Message: fmt.Sprintf("Nothing was stored, since the test of %s failed: %s", c.Name, c.Detail), Hint: c.Hint}
		}
	}
	return nil
}

// made is the result of a set-up: the parts it made or found.
type made struct {
	vault.InitResult
	keys     []newKey // the new ones
	accounts []mail.Account
	fallback string // the account that was made the default by this set-up
}

// commitTime bounds the steps that must finish once they have begun.
const commitTime = 60 * time.Second

// commit keeps the keys, makes the vault and adds the account. When it fails, it undoes
// all of that; the error names anything that could not be undone.
func (s *setup) commit(ctx context.Context, chain *keyChain) (m *made, err error) {
	var undo undoing
	defer func() {
		if err == nil {
			return
		}
		if left := undo.run(ctx); len(left) > 0 {
			err = &discovery.Fault{Code: discovery.StoreError, Message: fmt.Sprintf("The set-up failed, and these parts of it could not be undone: %s.", strings.Join(left, ", ")),
				Hint: "Remove them, then run init again. The first failure: " + err.Error(), Err: err}
		}
	}()
	// The keyring may ask a person, who can still stop here.
	for i := range chain.fresh {
		if err := s.keep(ctx, &chain.fresh[i], &undo); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTime)
	defer cancel()
	m = &made{keys: chain.fresh}
	if m.InitResult, err = s.makeVault(ctx, chain.Keys, &undo); err != nil {
		return nil, err
	}
	v, err := vault.Open(ctx, s.Path, vault.Keys{Admin: chain.Admin}, nil)
	if err != nil {
		return nil, err
	}
	if s.Account != nil {
		if m.fallback, err = s.addAccount(ctx, v, &undo); err != nil {
			return nil, err
		}
	}
	m.accounts, err = v.Accounts(ctx)
	return m, err
}

// makeVault makes the vault, or opens an existing one, for which the administrator's
// key is enough.
func (s *setup) makeVault(ctx context.Context, keys vault.Keys, undo *undoing) (vault.InitResult, error) {
	there, err := s.exists(ctx)
	if err != nil {
		return vault.InitResult{}, err
	}
	if there && keys.Agent.IsZero() {
		v, err := vault.Open(ctx, s.Path, vault.Keys{Admin: keys.Admin}, nil)
		if err != nil {
			return vault.InitResult{}, err
		}
		return vault.InitResult{Path: v.Path(), Fingerprint: v.Fingerprint()}, nil
	}
	if err := undo.makeDir(filepath.Dir(vault.Beside(s.Path))); err != nil {
		return vault.InitResult{}, err
	}
	r, err := vault.Init(ctx, s.Path, keys)
	if address, _ := vault.IsAddress(s.Path); r.Created {
		undo.add(r.Path, func(ctx context.Context) error { return vault.Remove(ctx, s.Path) })
	} else if !there && !address {
		undo.add(s.Path+".lock", func(context.Context) error { return os.RemoveAll(s.Path + ".lock") })
	}
	return r, err
}

// addAccount adds the account with its lists, by the administrator's commands, so
// that each is in the audit log. Beside a first account the second would leave commands
// without one that they mean when they name none: the first stays that, and is returned.
func (s *setup) addAccount(ctx context.Context, v *vault.Vault, undo *undoing) (fallback string, err error) {
	before, err := v.Accounts(ctx)
	if err != nil {
		return "", err
	}
	configured, err := v.Setting(ctx, "default_account")
	if err != nil {
		return "", err
	}
	if len(before) == 1 && before[0].Name != "default" && s.name() != "default" && configured == "" {
		fallback = before[0].Name
	}
	admin, err := s.Administer(AdministratorOptions{Vault: v, ReadSecret: s.secret,
		Authorize: func(context.Context, *mail.Account, mail.Secret, login.AuthorizeOptions) (mail.Secret, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return mail.NewSecret([]byte(s.refresh.Reveal())), nil
		}})
	if err != nil {
		return "", err
	}
	defer admin.Close()
	if _, err := admin.Run(ctx, append([]string{"account", "add"}, s.Account...)...); err != nil {
		return "", err
	}
	undo.add("the account "+s.name(), func(ctx context.Context) error {
		admin, err := s.Administer(AdministratorOptions{Vault: v})
		if err != nil {
			return err
		}
		defer admin.Close()
		_, err = admin.Run(ctx, "account", "remove", s.name())
		return err
	})
	a, err := v.Account(ctx, s.name())
	if err != nil {
		return "", err
	}
	var lines [][]string
	if a.Auth == mail.AuthOAuth2 {
		lines = append(lines, []string{"account", "authorize", a.Name})
	}
	if len(s.AllowOut) > 0 && !slices.Equal(s.AllowOut, a.AllowOut.Entries) {
		if slices.Contains(a.AllowOut.Entries, "*") { // as the modes approve and reply begin
			lines = append(lines, []string{"allow", "out", "remove", "--account=" + a.Name, "--", "*"})
		}
		lines = append(lines, append([]string{"allow", "out", "add", "--account=" + a.Name, "--"}, s.AllowOut...))
	}
	if len(s.AllowIn) > 0 {
		lines = append(lines, append([]string{"allow", "in", "add", "--account=" + a.Name, "--"}, s.AllowIn...), []string{"account", "edit", a.Name, "--allow-in=on"})
	}
	if len(s.Known) > 0 {
		lines = append(lines, append([]string{"allow", "in", "add", "--account=" + a.Name, "--"}, s.Known...))
	}
	if fallback != "" {
		lines = append(lines, []string{"config", "set", "default_account", fallback})
	}
	for _, line := range lines {
		if _, err := admin.Run(ctx, line...); err != nil {
			return "", err
		}
	}
	return fallback, nil
}

// trialKeyring is the keyring of a trial, in memory, so that the system's is not
// touched. The zero trialKeyring is empty.
type trialKeyring struct{ kept sync.Map }

var _ Keyring = (*trialKeyring)(nil)

func (k *trialKeyring) Secret(_ context.Context, name string) (mail.Secret, error) {
	value, ok := k.kept.Load(name)
	if !ok {
		return mail.Secret{}, mail.ErrNotInKeyring
	}
	return mail.NewSecret([]byte(value.(string))), nil
}

func (k *trialKeyring) Set(_ context.Context, name string, s mail.Secret) error {
	k.kept.Store(name, s.Reveal())
	return nil
}

func (k *trialKeyring) Delete(_ context.Context, name string) error {
	if _, ok := k.kept.LoadAndDelete(name); !ok {
		return mail.ErrNotInKeyring
	}
	return nil
}
