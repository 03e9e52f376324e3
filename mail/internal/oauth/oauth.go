// Package oauth is the client's side of OAuth 2.0 (RFC 6749) as far as a mail
// program needs it: a person's consent through a browser (RFC 8252, with PKCE) or
// through a device code (RFC 8628), and access tokens from a refresh token.
//
// It stores no tokens: it returns them. No error, and no formatted value of its types,
// holds a secret, a code, a token or a word of an answer; the package writes its error
// texts itself.
//
// golang.org/x/oauth2 makes the consent address and the PKCE verifier. This package makes
// the token requests itself: that library's errors hold the whole answer, its choice of
// client authentication can send one refresh token twice, which providers that rotate them
// take for theft, and its device flow ends with the first lost answer.
package oauth

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"time"

	"github.com/postern-mail/postern/mail/internal/wire"
	"net/url"
	"slices"
)

// Secret is a text that prints as a placeholder, whatever the verb. A conversion
// to string gives the text.
type Secret string

const redacted = "[redacted]"

// Format implements fmt.Formatter for every verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// LogValue implements slog.LogValuer.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText refuses, and so does every encoding that uses it, JSON among them.
func (Secret) MarshalText() ([]byte, error) { return nil, errors.New("a secret has no text form") }

// Config is a client at an authorization server. Its methods are safe for concurrent use as
// long as it does not change.
type Config struct {
	ClientID     string
	ClientSecret Secret // empty for a public client (RFC 6749 section 2.1)
	AuthURL      string // of the consent page; needed by Loopback
	TokenURL     string
	DeviceURL    string // needed by Device; empty where the provider has none
	Scopes       []string
	// MoreScopes are those of another service. The person agrees to both at once, and each
	// access token is for Scopes alone: a provider such as Microsoft gives none for two
	// services (https://learn.microsoft.com/entra/identity-platform/v2-oauth2-auth-code-flow).
	MoreScopes []string

	// LoginHint is the mail address that needs consent; the provider may offer it to the
	// person. If empty, it is not sent.
	LoginHint string
	// AuthParams go to the consent page besides those of the standard.
	AuthParams map[string]string
	// RedirectHost is the host of the redirection URI: 127.0.0.1 (also if empty), or
	// localhost for a provider that accepts only that.
	RedirectHost string
	// SecretInBody sends the client secret in the body at once. Otherwise it goes
	// into the header, which every server must understand (RFC 6749 section 2.3.1),
	// and into the body only if that is refused.
	SecretInBody bool

	RootCAs *x509.CertPool // nil means the system's

	now  func() time.Time                                 // nil means time.Now
	wait func(ctx context.Context, d time.Duration) error // nil means a timer
}

// notGraphic reports a character that an address or a user code cannot hold.
func notGraphic(r rune) bool { return r <= ' ' || r > '~' }

// check reports a Config that cannot be used. need are the addresses besides the
// token endpoint's.
func (c *Config) check(need map[string]string) error {
	if c.ClientID == "" || strings.ContainsFunc(c.ClientID, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return unusable("the client id is missing or holds a control character")
	}
	all := map[string]string{"token": c.TokenURL}
	maps.Copy(all, need)
	for what, address := range all {
		if address == "" {
			return unusable("there is no address for the " + what + " endpoint")
		}
		if err := wire.CheckURL(address); err != nil {
			return unusable("the address of the " + what + " endpoint cannot be used: " + err.Error())
		}
	}
	for _, s := range c.allScopes() {
		if s == "" || strings.ContainsFunc(s, func(r rune) bool { return notGraphic(r) || r == '"' || r == '\\' }) {
			return unusable("a scope holds a character that no scope has")
		}
	}
	return nil
}

func (c *Config) allScopes() []string { return slices.Concat(c.Scopes, c.MoreScopes) }

// narrow says in a request for a token which service it is for, where there are two.
func (c *Config) narrow(form url.Values) url.Values {
	if len(c.Scopes) > 0 && len(c.MoreScopes) > 0 {
		form.Set("scope", strings.Join(c.Scopes, " "))
	}
	return form
}

func (c *Config) clock() time.Time {
	if c.now == nil {
		return time.Now()
	}
	return c.now()
}

// pause waits, but not beyond ctx.
func (c *Config) pause(ctx context.Context, d time.Duration) error {
	if c.wait != nil {
		return c.wait(ctx, d)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
