package oauth

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/postern-mail/postern/mail/internal/wire"
)

// Error is a failure. Its text is the package's own.
type Error struct {
	Kind      wire.Kind
	Code      string // the error code of the provider where it is a registered one
	Status    int    // of HTTP; zero without an answer
	Temporary bool   // the same may work later
	// RetryAfter is how long the provider wants to be left alone: at most 5 min, and
	// zero where it did not say.
	RetryAfter time.Duration
	Text       string // what happened, in lower case and without a full stop
	Err        error  // the cause, where it is one of this machine's; may be nil
}

// Error returns what happened.
func (e *Error) Error() string { return e.Text }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func unusable(text string) *Error { return &Error{Kind: wire.KindInvalid, Text: text} }

func senseless(text string) *Error { return &Error{Kind: wire.KindProtocol, Text: text} }

// The error codes of RFC 6749 sections 4.1.2.1 and 5.2, of RFC 8628 section 3.5,
// and of OpenID Connect Core section 3.1.2.6, which providers send in place of
// invalid_grant.
var codes = map[string]struct {
	kind wire.Kind
	text string
}{
	"invalid_grant":             {wire.KindConsent, "the provider does not accept the authorization (any more)"},
	"interaction_required":      {wire.KindConsent, "the provider wants to ask the person again"},
	"consent_required":          {wire.KindConsent, "the provider wants the person's consent again"},
	"login_required":            {wire.KindConsent, "the provider wants the person to log in again"},
	"invalid_client":            {wire.KindRefused, "the provider does not know the client, or not with this secret"},
	"unauthorized_client":       {wire.KindRefused, "the provider does not allow the client this way to authorize"},
	"invalid_scope":             {wire.KindRefused, "the provider does not grant the scopes"},
	"invalid_request":           {wire.KindRefused, "the provider did not accept the form of the request"},
	"unsupported_grant_type":    {wire.KindRefused, "the provider does not support this way to authorize"},
	"unsupported_response_type": {wire.KindRefused, "the provider does not support authorization codes"},
	"access_denied":             {wire.KindDenied, "the consent was refused"},
	"expired_token":             {wire.KindExpired, "nobody agreed before the code expired"},
	"server_error":              {wire.KindUnavailable, "the provider reports a fault of its own"},
	"temporarily_unavailable":   {wire.KindUnavailable, "the provider is not available at the moment"},
	codePending:                 {wire.KindProtocol, "the provider waits for the person"},
	codeSlowDown:                {wire.KindProtocol, "the provider was asked too often"},
}

const (
	codePending  = "authorization_pending"
	codeSlowDown = "slow_down"
)

// coded is the failure of an error code. An unknown code is not repeated: a
// hostile server chooses it.
func coded(code string) *Error {
	known, ok := codes[code]
	if !ok {
		return &Error{Kind: wire.KindRefused, Text: "the provider refused for a reason of its own"}
	}
	return &Error{Kind: known.kind, Code: code, Temporary: known.kind == wire.KindUnavailable, Text: known.text}
}

// failure is the error of an answer without success.
func (a *answer) failure() *Error {
	code, _ := a.text("error")
	var e *Error
	switch {
	// A server or proxy in trouble cannot judge a grant, whatever the body says; its word
	// is no reason to ask a person for consent again.
	case a.status >= 500 || a.status == http.StatusTooManyRequests || a.status == http.StatusRequestTimeout:
		e = &Error{Kind: wire.KindUnavailable, Temporary: true, Text: fmt.Sprintf("the provider cannot answer at the moment (status %d)", a.status)}
	case a.status >= 300 && a.status < 400:
		e = senseless("the provider sends the request to another address, which is not followed")
	case code != "":
		e = coded(code)
	default:
		e = senseless(fmt.Sprintf("the provider gave no readable answer (status %d)", a.status))
	}
	e.Status, e.RetryAfter = a.status, a.retryAfter
	return e
}

// broken is the failure of a request without an answer. The texts of net/http repeat what a
// server sent, so only causes that cannot are kept.
func broken(ctx context.Context, err error) *Error {
	e := &Error{Kind: wire.KindConnection, Temporary: true, Text: "the provider could not be reached"}
	var (
		network *net.OpError
		name    *net.DNSError
		record  tls.RecordHeaderError
		verify  *tls.CertificateVerificationError
	)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	switch kind := wire.KindOf(err); {
	case errors.Is(err, context.Canceled):
		e.Kind, e.Err, e.Text = wire.KindTimeout, err, "the request was cancelled"
	case kind == wire.KindTimeout:
		e.Kind, e.Err, e.Text = wire.KindTimeout, context.DeadlineExceeded, "the provider did not answer in time"
	case kind == wire.KindCertificate:
		e.Kind, e.Temporary, e.Text = kind, false, "the provider's certificate was not accepted"
		if errors.As(err, &verify) {
			e.Err = verify.Err
		}
	case errors.As(err, &record):
		e.Kind, e.Temporary, e.Text = wire.KindProtocol, false, "the provider does not speak TLS there"
	case errors.Is(err, errElsewhere):
		e.Kind, e.Temporary, e.Text = wire.KindInvalid, false, errElsewhere.Error()
	case kind == wire.KindClosed:
		e.Text = "the provider closed the connection before its answer was whole"
	case errors.As(err, &name):
		e.Err = name
	case errors.As(err, &network):
		e.Err = network
	default:
		e = senseless("the provider's answer cannot be understood")
	}
	return e
}
