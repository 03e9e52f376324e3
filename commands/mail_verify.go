package commands

import (
	"context"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
)

// MailVerifyResult answers mail verify (001 section 2).
type MailVerifyResult struct {
	answer.Outcome
	Account      string   `json:"account_id"`
	OK           bool     `json:"ok"`
	LatencyMS    int64    `json:"latency_ms"`
	Server       Server   `json:"server"`
	Capabilities []string `json:"capabilities"`

	hint string // for a login that was refused
}

// Server is where an account is read from.
type Server struct {
	Host   string `json:"host"`
	Port   uint16 `json:"port"`
	Secure bool   `json:"secure"`
}

func serverOf(e mail.Endpoint) Server { return Server{e.Host, e.Port, e.Security != mail.Plaintext} }

func mailVerify(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "mail verify",
		Summary:  "Log in",
		Details:  "It reports what came of it. It asks the server each time and keeps no answer.",
		Effect:   discovery.Read,
		Examples: []string{"mail verify"},
	}, func(ctx context.Context, call *discovery.Call, args *argument.AccountOption) (*MailVerifyResult, error) {
		name, err := d.account(ctx, call, *args)
		if err != nil {
			return nil, err
		}
		v, err := d.Mailboxes.Verify(ctx, name)
		if err != nil {
			return nil, err
		}
		r := &MailVerifyResult{Outcome: answer.OutcomeOf(v.Issues, false), Account: name, LatencyMS: v.Latency.Milliseconds(),
			Server: serverOf(v.Server), Capabilities: v.Capabilities}
		r.OK = r.Status != mail.StatusFailed
		if r.Capabilities == nil {
			r.Capabilities = []string{}
		}
		if r.OK {
			r.NextAction = answer.Next("List the newest messages", "mail", "list", "--account", name)
		} else if d.Exists == nil || d.Exists("doctor") {
			r.NextAction = answer.Next("See what works and what does not", "doctor", "--account", name)
			r.hint = answer.LoginHint(v.Issues[0], name)
		}
		return r, nil
	})
}

// Failed implements discovery.Checker.
func (r *MailVerifyResult) Failed() discovery.Code {
	switch {
	case r.OK:
		return ""
	case r.Issues[0].Code == discovery.AuthFailed:
		return discovery.AuthFailed
	}
	return discovery.ConnectionFailed
}

// verifyBrief is the compact form.
type verifyBrief struct {
	Account string `json:"account"`
	OK      bool   `json:"ok"`
	answer.Rest
}

// Brief is the answer without --full.
func (r *MailVerifyResult) Brief() verifyBrief {
	b := verifyBrief{Account: r.Account, OK: r.OK, Rest: r.Rest(nil)}
	if b.Hint = r.hint; b.Hint == "" && r.NextAction != nil && !r.OK {
		b.Hint = "'doctor' shows what works and what does not."
	}
	return b
}

// Summary implements discovery.Summarizer.
func (r *MailVerifyResult) Summary() string {
	if r.OK {
		return "Logged in"
	}
	return "Could not log in"
}
