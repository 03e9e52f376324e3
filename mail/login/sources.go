package login

import (
	"context"
	"os"
	"time"

	"github.com/postern-mail/postern/mail"
)

// Options sets CredentialSources up. Only Directory is needed.
type Options struct {
	Directory mail.Directory   // gives the passwords of accounts with AuthPassword
	Tokens    mail.TokenStore  // nil: no account with AuthOAuth2 can log in
	Keyring   Keyring          // nil means a SystemKeyring
	Environ   []string         // NAME=value, of which helpers get the harmless part; nil means the process's own
	Now       func() time.Time // nil means time.Now
}

// Sources gives each account's credential from where its Auth says: the
// Directory, an OAuth 2.0 provider, a helper command or the system keyring. It keeps tokens
// and helpers' passwords in memory alone, until the account no longer needs it or Close. It
// is safe for concurrent use. Its own failures are *Error; those of the Directory pass
// unchanged.
type Sources struct {
	directory mail.Directory
	oauth     *oauthSource // nil without a TokenStore
	graph     *oauthSource // that of tokens for Microsoft Graph; nil without a TokenStore
	helpers   *helperSource
	keyring   Keyring
}

var _ Credentials = (*Sources)(nil)

// New makes CredentialSources. It asks nobody for anything yet. Call
// Close to end it.
func New(o Options) *Sources {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	if o.Keyring == nil {
		o.Keyring = &SystemKeyring{}
	}
	c := &Sources{directory: o.Directory, keyring: o.Keyring, helpers: newHelperSource(o.Environ, o.Now)}
	if o.Tokens != nil {
		c.oauth, c.graph = newOAuthSource(o.Tokens, o.Now), newOAuthSource(o.Tokens, o.Now)
		c.graph.graph = true
	}
	return c
}

// Credential implements Credentials. A password is fetched for each login, so that a
// changed one is used at once; a helper is run once, as HelperTime and HelperPause say.
func (c *Sources) Credential(ctx context.Context, a *mail.Account) (Credential, error) {
	var s mail.Secret
	var err error
	switch a.Auth {
	case mail.AuthPassword:
		s, err = c.directory.Secret(ctx, a.Name)
	case mail.AuthKeyring:
		s, err = c.keyring.Secret(ctx, a.Name)
	case mail.AuthHelper:
		s, err = c.helpers.Secret(ctx, a)
	case mail.AuthOAuth2:
		if c.oauth == nil {
			return Credential{}, credentialError(a.Name, mail.KindUnsupported, "The account logs in with OAuth2, which is not available here.",
				mail.AdviceGivePassword, nil)
		}
		s, err = c.oauth.Token(ctx, a)
	default:
		return Credential{}, credentialError(a.Name, mail.KindConfig, "The account's way to log in is not set.", mail.AdviceChooseLogin, nil)
	}
	if err != nil {
		return Credential{}, err
	}
	return Credential{Secret: s, Bearer: a.Auth == mail.AuthOAuth2}, nil
}

// Refused implements Credentials. There is no newer password than the one that the
// Directory or the keyring gave just now.
func (c *Sources) Refused(_ context.Context, a *mail.Account, refused Credential) (again bool) {
	switch {
	case a.Auth == mail.AuthOAuth2 && refused.Bearer && c.oauth != nil:
		return c.oauth.Refused(a, refused.Secret)
	case a.Auth == mail.AuthHelper && !refused.Bearer:
		return c.helpers.Refused(a, refused.Secret)
	}
	return false
}

// Close ends the helpers that are running, and forgets and overwrites what is kept.
// It returns when the helpers are gone and no refresh of a token is under way that
// could be lost; a caller that waits for a credential gets an error.
func (c *Sources) Close() error {
	c.helpers.Close()
	if c.oauth != nil {
		c.oauth.Close()
	}
	if c.graph != nil {
		c.graph.Close()
	}
	return nil
}

// ForGraph returns the Credentials of accounts that send with Microsoft Graph. They last as
// long as c.
func (c *Sources) ForGraph() Credentials {
	return &Sources{directory: c.directory, oauth: c.graph, helpers: c.helpers, keyring: c.keyring}
}

// credentialError is a failure to get a credential. Neither sentence holds
// anything that a helper, a keyring or a provider said.
func credentialError(account string, kind mail.Kind, message string, advice mail.Advice, cause error) *mail.Error {
	return &mail.Error{Op: "mail login", Account: account, Kind: kind, Stage: "credential", Message: message, Advice: advice,
		Retryable: kind == mail.KindTimeout || kind == mail.KindAuth, Err: cause}
}
