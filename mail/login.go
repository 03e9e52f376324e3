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

// canLogIn reports an account whose login needs Credentials where there are none.
func canLogIn(o Operation, a *Account, c Credentials) error {
	if a.Auth == AuthOAuth2 && c == nil {
		return o.Unsupported("The account logs in with OAuth2, which is not available here.", "Give the account a password with 'account edit'; many providers offer app passwords.")
	}
	return nil
}

// wrapLogin is Operation.Wrap for a connection that logs in as loginOf says. What
// the Directory or the Credentials reported passes as it is.
func wrapLogin(ctx context.Context, o Operation, a *Account, err error, explain func(*Error)) error {
	var secret *secretError
	switch {
	case ctx.Err() != nil || !errors.As(err, &secret):
		return aboutLogin(o.Wrap(ctx, err, explain), a)
	case errors.Is(secret, errNoPassword):
		return o.Unusable(errNoPassword)
	}
	return secret.err
}

// hintLogin is what can be done about a refused login, as long as nothing is known
// of how the account logs in.
const hintLogin = "Check the user name and password of the account; some providers want an app password."

// aboutLogin gives a refused login the hint for how the account logs in.
func aboutLogin(err error, a *Account) error {
	var e *Error
	if !errors.As(err, &e) || e.Kind != KindAuth || e.Hint != hintLogin {
		return err
	}
	switch a.Auth {
	case AuthOAuth2:
		e.Hint = "Check that the account's user name is the one that was agreed for; the administrator authorizes it again with 'account authorize " + a.Name + "'."
	case AuthHelper:
		e.Hint = "Check what the account's helper program prints, and the user name."
	case AuthKeyring:
		e.Hint = "Check the user name; the administrator changes what the keyring holds with 'account edit " + a.Name + " --password-from stdin'."
	}
	return err
}

// targetOf is one of the account's servers as the wires want it.
func targetOf(e Endpoint, d Directory, c Credentials, a *Account) (wire.Target, error) {
	roots, err := a.Roots()
	return wire.Target{Host: e.Host, Port: e.Port, Security: wire.Security(e.Security), RootCAs: roots,
		Login: loginOf(d, c, a), Connect: a.Timeouts.Connect, Greeting: a.Timeouts.Greeting}, err
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
		Refused: func(ctx context.Context, old wire.Credential) bool {
			refused := Credential{Secret: NewSecret([]byte(old.Password + old.Token)), Bearer: old.Token != ""}
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
