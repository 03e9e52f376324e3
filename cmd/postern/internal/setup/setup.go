// Package setup makes a new installation: the keys, the vault, and a mail account whose
// login was tried. It takes the values from its arguments (Run), or asks a person
// (Ask).
//
// An account is first added to a vault that lasts as long as the trial, by the very
// command that adds it to the real one: an account that does not work is not kept,
// and there is no second way to make an account. Only then are the keys kept, the
// vault made and the account added to it; all of that is undone when one of these
// steps fails. The commands come from the program as an Administrator: this package
// can run no other.
package setup

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/autoconfig"
	"github.com/postern-mail/postern/mail/login"
	"github.com/postern-mail/postern/mail/outbox"
	"github.com/postern-mail/postern/vault"
)

// Options say what to make.
type Options struct {
	Path     string   // the vault's file, absolute
	Account  []string // the arguments of 'account add': a name and its options; nil for no account
	AllowIn  []string // senders whose mail is visible; empty leaves the list off
	AllowOut []string // recipients that the account may write to
	Known    []string // entries of the inbound list, which does not hide others by them; for mode reply
	Device   bool     // consent to OAuth 2.0 is given on another device

	AdminKey, AgentKey KeyPlace // where to keep new keys; empty makes none, or asks

	AcceptFound bool // use servers that the domain's own records name, without asking
	Plain       bool // ask line by line on every terminal
}

// System holds the parts of the program that a set-up needs. All fields are required.
type System struct {
	Getenv  func(string) string
	Environ []string
	Stdin   *os.File
	Stdout  io.Writer

	Temporary string // where files are that last as long as the set-up; empty is the system's place

	Keyring Keyring
	Finder  Finder
	Seal    Seal

	// Keys finds the existing keys, without making any.
	Keys                       func(ctx context.Context) (vault.Keys, error)
	AgentKeyFile, AdminKeyFile string // where keys are kept, or the lines that name them in the keyring

	// ReadSecret reads the source that an option such as --password-from names.
	ReadSecret func(ctx context.Context, source string) (mail.Secret, error)
	// ClientEntry returns the text that a person pastes into the configuration of
	// an MCP client. profile is full or read-only.
	ClientEntry func(fingerprint, profile string) (string, error)
	// Clients are the MCP clients that Connect knows, at least one.
	Clients func() []Client
	// Connect puts the entry into a client's own configuration, and says what it wrote.
	Connect func(client, fingerprint, profile string) error

	Administer func(AdministratorOptions) (Administrator, error)
}

// Client is a program that starts MCP servers.
type Client struct {
	Name, Title string
	Found       bool   // on this machine
	Rules       string // the file of its deny rules, where they are added to one
}

// Seal returns a key's text, sealed with a passphrase; vault.SealKey is one.
type Seal func(key, passphrase mail.Secret) (string, error)

// Finder finds an address's servers; *autoconfig.Finder implements it.
type Finder interface {
	Find(ctx context.Context, address string) (*autoconfig.Settings, error)
}

// Administrator runs commands on one vault with the rights of its administrator.
type Administrator interface {
	// Run runs one command and returns what that returned. An error that the command answers is
	// a *discovery.Fault.
	Run(ctx context.Context, tokens ...string) (any, error)
	Close()
}

// AdministratorOptions choose the vault of the commands, and replace parts of the
// program. Nil fields mean the program's own.
type AdministratorOptions struct {
	Vault      *vault.Vault
	ReadSecret func(ctx context.Context, source string) (mail.Secret, error)
	Authorize  func(ctx context.Context, a *mail.Account, client mail.Secret, o login.AuthorizeOptions) (mail.Secret, error)
	Keyring    Keyring
}

// Commands are the paths of the commands that an Administrator must have.
var Commands = []string{"account add", "account authorize", "account edit", "account remove", "allow in add", "allow out add", "allow out remove", "config set", "doctor"}

// Run makes what the options say, without questions, and prints the result.
func Run(ctx context.Context, system *System, o Options) error {
	if o.Account == nil && len(o.AllowIn)+len(o.AllowOut) > 0 {
		return &discovery.Fault{Code: discovery.ValidationError, Message: "The lists belong to an account, and no account is named.", Hint: "Put the account's name and its options behind the flags."}
	}
	s := newSetup(system, o)
	defer s.wipe()
	chain, err := s.keys(ctx)
	if err != nil {
		return err
	}
	if s.Account != nil {
		if err := s.refuseTaken(ctx, chain); err != nil {
			return err
		}
		if err := s.findServers(ctx); err != nil {
			return err
		}
		_, checks, err := s.try(ctx)
		if err == nil {
			err = failed(checks)
		}
		if err != nil {
			return err
		}
	}
	m, err := s.commit(ctx, chain)
	if err != nil {
		return err
	}
	return s.report(m)
}

// Ask asks a person on a terminal for the values of the options, and prints the
// result. It keeps nothing before the last question is answered. The error
// matches context.Canceled when the person stopped.
func Ask(ctx context.Context, system *System, o Options) error {
	s := newSetup(system, o)
	defer s.wipe()
	return (&wizard{setup: s, ask: newAsker(system, o.Plain)}).run(ctx)
}

// setup is one run: its options and its progress.
type setup struct {
	*System
	Options

	mu      sync.Mutex
	secrets map[string]mail.Secret // by source: typed input is read once
	refresh mail.Secret            // the consent given in the trial

	passing    []string    // files to remove in the end
	passphrase mail.Secret // of a new administrator's key that is sealed
}

func newSetup(system *System, o Options) *setup {
	return &setup{System: system, Options: o, secrets: make(map[string]mail.Secret)}
}

func (s *setup) wipe() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, secret := range s.secrets {
		secret.Wipe()
	}
	s.refresh.Wipe()
	s.passphrase.Wipe()
	for _, file := range s.passing {
		_ = os.Remove(file)
	}
}

// keys finds the existing keys and makes those that may be made. They are not kept
// yet.
func (s *setup) keys(ctx context.Context) (*keyChain, error) {
	found, err := s.System.Keys(ctx)
	if err != nil {
		return nil, err
	}
	chain := &keyChain{Keys: found}
	there, err := s.exists(ctx)
	switch {
	case err != nil:
		return nil, err
	case there && s.Account != nil && !s.adminKeyGiven():
		// Without a person to ask, only a caller with the key is the administrator.
		return nil, &discovery.Fault{Code: discovery.PermissionDenied, Message: "There is a vault already, and adding an account to it takes " + vault.AdminKeyVar + ".",
			Hint: "Set it, or the variable that ends in _FILE or _COMMAND, for this command; on a terminal, run 'postern init' without an account."}
	case there && chain.Admin.IsZero() || there && chain.Agent.IsZero() && s.Account == nil:
		return nil, &discovery.Fault{Code: discovery.ConfigError, Message: "There is a vault already, and init needs its keys: " + vault.AdminKeyVar + " and " + vault.AgentKeyVar + ".",
			Hint: "Set them, or the variables that end in _FILE or _COMMAND, to the keys the vault was made with."}
	case there:
		return chain, nil
	case chain.Admin.IsZero() && s.AdminKey == "" || chain.Agent.IsZero() && s.AgentKey == "":
		return nil, &discovery.Fault{Code: discovery.ConfigError, Message: "Making a vault takes both keys: " + vault.AdminKeyVar + " and " + vault.AgentKeyVar + ".",
			Hint: "Print each with 'postern keygen', keep it, and set the variable, or the one that ends in _FILE to a file that holds it; or have them made: --admin-key file --agent-key file."}
	}
	return chain, s.makeKeys(chain)
}

// adminKeyGiven reports whether the environment has the administrator's key in any form.
func (s *setup) adminKeyGiven() bool {
	return s.Getenv(vault.AdminKeyVar) != "" || s.Getenv(vault.AdminKeyVar+"_FILE") != "" || s.Getenv(vault.AdminKeyVar+"_COMMAND") != ""
}

// refuseTaken refuses an account that exists already, before a person is asked for a
// password or a server for a login.
func (s *setup) refuseTaken(ctx context.Context, chain *keyChain) error {
	accounts, err := s.existing(ctx, chain)
	if err != nil {
		return err
	}
	for _, a := range accounts {
		if a.Name == s.name() {
			return vault.ErrExists
		}
	}
	return nil
}

// existing returns the vault's accounts; nil without a vault.
func (s *setup) existing(ctx context.Context, chain *keyChain) ([]mail.Account, error) {
	there, err := s.exists(ctx)
	if err != nil || !there {
		return nil, err
	}
	v, err := vault.Open(ctx, s.Path, vault.Keys{Admin: chain.Admin}, nil)
	if err != nil {
		return nil, err
	}
	return v.Accounts(ctx)
}

// findServers adds the servers to an account that has an address but no server. Servers
// from the domain's own records are used only when the person has agreed.
func (s *setup) findServers(ctx context.Context) error {
	email, _ := s.option("--email")
	for _, given := range []string{"--imap-host", "--pop3-host", "--oauth-provider"} {
		if _, ok := s.option(given); ok {
			return nil
		}
	}
	if _, err := outbox.ParseAddress(email); err != nil {
		return nil // account add reports that it is none, or missing
	}
	found, err := s.Finder.Find(ctx, email)
	if err != nil {
		return err
	}
	if p := found.Provider; p != nil && len(p.Auth) == 0 {
		return &discovery.Fault{Code: discovery.ConfigError, Message: p.Note, Hint: "Use an account of another provider."}
	}
	if found.Incoming.IsZero() {
		return &discovery.Fault{Code: discovery.NotFound, Message: fmt.Sprintf("The mail server of %s was not found.", plain.Line(email)),
			Hint: "Name it: --imap-host HOST, and --smtp-host HOST to send."}
	}
	own := found.Provider != nil && len(found.Foreign) == 0
	if !own && !s.AcceptFound {
		return &discovery.Fault{Code: discovery.ConfigError, Message: fmt.Sprintf("These servers were found, by %s, and nothing was sent to them: %s.", plain.Line(strings.Join(found.Sources, " and ")), serversOf(found)),
			Hint: "If they are right, run it again with --accept-found, or name the servers yourself."}
	}
	if _, given := s.option("--auth"); !given && !slices.Contains(found.Auth, mail.AuthPassword) && found.Provider != nil {
		return &discovery.Fault{Code: discovery.ConfigError, Message: found.Provider.Name + " accepts no passwords from programs.",
			Hint: "Give --auth oauth2 --oauth-provider " + found.Provider.OAuth + " --oauth-client-id ID."}
	}
	s.use(found)
	return nil
}

// use adds the found servers to the account.
func (s *setup) use(found *autoconfig.Settings) {
	protocol, incoming := found.Protocol, found.Incoming
	if wanted, given := s.option("--protocol"); given && wanted == string(mail.POP3) && found.Provider != nil && !found.Provider.POP3.IsZero() {
		protocol, incoming = mail.POP3, found.Provider.POP3
	}
	s.add("--protocol", string(protocol))
	s.addEndpoint(string(protocol), incoming)
	if _, given := s.option("--smtp-host"); !given {
		s.addEndpoint("smtp", found.SMTP)
	}
	if email, _ := s.option("--email"); found.Username != email {
		s.add("--username", found.Username)
	}
	s.addSentCopy(found, found.SMTP)
}

// SplitList splits entries at commas. Blank ones are left out.
func SplitList(s string) (entries []string) {
	for e := range strings.SplitSeq(s, ",") {
		if e = strings.TrimSpace(e); e != "" {
			entries = append(entries, e)
		}
	}
	return entries
}
