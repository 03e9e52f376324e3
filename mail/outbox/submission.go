package outbox

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/graph"
	"github.com/postern-mail/postern/mail/internal/smtp"
	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/login"
)

// Verify connects to the account's submission server, logs in and says
// goodbye; it sends nothing. Of Microsoft Graph it says whether there is a token and whether
// the service is reached. It makes a new connection, and reports
// what went wrong with the server as an Issue.
func (b *Outbox) Verify(ctx context.Context, account string) (*mail.Verification, error) {
	o := mail.Operation{Op: "mail verify", Account: account}
	a, _, err := o.LookUp(ctx, b.o.Directory)
	if err != nil {
		return nil, err
	}
	if err := canSubmit(o, &a, b.o.Credentials); err != nil {
		return nil, err
	}
	v := &mail.Verification{Account: account, Server: a.SMTP, Untried: a.Submission == mail.SubmitGraph}
	start := b.o.Now()
	s, err := b.connect(ctx, o, &a)
	v.Latency = b.o.Now().Sub(start)
	var w *wire.Error
	switch {
	case err == nil:
		v.Capabilities = s.Extensions()
		_ = s.Close()
	case ctx.Err() != nil || !errors.As(err, &w):
		return nil, err
	default:
		e := o.AsError(err)
		_ = login.Explain(e, &a)
		v.Issues = []mail.Issue{e.Issue()}
	}
	return v, nil
}

// canSubmit reports an account that has nothing to send with.
func canSubmit(o mail.Operation, a *mail.Account, c login.Credentials) error {
	if a.SMTP.IsZero() {
		return o.Failure(mail.KindConfig, "config", "The account has no submission server.", mail.AdviceSetSubmission)
	}
	return login.Check(o, a, c)
}

// connect connects to the account's submission server and logs in.
func (b *Outbox) connect(ctx context.Context, o mail.Operation, a *mail.Account) (submission, error) {
	dial := func(t wire.Target) (submission, error) { return smtp.Dial(ctx, t) }
	target, err := login.Target(a.SMTP, b.o.Directory, b.o.Credentials, a)
	if a.Submission == mail.SubmitGraph {
		dial = func(t wire.Target) (submission, error) { return graph.Dial(ctx, t) }
		target, err = login.GraphTarget(b.o.Directory, b.o.Credentials, a)
	}
	if err != nil {
		return nil, o.Unusable(err)
	}
	s, err := dial(target)
	if err == nil {
		return s, nil
	}
	var w *wire.Error
	if ctx.Err() != nil || !errors.As(err, &w) {
		return nil, login.Wrap(ctx, o, a, err, nil)
	}
	return nil, login.Explain(submissionError(o, a, w), a)
}

func submissionError(o mail.Operation, a *mail.Account, w *wire.Error) *mail.Error {
	e := o.Failure(mail.KindConnection, "", "", "")
	e.Err = w
	e.Explain(w, "The submission server", a.SMTP)
	if w.Kind != wire.KindAuth && w.Kind != wire.KindCertificate && w.Kind != wire.KindRefused {
		e.Advice = mail.AdviceCheckSubmission
	}
	e.Said(w.Text)
	return e
}

// failure is why the server does not have a message, or may not have it.
type failure struct {
	unknown bool // it may have left
	code    int
	err     error // for the caller: a *mail.Error, or what BeforeData returned
}

// failure says what a failure to send means. What is no *smtp.SendError promises
// nothing.
func failed(ctx context.Context, o mail.Operation, a *mail.Account, err error) *failure {
	var sending *smtp.SendError
	if !errors.As(err, &sending) {
		return &failure{unknown: true, err: o.Wrap(ctx, err, nil)}
	}
	f := &failure{unknown: sending.Outcome != smtp.NotSent}
	var w *wire.Error
	var stopped *mail.Stopped
	switch {
	case errors.As(err, &stopped):
		f.err = stopped
		return f
	case !errors.As(err, &w):
		f.err = sending.Err // what stopped it at the gate
		return f
	}
	f.code = w.Reply
	e := submissionError(o, a, w)
	e.Retryable = sending.Temporary && !f.unknown
	switch {
	case w.Kind == wire.KindRefused:
		e.Kind, e.Message, e.Advice = mail.KindRefused, "The submission server refused the message: "+said(w.Reply, w.Code, w.Text)+".", mail.AdviceRejected
		if e.Retryable {
			e.Advice = mail.AdviceNothingSent
		}
	case w.Kind == wire.KindAuth:
		_ = login.Explain(e, a) // it says what to do
	case w.Kind == wire.KindTooLarge:
		e.Kind, e.Message, e.Advice = mail.KindRefused, fmt.Sprintf("The submission server takes no message of this size: the %v.", w.Err), mail.AdviceSmallerFiles
	case w.Kind == wire.KindUnsupported:
		e.Kind, e.Message, e.Advice = mail.KindUnsupported, "The submission server does not take addresses outside ASCII, which this message has.", mail.AdviceASCIIAddresses
	case w.Kind == wire.KindInvalid:
		e.Kind, e.Message, e.Advice = mail.KindInvalid, "The message or an address in it cannot be sent: "+w.Err.Error()+".", mail.AdviceChangeMessage
	case ctx.Err() != nil:
		e = o.AsError(o.Wrap(ctx, err, nil))
		e.Stage = w.Stage
	default:
		e.Message = "The connection to the submission server broke before the message had left."
		if w.Kind == wire.KindTimeout || w.Kind == wire.KindCanceled {
			e.Message = "The submission server did not answer in time; the message had not left."
		}
		e.Advice = mail.AdviceNothingSent
	}
	if len(sending.Refused) > 0 {
		e.Message, e.Foreign = refusedRecipients(sending.Refused), true
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
