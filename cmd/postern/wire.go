package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"path/filepath"
	"time"

	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/login"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/outbox"
	"github.com/postern-mail/postern/mail/pdftext"
	"github.com/postern-mail/postern/vault"
	"github.com/postern-mail/postern/vault/agentmail"
)

// house is everything wired together for one process.
type house struct {
	gateway   *gateway.Gateway
	registry  *discovery.Registry
	principal gateway.Principal
	store     *store
	mailboxes *mailbox.Client
	logins    io.Closer
	saved     *attachments
}

func (h *house) close() {
	_ = h.mailboxes.Close()
	_ = h.logins.Close()
	h.store.close()
	if h.saved != nil {
		_ = h.saved.close() // a directory: there is nothing to lose
	}
}

// system is what a house needs of the process around it.
type system struct {
	getenv   func(string) string
	environ  []string // NAME=value
	stderr   io.Writer
	log      *slog.Logger
	self     string // the program's own file; empty when it is not to be started again
	version  string
	identity string // whom the process may act as in the agent mailbox; empty is anybody
	keyring  keyring
	tell     func(text string) // says something to the person while a command runs
}

// plan says what differs between the verbs.
type plan struct {
	profile   gateway.Profile
	principal gateway.Principal
	open      func(context.Context) (*vault.Vault, error)

	environment bool           // accounts that the environment describes are there, too
	extensions  extensionsFrom // which extensions there are; none unless it says so

	// readSecret reads what an option such as --password-from names.
	readSecret func(ctx context.Context, source string) (mail.Secret, error)
	// hostFile reads files of the machine that a caller names; nil where none may.
	hostFile func(path string, limit int64) ([]byte, error)

	// What stands in for the system's own ways, for a set-up that tries an account
	// before it keeps it; nil means those.
	authorize func(ctx context.Context, a *mail.Account, client mail.Secret, o login.AuthorizeOptions) (mail.Secret, error)
	keyring   keyring
}

// wire builds the house. Nothing is opened or dialled yet.
func (s *system) wire(plan plan) (*house, error) {
	h := &house{principal: plan.principal, store: newStore(plan.open)}
	h.store.asks = s.getenv(vault.AdminKeyVar+"_COMMAND") != "" || s.getenv(vault.AgentKeyVar+"_COMMAND") != ""
	if plan.environment {
		h.store.environment, h.store.environmentErr = mail.EnvironmentAccounts(s.environ)
	}
	if (h.store.environment.Len() > 0 || h.store.environmentErr != nil) && s.keyless() {
		h.store.passing()
	}
	keyring := plan.keyring
	if keyring == nil {
		keyring = s.keyring
	}
	logins := login.New(login.Options{Directory: h.store, Tokens: h.store, Keyring: keyring})
	h.logins = logins
	options := mailbox.Options{Directory: h.store, Credentials: logins, Seen: h.store, CursorKey: h.store.cursorKey, Logger: s.log}
	if s.self != "" {
		options.PDFText = &pdftext.Runner{Command: []string{s.self, pdfVerb}}
	}
	h.mailboxes = mailbox.New(options)
	deps := &commands.Deps{Store: h.store, Mailboxes: h.mailboxes, ReadFile: readFile, ReadSecret: plan.readSecret}
	deps.Keyring, deps.Tokenize = keyring, gateway.Tokenize
	deps.Authorize = plan.authorize
	deps.Tell = s.tell
	h.saved = &attachments{locate: func(ctx context.Context) (string, error) { return s.attachmentDir(ctx, h.store) }}
	deps.Attachments = h.saved
	deps.Outbox = outbox.New(outbox.Options{Directory: h.store, Mailboxes: h.mailboxes, Credentials: options.Credentials, Store: h.store,
		Key: h.store.outboxKey, Take: h.store.takeSend, Logger: s.log})
	deps.AgentMail = agentmail.New(h.store)
	deps.AgentIdentity, deps.HostFile = s.identity, plan.hostFile
	deps.Explain = func(ctx context.Context, _ *discovery.Call, line string) (commands.Explanation, error) {
		principal, _ := principalOf(ctx) // there is one: a command runs
		e, err := h.gateway.Explain(ctx, gateway.Request{Principal: principal, Line: line})
		return commands.Explanation(e), err
	}
	deps.Exists = func(path string) bool { return h.registry.Exists(path) }
	list := commands.All(deps)
	added := s.loadExtensions(plan.extensions, list)
	deps.Checks = func(ctx context.Context) []commands.Check { return extensionChecks(ctx, added) }
	groups := commands.Groups()
	maps.Copy(groups, added.Groups)
	var err error
	h.registry, err = discovery.NewRegistry(discovery.Info{
		Name:        "postern",
		Version:     s.version,
		Description: "Postern: a person's mail, behind their rules",
		Groups:      groups,
		Recipes:     commands.Recipes(),
	}, append(list, added.Commands...)...)
	if err != nil {
		return nil, err
	}
	h.gateway, err = gateway.New(gateway.Options{
		Registry: h.registry, Profile: plan.profile, Settings: h.store, Auditor: h.store, Limiter: h.store,
		Faults: commands.Faults, Context: onBehalfOf, Logger: s.log,
		FailureHint: "Try again; if it stays so, run 'doctor' and look at the log on standard error.",
		AdminHint:   "This command requires POSTERN_ADMIN_KEY (admin privilege): run it as 'postern exec' where that is set.",
	})
	return h, err
}

// attachmentDir is where attachments are saved: where POSTERN_ATTACHMENTS says, else
// beside the vault.
func (s *system) attachmentDir(ctx context.Context, store *store) (string, error) {
	if dir := s.getenv("POSTERN_ATTACHMENTS"); dir != "" {
		return dir, nil
	}
	if store.temporary { // what is saved outlives the vault
		path, err := vault.DefaultPath(s.getenv)
		return filepath.Join(filepath.Dir(path), "attachments"), err
	}
	v, err := store.get(ctx)
	if err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(v.Path()), "attachments"), nil
}

// opener opens the vault the environment names. The keys are fetched only then:
// help must not wait for a program that asks a person for one.
func (s *system) opener(asAgent bool) func(context.Context) (*vault.Vault, error) {
	return func(ctx context.Context) (*vault.Vault, error) {
		path, err := vault.DefaultPath(s.getenv)
		if err != nil {
			return nil, err
		}
		keys, err := s.keysFor(ctx, path)
		if err != nil {
			return nil, err
		}
		return vault.Open(ctx, path, keys, &vault.Options{PolicyPin: s.getenv("POSTERN_POLICY_PIN"), AsAgent: asAgent})
	}
}

// profileNamed returns the profile a flag names.
func profileNamed(name string) (gateway.Profile, error) {
	switch name {
	case "full":
		return gateway.FullProfile(), nil
	case "read":
		return gateway.ReadProfile(), nil
	}
	return gateway.Profile{}, &discovery.Fault{Code: discovery.ValidationError, Message: fmt.Sprintf("There is no profile %q.", name), Hint: "The profiles are full, read and transport."}
}

// warmTime bounds connecting ahead of the first command.
const warmTime = 30 * time.Second

// warm connects to the only or default account ahead, so that the first read finds
// a session. A failure says nothing: the command that needs it will.
func (h *house) warm(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, warmTime)
	defer cancel()
	accounts, err := h.store.Accounts(ctx)
	if err != nil {
		return
	}
	c, err := with(ctx, h.store, func(v *vault.Vault) (vault.Config, error) { return v.Config(ctx) })
	if err != nil {
		return
	}
	for _, a := range accounts {
		if isDefault(&a, c.DefaultAccount, len(accounts)) {
			_ = h.mailboxes.Warm(ctx, a.Name)
			return
		}
	}
}
