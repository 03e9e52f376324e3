package wire

import (
	"context"
	"errors"
	"strings"
	"unicode"
)

// Login says how to log in, to any protocol's server.
type Login struct {
	Username string
	// Credential returns the credential for a login. It is called once for each login, and
	// the credential is not kept longer.
	Credential func(ctx context.Context) (Credential, error)
	// Refused says that a server did not accept the result of Credential, and reports
	// whether Credential would now return something newer, so that the login is worth one
	// more try on a new connection. A nil func means no. It may be called on any goroutine
	// and must not wait for the network.
	Refused func(ctx context.Context, c Credential) bool
}

// Credential is what one login uses: a password, or an OAuth 2.0 access token.
// Exactly one of the two is set.
type Credential struct {
	Password string // SASL PLAIN or LOGIN, or the protocol's own command
	Token    string // SASL OAUTHBEARER (RFC 7628) or XOAUTH2
}

var (
	errNoUser       = errors.New("user name is missing")
	errUserControl  = errors.New("user name holds a control character")
	errNoLogin      = errors.New("no way to log in is configured")
	errNoSecret     = errors.New("there is neither a password nor an access token to log in with")
	errBothSecrets  = errors.New("there is a password and an access token to log in with")
	errSecretBroken = errors.New("password holds a control character")
	errTokenBroken  = errors.New("access token holds a character that no token has")
)

// Check reports a Login that cannot be used: one without a user name or a way to a
// credential, or whose user name holds a control character.
func (l *Login) Check() error {
	if err := checkUser(l.Username); err != nil {
		return err
	}
	if l.Credential == nil {
		return errNoLogin
	}
	return nil
}

func checkUser(name string) error {
	switch {
	case name == "":
		return errNoUser
	case strings.ContainsFunc(name, unicode.IsControl):
		return errUserControl
	}
	return nil
}

// Newer reports whether a newer credential exists than the one that a server refused, so
// that the login is worth one more try.
func (l *Login) Newer(ctx context.Context, refused Credential) bool {
	return l.Refused != nil && ctx.Err() == nil && l.Refused(ctx, refused)
}

// Check reports a credential that must not be sent: a control character in it could end its
// command or field, and exactly one of its secrets must be set. The error holds no part of
// the credential.
func (c *Credential) Check() error {
	switch {
	case c.Password == "" && c.Token == "":
		return errNoSecret
	case c.Password != "" && c.Token != "":
		return errBothSecrets
	case strings.ContainsFunc(c.Password, unicode.IsControl):
		return errSecretBroken
	// An access token is printable ASCII (RFC 6749 appendix A.12), and in a Bearer
	// header without a space (RFC 6750 section 2.1).
	case strings.ContainsFunc(c.Token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errTokenBroken
	}
	return nil
}
