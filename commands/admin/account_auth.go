package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/invopop/jsonschema"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/login"
)

// authOptions say where an account's credential comes from. The source of a secret is not
// secret, but people put the secret itself there.
type authOptions struct {
	Auth                  mail.Auth     `json:"auth,omitempty" jsonschema:"enum=password,enum=oauth2,enum=helper,enum=keyring" jsonschema_description:"Where the credential comes from: the vault (password), an OAuth 2.0 provider, a helper command or the system keyring; password if left out"`
	PasswordFrom          string        `json:"password-from,omitempty" acli:"form=secret,sensitive" jsonschema:"example=stdin,example=env:MAIL_PASSWORD" jsonschema_description:"Where the password is read from: stdin (its first line), env:NAME or file:PATH"`
	Helper                string        `json:"helper,omitempty" acli:"sensitive" jsonschema:"minLength=1,maxLength=9000,example=biosecret get mail" jsonschema_description:"Command whose first line of output is the password, split as a command string is and run without a shell; by absolute path or found in PATH"`
	OAuthProvider         oauthProvider `json:"oauth-provider,omitempty" jsonschema_description:"The OAuth 2.0 provider; all but custom also set the hosts that are not given"`
	OAuthClientID         string        `json:"oauth-client-id,omitempty" jsonschema:"minLength=1,maxLength=512" jsonschema_description:"Client id that the provider gave for this program"`
	OAuthClientSecretFrom string        `json:"oauth-client-secret-from,omitempty" acli:"form=secret,sensitive" jsonschema_description:"Where the client secret is read from, as with --password-from; a public client has none"`
	OAuthTenant           string        `json:"oauth-tenant,omitempty" jsonschema:"minLength=1,maxLength=253" jsonschema_description:"Tenant at microsoft; common if left out"`
	OAuthAuthURL          string        `json:"oauth-auth-url,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"Consent page of a custom provider"`
	OAuthTokenURL         string        `json:"oauth-token-url,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"Token endpoint of a custom provider"`
	OAuthDeviceURL        string        `json:"oauth-device-url,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"Device authorization endpoint of a custom provider"`
	OAuthScopes           []string      `json:"oauth-scope,omitempty" jsonschema:"minLength=1,maxLength=256,maxItems=20" jsonschema_description:"Scopes to ask for instead of the provider's own for mail"`
}

// oauthProvider is one of mail.OAuthProviders.
type oauthProvider string

// JSONSchemaExtend names them.
func (oauthProvider) JSONSchemaExtend(s *jsonschema.Schema) {
	for _, name := range mail.OAuthProviders() {
		s.Enum = append(s.Enum, name)
	}
}

// applyAuth changes where a's credential comes from. Settings of a source that a no longer
// uses are removed.
func (o *authOptions) applyAuth(a *mail.Account, d *Deps) error {
	setIf(&a.Auth, o.Auth)
	for _, b := range []struct {
		option string
		given  bool
		fits   bool
		auths  string
	}{
		{"--password-from", o.PasswordFrom != "", a.Auth == mail.AuthPassword || a.Auth == mail.AuthKeyring, "--auth password or --auth keyring"},
		{"--helper", o.Helper != "", a.Auth == mail.AuthHelper, "--auth helper"},
		{"--oauth-provider and the other --oauth options", o.givesOAuth(), a.Auth == mail.AuthOAuth2, "--auth oauth2"},
	} {
		if b.given && !b.fits {
			return &discovery.Fault{Code: discovery.ValidationError, Message: fmt.Sprintf("%s goes with %s.", b.option, b.auths),
				Hint: fmt.Sprintf("The account has --auth %s; give the other, or leave the option out.", a.Auth)}
		}
	}
	if a.Auth != mail.AuthHelper {
		a.Helper = nil
	}
	if a.Auth != mail.AuthOAuth2 {
		a.OAuth = mail.OAuth{}
	}
	if o.Helper != "" {
		argv, err := d.Tokenize(o.Helper)
		if err != nil {
			return &discovery.Fault{Code: discovery.ValidationError, Message: fmt.Sprintf("--helper cannot be read: %s.", err),
				Hint: "Write it as a command string: quotes around an argument that holds spaces.", Err: err}
		}
		a.Helper = argv
	}
	return o.applyOAuth(&a.OAuth)
}

func (o *authOptions) givesOAuth() bool {
	return o.OAuthProvider != "" || o.OAuthClientID != "" || o.OAuthClientSecretFrom != "" || o.OAuthTenant != "" ||
		o.OAuthAuthURL != "" || o.OAuthTokenURL != "" || o.OAuthDeviceURL != "" || len(o.OAuthScopes) > 0
}

// applyOAuth keeps nothing of another provider.
func (o *authOptions) applyOAuth(a *mail.OAuth) error {
	if p := string(o.OAuthProvider); p != "" && p != a.Provider {
		*a = mail.OAuth{Provider: p}
	}
	var tenants []string
	for _, name := range mail.OAuthProviders() {
		if s := mail.OAuthServiceNamed(name); s != nil && s.Tenant != "" {
			tenants = append(tenants, name)
		}
	}
	for _, b := range []struct {
		options   string
		given     bool
		providers []string
	}{
		{"--oauth-tenant goes", o.OAuthTenant != "", tenants},
		{"--oauth-auth-url, --oauth-token-url and --oauth-device-url go", o.OAuthAuthURL != "" || o.OAuthTokenURL != "" || o.OAuthDeviceURL != "", []string{mail.ProviderCustom}},
	} {
		if b.given && !slices.Contains(b.providers, a.Provider) {
			return &discovery.Fault{Code: discovery.ValidationError, Message: fmt.Sprintf("%s with --oauth-provider %s.", b.options, strings.Join(b.providers, " or ")),
				Hint: "Give that provider, or leave the option out."}
		}
	}
	setIf(&a.ClientID, o.OAuthClientID)
	setIf(&a.Tenant, o.OAuthTenant)
	setIf(&a.AuthURL, o.OAuthAuthURL)
	setIf(&a.TokenURL, o.OAuthTokenURL)
	setIf(&a.DeviceURL, o.OAuthDeviceURL)
	if len(o.OAuthScopes) > 0 {
		a.Scopes = o.OAuthScopes
	}
	return nil
}

// secrets reads the secret that was given for an account with this auth: sealed is for
// the vault (a password or a client secret), kept for the keyring. Nil means not given.
func (o *authOptions) secrets(ctx context.Context, d *Deps, auth mail.Auth) (sealed, kept *mail.Secret, err error) {
	switch auth {
	case mail.AuthOAuth2:
		sealed, err = d.readSecret(ctx, "--oauth-client-secret-from", "client secret", o.OAuthClientSecretFrom)
	case mail.AuthKeyring:
		kept, err = d.readSecret(ctx, "--password-from", "password", o.PasswordFrom)
	case mail.AuthPassword:
		sealed, err = d.readSecret(ctx, "--password-from", "password", o.PasswordFrom)
	}
	return sealed, kept, err
}

// readSecret reads a secret from where an option says; nil when it says nothing.
func (d *Deps) readSecret(ctx context.Context, option, what string, source string) (*mail.Secret, error) {
	if source == "" {
		return nil, nil
	}
	s, err := d.ReadSecret(ctx, string(source))
	if err != nil {
		if f := discovery.AsFault(err); f != nil {
			return nil, f
		}
		return nil, &discovery.Fault{Code: discovery.ValidationError, Message: fmt.Sprintf("The %s cannot be read from where %s says.", what, option),
			Hint: "Use stdin, env:NAME of a variable that is set, or file:PATH of a readable file.", Err: err}
	}
	if s.IsZero() {
		return nil, &discovery.Fault{Code: discovery.ValidationError, Message: fmt.Sprintf("The %s is empty.", what), Hint: "Its first line is taken; write it there."}
	}
	return &s, nil
}

func wipe(secrets ...*mail.Secret) {
	for _, s := range secrets {
		if s != nil {
			s.Wipe()
		}
	}
}

// settleTime bounds the work that has to be finished when a command's own time is over.
const settleTime = 10 * time.Second

// forgetInKeyring forgets an account's password and returns what to tell the person
// when it is still there.
func (d *Deps) forgetInKeyring(ctx context.Context, name string) string {
	err := d.Keyring.Delete(ctx, name)
	if err == nil || errors.Is(err, mail.ErrNotInKeyring) {
		return ""
	}
	return fmt.Sprintf("The system keyring may still have the password: service %s, user %s.", login.KeyringService, name)
}

// preset gives a new account the servers of its provider where no others are given.
func (o *accountOptions) preset(a *mail.Account) {
	p := mail.ProviderWithOAuth(string(o.OAuthProvider))
	if p == nil {
		return
	}
	if a.Protocol == mail.POP3 && o.POP3Host == "" {
		a.POP3 = p.POP3
	}
	if a.Protocol == mail.IMAP && o.IMAPHost == "" {
		a.IMAP = p.IMAP
	}
	if o.SMTPHost == "" {
		a.SMTP = p.SMTP
	}
}
