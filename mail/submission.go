package mail

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/postern-mail/postern/mail/internal/smtp"
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
	x := &access{op: op, account: a}
	switch {
	case a.SMTP.IsZero():
		return nil, &Error{Op: op, Account: account, Kind: KindConfig, Stage: "config", Message: "The account has no submission server.",
			Hint: "Give it one with 'account edit NAME --smtp-host HOST'."}
	case a.Auth == AuthOAuth2:
		return nil, x.unsupported("The account logs in with OAuth2, which is not available yet.", "Give the account a password with 'account edit'; many providers offer app passwords.")
	}
	if err := a.Validate(); err != nil {
		return nil, x.config(err)
	}
	roots, err := a.roots()
	if err != nil {
		return nil, x.config(err)
	}
	v := &Verification{Account: account, Server: a.SMTP}
	start := m.o.Now()
	s, err := smtp.Dial(ctx, smtp.Config{Host: a.SMTP.Host, Port: a.SMTP.Port, Security: smtp.Security(a.SMTP.Security), RootCAs: roots,
		Username: a.Username, Password: m.password(account), Connect: a.Timeouts.Connect, Greeting: a.Timeouts.Greeting})
	v.Latency = m.o.Now().Sub(start)
	if err != nil {
		if ctx.Err() != nil {
			return nil, wrap(ctx, op, account, err)
		}
		var w *smtp.Error
		if !errors.As(err, &w) {
			return nil, wrap(ctx, op, account, err)
		}
		v.Issues = []Issue{submissionError(op, account, w).issue()}
		return v, nil
	}
	v.Capabilities = s.Extensions()
	_ = s.Close()
	return v, nil
}

func submissionError(op, account string, w *smtp.Error) *Error {
	e := &Error{Op: op, Account: account, Stage: w.Stage, Retryable: w.Code < 500, Err: w,
		Kind: KindConnection, Message: "The submission server could not be reached.", Hint: "Check the account's --smtp-host, --smtp-port and --smtp-security."}
	switch w.Kind {
	case smtp.KindAuth:
		e.Kind, e.Retryable, e.Message = KindAuth, false, "The submission server did not accept the login."
		if w.Code != 0 {
			e.Message = fmt.Sprintf("The submission server did not accept the login (%d).", w.Code)
		}
		e.Hint = "Check the user name and password of the account; some providers want an app password."
	case smtp.KindCertificate:
		e.Kind, e.Retryable, e.Message = KindCertificate, false, "The submission server's certificate was not accepted."
		e.Hint = "Check host and port; a server with its own authority needs the account's --ca-file."
	case smtp.KindTimeout:
		e.Kind, e.Message = KindTimeout, "The submission server did not answer in time."
	case smtp.KindRefused:
		e.Kind, e.Message = KindRefused, "The submission server refused."
	case smtp.KindLimit:
		e.Kind, e.Message = KindLimit, "The submission server sent more than is allowed."
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

// password returns what fetches the account's password for one login.
func (m *Mailboxes) password(account string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		s, err := m.o.Directory.Secret(ctx, account)
		if err != nil {
			return "", &secretError{err}
		}
		if s.IsZero() {
			return "", &secretError{errNoPassword}
		}
		return s.Reveal(), nil
	}
}
