package mail

import (
	"context"
	"errors"
	"fmt"
)

// Kind says what kind of failure an Error is, so that a caller can choose its
// public code.
type Kind string

// The kinds.
const (
	KindNotFound    Kind = "not_found"   // no such folder or message, or the policy hides it
	KindConflict    Kind = "conflict"    // the UIDVALIDITY of a Ref is gone
	KindAuth        Kind = "auth"        // the server did not accept the login
	KindConnection  Kind = "connection"  // no connection, or it broke
	KindCertificate Kind = "certificate" // the server's certificate was not accepted
	KindTimeout     Kind = "timeout"     // a deadline passed or the caller gave up
	KindConfig      Kind = "config"      // the account or its secret cannot be used as it is
	KindRefused     Kind = "refused"     // the server refused the command
	KindUnsupported Kind = "unsupported" // not possible with this protocol or login
	KindLimit       Kind = "limit"       // the server sent more than is allowed
	KindReadOnly    Kind = "read_only"   // the account's mode does not allow the change
	KindInvalid     Kind = "invalid"     // what was asked for makes no sense
)

// Error is a failure of an operation on an account. Message is one sentence of what
// happened and holds no secret, nothing of a message and no command. When a
// context ended the operation, the Error matches its error.
type Error struct {
	Op        string // such as "mail list"
	Account   string
	Kind      Kind
	Stage     string // what was being done: connect, tls, greeting, auth, examine, list, status, search, fetch
	Message   string
	Advice    Advice // what can be done about it
	Detail    string // what Advice is about: an id, the parts there are; or empty
	Retryable bool   // the same call may work later
	Unknown   bool   // whether what was asked for happened is not known, as Message says
	Reason    string // for the audit only, never shown: "filtered" when the policy hid the object
	Err       error  // the cause; may be nil
}

// Error returns what happened, in the same words for a message that the policy
// hides and for one that does not exist.
func (e *Error) Error() string { return e.Op + ": " + e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Undecided is Unknown, for whoever does not know this type.
func (e *Error) Undecided() bool { return e.Unknown }

// Operation is what is done and to which account, as its errors name them.
type Operation struct {
	Op      string // such as "mail list"
	Account string
}

// Invalid refuses what makes no sense.
func (o Operation) Invalid(message string, advice Advice) *Error {
	return &Error{Op: o.Op, Account: o.Account, Kind: KindInvalid, Message: message, Advice: advice}
}

// Conflict refuses what no longer fits how things are.
func (o Operation) Conflict(message string, advice Advice) *Error {
	return &Error{Op: o.Op, Account: o.Account, Kind: KindConflict, Message: message, Advice: advice}
}

// Unsupported refuses what cannot be done with the account as it is set up.
func (o Operation) Unsupported(message string, advice Advice) *Error {
	return &Error{Op: o.Op, Account: o.Account, Kind: KindUnsupported, Stage: "config", Message: message, Advice: advice}
}

// Unusable says what is wrong with the account's settings.
func (o Operation) Unusable(err error) *Error {
	return &Error{Op: o.Op, Account: o.Account, Kind: KindConfig, Stage: "config", Err: err,
		Message: "The account cannot be used as it is set up: " + err.Error() + ".", Advice: AdviceEditAccount}
}

// ReadOnly refuses a change in an account whose mode allows none.
func (o Operation) ReadOnly() *Error {
	return &Error{Op: o.Op, Account: o.Account, Kind: KindReadOnly, Reason: ReasonReadOnly,
		Message: "The account is read-only.", Advice: AdviceAllowChanges}
}

// AsError returns err as an Error, whatever it is.
func (o Operation) AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Op: o.Op, Account: o.Account, Kind: KindConfig, Message: "The account cannot be used.", Advice: AdviceCheckSetup, Err: err}
}

// Wrap gives a failure of a connection, a Directory or the context its form. An
// Error and ErrNoAccount pass as they are. explain, which may be nil, says what a
// failure of the connection means; the end of the context counts before that,
// unless the login was refused.
func (o Operation) Wrap(ctx context.Context, err error, explain func(*Error)) error {
	var done *Error
	if err == nil || errors.As(err, &done) || errors.Is(err, ErrNoAccount) {
		return err
	}
	e := &Error{Op: o.Op, Account: o.Account, Kind: KindConnection, Retryable: true, Err: err,
		Message: "The mail server could not be reached.", Advice: AdviceVerify}
	if explain != nil {
		explain(e)
	}
	if cause := ctx.Err(); cause != nil && e.Kind != KindAuth {
		e.Kind, e.Retryable = KindTimeout, true
		e.Message, e.Advice = "It took too long.", AdviceMoreTime
		if errors.Is(cause, context.Canceled) {
			e.Message, e.Advice = "The command was cancelled.", AdviceRunAgain
		}
		if !errors.Is(err, cause) {
			e.Err = fmt.Errorf("%w: %w", cause, err)
		}
	}
	return e
}

// Issue is the form of an error inside a result that holds what did work.
func (e *Error) Issue() Issue {
	return Issue{Kind: e.Kind, Stage: e.Stage, Message: e.Message, Retryable: e.Retryable}
}
