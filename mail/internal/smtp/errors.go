package smtp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/postern-mail/postern/mail/internal/wire"
)

// Kind says what kind of failure an Error is.
type Kind string

// The kinds.
const (
	KindAuth        Kind = "auth"        // the server did not accept the login
	KindConnection  Kind = "connection"  // no connection, or it broke
	KindCertificate Kind = "certificate" // the server's certificate was not accepted
	KindTimeout     Kind = "timeout"     // a deadline passed, or the caller gave up
	KindRefused     Kind = "refused"     // the server answered 4xx or 5xx
	KindLimit       Kind = "limit"       // the server sent more than the limits allow
	KindProtocol    Kind = "protocol"    // the server said something that is not SMTP, or out of turn
	KindInvalid     Kind = "invalid"     // the envelope or the message is not as it must be
	KindUnsupported Kind = "unsupported" // the server lacks an extension that the message needs
	KindTooLarge    Kind = "too_large"   // the server takes no message of this size
)

// The stages of a connection and of a message.
const (
	StageConnect  = "connect"
	StageTLS      = "tls"
	StageGreeting = "greeting"
	StageAuth     = "auth"
	StageCheck    = "check"   // before anything is said about the message
	StageMail     = "mail"    // MAIL FROM
	StageRcpt     = "rcpt"    // RCPT TO
	StageData     = "data"    // the command DATA
	StageMessage  = "message" // the message up to its end
	StageEnd      = "end"     // the end of the message, and the answer to it
)

// Error is a failure of the wire. It holds no secret and nothing of a message.
type Error struct {
	Stage    string
	Kind     Kind
	Code     int    // the server's reply code, 0 without one
	Enhanced string // its enhanced status code, such as 5.1.1; empty without one
	Text     string // the server's own words, cleaned and bounded
	Err      error  // the cause; nil for a server's refusal
}

// Error says what happened in one line.
func (e *Error) Error() string {
	if e.Code == 0 {
		return fmt.Sprintf("smtp %s: %v", e.Stage, e.Err)
	}
	return "smtp " + e.Stage + ": server refused: " + answer(e.Code, e.Enhanced, e.Text)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// answer is a server's answer in one line.
func answer(code int, enhanced, text string) string {
	return strings.Join(strings.Fields(fmt.Sprintf("%d %s %s", code, enhanced, text)), " ")
}

// refusal is an answer that says no.
func refusal(stage string, r reply) *Error {
	return &Error{Stage: stage, Kind: KindRefused, Code: r.code, Enhanced: r.enhanced, Text: r.text()}
}

// failure is what ended a connection, or kept it from being made.
func failure(stage string, err error) *Error {
	return &Error{Stage: stage, Kind: kindOf(err), Err: err}
}

func kindOf(err error) Kind {
	var netErr net.Error
	switch {
	case errors.Is(err, errTooMuch):
		return KindLimit
	case errors.Is(err, errNotSMTP), errors.Is(err, errEarly), errors.Is(err, errChallenge), errors.Is(err, errEndless):
		return KindProtocol
	case wire.BadCertificate(err):
		return KindCertificate
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded),
		errors.As(err, &netErr) && netErr.Timeout():
		return KindTimeout
	}
	return KindConnection
}

// Outcome is what is known of a message. Its zero value promises nothing.
type Outcome int

// The outcomes. Accepted has no error; what Send returned tells it.
const (
	Unknown Outcome = iota // it may have been taken: the end of it may have left, and no answer came back
	NotSent                // the server has not taken it, and will not
)

// String names the outcome.
func (o Outcome) String() string {
	if o == NotSent {
		return "not sent"
	}
	return "unknown"
}

// SendError says what became of a message that was not accepted. Its cause is an
// *Error with the stage and the server's code, or what BeforeData returned.
type SendError struct {
	Outcome Outcome
	// Temporary says of a message that was not sent that the same may work later:
	// the server said so, or the connection failed.
	Temporary bool
	Refused   []RefusedRecipient // in the order of the envelope; none when the failure was another
	Err       error
}

// RefusedRecipient is a recipient that the server does not take mail for.
type RefusedRecipient struct {
	Address  string
	Code     int    // 4xx: later perhaps; 5xx: never
	Enhanced string // empty without one
	Text     string // the server's own words, cleaned and bounded
}

// Error says what happened in one line.
func (e *SendError) Error() string {
	if len(e.Refused) > 1 {
		return fmt.Sprintf("message %s: %v, and %d recipients more", e.Outcome, e.Err, len(e.Refused)-1)
	}
	return fmt.Sprintf("message %s: %v", e.Outcome, e.Err)
}

// Unwrap returns the cause.
func (e *SendError) Unwrap() error { return e.Err }

// notSent is the failure to send a message of which nothing can have been taken.
func notSent(e *Error) *SendError {
	later := e.Code/100 == 4
	switch e.Kind {
	case KindConnection, KindTimeout, KindProtocol, KindLimit:
		later = true
	}
	return &SendError{Outcome: NotSent, Temporary: later, Err: e}
}

// unknown is the failure to learn what became of a message.
func unknown(e *Error) *SendError { return &SendError{Err: e} }
