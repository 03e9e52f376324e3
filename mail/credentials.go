package mail

import "context"

// Credentials gives what accounts log in with. Implementations are safe for
// concurrent use.
type Credentials interface {
	// Credential returns what one login of the account uses, as a copy that the
	// caller wipes. It may ask another program or a token endpoint, within ctx.
	Credential(ctx context.Context, a *Account) (Credential, error)
	// Refused tells that a server did not accept c, and reports whether
	// Credential would now return something newer, so that one more try is worth
	// it. It does no network traffic itself.
	Refused(ctx context.Context, a *Account, c Credential) (again bool)
}

// Credential is a secret and what kind it is.
type Credential struct {
	Secret Secret
	Bearer bool // an OAuth 2.0 access token; else a password
}

// TokenStore keeps what an account's OAuth 2.0 provider hands out and takes back.
type TokenStore interface {
	// RefreshToken lends the account's refresh token to exchange, alone: while
	// exchange runs no other process on the same store, and no other caller in
	// this one, is lent that account's. exchange may use the network. A rotated
	// token that it returns is durable when RefreshToken returns; the zero Secret
	// keeps the present one. With an error of exchange nothing is stored, and that
	// error is returned. The error matches ErrNoConsent for an account that has no
	// refresh token yet.
	RefreshToken(ctx context.Context, account string, exchange func(ctx context.Context, s OAuthSecrets) (rotated Secret, err error)) error
}

// OAuthSecrets are the secrets of an account with AuthOAuth2, and what they belong
// to.
type OAuthSecrets struct {
	ClientSecret Secret // zero for a public client
	RefreshToken Secret
	Consent      string // names the owner's consent that the token descends from
	OAuth        OAuth  // whom that consent was given to: the token goes nowhere else; zero where the store cannot tell
}
