package mail

import (
	"context"
	"os"
	"time"
)

// CredentialOptions sets CredentialSources up. Only Directory is needed.
type CredentialOptions struct {
	Directory Directory        // gives the passwords of accounts with AuthPassword
	Tokens    TokenStore       // nil: no account with AuthOAuth2 can log in
	Keyring   Keyring          // nil means a SystemKeyring
	Environ   []string         // NAME=value, what helpers get the harmless part of; nil means the process's own
	Now       func() time.Time // nil means time.Now
}

// CredentialSources gives each account's credential from where its Auth says: the
// Directory, an OAuth 2.0 provider, a helper command or the system keyring. What
// it keeps, tokens and what helpers gave, it keeps in memory alone, until the
// account no longer needs it or Close. It is safe for concurrent use. Its own
// failures are *Error; those of the Directory pass as they are.
type CredentialSources struct {
	directory Directory
	oauth     tokenSource // nil without a TokenStore
	helpers   *helperSource
	keyring   Keyring
}

// tokenSource gives access tokens; *oauthSource implements it.
type tokenSource interface {
	Token(ctx context.Context, a *Account) (Secret, error)
	Refused(a *Account, token Secret) (again bool)
	Close()
}

var _ Credentials = (*CredentialSources)(nil)

// NewCredentials makes CredentialSources. It asks nobody for anything yet. Call
// Close to end it.
func NewCredentials(o CredentialOptions) *CredentialSources {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	if o.Keyring == nil {
		o.Keyring = &SystemKeyring{}
	}
	c := &CredentialSources{directory: o.Directory, keyring: o.Keyring, helpers: newHelperSource(o.Environ, o.Now)}
	if o.Tokens != nil {
		c.oauth = newOAuthSource(o.Tokens, o.Now)
	}
	return c
}

// Credential implements Credentials. A password is fetched anew for each login, so
// that one that was changed holds at once; a helper is run once, as HelperTime and
// HelperPause say.
func (c *CredentialSources) Credential(ctx context.Context, a *Account) (Credential, error) {
	var s Secret
	var err error
	switch a.Auth {
	case AuthPassword:
		s, err = c.directory.Secret(ctx, a.Name)
	case AuthKeyring:
		s, err = c.keyring.Secret(ctx, a.Name)
	case AuthHelper:
		s, err = c.helpers.Secret(ctx, a)
	case AuthOAuth2:
		if c.oauth == nil {
			return Credential{}, credentialError(a.Name, KindUnsupported, "The account logs in with OAuth2, which is not available here.",
				"Give the account a password with 'account edit'; many providers offer app passwords.", nil)
		}
		s, err = c.oauth.Token(ctx, a)
	default:
		return Credential{}, credentialError(a.Name, KindConfig, "It is not set how the account logs in.", "Set it with 'account edit NAME --auth password'.", nil)
	}
	if err != nil {
		return Credential{}, err
	}
	return Credential{Secret: s, Bearer: a.Auth == AuthOAuth2}, nil
}

// Refused implements Credentials. There is no newer password than the one that the
// Directory or the keyring gave just now.
func (c *CredentialSources) Refused(_ context.Context, a *Account, refused Credential) (again bool) {
	switch {
	case a.Auth == AuthOAuth2 && refused.Bearer && c.oauth != nil:
		return c.oauth.Refused(a, refused.Secret)
	case a.Auth == AuthHelper && !refused.Bearer:
		return c.helpers.Refused(a, refused.Secret)
	}
	return false
}

// Close ends the helpers that are running, and forgets and overwrites what is kept.
// It returns when the helpers are gone and no refresh of a token is under way that
// could be lost; whoever waits for a credential gets an error.
func (c *CredentialSources) Close() error {
	c.helpers.Close()
	if c.oauth != nil {
		c.oauth.Close()
	}
	return nil
}

// credentialError is a failure to get a credential. Neither sentence holds
// anything that a helper, a keyring or a provider said.
func credentialError(account string, kind Kind, message, hint string, cause error) *Error {
	return &Error{Op: "mail login", Account: account, Kind: kind, Stage: "credential", Message: message, Hint: hint,
		Retryable: kind == KindTimeout || kind == KindAuth, Err: cause}
}
