package commands

import (
	"context"
	"errors"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
)

type accountAddArgs struct {
	accountNameArgs
	accountOptions
}

// Validate checks what one option alone cannot.
func (a *accountAddArgs) Validate() error {
	switch {
	case a.Protocol == mail.POP3 && a.POP3Host == "":
		return errors.New("--pop3-host is missing")
	case a.Protocol != mail.POP3 && a.IMAPHost == "":
		return errors.New("--imap-host is missing")
	case a.Username == "" && a.Email == "":
		return errors.New("--email is missing, and so is --username")
	case a.PasswordFrom == "":
		return errors.New("--password-from is missing: a password is never an argument")
	}
	return nil
}

// AccountAddResult answers account add.
type AccountAddResult struct {
	Account    AccountDetail `json:"account"`
	NextAction *NextAction   `json:"next_action"`
}

func accountAdd(d *Deps) *discovery.Command {
	return discovery.New(discovery.Spec{
		Path:    "account add",
		Summary: "Add an account",
		Details: "It starts read-only, with nobody on its outbound list.",
		Effect:  discovery.Admin,
		Examples: []string{"account add work --email ann@example.org --imap-host imap.example.org --password-from stdin",
			"account add work --email ann@example.org --imap-host imap.example.org --smtp-host smtp.example.org --mode RW --password-from file:/run/secrets/mail"},
	}, func(ctx context.Context, call *discovery.Call, args *accountAddArgs) (*AccountAddResult, error) {
		call.Account = args.Name
		a := mail.Account{Name: args.Name, Protocol: mail.IMAP, Auth: mail.AuthPassword, Mode: mail.ReadOnly,
			AllowOut: mail.AllowList{Enabled: true}}
		if err := args.apply(&a, d.ReadFile); err != nil {
			return nil, err
		}
		secret, err := args.password(ctx, d)
		if err != nil {
			return nil, err
		}
		defer secret.Wipe()
		if err := d.Store.AddAccount(ctx, a, *secret); err != nil {
			return nil, err
		}
		return &AccountAddResult{detailOfAccount(&a), next("Check that it can log in", "mail", "verify", "--account", a.Name)}, nil
	})
}

// Summary implements discovery.Summarizer.
func (r *AccountAddResult) Summary() string { return "Added account " + r.Account.Name }
