package vault

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/postern-mail/postern/mail"
)

var _ mail.TokenStore = (*Vault)(nil)

const (
	// tokenBucket holds, by account, the refresh token that a provider gave in
	// exchange for an earlier one. Any process may write it, since any may receive
	// it; it counts only as long as it descends from the consent that the admin
	// signed.
	tokenBucket = "oauth"

	// tokenKeep bounds how long a rotated token may take to be written. It does not
	// end with the caller's context: the token before it is already used up.
	tokenKeep = 30 * time.Second
)

// oauthSecret is the sealed and signed record of an account with mail.AuthOAuth2.
type oauthSecret struct {
	ClientSecret []byte `json:"client_secret,omitempty"`
	RefreshToken []byte `json:"refresh_token,omitempty"` // from the consent; empty before it
	Consent      []byte `json:"consent,omitempty"`       // random, so that no two consents are the same
}

func (s *oauthSecret) wipe() {
	clear(s.ClientSecret)
	clear(s.RefreshToken)
}

// rotatedToken is a record of tokenBucket.
type rotatedToken struct {
	Consent      []byte `json:"consent"` // keyed digest of the consent it descends from
	RefreshToken []byte `json:"refresh_token"`
}

// SetConsent keeps the refresh token that an account's owner has just agreed to, with the
// present client secret, in place of every earlier token. Only the admin may call it.
// Errors match ErrAdminRequired, mail.ErrNoAccount, or ErrInvalid for an account that does
// not log in with OAuth 2.0 and for an empty token.
func (v *Vault) SetConsent(ctx context.Context, account string, refresh mail.Secret) error {
	return v.change(ctx, func(c *policyChange) error {
		a, err := c.p.account(account)
		if err != nil {
			return err
		}
		if a.Auth != mail.AuthOAuth2 || refresh.IsZero() {
			return fmt.Errorf("%w: a consent needs a refresh token and an account with auth oauth2", ErrInvalid)
		}
		s, err := c.oauthSecret(account)
		if err != nil {
			return err
		}
		defer s.wipe()
		s.RefreshToken = []byte(refresh.Reveal())
		s.Consent = make([]byte, 16)
		if _, err := rand.Read(s.Consent); err != nil {
			return err
		}
		if err := dropToken(c.t, account); err != nil {
			return err
		}
		return c.putOAuthSecret(account, s)
	})
}

// ClientSecret returns the client secret of an account with mail.AuthOAuth2, to ask
// its owner for consent; the zero Secret for a public client. Only the admin may
// call it. Errors match ErrAdminRequired, mail.ErrNoAccount, or ErrNoSecret for an
// account that logs in otherwise.
func (v *Vault) ClientSecret(ctx context.Context, account string) (secret mail.Secret, err error) {
	if err := v.Ready(ctx); err != nil {
		return secret, err
	}
	if !v.Admin() {
		return secret, ErrAdminRequired
	}
	err = v.view(ctx, func(t *transaction) error {
		s, _, err := v.readOAuthSecret(t, account)
		if errors.Is(err, errNotOAuth) {
			return fmt.Errorf("%w %s", ErrNoSecret, account)
		}
		if err != nil {
			return err
		}
		defer s.wipe()
		secret = mail.NewSecret(s.ClientSecret)
		return nil
	})
	return secret, err
}

// RefreshToken implements mail.TokenStore. It is exclusive among all processes that
// share the vault, by a lock beside it for each account, which the system releases
// when a process dies; the vault itself is locked only to read and to write.
//
// A process that dies between the provider's answer and the write loses the rotated
// token, and where the provider accepts each token once the owner must agree again.
// Nothing else is done in that time, and a write to the vault is tried before the
// token is lent. While everything is stopped it is not lent.
//
// The error matches mail.ErrConsentChanged when the admin changed the consent while
// exchange ran; its result is not kept then. It matches ErrInvalid for an account
// that does not log in with OAuth 2.0.
func (v *Vault) RefreshToken(ctx context.Context, account string, exchange func(ctx context.Context, s mail.OAuthSecrets) (rotated mail.Secret, err error)) error {
	// A token that cannot be lent needs no lock.
	if err := v.view(ctx, func(t *transaction) error {
		_, _, err := v.lentToken(t, account)
		return err
	}); err != nil {
		return err
	}
	held, unlock, err := v.engine.Lock(ctx, account+".token")
	if err != nil {
		return err
	}
	defer unlock()
	var lent mail.OAuthSecrets
	var before mail.Secret
	var consent []byte
	if err := v.update(held, func(t *transaction) (err error) { // refused where the lock was lost already
		if lent, consent, err = v.lentToken(t, account); err != nil {
			return err
		}
		before = lent.RefreshToken.Clone()
		return cmp.Or(v.mayBegin(t), keepToken(t, account, consent, lent.RefreshToken))
	}); err != nil {
		return err
	}
	defer before.Wipe()
	rotated, err := exchange(held, lent)
	if err != nil || rotated.IsZero() {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tokenKeep)
	defer cancel()
	return v.update(ctx, func(t *transaction) error {
		present, now, err := v.lentToken(t, account)
		if errors.Is(err, mail.ErrNoConsent) || errors.Is(err, errNotOAuth) || err == nil && !hmac.Equal(now, consent) {
			return fmt.Errorf("%w: %s", mail.ErrConsentChanged, account)
		}
		// Where the lock was lost meanwhile, the token of who had it later is the good one.
		if err != nil || !present.RefreshToken.Equal(before) {
			return err
		}
		return keepToken(t, account, consent, rotated)
	})
}

// errNotOAuth reports an account that has no tokens because of how it logs in.
var errNotOAuth = fmt.Errorf("%w: the account does not log in with oauth2", ErrInvalid)

// lentToken returns the secrets for the account's provider, and the digest of their
// consent.
func (v *Vault) lentToken(t *transaction, account string) (lent mail.OAuthSecrets, consent []byte, err error) {
	s, oauth, err := v.readOAuthSecret(t, account)
	if err != nil {
		return lent, nil, err
	}
	defer s.wipe()
	if len(s.RefreshToken) == 0 {
		return lent, nil, fmt.Errorf("%w: %s", mail.ErrNoConsent, account)
	}
	consent = keyedDigest(v.digestKey, []byte("postern consent"), []byte(account), s.Consent, s.RefreshToken)
	lent.Consent, lent.OAuth = hex.EncodeToString(consent), oauth
	lent.ClientSecret = mail.NewSecret(s.ClientSecret)
	lent.RefreshToken = mail.NewSecret(s.RefreshToken)
	record, err := state{t}.Get(tokenBucket, []byte(account))
	if err != nil || record == nil {
		return lent, consent, err
	}
	defer clear(record)
	var r rotatedToken
	if err := json.Unmarshal(record, &r); err != nil || len(r.RefreshToken) == 0 {
		return lent, consent, fmt.Errorf("%w: the refresh token of account %s", ErrDamaged, account)
	}
	defer clear(r.RefreshToken)
	// A token of an earlier consent is no longer of use.
	if hmac.Equal(r.Consent, consent) {
		lent.RefreshToken = mail.NewSecret(r.RefreshToken)
	}
	return lent, consent, nil
}

func keepToken(t *transaction, account string, consent []byte, token mail.Secret) error {
	record, err := json.Marshal(rotatedToken{consent, []byte(token.Reveal())})
	if err != nil {
		return err
	}
	defer clear(record)
	return state{t}.Put(tokenBucket, []byte(account), record)
}

func dropToken(t *transaction, account string) error {
	return state{t}.Delete(tokenBucket, []byte(account))
}

// readOAuthSecret returns the sealed record of an account, and its provider.
func (v *Vault) readOAuthSecret(t *transaction, account string) (s *oauthSecret, at mail.OAuth, err error) {
	p, err := v.policy(t)
	if err != nil {
		return nil, at, err
	}
	a, err := p.account(account)
	if err != nil {
		return nil, at, err
	}
	if a.Auth != mail.AuthOAuth2 {
		return nil, at, errNotOAuth
	}
	plain, err := v.verifiedSecret(t, p, account)
	if err != nil {
		return nil, at, err
	}
	defer clear(plain)
	s, err = parseOAuthSecret(account, plain)
	return s, a.OAuth, err
}

func parseOAuthSecret(account string, plain []byte) (*oauthSecret, error) {
	var s oauthSecret
	// The decoder's error is not repeated: it may quote the secret.
	if decodeStrict(plain, &s) != nil {
		return nil, fmt.Errorf("%w: the oauth2 secrets of account %s", ErrDamaged, account)
	}
	return &s, nil
}

// oauthSecret returns the sealed record of an account that already logs in with OAuth
// 2.0.
func (c *policyChange) oauthSecret(account string) (*oauthSecret, error) {
	plain, err := c.t.get(bucketSecrets, []byte(account))
	if err != nil {
		return nil, err
	}
	defer clear(plain)
	return parseOAuthSecret(account, plain)
}

func (c *policyChange) putOAuthSecret(account string, s *oauthSecret) error {
	plain, err := json.Marshal(s)
	if err != nil {
		return err
	}
	defer clear(plain)
	return c.put(bucketSecrets, account, plain)
}

// settleOAuth fits the sealed secrets to an account that logs in with OAuth 2.0
// from now on. A consent is for one client at one provider and for its scopes: it
// ends when one of them changes, and a client's secret ends with the client. A
// client secret alone can change without a new consent.
func (c *policyChange) settleOAuth(before, a *mail.Account, clientSecret *mail.Secret) error {
	s := &oauthSecret{}
	kept := before != nil && before.Auth == mail.AuthOAuth2
	if kept {
		var err error
		if s, err = c.oauthSecret(a.Name); err != nil {
			return err
		}
	}
	defer s.wipe()
	same := before != nil && before.OAuth.Equal(a.OAuth)
	if kept && same && clientSecret == nil {
		return nil
	}
	if !same {
		s.RefreshToken, s.Consent = nil, nil
		if kept && (before.OAuth.Provider != a.OAuth.Provider || before.OAuth.ClientID != a.OAuth.ClientID) {
			s.ClientSecret = nil
		}
		if err := dropToken(c.t, a.Name); err != nil {
			return err
		}
	}
	if clientSecret != nil {
		s.ClientSecret = []byte(clientSecret.Reveal())
	}
	return c.putOAuthSecret(a.Name, s)
}
