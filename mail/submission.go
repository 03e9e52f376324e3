package mail

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/postern-mail/postern/mail/internal/smtp"
	"github.com/postern-mail/postern/mail/internal/wire"
)

// VerifySubmission connects to the account's submission server, logs in and says
// goodbye; it sends nothing. Like Verify it makes a new connection, and reports
// what went wrong with the server as an Issue.
func (m *Mailboxes) VerifySubmission(ctx context.Context, account string) (*Verification, error) {
	const op = "mail verify"
	a, err := m.o.Directory.Account(ctx, account)
	if err != nil {
		return nil, err
	}
	x := &access{op: op, account: a, log: m.o.Logger}
	if a.SMTP.IsZero() {
		return nil, &Error{Op: op, Account: account, Kind: KindConfig, Stage: "config", Message: "The account has no submission server.",
			Hint: "Give it one with 'account edit NAME --smtp-host HOST'."}
	}
	if err := x.canLogIn(m.o.Credentials); err != nil {
		return nil, err
	}
	if err := a.Validate(); err != nil {
		return nil, x.config(err)
	}
	target, err := targetOf(a.SMTP, m.o.Directory, m.o.Credentials, &a)
	if err != nil {
		return nil, x.config(err)
	}
	v := &Verification{Account: account, Server: a.SMTP}
	start := m.o.Now()
	s, err := smtp.Dial(ctx, target)
	v.Latency = m.o.Now().Sub(start)
	if err != nil {
		var w *wire.Error
		if ctx.Err() != nil || !errors.As(err, &w) {
			return nil, x.wrap(ctx, err)
		}
		e := submissionError(op, account, w)
		_ = aboutLogin(e, &a)
		v.Issues = []Issue{e.issue()}
		return v, nil
	}
	v.Capabilities = s.Extensions()
	_ = s.Close()
	return v, nil
}

// targetOf is one of the account's servers as the wires want it.
func targetOf(e Endpoint, d Directory, c Credentials, a *Account) (wire.Target, error) {
	roots, err := a.roots()
	return wire.Target{Host: e.Host, Port: e.Port, Security: wire.Security(e.Security), RootCAs: roots,
		Login: loginOf(d, c, a), Connect: a.Timeouts.Connect, Greeting: a.Timeouts.Greeting}, err
}

func submissionError(op, account string, w *wire.Error) *Error {
	e := &Error{Op: op, Account: account, Stage: w.Stage, Retryable: !w.Permanent, Err: w,
		Kind: KindConnection, Message: "The submission server could not be reached.", Hint: "Check the account's --smtp-host, --smtp-port and --smtp-security."}
	switch w.Kind {
	case wire.KindAuth:
		e.Kind, e.Retryable, e.Message = KindAuth, false, "The submission server did not accept the login."
		if w.Reply != 0 {
			e.Message = fmt.Sprintf("The submission server did not accept the login (%d).", w.Reply)
		}
		e.Hint = hintLogin
	case wire.KindCertificate:
		e.Kind, e.Retryable, e.Message = KindCertificate, false, "The submission server's certificate was not accepted."
		e.Hint = "Check host and port; a server with its own authority needs the account's --ca-file."
	case wire.KindTimeout, wire.KindCanceled:
		e.Kind, e.Message = KindTimeout, "The submission server did not answer in time."
	case wire.KindRefused:
		e.Kind, e.Message = KindRefused, "The submission server refused."
	case wire.KindLimit:
		e.Kind, e.Message = KindLimit, "The submission server sent more than is allowed."
	case wire.KindProtocol:
		e.Message, e.Hint = "The submission server said something that could not be understood.", "Check the account's --smtp-port and --smtp-security."
	}
	if w.Text != "" {
		e.Message += " The server said: " + w.Text
	}
	return e
}

// CheckCA reports a CA that holds no certificate; nil when there is none at all.
func (a *Account) CheckCA() error {
	_, err := a.roots()
	return err
}

// roots is what the account's servers are verified against; nil means the
// system's authorities.
func (a *Account) roots() (*x509.CertPool, error) {
	if len(a.CAPEM) == 0 {
		return nil, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(a.CAPEM) {
		return nil, errors.New("the CA file holds no certificate")
	}
	return pool, nil
}
