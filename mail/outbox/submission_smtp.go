package outbox

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/smtp"
	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/login"
)

// dialSubmission connects to the account's submission server and logs in.
func (b *Outbox) dialSubmission(ctx context.Context, op string, a *mail.Account) (submission, error) {
	o := mail.Operation{Op: op, Account: a.Name}
	target, err := login.Target(a.SMTP, b.o.Directory, b.o.Credentials, a)
	if err != nil {
		return nil, o.Unusable(err)
	}
	s, err := smtp.Dial(ctx, target)
	if err == nil {
		return &submissionSession{Session: s, Operation: o}, nil
	}
	var w *wire.Error
	if ctx.Err() != nil || !errors.As(err, &w) {
		return nil, login.Wrap(ctx, o, a, err, nil)
	}
	e := submissionError(o, w)
	_ = login.Explain(e, a)
	return nil, e
}

// submissionSession is a session as the outbox uses it.
type submissionSession struct {
	*smtp.Session
	mail.Operation
}

func (e envelope) wire() smtp.Envelope {
	return smtp.Envelope{From: e.from, Recipients: e.recipients, SMTPUTF8: e.utf8, BeforeData: e.beforeData, Sent: e.sent}
}

func (s *submissionSession) check(e envelope, message []byte) *failure {
	if err := s.Check(e.wire(), message); err != nil {
		return s.failure(context.Background(), err)
	}
	return nil
}

func (s *submissionSession) send(ctx context.Context, e envelope, message []byte) (int, *failure) {
	receipt, err := s.Send(ctx, e.wire(), message)
	if err != nil {
		f := s.failure(ctx, err)
		return f.code, f
	}
	return receipt.Reply, nil
}

// failure says what a failure to send means. What is no *smtp.SendError promises
// nothing.
func (s *submissionSession) failure(ctx context.Context, err error) *failure {
	var sending *smtp.SendError
	if !errors.As(err, &sending) {
		return &failure{unknown: true, err: s.Wrap(ctx, err, nil)}
	}
	f := &failure{unknown: sending.Outcome != smtp.NotSent}
	var w *wire.Error
	if !errors.As(err, &w) {
		f.err = sending.Err // what stopped it at the gate
		return f
	}
	f.code = w.Reply
	e := submissionError(s.Operation, w)
	e.Retryable = sending.Temporary && !f.unknown
	switch {
	case w.Kind == wire.KindRefused:
		e.Kind, e.Message, e.Advice = mail.KindRefused, "The submission server refused the message: "+said(w.Reply, w.Code, w.Text)+".", mail.AdviceRejected
		if e.Retryable {
			e.Advice = mail.AdviceNothingSentLater
		}
	case w.Kind == wire.KindTooLarge:
		e.Kind, e.Message, e.Advice = mail.KindRefused, fmt.Sprintf("The submission server takes no message of this size: the %v.", w.Err), mail.AdviceSmallerFiles
	case w.Kind == wire.KindUnsupported:
		e.Kind, e.Message, e.Advice = mail.KindUnsupported, "The submission server does not take addresses outside ASCII, which this message has.", mail.AdviceASCIIAddresses
	case w.Kind == wire.KindInvalid:
		e.Kind, e.Message, e.Advice = mail.KindInvalid, "The message or an address in it cannot be sent: "+w.Err.Error()+".", mail.AdviceChangeMessage
	case ctx.Err() != nil:
		ended, ok := s.Wrap(ctx, err, nil).(*mail.Error)
		if ok {
			e = ended
			e.Stage = w.Stage
		}
	default:
		e.Message = "The connection to the submission server broke before the message had left."
		if w.Kind == wire.KindTimeout || w.Kind == wire.KindCanceled {
			e.Message = "The submission server did not answer in time; the message had not left."
		}
		e.Advice = mail.AdviceNothingSent
	}
	if len(sending.Refused) > 0 {
		e.Message = refusedRecipients(sending.Refused)
	}
	f.err = e
	return f
}

// said is a server's answer as part of a sentence.
func said(code int, enhanced, text string) string {
	return strings.TrimRight(strings.Join(strings.Fields(fmt.Sprintf("%d %s %s", code, enhanced, text)), " "), ".")
}

// maxNamedRecipients bounds the recipients one message names.
const maxNamedRecipients = 5

func refusedRecipients(refused []smtp.RefusedRecipient) string {
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "The submission server refused recipients (%d), so nobody got the message: ", len(refused))
	for i, r := range refused {
		if i == maxNamedRecipients {
			_, _ = fmt.Fprintf(&b, "; and %d more", len(refused)-i)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		_, _ = fmt.Fprintf(&b, "%s: %s", r.Address, said(r.Reply, r.Code, shortLine(r.Text, 120)))
	}
	return b.String() + "."
}
