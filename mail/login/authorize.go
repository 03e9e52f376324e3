package login

import (
	"context"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/oauth"
)

// AuthorizeOptions says how Authorize asks. Show is needed.
type AuthorizeOptions struct {
	// Device asks by a code that is typed on another device (RFC 8628), for a machine
	// without a browser. Not every provider offers it; Google does not for mail.
	Device bool
	// Show tells the person where to go: the address to open in a browser and, with
	// Device, the code to type there, else "". It is called once, perhaps not at all
	// when there is an error, on the goroutine of Authorize, and must return soon.
	Show func(url, userCode string)
	// Port is where on 127.0.0.1 the browser brings the answer; 0 means any free one.
	// A fixed one can be reached through a tunnel from where the browser is.
	Port uint16
}

// Authorize asks the owner of an account with AuthOAuth2 for access to the mailbox
// and returns the refresh token that it is then reached with. clientSecret is zero
// for a public client. It waits for the person: until ctx ends, or 15 minutes, or as
// long as a device code is good, an hour at most.
//
// The error is an *Error without any secret in it: KindAuth when the person does not
// agree, KindTimeout when nobody decides, KindConfig for settings that the provider
// does not accept, KindConnection or KindCertificate when it cannot be reached.
func Authorize(ctx context.Context, a *mail.Account, clientSecret mail.Secret, o AuthorizeOptions) (refresh mail.Secret, err error) {
	const op = "account authorize"
	c, err := oauthConfig(a, clientSecret)
	if err != nil {
		return mail.Secret{}, oauthUnusable(op, a, err)
	}
	if o.Show == nil {
		return mail.Secret{}, mail.Operation{Op: op, Account: a.Name}.Invalid("There is nobody to show the address of the consent page to.", mail.AdviceAuthorizeInSight)
	}
	if o.Device && c.DeviceURL == "" {
		return mail.Secret{}, &mail.Error{Op: op, Account: a.Name, Kind: mail.KindUnsupported, Stage: stageAuth,
			Message: "The account's provider gives no access to mail by a device code.", Advice: mail.AdviceNoDevice}
	}
	var token oauth.Secret
	if o.Device {
		token, err = c.Device(ctx, o.Show)
	} else {
		token, err = c.Loopback(ctx, o.Port, func(consent string) { o.Show(consent, "") })
	}
	if err != nil {
		return mail.Secret{}, oauthError(ctx, op, a, err)
	}
	return mail.NewSecret([]byte(token)), nil
}
