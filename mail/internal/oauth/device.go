package oauth

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/postern-mail/postern/mail/internal/wire"
)

// Bounds of the values in a device authorization answer (RFC 8628 section 3.2).
const (
	defaultInterval = 5 * time.Second
	slowDown        = 5 * time.Second // section 3.5
	maxInterval     = time.Minute
	defaultPatience = 10 * time.Minute
	maxPatience     = time.Hour
	maxUserCode     = 64
)

// Device asks a person for consent on any device of theirs (RFC 8628) and returns the
// refresh token. show gets the address to open and the code to type there, once; it must
// return soon. Both are printable ASCII, and the address is one that CheckURL accepts.
//
// It returns when the person has decided, when ctx ends, or when the code has expired,
// which takes an hour at most. The error is an *Error: KindDenied when the person does not
// agree, KindExpired when no decision came in time.
//
// The polling is this package's own: an interval that is not positive makes the one
// of x/oauth2 panic, a lost answer ends it, and its errors hold the answer.
func (c *Config) Device(ctx context.Context, show func(verification, userCode string)) (refresh Secret, err error) {
	if c.DeviceURL == "" {
		return "", unusable("the provider grants access to mail by no device code: authorize in a browser")
	}
	if err := c.check(map[string]string{"device": c.DeviceURL}); err != nil {
		return "", err
	}
	form := url.Values{}
	if all := c.allScopes(); len(all) > 0 {
		form.Set("scope", strings.Join(all, " "))
	}
	asked := c.clock()
	a, err := c.request(ctx, c.DeviceURL, form)
	if err != nil {
		return "", err
	}
	d, err := a.device()
	if err != nil {
		return "", err
	}
	show(d.verification, d.userCode)
	return c.poll(ctx, d, asked.Add(d.patience))
}

// deviceCode is the code and address to show to a person.
type deviceCode struct {
	Code                   Secret // exported, so that it prints as every Secret does
	userCode, verification string
	patience, interval     time.Duration
}

func (a *answer) device() (d deviceCode, err error) {
	code, _ := a.text("device_code")
	d.Code = Secret(code)
	d.userCode, _ = a.text("user_code")
	if d.verification, _ = a.text("verification_uri"); d.verification == "" {
		d.verification, _ = a.text("verification_url") // as Google spells it
	}
	switch {
	case code == "" || len(code) > maxCode:
		return d, senseless("the provider gave no device code")
	// A person's terminal shows these.
	case d.userCode == "" || len(d.userCode) > maxUserCode || strings.ContainsFunc(d.userCode, func(r rune) bool { return notGraphic(r) && r != ' ' }):
		return d, senseless("the provider gave no code that a person could type")
	case wire.CheckURL(d.verification) != nil:
		return d, senseless("the provider gave no address that a person should open")
	}
	if d.patience = a.seconds("expires_in", maxPatience); d.patience == 0 {
		d.patience = defaultPatience
	}
	if d.interval = a.seconds("interval", maxInterval); d.interval == 0 {
		d.interval = defaultInterval
	}
	d.interval = max(d.interval, time.Second)
	return d, nil
}

// poll asks for the person's decision again and again (RFC 8628 section 3.5).
func (c *Config) poll(ctx context.Context, d deviceCode, until time.Time) (Secret, error) {
	form := url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}, "device_code": {string(d.Code)}}
	for {
		if err := c.pause(ctx, d.interval); err != nil {
			return "", gaveUp(ctx)
		}
		if !c.clock().Before(until) {
			return "", coded("expired_token")
		}
		refresh, err := c.first(ctx, form)
		var e *Error
		switch {
		case err == nil || !errors.As(err, &e):
			return refresh, err
		case e.Code == codePending:
		case e.Code == codeSlowDown:
			d.interval += slowDown
		case ctx.Err() != nil:
			return "", gaveUp(ctx)
		case e.Temporary:
			// The person is still there: the server is given more time each time.
			d.interval = min(2*d.interval, max(d.interval, maxInterval))
			d.interval = max(d.interval, e.RetryAfter)
		default:
			return "", err
		}
	}
}
