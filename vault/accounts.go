package vault

import (
	"context"
	"crypto/hmac"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/postern-mail/postern/mail"
)

// Accounts returns every account, sorted by name. It implements mail.Directory.
func (v *Vault) Accounts(ctx context.Context) ([]mail.Account, error) {
	p, err := v.readPolicyOnce(ctx)
	if err != nil {
		return nil, err
	}
	accounts := []mail.Account{}
	for _, name := range slices.Sorted(maps.Keys(p.records[bucketAccounts])) {
		a, err := p.account(name)
		if err != nil {
			return nil, err
		}
		accounts = append(accounts, a)
	}
	return accounts, nil
}

// Account returns one account, or an error that matches mail.ErrNoAccount.
func (v *Vault) Account(ctx context.Context, name string) (mail.Account, error) {
	p, err := v.readPolicyOnce(ctx)
	if err != nil {
		return mail.Account{}, err
	}
	return p.account(name)
}

// Secret returns the sealed password of the account. The error matches
// ErrNoSecret for an account whose credential comes from elsewhere, or which has
// tokens instead (see RefreshToken), and mail.ErrNoAccount for one that does not
// exist.
func (v *Vault) Secret(ctx context.Context, name string) (mail.Secret, error) {
	var secret mail.Secret
	err := v.view(ctx, func(t *transaction) error {
		p, err := v.policy(t)
		if err != nil {
			return err
		}
		a, err := p.account(name)
		if err != nil {
			return err
		}
		if a.Auth == mail.AuthOAuth2 {
			return fmt.Errorf("%w %s: auth oauth2 has tokens instead", ErrNoSecret, name)
		}
		plain, err := v.verifiedSecret(t, p, name)
		if err != nil {
			return err
		}
		defer clear(plain)
		secret = mail.NewSecret(plain)
		return nil
	})
	return secret, err
}

// verifiedSecret returns the sealed secret of the account, which the caller clears.
func (v *Vault) verifiedSecret(t *transaction, p *policy, name string) ([]byte, error) {
	digest, ok := p.records[bucketSecrets][name]
	if !ok {
		return nil, fmt.Errorf("%w %s", ErrNoSecret, name)
	}
	// The value is not kept in memory, so it is read again and compared with the verified
	// digest.
	plain, err := t.get(bucketSecrets, []byte(name))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUntrustedPolicy, err)
	}
	if !hmac.Equal(v.secretDigest(name, plain), digest) {
		clear(plain)
		return nil, fmt.Errorf("%w: the secret of account %s was replaced", ErrUntrustedPolicy, name)
	}
	return plain, nil
}

// AddAccount adds an account with its secret: the password, or with
// mail.AuthOAuth2 the client secret, which a public client does without; such an
// account is of use only after SetConsent. The credential sources helper and
// keyring have no secret here. Only the admin may call it. Errors match
// ErrAdminRequired, ErrExists or ErrInvalid.
func (v *Vault) AddAccount(ctx context.Context, a mail.Account, secret mail.Secret) error {
	record, err := encodeAccount(&a)
	if err != nil {
		return err
	}
	return v.change(ctx, func(c *policyChange) error {
		if _, ok := c.p.records[bucketAccounts][a.Name]; ok {
			return fmt.Errorf("%w: %s", ErrExists, a.Name)
		}
		if err := c.put(bucketAccounts, a.Name, record); err != nil {
			return err
		}
		return c.settleSecret(nil, &a, &secret)
	})
}

// UpdateAccount lends the account to edit, which must not call the vault, and keeps the
// result; an error of edit changes nothing. The name cannot change. The secret is that of
// AddAccount; nil keeps the present one where the credential source stays the same, and a
// source without a secret drops it. With mail.AuthOAuth2 any other change of
// Account.OAuth ends the owner's consent. Only the admin may call it.
func (v *Vault) UpdateAccount(ctx context.Context, name string, edit func(*mail.Account) error, secret *mail.Secret) error {
	return v.change(ctx, func(c *policyChange) error {
		a, err := c.p.account(name)
		if err != nil {
			return err
		}
		before, err := c.p.account(name)
		if err != nil {
			return err
		}
		if err := edit(&a); err != nil {
			return err
		}
		if a.Name != name {
			return fmt.Errorf("%w: an account cannot be renamed", ErrInvalid)
		}
		record, err := encodeAccount(&a)
		if err != nil {
			return err
		}
		if err := c.put(bucketAccounts, name, record); err != nil {
			return err
		}
		return c.settleSecret(&before, &a, secret)
	})
}

// RemoveAccount removes an account with its secret, its tokens, the seen state of its
// folders and what is known of its drafts. State that packages keep under its name stays. Only the admin may call it.
func (v *Vault) RemoveAccount(ctx context.Context, name string) error {
	return v.change(ctx, func(c *policyChange) error {
		if _, ok := c.p.records[bucketAccounts][name]; !ok {
			return noAccount(name)
		}
		if err := c.drop(bucketSecrets, name); err != nil {
			return err
		}
		if err := dropToken(c.t, name); err != nil {
			return err
		}
		if err := errors.Join(dropOf(c.t, seenBucket, name), dropOf(c.t, draftsBucket, name)); err != nil {
			return err
		}
		if err := c.forgetAccount(name); err != nil {
			return err
		}
		if string(c.p.records[bucketSettings]["default_account"]) == name { // else no command would know which is meant
			if err := c.drop(bucketSettings, "default_account"); err != nil {
				return err
			}
		}
		return c.drop(bucketAccounts, name)
	})
}

// settleSecret fits the secret to the account's credential source. before is the
// account before the change, nil for a new one.
func (c *policyChange) settleSecret(before, a *mail.Account, secret *mail.Secret) error {
	if a.Auth == mail.AuthOAuth2 {
		return c.settleOAuth(before, a, secret)
	}
	if before != nil && before.Auth == mail.AuthOAuth2 {
		if err := errors.Join(dropToken(c.t, a.Name), c.drop(bucketSecrets, a.Name)); err != nil {
			return err
		}
	}
	given := secret != nil && !secret.IsZero()
	if a.Auth == mail.AuthHelper || a.Auth == mail.AuthKeyring {
		if given {
			return fmt.Errorf("%w: auth %s keeps no secret in the vault", ErrInvalid, a.Auth)
		}
		return c.drop(bucketSecrets, a.Name)
	}
	if given {
		plain := []byte(secret.Reveal())
		defer clear(plain)
		return c.put(bucketSecrets, a.Name, plain)
	}
	if _, ok := c.p.records[bucketSecrets][a.Name]; !ok || secret != nil {
		return fmt.Errorf("%w: auth %s needs a secret", ErrInvalid, a.Auth)
	}
	return nil
}

func encodeAccount(a *mail.Account) ([]byte, error) {
	if err := a.Validate(); err != nil {
		return nil, fmt.Errorf("%w: account: %w", ErrInvalid, err)
	}
	return json.Marshal(a)
}

// account decodes the record each time, so that callers do not share slices.
func (p *policy) account(name string) (mail.Account, error) {
	record, ok := p.records[bucketAccounts][name]
	if !ok {
		return mail.Account{}, noAccount(name)
	}
	var a mail.Account
	if err := decodeStrict(record, &a); err != nil {
		return mail.Account{}, fmt.Errorf("%w: account %s: %w", ErrFutureFormat, name, err)
	}
	if a.Name != name {
		return mail.Account{}, fmt.Errorf("%w: account %s has another name inside", ErrDamaged, name)
	}
	return a, nil
}

func noAccount(name string) error {
	if !mail.ValidAccountName(name) {
		return mail.ErrNoAccount // the error does not repeat an invalid name
	}
	return fmt.Errorf("%w: %s", mail.ErrNoAccount, name)
}
