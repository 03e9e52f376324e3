package login

import (
	"context"
	"errors"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/wire"
)

var errNoPassword = errors.New("it has no password")

// secretError marks a failure of the Directory or the Credentials to give the secret, which
// is not the server's.
type secretError struct{ err error }

func (e *secretError) Error() string { return e.err.Error() }
func (e *secretError) Unwrap() error { return e.err }

// Check reports an account whose login needs Credentials where there are none.
func Check(o mail.Operation, a *mail.Account, c Credentials) error {
	if a.Auth == mail.AuthOAuth2 && c == nil {
		return o.Unsupported("The account logs in with OAuth2, which is not available here.", mail.AdviceGivePassword)
	}
	return nil
}

// Wrap is Operation.Wrap for a connection that logs in as loginOf says. What
// the Directory or the Credentials reported passes as it is.
func Wrap(ctx context.Context, o mail.Operation, a *mail.Account, err error, explain func(*mail.Error)) error {
	var secret *secretError
	switch {
	case ctx.Err() != nil || !errors.As(err, &secret):
		return Explain(o.Wrap(ctx, err, explain), a)
	case errors.Is(secret, errNoPassword):
		return o.Unusable(errNoPassword)
	}
	return secret.err
}

// Explain gives a refused login the advice for how the account logs in.
func Explain(err error, a *mail.Account) error {
	var e *mail.Error
	if !errors.As(err, &e) || e.Kind != mail.KindAuth || e.Advice != mail.AdviceCheckLogin {
		return err
	}
	switch a.Auth {
	case mail.AuthOAuth2:
		e.Advice = mail.AdviceCheckLoginOAuth
	case mail.AuthHelper:
		e.Advice = mail.AdviceCheckLoginHelper
	case mail.AuthKeyring:
		e.Advice = mail.AdviceCheckLoginKeyring
	case mail.AuthPassword:
		if !a.FromEnvironment {
			e.Advice = mail.AdviceCheckLoginPassword
		}
	}
	return err
}

// Target is one of the account's servers in the form that the wires take.
func Target(e mail.Endpoint, d mail.Directory, c Credentials, a *mail.Account) (wire.Target, error) {
	roots, err := a.Roots()
	t := wire.Target{Host: e.Host, Port: e.Port, Security: e.Security, RootCAs: roots,
		Login: loginOf(d, c, a), Connect: a.Timeouts.Connect, Greeting: a.Timeouts.Greeting}
	if s, ok := d.(mail.Stopper); ok {
		t.MayBegin = s.MayBegin
	}
	return t, err
}

// GraphTarget is the account's Microsoft Graph in the form that the wires take.
func GraphTarget(d mail.Directory, c Credentials, a *mail.Account) (wire.Target, error) {
	g, ok := c.(interface{ ForGraph() Credentials })
	if !ok {
		return wire.Target{}, errors.New("it sends with Microsoft Graph, which is not available here")
	}
	return Target(a.SMTP, d, g.ForGraph(), a)
}

// loginOf is how the account logs in at any of its servers. Nil Credentials mean
// the Directory's Secret, as a password.
func loginOf(d mail.Directory, c Credentials, a *mail.Account) wire.Login {
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
			refused := Credential{Secret: mail.NewSecret([]byte(old.Password + old.Token)), Bearer: old.Token != ""}
			defer refused.Secret.Wipe()
			return c.Refused(ctx, &account, refused)
		},
	}
}

// passwords are the Credentials of a Directory alone.
type passwords struct{ mail.Directory }

// Credential implements Credentials.
func (p passwords) Credential(ctx context.Context, a *mail.Account) (Credential, error) {
	s, err := p.Secret(ctx, a.Name)
	return Credential{Secret: s}, err
}

// Refused implements Credentials: the Directory has no other password.
func (passwords) Refused(context.Context, *mail.Account, Credential) bool { return false }
