package wire

import "context"

// Login says how to log in, to any protocol's server.
type Login struct {
	Username string
	// Credential returns what to log in with. It is called once for each login,
	// and what it returns is kept no longer.
	Credential func(ctx context.Context) (Credential, error)
	// Refused tells that a server did not accept what Credential returned, and
	// reports whether Credential would now return something newer, so that the
	// login is worth one more try on a new connection. nil means it would not.
	Refused func(ctx context.Context, c Credential) bool
}

// Credential is what one login uses: a password, or an OAuth 2.0 access token.
// Exactly one of the two is set.
type Credential struct {
	Password string // SASL PLAIN or LOGIN, or the protocol's own command
	Token    string // SASL OAUTHBEARER (RFC 7628) or XOAUTH2
}
