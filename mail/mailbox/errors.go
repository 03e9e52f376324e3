package mailbox

import (
	"errors"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/internal/wire"
)

// explain turns a failure of either protocol into an *Error.
func explain(e *mail.Error, at mail.Endpoint) {
	var w *wire.Error
	if !errors.As(e.Err, &w) {
		return
	}
	e.Explain(w, "The mail server", at)
	switch {
	case w.Kind == wire.KindRefused && errors.Is(w, imap.ErrSends):
		e.Kind, e.Advice, e.Message = mail.KindReadOnly, mail.AdviceSendInstead, "The server sends every message that is put into this folder, so nothing is put there."
	case w.Kind == wire.KindRefused && w.Code == "IN-USE":
		e.Advice, e.Message = mail.AdviceMailboxInUse, "Another program has the mailbox open."
	case w.Kind == wire.KindRefused && w.Permanent && (w.Stage == imap.StageExamine || w.Stage == imap.StageSelect):
		e.Kind, e.Advice, e.Message, e.Retryable = mail.KindNotFound, mail.AdviceFolders, "There is no such folder.", false
	case w.Kind == wire.KindRefused || w.Kind == wire.KindClosed:
		e.Said(w.Text)
	}
}

// undecided is the error of a change that was cut off: whether it happened is unknown.
func (x *access) undecided(err error, message string, advice mail.Advice) error {
	e := *x.AsError(err)
	e.Message += " " + message
	e.Advice, e.Retryable, e.Unknown = advice, false, true
	return &e
}
