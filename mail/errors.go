package mail

import (
	"context"
	"errors"
	"fmt"

	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/internal/wire"
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

// Error is a failure of Mailboxes. Message and Hint are one sentence each, what
// happened and what to do, and hold no secret and nothing of a message. When a
// context ended the operation, the Error matches its error.
type Error struct {
	Op        string // such as "mail list"
	Account   string
	Kind      Kind
	Stage     string // what was being done: connect, tls, greeting, auth, examine, list, status, search, fetch
	Message   string
	Hint      string
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

// noMessage is the one answer for a message that is not there and for one that
// the inbound policy hides (000 section 9).
func noMessage(op, account, reason string) *Error {
	return &Error{Op: op, Account: account, Kind: KindNotFound, Stage: string(imap.StageFetch), Reason: reason,
		Message: "There is no such message.", Hint: "List the folder for the messages there are."}
}

func gone(op, account string) *Error {
	return &Error{Op: op, Account: account, Kind: KindConflict, Stage: string(imap.StageExamine),
		Message: "The folder was made anew since this message id was given, so the id no longer names a message.",
		Hint:    "List the folder again for ids that are valid now."}
}

// wrap gives a failure of the wire, the Directory or the context its form.
func wrap(ctx context.Context, op, account string, err error) error {
	var done *Error
	if err == nil || errors.As(err, &done) || errors.Is(err, ErrNoAccount) {
		return err
	}
	e := &Error{Op: op, Account: account, Kind: KindConnection, Retryable: true, Err: err,
		Message: "The mail server could not be reached.", Hint: "Try again; 'mail verify' shows what works."}
	var w *wire.Error
	if errors.As(err, &w) {
		e.Stage = w.Stage
		e.Retryable = !w.Permanent
		e.fromWire(w)
	}
	if cause := ctx.Err(); cause != nil && e.Kind != KindAuth {
		e.Kind, e.Retryable = KindTimeout, true
		e.Message, e.Hint = "It took too long.", "Allow more time with --timeout SECONDS (at most 300)."
		if errors.Is(cause, context.Canceled) {
			e.Message, e.Hint = "The command was cancelled.", "Run it again when you want its answer."
		}
		if !errors.Is(err, cause) {
			e.Err = fmt.Errorf("%w: %w", cause, err)
		}
	}
	return e
}

func (e *Error) fromWire(w *wire.Error) {
	switch w.Kind {
	case wire.KindAuth:
		e.login(w.Code)
	case wire.KindCertificate:
		e.certificate()
	case wire.KindTimeout, wire.KindCanceled:
		e.late()
	case wire.KindProtocol:
		e.unclear(w.Stage == wire.StageTLS)
	case wire.KindLimit:
		e.tooMuch()
	case wire.KindRefused:
		e.refused(saying(w.Text))
		switch {
		case errors.Is(w, imap.ErrSends):
			e.Kind, e.Message, e.Hint = KindReadOnly, "The server sends what is put into this folder, so nothing is put there.", "Send it with 'mail send', or choose another folder."
		case w.Code == "IN-USE":
			e.Message, e.Hint = "Another program has the mailbox open.", "Try again in a moment: POP3 serves one program at a time."
		case (w.Stage == imap.StageExamine || w.Stage == imap.StageSelect) && w.Permanent:
			e.Kind, e.Retryable = KindNotFound, false
			e.Message, e.Hint = "There is no such folder.", "Run 'mail folders' for the folders there are."
		}
	case wire.KindClosed:
		e.Message = "The mail server closed the connection." + saying(w.Text)
	}
}

// saying repeats a server's words, where there are any.
func saying(text string) string {
	if text == "" {
		return ""
	}
	return " The server said: " + text
}

func (e *Error) login(code string) {
	e.Kind, e.Retryable = KindAuth, false
	e.Message = "The mail server did not accept the login."
	if code != "" {
		e.Message = "The mail server did not accept the login (" + code + ")."
	}
	e.Hint = hintLogin
}

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

func (e *Error) certificate() {
	e.Kind, e.Retryable = KindCertificate, false
	e.Message = "The mail server's certificate was not accepted."
	e.Hint = "Check host and port; a server with its own authority needs the account's --ca-file."
}

func (e *Error) late() {
	e.Kind = KindTimeout
	e.Message = "The mail server did not answer in time."
	e.Hint = "Try again, or allow more time with --timeout SECONDS (at most 300)."
}

func (e *Error) unclear(tls bool) {
	e.Message = "The mail server said something that could not be understood."
	if tls {
		e.Message = "The connection to the mail server could not be protected with TLS."
		e.Hint = "Check the account's port and whether it needs tls or starttls."
	}
}

func (e *Error) tooMuch() {
	e.Kind = KindLimit
	e.Message = "The mail server sent more than is allowed."
	e.Hint = "Ask for less at once."
}

func (e *Error) refused(said string) {
	e.Kind = KindRefused
	e.Message = "The mail server refused the command." + said
	e.Hint = "Try again later; if it stays so, ask whoever runs the server."
}

// invalid refuses what cannot be meant.
func invalid(op, account, message, hint string) *Error {
	return &Error{Op: op, Account: account, Kind: KindInvalid, Message: message, Hint: hint}
}

// asError is err in the form that Issues are made of.
func asError(op, account string, err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Op: op, Account: account, Kind: KindConfig, Message: "The account cannot be used.", Hint: "Run 'doctor' to see what is wrong.", Err: err}
}

// wireRefusal returns what the server said when it refused a command, or nil.
func wireRefusal(err error) *wire.Error {
	var w *wire.Error
	if errors.As(err, &w) && !w.OutOfStep {
		return w
	}
	return nil
}

// issue is the form of an error inside a result that holds what did work.
func (e *Error) issue() Issue {
	return Issue{Code: e.Kind.Code(), Stage: e.Stage, Message: e.Message, Retryable: e.Retryable}
}

// Code is the public code of a failure of this kind, as an envelope and an Issue
// carry it.
func (k Kind) Code() string {
	switch k {
	case KindNotFound:
		return "NOT_FOUND"
	case KindConflict:
		return "CONFLICT"
	case KindAuth:
		return "AUTH_FAILED"
	case KindConnection, KindCertificate, KindLimit:
		return "CONNECTION_FAILED"
	case KindTimeout:
		return "TIMEOUT"
	case KindConfig:
		return "CONFIG_ERROR"
	case KindReadOnly:
		return "PERMISSION_DENIED"
	case KindInvalid:
		return "VALIDATION_ERROR"
	}
	return "EXECUTION_ERROR"
}
