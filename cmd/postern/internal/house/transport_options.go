package house

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault"
)

// TransportOptions say which account a process of the transport profile serves:
// one of the vault, or with a host one that only these options describe.
type TransportOptions struct {
	Account, Email, Protocol, Host, Security, Username, Helper, CAFile string
	Port                                                               uint
}

func unusable(message, hint string) error {
	return &discovery.Fault{Code: discovery.ValidationError, Message: message, Hint: hint}
}

// transportStore resolves the options to an account that logs in with a helper.
func (s *System) transportStore(ctx context.Context, o *TransportOptions, readOnly bool) (*transportStore, error) {
	t := &transportStore{helper: o.Helper != ""}
	var err error
	if o.Host != "" {
		t.store = newStore(func(context.Context) (*vault.Vault, error) { return nil, errNoVaultHere })
		t.Served, err = o.described(readOnly)
	} else {
		if o.Protocol != "" || o.Port != 0 || o.Security != "" || o.Username != "" || o.Email != "" || o.CAFile != "" {
			return nil, unusable("Options that describe a server were given without --host.", "Name the server with --host, or leave the others out and choose an account of the vault with --account.")
		}
		t.store, t.vaulted = newStore(s.Opener(true)), true
		t.Served, err = t.chosen(ctx, o.Account)
	}
	if err != nil {
		return nil, err
	}
	if t.helper {
		argv, err := gateway.Tokenize(o.Helper)
		if err != nil {
			return nil, unusable(fmt.Sprintf("--helper cannot be read: %v.", err), "Write it as a command string: quotes around an argument that holds spaces.")
		}
		placeholders := strings.NewReplacer("{name}", t.Served.Name, "{username}", t.Served.Username)
		for i := range argv {
			argv[i] = placeholders.Replace(argv[i])
		}
		t.Served.Auth, t.Served.Helper, t.Served.OAuth = mail.AuthHelper, argv, mail.OAuth{}
	}
	if t.Served.Auth != mail.AuthHelper {
		return nil, &discovery.Fault{Code: discovery.ConfigError,
			Message: fmt.Sprintf("The account %s logs in with --auth %s, and the transport profile takes a credential from a helper program only.", t.Served.Name, t.Served.Auth),
			Hint:    "Give a program that prints the password with --helper, or have the administrator run 'account edit " + t.Served.Name + " --auth helper --helper COMMAND'."}
	}
	if err := t.Served.Validate(); err != nil {
		return nil, unusable("The account cannot be used as it is described: "+err.Error()+".", "Run 'postern serve -h' for the options.")
	}
	return t, nil
}

var errNoVaultHere = errors.New("there is no vault in this process")

// described is the account that the options describe. It needs a helper: there is no
// other place its credential could come from.
func (o *TransportOptions) described(readOnly bool) (mail.Account, error) {
	a := mail.Account{Name: cmp.Or(o.Account, "default"), Email: o.Email, Protocol: cmp.Or(mail.Protocol(o.Protocol), mail.IMAP), Username: o.Username, Mode: mail.Draft, Destroy: mail.DestroyOff}
	if o.Helper == "" {
		return a, unusable("--host needs --helper.", "Give a program that prints the password, such as --helper 'biosecret get mail'.")
	}
	if a.Email == "" && strings.Contains(o.Username, "@") {
		a.Email = o.Username
	}
	if readOnly {
		a.Mode = mail.ReadOnly
	}
	if o.Port > math.MaxUint16 {
		return a, unusable("--port is greater than 65535.", "Give the number of a TCP port, or leave it out.")
	}
	e := mail.Endpoint{Host: o.Host, Security: cmp.Or(mail.Security(o.Security), mail.TLS)}
	e.Port = cmp.Or(uint16(o.Port), mail.DefaultPort(string(a.Protocol), e.Security))
	if a.Protocol == mail.POP3 {
		a.POP3 = e
	} else {
		a.IMAP = e
	}
	if o.CAFile == "" {
		return a, nil
	}
	var err error
	if a.CAPEM, err = ReadSmallFile(o.CAFile); err != nil {
		return a, fmt.Errorf("reading --ca-file: %w", err)
	}
	return a, nil
}

// chosen is the account of the vault that was named, or else the default one.
func (s *transportStore) chosen(ctx context.Context, name string) (mail.Account, error) {
	accounts, err := s.store.Vault.Accounts(ctx)
	if errors.Is(err, vault.ErrNoKey) || errors.Is(err, vault.ErrNoVault) {
		return mail.Account{}, &discovery.Fault{Code: discovery.ConfigError, Message: "There is no vault to take an account from, and --host names no server.",
			Hint: "Name the server with --host, --username and --helper, or set POSTERN_KEY and POSTERN_DB for a vault."}
	}
	if err != nil {
		return mail.Account{}, err
	}
	c, err := s.store.Vault.Config(ctx)
	if err != nil {
		return mail.Account{}, err
	}
	var names []string
	for _, a := range accounts {
		if a.Name == name || name == "" && isDefault(&a, c.DefaultAccount, len(accounts)) {
			return a, nil
		}
		names = append(names, a.Name)
	}
	hint := "The administrator adds one with 'account add', or name a server with --host."
	if len(names) > 0 {
		hint = "Choose one with --account: " + strings.Join(names, ", ") + "."
	}
	return mail.Account{}, &discovery.Fault{Code: discovery.ConfigError, Message: "It is not clear which account to serve: the profile serves one.", Hint: hint}
}

// isDefault reports whether an account, of so many, is used when none is named.
func isDefault(a *mail.Account, configured string, of int) bool {
	return a.Name == configured || configured == "" && (a.Name == "default" || of == 1)
}
