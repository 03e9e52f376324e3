package mailbox

import (
	"errors"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/internal/wire"
)

// noMessage is the one answer for a message that is not there and for one that
// the inbound policy hides (000 section 9).
func (x *access) noMessage(reason string) *mail.Error {
	return &mail.Error{Op: x.Op, Account: x.Account, Kind: mail.KindNotFound, Stage: string(imap.StageFetch), Reason: reason,
		Message: "There is no such message.", Advice: mail.AdviceList}
}

// gone refuses a message id of a folder that has another UIDVALIDITY now.
func (x *access) gone() *mail.Error {
	return &mail.Error{Op: x.Op, Account: x.Account, Kind: mail.KindConflict, Stage: string(imap.StageExamine),
		Message: "The folder was made anew since this message id was given, so the id no longer names a message.",
		Advice:  mail.AdviceListAgain}
}

// explain says what a failure of either wire means.
func explain(e *mail.Error) {
	var w *wire.Error
	if !errors.As(e.Err, &w) {
		return
	}
	e.Stage, e.Retryable = w.Stage, !w.Permanent
	say := func(kind mail.Kind, advice mail.Advice, message string) {
		e.Kind, e.Advice, e.Message = kind, advice, message
	}
	switch w.Kind {
	case wire.KindAuth:
		say(mail.KindAuth, mail.AdviceCheckLogin, "The mail server did not accept the login.")
		e.Retryable = false
		if w.Code != "" {
			e.Message = "The mail server did not accept the login (" + w.Code + ")."
		}
	case wire.KindCertificate:
		say(mail.KindCertificate, mail.AdviceCertificate, "The mail server's certificate was not accepted.")
		e.Retryable = false
	case wire.KindTimeout, wire.KindCanceled:
		say(mail.KindTimeout, mail.AdviceMoreTime, "The mail server did not answer in time.")
	case wire.KindProtocol:
		e.Message = "The mail server said something that could not be understood."
		if w.Stage == wire.StageTLS {
			say(e.Kind, mail.AdviceCheckTLS, "The connection to the mail server could not be protected with TLS.")
		}
	case wire.KindLimit:
		say(mail.KindLimit, mail.AdviceLess, "The mail server sent more than is allowed.")
	case wire.KindRefused:
		say(mail.KindRefused, mail.AdviceAskOperator, "The mail server refused the command."+saying(w.Text))
		switch {
		case errors.Is(w, imap.ErrSends):
			say(mail.KindReadOnly, mail.AdviceSendInstead, "The server sends what is put into this folder, so nothing is put there.")
		case w.Code == "IN-USE":
			say(e.Kind, mail.AdviceMailboxInUse, "Another program has the mailbox open.")
		case (w.Stage == imap.StageExamine || w.Stage == imap.StageSelect) && w.Permanent:
			say(mail.KindNotFound, mail.AdviceFolders, "There is no such folder.")
			e.Retryable = false
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

// wireRefusal returns what the server said when it refused a command, or nil.
func wireRefusal(err error) *wire.Error {
	var w *wire.Error
	if errors.As(err, &w) && !w.OutOfStep {
		return w
	}
	return nil
}

// undecided says of a change that was cut off that nobody knows whether it happened.
func (x *access) undecided(err error, message string, advice mail.Advice) error {
	e := *x.AsError(err)
	e.Message += " " + message
	e.Advice, e.Retryable, e.Unknown = advice, false, true
	return &e
}
