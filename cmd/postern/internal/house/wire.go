// Package house puts the packages of the program together for one process: the vault
// that is opened when something first needs it, the accounts of the environment beside
// it, the mailboxes, the outbox, the commands, the extensions and the gateway before
// them. The process's flags come as a Plan, its operating system as a System; the package
// itself reads no terminal and no argument.
//
// The store is the one place in which a command is held to the accounts of its caller
// (store_grants.go): every command reaches accounts and the outbox only through it,
// with the context that the gateway gave it.
//
// A process of the profile transport is wired apart, in transport.go: it has one
// account, seven commands and no secret.
package house

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/commands/admin"
	"github.com/postern-mail/postern/commands/agents"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/gateway/mcpserve"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/login"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/outbox"
	"github.com/postern-mail/postern/mail/pdftext"
	"github.com/postern-mail/postern/vault"
	"github.com/postern-mail/postern/vault/agentmail"
)

// House is everything wired together for one process. It is safe for concurrent use.
type House struct {
	Gateway   *gateway.Gateway
	Registry  *discovery.Registry
	Principal gateway.Principal
	store     *store
	mailboxes *mailbox.Client
	outbox    *outbox.Outbox
	logins    func() error // ends what gives credentials
	saved     *attachments
}

// Close ends what the house has open. It waits for a temporary vault that is just being
// made, and removes it, and for a program that tells the person what waits.
func (h *House) Close() {
	defer time.AfterFunc(h.store.closing, h.store.end).Stop()
	h.Gateway.Close()
	h.store.notify.close()
	_ = h.mailboxes.Close()
	_ = h.logins()
	h.store.Close()
	if h.saved != nil {
		_ = h.saved.Close() // a directory: there is nothing to lose
	}
}

// closeTime is for how long a process that ends waits for a vault that does not answer.
const closeTime = 2 * time.Second

// PDFVerb is the hidden verb that reads a PDF in a process of its own, see
// package pdftext. Nothing else may happen in that process.
const PDFVerb = "pdf-text"

// Temporary reports whether the vault lasts as long as the process, for accounts that
// the environment describes.
func (h *House) Temporary() bool { return h.store.temporary }

// Accounts are those that the house's principal may know of.
func (h *House) Accounts(ctx context.Context) ([]mail.Account, error) {
	return h.store.Accounts(onBehalfOf(ctx, h.Principal))
}

// Waiting counts what waits in the outbox for a person, whoever asked for it, up to 500. It
// does not make a vault for that, nor run a program that may ask for a key: the error is then
// vault.ErrNoKey.
func (h *House) Waiting(ctx context.Context) (int, error) {
	switch {
	case h.store.Opened():
	case h.store.asks:
		return 0, vault.ErrNoKey
	case h.store.temporary:
		return 0, nil
	}
	waiting, _, err := h.outbox.List(forOwner(ctx), mail.OutboxQuery{States: []mail.OutboxState{mail.OutboxWaiting}, Limit: mail.MaxOutboxLimit})
	return len(waiting), err
}

// Grants are those of the vault.
func (h *House) Grants(ctx context.Context) ([]vault.Grant, error) { return h.store.Grants(ctx) }

// Caller returns the holder of a token: the principal of its grant, limited to what the
// grant names. The error matches mcpserve.ErrNotAdmitted where no grant has the token.
func (h *House) Caller(ctx context.Context, token string) (mcpserve.Caller, error) {
	return h.store.caller(ctx, token)
}

// System is the part of the process that a house needs.
type System struct {
	Getenv   func(string) string
	Environ  []string  // NAME=value, without secrets
	Secrets  []string  // NAME=value, what the environment had of keys and passwords
	Stderr   io.Writer // is told what is wrong with extensions
	Log      *slog.Logger
	Self     string // the program's own file; empty when it is not to be started again
	Person   bool   // a terminal is there, and so probably a person
	Version  string
	Identity string // the process's identity in the agent mailbox; empty means any
	Keyring  Keyring
	Tell     func(text string) // says something to the person while a command runs
	Own      *OwnKeys          // the keys that the process's houses share; nil keeps none, and opens no sealed one

	// Passphrase asks for that of the administrator's key; again says that another one did
	// not open it. The error matches vault.ErrSealed where nobody can be asked, as nil does.
	Passphrase func(ctx context.Context, again bool) (mail.Secret, error)

	successors bool // keys that are about to replace others are read in their place, see open
}

// Plan says what differs between the verbs.
type Plan struct {
	Profile   gateway.Profile
	Principal gateway.Principal
	Open      func(context.Context) (*vault.Vault, error)

	Environment bool           // accounts that the environment describes are there, too
	Extensions  ExtensionsFrom // which extensions there are; none unless it says so

	// ReadSecret reads what an option such as --password-from names.
	ReadSecret func(ctx context.Context, source string) (mail.Secret, error)
	// ReadHostFile reads files of the machine that a caller names; nil if callers may not.
	ReadHostFile func(path string, limit int64) ([]byte, error)

	// What stands in for the system's own ways, for a set-up that tries an account
	// before it keeps it; nil means those.
	Authorize func(ctx context.Context, a *mail.Account, client mail.Secret, o login.AuthorizeOptions) (mail.Secret, error)
	Keyring   Keyring
}

// Wire builds the house. Nothing is opened or dialled yet.
func (s *System) Wire(plan Plan) (*House, error) {
	h := &House{Principal: plan.Principal, store: newStore(plan.Open)}
	h.store.asks, h.store.notify.environ = s.asks(), s.Environ
	if plan.Environment {
		h.store.environment, h.store.environmentErr = mail.EnvironmentAccounts(slices.Concat(s.Environ, s.Secrets))
	}
	if (h.store.environment.Len() > 0 || h.store.environmentErr != nil) && s.keyless() {
		h.store.passing()
	}
	keyring := plan.Keyring
	if keyring == nil {
		keyring = s.Keyring
	}
	logins := login.New(login.Options{Directory: h.store, Tokens: h.store, Keyring: keyring})
	h.logins = logins.Close
	options := mailbox.Options{Directory: h.store, Credentials: logins, CursorKey: h.store.cursorKey, Drafts: h.store, Journal: h.store, Logger: s.Log}
	if !h.store.temporary { // a record that ends with the process would say that what it forgot is new, or old
		options.Seen, options.Others = h.store, h.store
	}
	if s.Self != "" {
		options.PDFText = &pdftext.Runner{Command: []string{s.Self, PDFVerb}}
	}
	h.mailboxes = mailbox.New(options)
	deps := &commands.Deps{Store: h.store, Mailboxes: h.mailboxes, TakeChanges: h.store.takeChanges}
	added := s.loadExtensions(plan.Extensions)
	for _, c := range added.Commands {
		if c.Effect == discovery.Send {
			h.store.sending = append(h.store.sending, c.Path)
		}
	}
	deps.Admin = admin.Deps{Keyring: keyring, ReadSecret: plan.ReadSecret, ReadFile: ReadSmallFile, Tokenize: gateway.Tokenize, Tell: s.Tell, Authorize: plan.Authorize,
		Rekey: func(ctx context.Context, r admin.Rekeying) ([]admin.NewKey, error) {
			return s.rekey(ctx, h.store, r)
		},
		Checks: func(ctx context.Context) []admin.Check {
			return append(h.extensionChecks(ctx, added), h.notifyChecks(ctx)...)
		}}
	h.saved = &attachments{locate: func(ctx context.Context) (string, error) { return s.attachmentDir(ctx, h.store) },
		records: h.store, files: shareFiles, bytes: shareFileBytes}
	deps.Attachments = h.saved
	h.outbox = outbox.New(outbox.Options{Directory: h.store, Mailboxes: h.mailboxes, Credentials: options.Credentials, Store: h.store, Journal: h.store,
		Key: h.store.outboxKey, Take: h.store.takeSend, Logger: s.Log})
	deps.Outbox = h.outbox
	deps.Agents = agents.Deps{Mailbox: agentmail.New(correspondence{h.store}), Identity: s.Identity, Owned: h.store.ownedByGrant, HostFile: plan.ReadHostFile}
	deps.Explain = func(ctx context.Context, _ *discovery.Call, line string) (commands.Explanation, error) {
		e, err := h.Gateway.Explain(ctx, gateway.Request{Principal: principalOf(ctx), Line: line})
		return commands.Explanation(e), err
	}
	deps.Exists = func(path string) bool { return h.Registry.Exists(path) }
	list := commands.All(deps)
	info := commands.Info(deps, s.Version)
	maps.Copy(info.Groups, added.Groups)
	if s.Person {
		info.AdminHint = s.adminHint()
	}
	here := info.Here
	info.Here = func(ctx context.Context, account string) func(*discovery.Command, string) string {
		if !h.store.Opened() && !h.store.temporary { // an example is not worth asking for a key
			return func(_ *discovery.Command, example string) string { return example }
		}
		return here(dispensable(ctx), account)
	}
	var err error
	h.Registry, err = discovery.NewRegistry(info, append(list, added.Commands...)...)
	if err != nil {
		return nil, err
	}
	h.Gateway, err = gateway.New(gateway.Options{
		Registry: h.Registry, Profile: plan.Profile, Settings: h.store, Auditor: h.store, Limiter: h.store,
		Faults: commands.Faults, Context: onBehalfOf, Until: h.store.until, StateKey: h.store.stateKey, Logger: s.Log,
		FailureHint: "Try again; if it fails again, run 'doctor' and look at the log on standard error.",
		SendHint:    "What it sends passes no list and no person. The administrator gives it to agents with 'config set extensions_send on'.",
		AdminHint:   cmp.Or(info.AdminHint, "This command requires POSTERN_ADMIN_KEY (admin privilege): run it as 'postern exec' where that is set."),
	})
	return h, err
}

// Stage puts a copy of a person's file among the attachments, where a command of theirs may
// send it from by that name, until remove. It is for prompts and never for an agent.
func (h *House) Stage(ctx context.Context, file string) (name string, remove func(), err error) {
	return h.saved.stage(ctx, file)
}

// attachmentDir is where attachments are saved: where POSTERN_ATTACHMENTS says, else
// beside the vault.
func (s *System) attachmentDir(ctx context.Context, store *store) (string, error) {
	if dir := s.Getenv("POSTERN_ATTACHMENTS"); dir != "" {
		return dir, nil
	}
	if store.temporary { // what is saved outlives the vault
		path, err := vault.DefaultPath(s.Getenv)
		return filepath.Join(filepath.Dir(vault.Beside(path)), "attachments"), err
	}
	if err := store.Ready(ctx); err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(vault.Beside(store.Path())), "attachments"), nil
}

// marksOf is where this machine keeps what it has seen of vaults in databases.
func marksOf(place string) string { return filepath.Join(filepath.Dir(vault.Beside(place)), "marks") }

// Opener opens the vault the environment names. The keys are fetched only then:
// help must not wait for a program that asks a person for one.
func (s *System) Opener(asAgent bool) func(context.Context) (*vault.Vault, error) {
	return func(ctx context.Context) (*vault.Vault, error) {
		path, err := vault.DefaultPath(s.Getenv)
		if err != nil {
			return nil, err
		}
		return s.open(ctx, path, &vault.Options{PolicyPin: s.Getenv("POSTERN_POLICY_PIN"), AsAgent: asAgent, Marks: marksOf(path)},
			func(from *System) (vault.Keys, error) { return from.Keys(ctx, path, asAgent) })
	}
}

// ProfileNamed returns the profile a flag names.
func ProfileNamed(name string) (gateway.Profile, error) {
	switch name {
	case "full":
		return gateway.FullProfile(), nil
	case "read":
		return gateway.ReadProfile("mail ack"), nil
	}
	return gateway.Profile{}, &discovery.Fault{Code: discovery.ValidationError, Message: fmt.Sprintf("There is no profile %q.", name), Hint: "The profiles are full, read and transport."}
}

// warmTime bounds connecting ahead of the first command.
const warmTime = 30 * time.Second

// Warm connects to the only or default account ahead, so that the first read finds
// a session. It does not report a failure: the command that needs the session will.
func (h *House) Warm(ctx context.Context) {
	ctx, cancel := context.WithTimeout(forOwner(ctx), warmTime)
	defer cancel()
	accounts, err := h.store.Accounts(ctx)
	if err != nil {
		return
	}
	c, err := h.store.Vault.Config(ctx)
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

// Transactions is how many transactions this process has had with the vault, to be
// counted.
func (h *House) Transactions() int64 { return h.store.Transactions() }
