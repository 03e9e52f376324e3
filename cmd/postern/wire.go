package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"path/filepath"

	"github.com/postern-mail/postern/cmd/postern/internal/setup"
	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/pdftext"
	"github.com/postern-mail/postern/vault"
)

// house is everything wired together for one process.
type house struct {
	gateway   *gateway.Gateway
	registry  *discovery.Registry
	principal gateway.Principal
	store     *store
	mailboxes *mail.Mailboxes
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

// plan says what differs between the verbs.
type plan struct {
	profile   gateway.Profile
	principal gateway.Principal
	open      func(context.Context) (*vault.Vault, error)
	stdin     *bufio.Reader // where --password-from stdin reads; nil refuses it
	environ   []string      // where further accounts are described; nil for none

	extensions extensionsFrom // which extensions there are; none unless it says so

	// What stands in for the process's own ways, for a set-up that tries an account
	// before it keeps it; nil means those.
	secret    func(ctx context.Context, source string) (mail.Secret, error)
	authorize func(ctx context.Context, a *mail.Account, client mail.Secret, o mail.AuthorizeOptions) (mail.Secret, error)
	keyring   setup.Keyring

	// hostFile reads files of the machine that a caller names; nil where none may.
	hostFile func(path string, limit int64) ([]byte, error)
}

// wire builds the house. Nothing is opened or dialled yet.
func (p *process) wire(plan plan) (*house, error) {
	h := &house{principal: plan.principal, store: newStore(plan.open)}
	h.store.asks = p.getenv(vault.AdminKeyVar+"_COMMAND") != "" || p.getenv(vault.AgentKeyVar+"_COMMAND") != ""
	h.store.environment, h.store.environmentErr = mail.EnvironmentAccounts(plan.environ)
	if (h.store.environment.Len() > 0 || h.store.environmentErr != nil) && p.keyless() {
		h.store.passing()
	}
	keyring := plan.keyring
	if keyring == nil {
		keyring = p.systemKeyring()
	}
	logins := mail.NewCredentials(mail.CredentialOptions{Directory: h.store, Tokens: h.store, Keyring: keyring})
	h.logins = logins
	options := mail.MailboxesOptions{Directory: h.store, Credentials: logins, Seen: h.store, CursorKey: h.store.cursorKey, Logger: p.log}
	if p.self != "" {
		options.PDFText = &pdftext.Runner{Command: []string{p.self, pdfVerb}}
	}
	h.mailboxes = mail.NewMailboxes(options)
	deps := &commands.Deps{Store: h.store, Mailboxes: h.mailboxes, ReadFile: readFile,
		ReadSecret: func(ctx context.Context, source string) (mail.Secret, error) {
			if plan.secret != nil {
				return plan.secret(ctx, source)
			}
			defer p.aside()()
			return p.readSecret(ctx, plan.stdin, source)
		}}
	deps.Keyring, deps.Tokenize = keyring, gateway.Tokenize
	deps.Authorize = plan.authorize
	deps.Tell = p.tell
	h.saved = &attachments{locate: func(ctx context.Context) (string, error) { return p.attachmentDir(ctx, h.store) }}
	deps.Attachments = h.saved
	deps.Outbox = mail.NewOutbox(mail.OutboxOptions{Directory: h.store, Mailboxes: h.mailboxes, Credentials: options.Credentials, Store: h.store,
		Key: h.store.outboxKey, Take: h.store.takeSend, Logger: p.log})
	deps.AgentIdentity, deps.HostFile = p.agentIdentity(), plan.hostFile
	deps.Explain = func(ctx context.Context, _ *discovery.Call, line string) (commands.Explanation, error) {
		principal, _ := principalOf(ctx) // there is one: a command runs
		e, err := h.gateway.Explain(ctx, principal, line)
		return commands.Explanation(e), err
	}
	deps.Exists = func(path string) bool { return h.registry.Exists(path) }
	list := commands.All(deps)
	added := p.loadExtensions(plan.extensions, list)
	deps.Checks = func(ctx context.Context) []commands.Check { return extensionChecks(ctx, added) }
	groups := commands.Groups()
	maps.Copy(groups, added.Groups)
	var err error
	h.registry, err = discovery.NewRegistry(discovery.Info{
		Name:        "postern",
		Version:     version(),
		Description: "Postern: a person's mail, behind their rules",
		Groups:      groups,
		Recipes:     commands.Recipes(),
	}, append(list, added.Commands...)...)
	if err != nil {
		return nil, err
	}
	h.gateway, err = gateway.New(gateway.Options{
		Registry: h.registry, Profile: plan.profile, Settings: h.store, Auditor: h.store, Limiter: h.store,
		Faults: commands.Faults, Context: onBehalfOf, Logger: p.log,
		AdminHint: "This command requires POSTERN_ADMIN_KEY (admin privilege): run it as 'postern exec' where that is set.",
	})
	return h, err
}

// attachmentDir is where attachments are saved: where POSTERN_ATTACHMENTS says, else
// beside the vault.
func (p *process) attachmentDir(ctx context.Context, s *store) (string, error) {
	if dir := p.getenv("POSTERN_ATTACHMENTS"); dir != "" {
		return dir, nil
	}
	if s.temporary { // what is saved outlives the vault
		path, err := vault.DefaultPath(p.getenv)
		return filepath.Join(filepath.Dir(path), "attachments"), err
	}
	v, err := s.get(ctx)
	if err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(v.Path()), "attachments"), nil
}

// asOwner wires for a verb that acts as the administrator when it has the key.
func (p *process) asOwner(profile gateway.Profile, stdin *bufio.Reader) (*house, error) {
	return p.wire(plan{profile: profile, principal: p.principal(), stdin: stdin, environ: p.environ, open: p.opener(false), extensions: besideVault})
}

// asAgent wires for a verb that is an agent whatever keys are set.
func (p *process) asAgent(profile gateway.Profile) (*house, error) {
	return p.wire(plan{profile: profile, principal: gateway.Principal{Name: "agent"}, environ: p.environ, open: p.opener(true), extensions: besideVault})
}

// opener opens the vault the environment names. The keys are fetched only then:
// help must not wait for a program that asks a person for one.
func (p *process) opener(asAgent bool) func(context.Context) (*vault.Vault, error) {
	return func(ctx context.Context) (*vault.Vault, error) {
		path, err := vault.DefaultPath(p.getenv)
		if err != nil {
			return nil, err
		}
		keys, err := p.keysFor(ctx, path)
		if err != nil {
			return nil, err
		}
		return vault.Open(ctx, path, keys, &vault.Options{PolicyPin: p.getenv("POSTERN_POLICY_PIN"), AsAgent: asAgent})
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
