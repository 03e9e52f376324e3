package house

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/login"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/pdftext"
	"github.com/postern-mail/postern/vault"
)

// TransportProfile is the profile that only carries mail (004): one account, one
// connection, a credential that a helper program gave at the start, and these
// commands.
const TransportProfile = "transport"

// TransportCommands are all there is in that profile, besides help, schema and
// version (004 sections 2 and 6). Other commands are not in the registry of such a process:
// neither a name nor a mistake reaches them.
var TransportCommands = []string{"mail accounts", "mail verify", "mail folders", "mail list", "mail get", "mail thread", "mail mark-read"}

// Transport has the parts of a process of the profile.
type Transport struct {
	Store       *transportStore
	Helper      *login.HelperOnce // the helper's run
	Credentials login.Credentials // what the account logs in with: Helper
	offers      []string          // paths of the commands there are
}

// NewTransport resolves the options and asks the helper, once and now: no command
// goes to the account before it has answered, and none asks it again. Closing
// the house that WireTransport makes ends what it began, and so does Helper.Close.
func (s *System) NewTransport(ctx context.Context, o *TransportOptions, readOnly bool) (*Transport, error) {
	store, err := s.transportStore(ctx, o, readOnly)
	if err != nil {
		return nil, err
	}
	once := login.NewHelperOnce(login.HelperOnceOptions{Account: store.Served, Environ: s.Environ})
	t := &Transport{Store: store, Helper: once, Credentials: once, offers: slices.Clone(TransportCommands)}
	if readOnly || store.Served.Protocol == mail.POP3 { // which has no flags
		t.offers = slices.DeleteFunc(t.offers, func(path string) bool { return path == "mail mark-read" })
	}
	return t, nil
}

// Connect connects as soon as there is a credential (004 section 3, startup). It tells a
// failure of the helper to the person who started the server; every command tells it to the
// agent.
func (s *System) Connect(ctx context.Context, h *House, t *Transport) {
	if e := t.Helper.Failed(ctx); e != nil {
		s.Log.Error("the helper gave no credential", "kind", e.Kind, "what", e.Message)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, warmTime)
	defer cancel()
	_ = h.mailboxes.Warm(ctx, t.Store.Served.Name) // a failure is told by the command that needs it
}

// WireTransport builds the house of the profile. Nothing is dialled yet.
func (s *System) WireTransport(t *Transport) (*House, error) {
	h := &House{Principal: gateway.Principal{Name: mail.AgentPrincipal}, store: t.Store.store, logins: t.Helper.Close}
	options := mailbox.Options{Directory: t.Store, Credentials: t.Credentials, OneConnection: true, Logger: s.Log}
	if t.Store.vaulted {
		options.Seen, options.Journal, options.CursorKey = t.Store, t.Store, t.Store.cursorKey
	}
	if s.Self != "" {
		options.PDFText = &pdftext.Runner{Command: []string{s.Self, PDFVerb}}
	}
	h.mailboxes = mailbox.New(options)
	deps := &commands.Deps{Store: t.Store, Mailboxes: h.mailboxes}
	deps.Exists = func(path string) bool { return h.Registry.Exists(path) }
	offered := slices.DeleteFunc(commands.All(deps), func(c *discovery.Command) bool { return !slices.Contains(t.offers, c.Path) })
	info := commands.Info(deps, s.Version)
	info.Description = "Postern: the mail of one account, as it is"
	info.Here = nil // there is one account
	info.Groups = map[string]string{"mail": "Read a person's mail, and mark it as read"}
	var err error
	h.Registry, err = discovery.NewRegistry(info, offered...)
	if err != nil {
		return nil, err
	}
	faults := commands.FaultsWhere(h.Registry.Exists)
	o := gateway.Options{Registry: h.Registry, Profile: gateway.OnlyProfile(TransportProfile, t.offers...), Context: onBehalfOf, Logger: s.Log,
		Faults: func(err error) *discovery.Fault { return faults(runOnce(err)) }}
	if t.Store.vaulted {
		o.Settings, o.Auditor, o.Limiter, o.Until = t.Store, t.Store, t.Store, t.Store.until
	}
	h.Gateway, err = gateway.New(o)
	return h, err
}

// runOnce is an error of mail with the advice for a helper that is run at a start
// alone.
func runOnce(err error) error {
	var e *mail.Error
	if !errors.As(err, &e) || e.Kind != mail.KindAuth || e.Advice == mail.AdviceHelperOnceFailed {
		return err
	}
	once := *e
	once.Advice = mail.AdviceHelperOnce
	return &once
}

// transportStore is the one account of a process of the profile, and the vault that
// has its rules where there is one. It gives out no secret. It is safe for
// concurrent use.
type transportStore struct {
	*store               // where nothing is vaulted, one that cannot be opened
	Served  mail.Account // as it was at the start
	vaulted bool
	helper  bool // the helper is not the vault's
}

// Accounts implements mail.Directory.
func (s *transportStore) Accounts(ctx context.Context) ([]mail.Account, error) {
	a, err := s.Account(ctx, s.Served.Name)
	if err != nil {
		return nil, err
	}
	return []mail.Account{a}, nil
}

// Account implements mail.Directory. The rules are those of now; where the account
// is and how it logs in may not change, since the credential is that of the start.
func (s *transportStore) Account(ctx context.Context, name string) (mail.Account, error) {
	switch {
	case name != s.Served.Name:
		return mail.Account{}, mail.ErrNoAccount
	case !s.vaulted:
		return s.Served, nil
	}
	a, err := s.store.Vault.Account(ctx, name)
	if err != nil {
		return mail.Account{}, err
	}
	if s.helper {
		a.Auth, a.Helper, a.OAuth = s.Served.Auth, s.Served.Helper, s.Served.OAuth
	}
	if !sameLogin(&a, &s.Served) {
		return mail.Account{}, &discovery.Fault{Code: discovery.ConfigError, Message: fmt.Sprintf("The server or login of the account %s was changed since this server started.", name),
			Hint: "Restart this server: the credential is fetched only at the start."}
	}
	return a, nil
}

// sameLogin reports whether two accounts are read from the same place in the same
// way.
func sameLogin(a, b *mail.Account) bool {
	login := func(a *mail.Account) any {
		return []any{a.Protocol, a.Incoming(), a.Username, a.Auth, slices.Clone(a.Helper), string(a.CAPEM), a.Timeouts}
	}
	return reflect.DeepEqual(login(a), login(b))
}

// Secret implements mail.Directory: there is none.
func (s *transportStore) Secret(context.Context, string) (mail.Secret, error) {
	return mail.Secret{}, vault.ErrNoSecret
}

// errForgets says that nothing outlasts the process.
var errForgets = errors.New("without a vault nothing remembers what was shown")

// Shown implements commands.ShownStore. Without a vault it knows of nothing.
func (s *transportStore) Shown(ctx context.Context, principal string) (vault.Shown, error) {
	if !s.vaulted {
		return vault.Shown{}, nil
	}
	return s.store.Shown(ctx, principal)
}

// UpdateShown implements commands.ShownStore. Without a vault it fails, so that answers have long
// ids: the client keeps track by them, and they mean the same after a restart.
func (s *transportStore) UpdateShown(ctx context.Context, principal string, change func(*vault.Shown) bool) error {
	if !s.vaulted {
		return errForgets
	}
	return s.store.UpdateShown(ctx, principal, change)
}

// AllSettings implements commands.Store. The account is the default one here.
func (s *transportStore) AllSettings(ctx context.Context) ([]vault.Setting, error) {
	all, err := vault.DefaultSettings(), error(nil)
	if s.vaulted {
		all, err = s.store.AllSettings(ctx)
	}
	for i := range all {
		if all[i].Name == "default_account" {
			all[i].Value = s.Served.Name
		}
	}
	return all, err
}
