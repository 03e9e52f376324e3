package outbox

import (
	"context"
	"errors"

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
		return nil, noSubmission(o)
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

func noSubmission(o mail.Operation) error {
	return o.Failure(mail.KindConfig, "config", "The account has no submission server.", mail.AdviceSetSubmission)
}

func submissionError(o mail.Operation, w *wire.Error) *mail.Error {
	e := o.Failure(mail.KindConnection, "", "", "")
	e.Err = w
	e.Explain(w, "The submission server")
	switch w.Kind {
	case wire.KindAuth, wire.KindCertificate:
	case wire.KindProtocol:
		e.Advice = mail.AdviceCheckSubmissionPort
	default:
		e.Advice = mail.AdviceCheckSubmission
	}
	if w.Text != "" {
		e.Message += " The server said: " + w.Text
	}
	return e
}
