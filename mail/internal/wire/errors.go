package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Kind says what kind of failure an error is.
type Kind string

// The kinds.
const (
	KindAuth        Kind = "auth"        // the server did not accept the login, or there is no way to log in
	KindConnection  Kind = "connection"  // no connection, or it broke
	KindCertificate Kind = "certificate" // the server's certificate was not accepted
	KindTimeout     Kind = "timeout"     // a deadline passed, or the server fell silent
	KindCanceled    Kind = "canceled"    // the caller gave up
	KindClosed      Kind = "closed"      // the connection was ended, by the server or by this side
	KindProtocol    Kind = "protocol"    // the server sent an invalid or untimely line; or this side would have
	KindRefused     Kind = "refused"     // the server refused
	KindLimit       Kind = "limit"       // the server sent more than the limits allow
	KindInvalid     Kind = "invalid"     // the caller's input cannot be used
	KindUnsupported Kind = "unsupported" // the server lacks an extension that is needed
	KindTooLarge    Kind = "too_large"   // the message is too large for the server

	// Of an OAuth 2.0 provider.
	KindConsent     Kind = "consent"     // the person's consent is not accepted (any more): they must be asked again
	KindDenied      Kind = "denied"      // the person, or an administrator, refused
	KindExpired     Kind = "expired"     // no decision came in time
	KindUnavailable Kind = "unavailable" // the provider cannot answer at the moment
)

// The stages of every connection. Each protocol adds its own.
const (
	StageConnect  = "connect"
	StageTLS      = "tls"
	StageGreeting = "greeting"
	StageAuth     = "auth"
)

// Error is a failure of a connection to a mail server. It holds no secret and no part of a
// message.
type Error struct {
	Stage string // the step that failed
	Kind  Kind
	Reply int    // SMTP's reply code; 0 without one
	Code  string // response code of IMAP or POP3, without brackets, in upper case; of SMTP the enhanced status code
	Text  string // the server's own words, cleaned, at most MaxServerText characters; of a login see Credential.Words
	// Permanent says that trying again without a change cannot help.
	Permanent bool
	// OutOfStep says that the connection can no longer be used.
	OutOfStep bool
	// Newer says that a newer credential exists than the refused one, so that the login is
	// worth one more try on a new connection.
	Newer bool
	Err   error // the cause; may be nil
}

// Broken is the Error of a connection that ended or could not be made.
func Broken(stage string, err error) *Error {
	return &Error{Stage: stage, Kind: KindOf(err), OutOfStep: true, Err: err}
}

// Error says what happened in one line.
func (e *Error) Error() string {
	said := e.Code + " " + e.Text
	if e.Reply != 0 {
		said = strconv.Itoa(e.Reply) + " " + said
	}
	said = strings.Join(strings.Fields(said), " ")
	what := string(e.Kind)
	switch {
	case (e.Kind == KindRefused || e.Kind == KindAuth) && (e.Err == nil || said != ""):
		what = "server refused"
	case e.Err != nil:
		what = e.Err.Error()
	}
	if said != "" {
		what += ": " + said
	}
	return e.Stage + ": " + what
}

// WorthRetry reports whether err is the refusal of a login that is worth one more try.
func WorthRetry(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Newer
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Cause is a reason to end a connection, with its kind.
func Cause(kind Kind, text string) error { return &cause{kind, text} }

type cause struct {
	kind Kind
	text string
}

// Error implements error.
func (c *cause) Error() string { return c.text }

// KindOf returns the kind of the error that ended a connection: that of a Cause, else of
// the network, TLS or a context; KindConnection for any other.
func KindOf(err error) Kind {
	var (
		known  *cause
		netErr net.Error
		record tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &known):
		return known.kind
	case errors.Is(err, context.Canceled):
		return KindCanceled
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return KindTimeout
	case errors.As(err, &record):
		return KindProtocol
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed):
		return KindClosed
	case BadCertificate(err):
		return KindCertificate
	case errors.As(err, &netErr) && netErr.Timeout():
		return KindTimeout
	}
	return KindConnection
}

// BadCertificate reports whether err means that a server's certificate was not
// accepted.
func BadCertificate(err error) bool {
	var (
		verify   *tls.CertificateVerificationError
		unknown  x509.UnknownAuthorityError
		hostname x509.HostnameError
		invalid  x509.CertificateInvalidError
	)
	return errors.As(err, &verify) || errors.As(err, &unknown) || errors.As(err, &hostname) || errors.As(err, &invalid)
}
