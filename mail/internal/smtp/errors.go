package smtp

import (
	"fmt"

	"github.com/postern-mail/postern/mail/internal/wire"
)

// The stages of a message, besides those of a connection.
const (
	StageCheck   = "check"   // before MAIL
	StageMail    = "mail"    // MAIL FROM
	StageRcpt    = "rcpt"    // RCPT TO
	StageData    = "data"    // the command DATA
	StageMessage = "message" // the message up to its end
	StageEnd     = "end"     // the end of the message, and the answer to it
)

// refusal is the Error of a negative reply.
func refusal(stage string, r reply) *wire.Error {
	return &wire.Error{Stage: stage, Kind: wire.KindRefused, Reply: r.code, Code: r.enhanced, Text: r.text(), Permanent: r.code >= 500}
}

// Outcome is the known state of a message. Its zero value promises nothing.
type Outcome int

// The outcomes. Accepted has no error: Send returned a Receipt.
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

// SendError is the outcome of a message that was not accepted. Its cause is an *Error with
// the stage and the server's code, or the error of BeforeData.
type SendError struct {
	Outcome Outcome
	// Temporary says of a message that was not sent that the same may work later:
	// the server said so, or the connection failed.
	Temporary bool
	Refused   []RefusedRecipient // in the order of the envelope; none for other failures
	Err       error
}

// RefusedRecipient is a recipient that the server does not take mail for.
type RefusedRecipient struct {
	Address string
	Reply   int    // 4xx: later perhaps; 5xx: never
	Code    string // enhanced status code; empty without one
	Text    string // the server's own words, cleaned and bounded
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

// notSent is the failure of a message that the server cannot have taken.
func notSent(e *wire.Error) *SendError {
	later := e.Reply/100 == 4
	switch e.Kind {
	case wire.KindConnection, wire.KindClosed, wire.KindTimeout, wire.KindCanceled, wire.KindProtocol, wire.KindLimit:
		later = true
	}
	return &SendError{Outcome: NotSent, Temporary: later, Err: e}
}

// unknown is the failure of a message whose outcome is unknown.
func unknown(e *wire.Error) *SendError { return &SendError{Err: e} }
