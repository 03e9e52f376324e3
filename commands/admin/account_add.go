package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
)

type accountAddArgs struct {
	accountNameArgs
	accountOptions
}

// Validate checks what the account's own validation cannot.
func (a *accountAddArgs) Validate() error {
	if a.Name == argument.AllAccounts {
		return errors.New("the name all stands for every account in --account: choose another")
	}
	if (a.Auth == "" || a.Auth == mail.AuthPassword) && a.PasswordFrom == "" {
		return errors.New("--password-from is missing: a password is never an argument; on a terminal 'postern init' asks for all of it")
	}
	return nil
}

// AccountAddResult answers account add.
type AccountAddResult struct {
	Account    AccountDetail      `json:"account"`
	NextAction *answer.NextAction `json:"next_action"`
}

func accountAdd(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:    "account add",
		Summary: "Add an account",
		Details: "On a terminal 'postern init' adds one by questions. It starts read-only and without the right to delete for good, with nobody on its outbound list, or everybody in the modes approve and reply.",
		Effect:  discovery.Admin,
		Examples: []string{"account add work --email ann@example.org --imap-host imap.example.org --password-from stdin",
			"account add work --email ann@example.org --imap-host imap.example.org --smtp-host smtp.example.org --mode RW --password-from file:/run/secrets/mail",
			"account add work --email ann@gmail.com --auth oauth2 --oauth-provider google --oauth-client-id ID --oauth-client-secret-from stdin",
			"account add work --email ann@example.org --imap-host imap.example.org --auth helper --helper 'biosecret get mail'"},
	}, func(ctx context.Context, call *discovery.Call, args *accountAddArgs) (*AccountAddResult, error) {
		call.Account = args.Name
		a := mail.Account{Name: args.Name, Protocol: mail.IMAP, Auth: mail.AuthPassword, Mode: mail.ReadOnly, Destroy: mail.DestroyOff, AskChanges: new(mail.AsksAsUsual),
			AllowOut: mail.AllowList{Enabled: true}}
		setIf(&a.Protocol, args.Protocol)
		args.preset(&a)
		if err := args.apply(&a, d); err != nil {
			return nil, err
		}
		if a.Mode == mail.Approve || a.Mode == mail.Reply {
			a.AllowOut.Entries = []string{"*"}
		}
		sealed, kept, err := args.secrets(ctx, d, a.Auth)
		if err != nil {
			return nil, err
		}
		defer wipe(sealed, kept)
		if sealed == nil {
			sealed = &mail.Secret{}
		}
		if err := d.Store.AddAccount(ctx, a, *sealed); err != nil {
			return nil, err
		}
		if kept != nil {
			if err := d.Keyring.Set(ctx, a.Name, *kept); err != nil {
				return nil, d.undoAdd(ctx, a.Name, err)
			}
		}
		r := &AccountAddResult{detailOfAccount(&a), checkLogin(a.Name)}
		if a.Auth == mail.AuthOAuth2 {
			r.NextAction = answer.Next("Ask the owner for consent: it shows an address to open and waits", "account", "authorize", a.Name)
		}
		return r, nil
	})
}

// Brief is the account as it was added.
func (r *AccountAddResult) Brief() accountBrief { return r.Account.brief("", r.NextAction) }

// checkLogin is what to do with an account whose login was not tried, which would make a script
// wait for a server that may be away.
func checkLogin(name string) *answer.NextAction {
	return answer.Next("Its login was not tried: check it", "doctor", "--account", name)
}

// undoAdd removes an account whose password the keyring did not take.
func (d *Deps) undoAdd(ctx context.Context, name string, because error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	if err := d.Store.RemoveAccount(ctx, name); err != nil {
		return &discovery.Fault{Code: discovery.StoreError, Message: "The account was added, but the system keyring did not take its password.",
			Hint: fmt.Sprintf("Give the password again with 'account edit %s --password-from stdin', or remove the account.", name), Err: errors.Join(because, err)}
	}
	return because
}

// Summary implements discovery.Summarizer.
func (r *AccountAddResult) Summary() string { return "Added account " + r.Account.Name }
