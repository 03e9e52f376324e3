package login

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/oauth"
	"github.com/postern-mail/postern/mail/internal/wire"
)

// ErrConsentGone is matched by an Error for an account whose provider no longer accepts the
// owner's consent. A person must authorize it again.
var ErrConsentGone = errors.New("the provider no longer accepts the account's authorization")

// oauthConfig is the account's client as the wire wants it. The error says what to
// change, in lower case.
func oauthConfig(a *mail.Account, clientSecret mail.Secret) (c oauth.Config, err error) {
	switch {
	case a.Auth != mail.AuthOAuth2:
		return c, errors.New("it does not log in with oauth2")
	case a.OAuth.ClientID == "":
		return c, errors.New("it has no OAuth client id")
	}
	s, err := a.OAuth.Service()
	if err != nil {
		return c, err
	}
	c = oauth.Config{ClientID: a.OAuth.ClientID, ClientSecret: oauth.Secret(clientSecret.Reveal()), AuthURL: s.AuthURL, TokenURL: s.TokenURL, DeviceURL: s.DeviceURL,
		Scopes: s.Scopes, AuthParams: s.AuthParams, RedirectHost: s.RedirectHost, SecretInBody: s.SecretInBody}
	if s.LoginHint {
		c.LoginHint = a.Username
	}
	if len(a.OAuth.Scopes) > 0 {
		c.Scopes = a.OAuth.Scopes
	}
	if a.Submission == mail.SubmitGraph {
		c.Scopes = slices.DeleteFunc(slices.Clone(c.Scopes), func(s string) bool { return strings.HasSuffix(s, "/SMTP.Send") })
		c.MoreScopes = []string{"https://" + a.SMTP.Host + "/Mail.Send"}
	}
	c.RootCAs, err = a.Roots()
	return c, err
}

const stageAuth = "auth"

func oauthUnusable(op string, a *mail.Account, err error) *mail.Error {
	return &mail.Error{Op: op, Account: a.Name, Kind: mail.KindConfig, Stage: stageAuth, Err: err,
		Message: "The account's OAuth settings cannot be used: " + err.Error() + ".", Advice: mail.AdviceEditOAuth}
}

// oauthError gives a failure of the wire, the TokenStore or the context its form. An
// error of the store's own passes as it is.
func oauthError(ctx context.Context, op string, a *mail.Account, err error) error {
	var w *oauth.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &w):
	case errors.Is(err, mail.ErrNoConsent):
		return &mail.Error{Op: op, Account: a.Name, Kind: mail.KindConfig, Stage: stageAuth, Err: err,
			Message: "The account is not authorized yet.", Advice: mail.AdviceAuthorize}
	case errors.Is(err, mail.ErrConsentChanged):
		return &mail.Error{Op: op, Account: a.Name, Kind: mail.KindConfig, Stage: stageAuth, Err: err, Retryable: true,
			Message: "The account's authorization was changed meanwhile.", Advice: mail.AdviceTryAgain}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		w = &oauth.Error{Kind: wire.KindTimeout, Temporary: true, Err: err, Text: "it took too long"}
	default:
		return err
	}
	if w.Kind == wire.KindTimeout && ctx.Err() != nil {
		return mail.Operation{Op: op, Account: a.Name}.Wrap(ctx, w, nil)
	}
	if w.Kind == wire.KindInvalid {
		return oauthUnusable(op, a, w)
	}
	says, ok := oauthKinds[w.Kind]
	if !ok {
		says = oauthKind{mail.KindConnection, "The account's OAuth provider gave a useless answer: %s.", mail.AdviceCheckOAuthAddresses}
	}
	e := &mail.Error{Op: op, Account: a.Name, Stage: stageAuth, Retryable: w.Temporary, Err: w,
		Kind: says.kind, Message: strings.Replace(says.message, "%s", w.Text, 1), Advice: says.advice}
	if w.Kind == wire.KindConsent {
		e.Err = &consentGone{w}
	}
	return e
}

// oauthKind is how a failure of the wire is told; %s in the message is its own text.
type oauthKind struct {
	kind    mail.Kind
	message string
	advice  mail.Advice
}

const asksInVain = "The account's OAuth provider could not be asked for access: %s."

var oauthKinds = map[wire.Kind]oauthKind{
	wire.KindConsent:     {mail.KindAuth, "The provider does not accept the account's authorization, or no longer.", mail.AdviceAuthorize},
	wire.KindDenied:      {mail.KindAuth, "The access to the mailbox was refused on the provider's page.", mail.AdviceAuthorize},
	wire.KindExpired:     {mail.KindTimeout, "Nobody decided on the provider's page in time.", mail.AdviceAuthorize},
	wire.KindRefused:     {mail.KindConfig, "The account cannot be used as it is set up: %s.", mail.AdviceEditOAuth},
	wire.KindCertificate: {mail.KindCertificate, "The certificate of the account's OAuth provider was not accepted.", mail.AdviceProviderCertificate},
	wire.KindTimeout:     {mail.KindTimeout, "The account's OAuth provider did not answer in time.", mail.AdviceMoreTime},
	wire.KindUnavailable: {mail.KindConnection, asksInVain, mail.AdviceTryLater},
	wire.KindConnection:  {mail.KindConnection, asksInVain, mail.AdviceTryLater},
}

// consentGone is a failure that matches ErrConsentGone.
type consentGone struct{ cause *oauth.Error }

func (e *consentGone) Error() string   { return e.cause.Error() }
func (e *consentGone) Unwrap() []error { return []error{ErrConsentGone, e.cause} }
