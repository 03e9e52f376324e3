package mail

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

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
	KindInvalid     Kind = "invalid"     // the request makes no sense
	KindStopped     Kind = "stopped"     // everything is stopped; the Error matches *Stopped
	KindStore       Kind = "store"       // what has to be kept here first could not be kept; nothing was changed
	KindAsks        Kind = "asks"        // a person has to decide first; nothing was changed; the Error matches ErrManyChanges
)

// Error is a failure of an operation on an account. Message says in one sentence what
// happened and holds no secret, nothing of a message and no command. When a context ended
// the operation, the Error matches its error.
type Error struct {
	Op        string // such as "mail list"
	Account   string
	Fixed     bool // the account comes from the environment, where only variables change it
	Kind      Kind
	Stage     string // the step that failed: connect, tls, greeting, auth, examine, list, status, search, fetch
	Message   string
	Advice    Advice // what can be done about it
	Detail    string // what Advice is about: an id, the parts there are; or empty
	Retryable bool   // the same call may work later

	Wait    time.Duration // of a lost connection: how long to wait before it is worth trying again; 0 for no idea
	Foreign bool          // Message repeats words of a server
	Missing string        // the name of the folder or account that does not exist
	Known   []string      // the names that exist beside it, of those that the caller may know; nil where they were not asked for

	Unknown bool   // it is not known whether the operation happened, as Message says
	Reason  string // for the audit only, never shown: "filtered" when the policy hid the object
	Err     error  // the cause; may be nil
}

// Error returns what happened, in the same words for a message that the policy
// hides and for one that does not exist.
func (e *Error) Error() string { return e.Op + ": " + e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Undecided returns Unknown, for a caller that does not know this type.
func (e *Error) Undecided() bool { return e.Unknown }

// Away reports whether an error comes of a Directory that cannot be reached and may be again.
func Away(err error) bool {
	var d interface{ Away() bool }
	return errors.As(err, &d) && d.Away()
}

// Operation is an operation on an account, as its errors name it.
type Operation struct {
	Op      string // such as "mail list"
	Account string
	Fixed   bool // the account comes from the environment: see Error.Fixed
}

// Failure returns an Error of the operation: its kind, its stage, a sentence, and the
// advice.
func (o Operation) Failure(kind Kind, stage, message string, advice Advice) *Error {
	return &Error{Op: o.Op, Account: o.Account, Fixed: o.Fixed, Kind: kind, Stage: stage, Message: message, Advice: advice}
}

// Said adds the words of a server to Message.
func (e *Error) Said(text string) {
	if text != "" {
		e.Message, e.Foreign = e.Message+" The server said: "+text, true
	}
}

// About sets Detail and returns e.
func (e *Error) About(detail string) *Error {
	e.Detail = detail
	return e
}

// Invalid refuses a request that makes no sense.
func (o Operation) Invalid(message string, advice Advice) *Error {
	return o.Failure(KindInvalid, "", message, advice)
}

// Conflict refuses a request that the present state contradicts.
func (o Operation) Conflict(message string, advice Advice) *Error {
	return o.Failure(KindConflict, "", message, advice)
}

// Unsupported refuses a request that the account, as it is set up, cannot do.
func (o Operation) Unsupported(message string, advice Advice) *Error {
	return o.Failure(KindUnsupported, "config", message, advice)
}

// Unusable says what is wrong with the account's settings.
func (o Operation) Unusable(err error) *Error {
	e := o.Failure(KindConfig, "config", "The account cannot be used as it is set up: "+err.Error()+".", AdviceEditAccount)
	e.Err = err
	return e
}

// ReadOnly refuses a change in an account whose mode allows none.
func (o Operation) ReadOnly(a *Account) *Error {
	e := o.Failure(KindReadOnly, "", "The account is read-only.", AdviceAllowChanges)
	if a.FromEnvironment {
		e.Advice = AdviceAllowByVariable
	}
	e.Reason = ReasonReadOnly
	return e
}

// NoDestroy refuses to delete for good in an account whose policy p does not allow it, or
// not without a person.
func (o Operation) NoDestroy(a *Account, p *Policy) *Error {
	if !p.MayFile() {
		return o.ReadOnly(a)
	}
	e := o.Failure(KindReadOnly, "", "The account does not allow deleting for good.", AdviceAllowDestroy)
	if p.MayDestroy() {
		e.Message, e.Advice = "Deleting for good needs a person's approval in this account.", AdviceTrashInstead
	}
	e.Reason = ReasonDestroy
	return e
}

// notTheSecret reports whether the password or token is not the reason of a refused login: by
// the codes of IMAP (RFC 9051 section 7.1, RFC 5530), and of SMTP where it knows no login or wants
// TLS first (RFC 4954 section 6), or a web browser, or has submission switched off.
// The submission server of Microsoft has one code for that and for a wrong password, and says which.
func notTheSecret(w *wire.Error) bool {
	switch w.Code {
	case "NOPERM", "PRIVACYREQUIRED", "WEBALERT", "5.7.14":
		return true
	case "5.7.139":
		return !strings.Contains(w.Text, "credentials")
	}
	return w.Reply >= 500 && w.Reply <= 504 || w.Reply == 530 || w.Reply == 538 || errors.Is(w, wire.ErrNoMechanism)
}

// Explain says what a failure of a connection to a server means, and why it could not be
// reached. server begins the sentence, such as "The mail server". Advice stays as it was where
// the kind alone gives none.
func (e *Error) Explain(w *wire.Error, server string, at Endpoint) {
	e.Stage, e.Retryable = w.Stage, !w.Permanent
	why := w.Why(wire.Target{Host: at.Host, Port: at.Port, Security: at.Security})
	say := func(kind Kind, advice Advice, what string) {
		e.Kind, e.Advice, e.Message = kind, cmp.Or(advice, e.Advice), server+what+"."
	}
	var stopped *Stopped
	if errors.As(w, &stopped) {
		say(KindStopped, "", " was not asked: everything is stopped")
		return
	}
	code := w.Code
	if w.Reply != 0 {
		code = strconv.Itoa(w.Reply)
	}
	if code != "" {
		code = " (" + code + ")"
	}
	switch w.Kind {
	case wire.KindAuth:
		say(KindAuth, AdviceCheckLogin, " did not accept the login"+code)
		if errors.Is(w, wire.ErrNoMechanism) {
			say(KindAuth, "", " was not asked to log in: the "+wire.ErrNoMechanism.Error()+" for the account's kind of credential")
		}
		if notTheSecret(w) {
			e.Advice = AdviceNoPassword
		}
		e.Retryable = false
	case wire.KindCertificate:
		say(KindCertificate, AdviceCertificate, "'s certificate was not accepted"+why)
		if e.Retryable = false; wire.Expired(w) {
			e.Advice = AdviceAskOperator
		}
	case wire.KindTimeout, wire.KindCanceled:
		say(KindTimeout, AdviceMoreTime, " did not answer in time"+why)
	case wire.KindProtocol:
		if w.Stage == wire.StageTLS {
			say(e.Kind, AdviceCheckTLS, "'s connection could not be protected with TLS"+why)
			return
		}
		say(e.Kind, "", " said something that could not be understood")
	case wire.KindLimit:
		say(KindLimit, AdviceLess, " sent more than is allowed")
	case wire.KindRefused:
		if w.Stage == wire.StageAuth && !w.Permanent {
			say(KindRefused, AdviceAskOperator, " does not accept a login at the moment"+code)
			return
		}
		say(KindRefused, AdviceAskOperator, " refused the command"+why)
	case wire.KindClosed:
		say(e.Kind, "", " closed the connection"+why)
	default:
		say(e.Kind, "", " could not be reached"+why)
	}
}

// LookUp returns the account of the operation and its policy, when both can be used. From then on
// the operation knows whether it is Fixed.
func (o *Operation) LookUp(ctx context.Context, d Directory) (Account, *Policy, error) {
	a, err := d.Account(ctx, o.Account)
	o.Fixed = a.FromEnvironment
	if err != nil {
		if ctx.Err() != nil {
			err = o.Wrap(ctx, err, nil)
		}
		return a, nil, err
	}
	if err := a.Validate(); err != nil {
		return a, nil, o.Unusable(err)
	}
	p, err := CompilePolicy(&a)
	if err != nil {
		return a, nil, o.Unusable(err)
	}
	return a, p, nil
}

// AsError returns err as an Error, whatever it is.
func (o Operation) AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	e = o.Failure(KindConfig, "", "The account cannot be used.", AdviceCheckSetup)
	e.Err = err
	return e
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
	e := o.Failure(KindConnection, "", "The mail server could not be reached.", AdviceVerify)
	e.Retryable, e.Err = true, err
	if explain != nil {
		explain(e)
	}
	if cause := ctx.Err(); cause != nil && e.Kind != KindAuth {
		silent := e.Kind == KindTimeout && (e.Stage == wire.StageConnect || e.Stage == wire.StageTLS || e.Stage == wire.StageGreeting)
		e.Kind, e.Retryable, e.Advice = KindTimeout, true, AdviceMoreTime
		if errors.Is(cause, context.Canceled) {
			e.Message, e.Advice = "The command was cancelled.", AdviceRunAgain
		} else if !silent { // else it says where
			e.Message = "It took too long."
		}
		if !errors.Is(err, cause) {
			e.Err = fmt.Errorf("%w: %w", cause, err)
		}
	}
	return e
}

// Issue is the form of an error inside a partial result.
func (e *Error) Issue() Issue {
	return Issue{Kind: e.Kind, Stage: e.Stage, Message: e.Message, Retryable: e.Retryable, Reason: e.Reason, Advice: e.Advice}
}
