package mail

import (
	"context"
	"errors"

	"github.com/postern-mail/postern/mail/internal/wire"
)

var errNoPassword = errors.New("it has no password")

// secretError marks a failure of the Directory or the Credentials to give the
// secret, which is not one of the server.
type secretError struct{ err error }

func (e *secretError) Error() string { return e.err.Error() }
func (e *secretError) Unwrap() error { return e.err }

// canLogIn reports an account whose login needs what there is not.
func (x *access) canLogIn(c Credentials) error {
	if x.account.Auth == AuthOAuth2 && c == nil {
		return x.unsupported("The account logs in with OAuth2, which is not available here.", "Give the account a password with 'account edit'; many providers offer app passwords.")
	}
	return nil
}

// loginOf is how the account logs in at any of its servers. Nil Credentials mean
// the Directory's Secret, as a password.
func loginOf(d Directory, c Credentials, a *Account) wire.Login {
	account := *a
	if c == nil {
		c = passwords{d}
	}
	return wire.Login{
		Username: account.Username,
		Credential: func(ctx context.Context) (wire.Credential, error) {
			got, err := c.Credential(ctx, &account)
			switch {
			case err != nil:
				return wire.Credential{}, &secretError{err}
			case got.Secret.IsZero():
				return wire.Credential{}, &secretError{errNoPassword}
			}
			defer got.Secret.Wipe()
			if got.Bearer {
				return wire.Credential{Token: got.Secret.Reveal()}, nil
			}
			return wire.Credential{Password: got.Secret.Reveal()}, nil
		},
		Refused: func(ctx context.Context, w wire.Credential) bool {
			refused := Credential{Secret: NewSecret([]byte(w.Password + w.Token)), Bearer: w.Token != ""}
			defer refused.Secret.Wipe()
			return c.Refused(ctx, &account, refused)
		},
	}
}

// passwords are the Credentials of a Directory alone.
type passwords struct{ Directory }

// Credential implements Credentials.
func (p passwords) Credential(ctx context.Context, a *Account) (Credential, error) {
	s, err := p.Secret(ctx, a.Name)
	return Credential{Secret: s}, err
}

// Refused implements Credentials: there is no other password than the one there is.
func (passwords) Refused(context.Context, *Account, Credential) bool { return false }
