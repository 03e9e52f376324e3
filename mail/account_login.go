package mail

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/postern-mail/postern/mail/internal/wire"
)

// The bounds of a helper's argument vector.
const (
	maxHelperArguments = 50
	maxHelperBytes     = 16 << 10
)

// validateAuth reports what makes it impossible or unsafe to get the account's
// credential.
func (a *Account) validateAuth() error {
	switch a.Auth {
	case AuthPassword, AuthKeyring:
		return nil
	case AuthOAuth2:
		return a.OAuth.validate()
	case AuthHelper:
		return validateHelper(a.Helper)
	}
	return errors.New("auth must be password, oauth2, helper or keyring")
}

func validateHelper(argv []string) error {
	if len(argv) == 0 || argv[0] == "" {
		return errors.New("auth helper needs a helper command")
	}
	if !IsProgramName(argv[0]) {
		return errors.New("the helper's program must be an absolute path or a name to be found in PATH")
	}
	size := 0
	for _, arg := range argv {
		if strings.ContainsFunc(arg, unicode.IsControl) {
			return errors.New("the helper command holds a control character")
		}
		size += len(arg) + 1
	}
	if len(argv) > maxHelperArguments || size > maxHelperBytes {
		return fmt.Errorf("the helper command has more than %d arguments or %d bytes", maxHelperArguments, maxHelperBytes)
	}
	return nil
}

// IsProgramName reports whether a helper's name is an absolute path or a bare name,
// which is looked for in PATH.
func IsProgramName(name string) bool {
	return filepath.IsAbs(name) || name != "" && name != "." && name != ".." && !strings.ContainsAny(name, `/\`)
}

const (
	maxClientID = 512
	maxScopes   = 20
	maxScope    = 256
	maxTenant   = 253
)

var (
	tenantPattern = regexp.MustCompile(`\A[A-Za-z0-9][A-Za-z0-9.-]*\z`)
	// scopePattern is scope-token of RFC 6749 section 3.3.
	scopePattern = regexp.MustCompile(`\A[\x21\x23-\x5b\x5d-\x7e]+\z`)
)

// validTenant reports whether s is a directory's name, domain or number, which becomes part of a
// path.
func validTenant(s string) bool { return len(s) <= maxTenant && tenantPattern.MatchString(s) }

// grantsGraph reports whether the account's tokens can be good for Microsoft Graph.
func (a *Account) grantsGraph() bool {
	s, err := a.OAuth.Service()
	return a.Auth == AuthOAuth2 && (err != nil || s.Graph) // validateAuth reports the error
}

func (o *OAuth) validate() error {
	if all := OAuthProviders(); !slices.Contains(all, o.Provider) {
		last := len(all) - 1
		return fmt.Errorf("auth oauth2 needs a provider: %s or %s", strings.Join(all[:last], ", "), all[last])
	}
	if o.ClientID == "" {
		return errors.New("auth oauth2 needs the client id that the provider gave for this program")
	}
	if len(o.ClientID) > maxClientID || strings.ContainsFunc(o.ClientID, func(r rune) bool { return r < '!' || r > '~' }) {
		return errors.New("the client id is not valid")
	}
	if o.Tenant != "" && !validTenant(o.Tenant) {
		return errors.New("a tenant is the name or id of one at microsoft")
	}
	if len(o.Scopes) > maxScopes {
		return fmt.Errorf("there are more than %d scopes", maxScopes)
	}
	for _, s := range o.Scopes {
		if len(s) > maxScope || !scopePattern.MatchString(s) {
			return errors.New("a scope is one word of ASCII without quotes and backslashes")
		}
	}
	if o.Provider == ProviderCustom && (o.TokenURL == "" || o.AuthURL == "" && o.DeviceURL == "") {
		return errors.New("a custom provider needs its token url, and its auth url or its device url")
	}
	for _, e := range []struct{ what, url string }{{"auth", o.AuthURL}, {"token", o.TokenURL}, {"device", o.DeviceURL}} {
		if e.url == "" {
			continue
		}
		if err := wire.CheckURL(e.url); err != nil {
			return fmt.Errorf("the %s url cannot be used: %w", e.what, err)
		}
	}
	return nil
}
