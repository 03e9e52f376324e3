package admin

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
)

type accountEditArgs struct {
	accountNameArgs
	accountOptions
	AllowIn  string `json:"allow-in,omitempty" jsonschema:"enum=on,enum=off" jsonschema_description:"Whether only senders on the inbound list are visible, beside what the account itself sent or drafted"`
	AllowOut string `json:"allow-out,omitempty" jsonschema:"enum=on,enum=off" jsonschema_description:"Whether agents may write only to recipients on the outbound list"`
}

// Validate refuses to change nothing.
func (a *accountEditArgs) Validate() error {
	if !reflect.DeepEqual(*a, accountEditArgs{accountNameArgs: a.accountNameArgs}) {
		return nil
	}
	var options []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[accountEditArgs]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "name" {
			options = append(options, "--"+name)
		}
	}
	return &discovery.Fault{Code: discovery.ValidationError, Message: "No option says what to change.",
		Hint: "Give one or more of " + strings.Join(options, ", ") + "."}
}

// AccountEditResult answers account edit.
type AccountEditResult struct {
	Account       AccountDetail      `json:"account"`
	LeftInKeyring string             `json:"left_in_keyring,omitempty"`
	NextAction    *answer.NextAction `json:"next_action,omitempty"`
}

func accountEdit(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "account edit",
		Summary:  "Change an account; options that are left out change nothing",
		Details:  "But an account made before the right to delete for good existed loses it with --mode unless --destroy on keeps it.",
		Effect:   discovery.Admin,
		Standing: true,
		Examples: []string{"account edit work --mode RW", "account edit work --allow-in on"},
	}, func(ctx context.Context, call *discovery.Call, args *accountEditArgs) (*AccountEditResult, error) {
		call.Account = args.Name
		var before, after mail.Account
		change := func(a *mail.Account) error {
			before = *a
			setSwitch(&a.AllowIn.Enabled, args.AllowIn)
			setSwitch(&a.AllowOut.Enabled, args.AllowOut)
			err := args.apply(a, d)
			after = *a
			return err
		}
		// Everything is tried before a password is asked for or goes anywhere.
		err := d.Store.UpdateAccount(ctx, args.Name, func(a *mail.Account) error {
			if err := change(a); err != nil {
				return err
			}
			return errTried
		}, nil)
		if !errors.Is(err, errTried) {
			return nil, err
		}
		if before.Auth != mail.AuthPassword && after.Auth == mail.AuthPassword && args.PasswordFrom == "" {
			return nil, &discovery.Fault{Code: discovery.ValidationError, Message: "--password-from is missing: there is no password to go back to.",
				Hint: "Say where the password is read from, such as --password-from stdin."}
		}
		sealed, kept, err := args.secrets(ctx, d, after.Auth)
		if err != nil {
			return nil, err
		}
		defer wipe(sealed, kept)
		if kept != nil {
			if err := d.Keyring.Set(ctx, args.Name, *kept); err != nil {
				return nil, err
			}
		}
		if err := d.Store.UpdateAccount(ctx, args.Name, change, sealed); err != nil {
			return nil, err
		}
		r := &AccountEditResult{Account: detailOfAccount(&after)}
		if before.Auth == mail.AuthKeyring && after.Auth != mail.AuthKeyring {
			r.LeftInKeyring = d.forgetInKeyring(ctx, args.Name)
		}
		if sealed != nil || kept != nil || !reflect.DeepEqual(loginOf(&before), loginOf(&after)) {
			r.NextAction = checkLogin(args.Name)
		}
		if everybody := slices.Contains(after.AllowOut.Entries, "*"); (before.Mode == mail.Approve || before.Mode == mail.Reply) && after.Mode == mail.ReadWrite && everybody {
			r.NextAction = answer.Next("Mail now goes to anybody without a question: to limit that, name the recipients and take * off the list", "allow", "out", "remove", "*", "--account", args.Name)
		}
		if after.Auth == mail.AuthOAuth2 && !reflect.DeepEqual(before.OAuth, after.OAuth) {
			r.NextAction = answer.Next("Ask the owner for consent again: it shows an address to open and waits", "account", "authorize", args.Name)
		}
		return r, nil
	})
}

// loginOf is what decides whether an account can log in, without its secrets.
func loginOf(a *mail.Account) []any {
	return []any{a.Protocol, a.IMAP, a.POP3, a.SMTP, a.Submission, a.Username, a.Auth, a.Helper, a.CAPEM}
}

// errTried ends a change that was only tried.
var errTried = errors.New("the change is possible")

func setSwitch(field *bool, given string) {
	if given != "" {
		*field = given == "on"
	}
}

// Brief is the account as it is now.
func (r *AccountEditResult) Brief() accountBrief {
	return r.Account.brief(r.LeftInKeyring, r.NextAction)
}

// Summary implements discovery.Summarizer.
func (r *AccountEditResult) Summary() string { return "Changed account " + r.Account.Name }
