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
	switch w.Kind {
	case wire.KindAuth:
		loginRefused(e, w.Code)
	case wire.KindCertificate:
		badCertificate(e)
	case wire.KindTimeout, wire.KindCanceled:
		tooLateAnswer(e)
	case wire.KindProtocol:
		unclearAnswer(e, w.Stage == wire.StageTLS)
	case wire.KindLimit:
		tooMuchSent(e)
	case wire.KindRefused:
		commandRefused(e, saying(w.Text))
		switch {
		case errors.Is(w, imap.ErrSends):
			e.Kind, e.Message, e.Advice = mail.KindReadOnly, "The server sends what is put into this folder, so nothing is put there.", mail.AdviceSendInstead
		case w.Code == "IN-USE":
			e.Message, e.Advice = "Another program has the mailbox open.", mail.AdviceMailboxInUse
		case (w.Stage == imap.StageExamine || w.Stage == imap.StageSelect) && w.Permanent:
			e.Kind, e.Retryable = mail.KindNotFound, false
			e.Message, e.Advice = "There is no such folder.", mail.AdviceFolders
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

func loginRefused(e *mail.Error, code string) {
	e.Kind, e.Retryable = mail.KindAuth, false
	e.Message = "The mail server did not accept the login."
	if code != "" {
		e.Message = "The mail server did not accept the login (" + code + ")."
	}
	e.Advice = mail.AdviceCheckLogin
}

func badCertificate(e *mail.Error) {
	e.Kind, e.Retryable = mail.KindCertificate, false
	e.Message = "The mail server's certificate was not accepted."
	e.Advice = mail.AdviceCertificate
}

func tooLateAnswer(e *mail.Error) {
	e.Kind = mail.KindTimeout
	e.Message = "The mail server did not answer in time."
	e.Advice = mail.AdviceMoreTime
}

func unclearAnswer(e *mail.Error, tls bool) {
	e.Message = "The mail server said something that could not be understood."
	if tls {
		e.Message = "The connection to the mail server could not be protected with TLS."
		e.Advice = mail.AdviceCheckTLS
	}
}

func tooMuchSent(e *mail.Error) {
	e.Kind = mail.KindLimit
	e.Message = "The mail server sent more than is allowed."
	e.Advice = mail.AdviceLess
}

func commandRefused(e *mail.Error, said string) {
	e.Kind = mail.KindRefused
	e.Message = "The mail server refused the command." + said
	e.Advice = mail.AdviceAskOperator
}

// wireRefusal returns what the server said when it refused a command, or nil.
func wireRefusal(err error) *wire.Error {
	var w *wire.Error
	if errors.As(err, &w) && !w.OutOfStep {
		return w
	}
	return nil
}
