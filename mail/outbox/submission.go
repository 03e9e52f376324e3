package outbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/smtp"
	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/login"
)

// Verify connects to the account's submission server, logs in and says
// goodbye; it sends nothing. It makes a new connection, and reports
// what went wrong with the server as an Issue.
func (b *Outbox) Verify(ctx context.Context, account string) (*mail.Verification, error) {
	const op = "mail verify"
	a, err := b.o.Directory.Account(ctx, account)
	if err != nil {
		return nil, err
	}
	o := mail.Operation{Op: op, Account: a.Name}
	if a.SMTP.IsZero() {
		return nil, &mail.Error{Op: op, Account: account, Kind: mail.KindConfig, Stage: "config", Message: "The account has no submission server.",
			Advice: mail.AdviceSetSubmission}
	}
	if err := login.Check(o, &a, b.o.Credentials); err != nil {
		return nil, err
	}
	if err := a.Validate(); err != nil {
		return nil, o.Unusable(err)
	}
	target, err := login.Target(a.SMTP, b.o.Directory, b.o.Credentials, &a)
	if err != nil {
		return nil, o.Unusable(err)
	}
	v := &mail.Verification{Account: account, Server: a.SMTP}
	start := b.o.Now()
	s, err := smtp.Dial(ctx, target)
	v.Latency = b.o.Now().Sub(start)
	if err != nil {
		var w *wire.Error
		if ctx.Err() != nil || !errors.As(err, &w) {
			return nil, login.Wrap(ctx, o, &a, err, nil)
		}
		e := submissionError(o, w)
		_ = login.Explain(e, &a)
		v.Issues = []mail.Issue{e.Issue()}
		return v, nil
	}
	v.Capabilities = s.Extensions()
	_ = s.Close()
	return v, nil
}

func submissionError(o mail.Operation, w *wire.Error) *mail.Error {
	e := &mail.Error{Op: o.Op, Account: o.Account, Stage: w.Stage, Retryable: !w.Permanent, Err: w,
		Kind: mail.KindConnection, Message: "The submission server could not be reached.", Advice: mail.AdviceCheckSubmission}
	switch w.Kind {
	case wire.KindAuth:
		e.Kind, e.Retryable, e.Message = mail.KindAuth, false, "The submission server did not accept the login."
		if w.Reply != 0 {
			e.Message = fmt.Sprintf("The submission server did not accept the login (%d).", w.Reply)
		}
		e.Advice = mail.AdviceCheckLogin
	case wire.KindCertificate:
		e.Kind, e.Retryable, e.Message = mail.KindCertificate, false, "The submission server's certificate was not accepted."
		e.Advice = mail.AdviceCertificate
	case wire.KindTimeout, wire.KindCanceled:
		e.Kind, e.Message = mail.KindTimeout, "The submission server did not answer in time."
	case wire.KindRefused:
		e.Kind, e.Message = mail.KindRefused, "The submission server refused."
	case wire.KindLimit:
		e.Kind, e.Message = mail.KindLimit, "The submission server sent more than is allowed."
	case wire.KindProtocol:
		e.Message, e.Advice = "The submission server said something that could not be understood.", mail.AdviceCheckSubmissionPort
	}
	if w.Text != "" {
		e.Message += " The server said: " + w.Text
	}
	return e
}
