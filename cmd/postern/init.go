package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/autoconfig"
	"github.com/postern-mail/postern/vault"
)

// finder finds an address's servers; *autoconfig.Finder implements it.
type finder interface {
	Find(ctx context.Context, address string) (*autoconfig.Settings, error)
}

func (p *process) settingsFinder() finder {
	if p.finder != nil {
		return p.finder
	}
	return &autoconfig.Finder{}
}

const initSynopsis = `[flags] [NAME [options of 'account add']]

Makes the vault and its keys, and adds an account after its login was tried. On a
terminal and without NAME it asks for everything. Where --email is given and no server,
the servers are found from the address.

  postern init
  postern init --agent-key file --admin-key file work --email ann@example.org --password-from file:PATH

'postern reference' tells the options of 'account add'.
`

// listFlag takes entries separated by commas, and may be repeated.
type listFlag []string

func (l *listFlag) String() string { return strings.Join(*l, ",") }

func (l *listFlag) Set(s string) error {
	*l = append(*l, splitList(s)...)
	return nil
}

func splitList(s string) (entries []string) {
	for e := range strings.SplitSeq(s, ",") {
		if e = strings.TrimSpace(e); e != "" {
			entries = append(entries, e)
		}
	}
	return entries
}

// init makes the vault and what belongs to it. Without a terminal, or with an account
// among the arguments, it asks nothing.
func (p *process) init(ctx context.Context, args []string) error {
	s, err := p.newSetup()
	if err != nil {
		return err
	}
	defer s.wipe()
	f := p.flags("init", initSynopsis)
	var admin, agent string
	choose(f, &admin, "admin-key", "where a new administrator's key is kept: keyring, file, or show to print it once", string(inKeyring), string(inFile), string(shownOnce))
	choose(f, &agent, "agent-key", "where a new agent's key is kept: keyring or file", string(inKeyring), string(inFile))
	f.Var((*listFlag)(&s.allowOut), "allow-out", "whom the account may write to: addresses, @domains or *, separated by commas")
	f.Var((*listFlag)(&s.allowIn), "allow-in", "whose mail is visible; everybody's without it")
	f.BoolVar(&s.device, "device", false, "with --auth oauth2: agree on another device, by a code")
	accept := f.Bool("accept-found", false, "use servers that the domain's own records name, without asking")
	quiet := f.Bool("no-questions", false, "ask nothing on a terminal either")
	plain := f.Bool("plain", false, "ask line by line; ACCESSIBLE=1 in the environment does the same")
	if err := parse(f, args, 0, 10000); err != nil {
		return err
	}
	s.account = f.Args()
	if s.adminPlace, s.agentPlace = keyPlace(admin), keyPlace(agent); !placeKnown(s.adminPlace, true) || !placeKnown(s.agentPlace, false) {
		return &discovery.Fault{Code: discovery.ValidationError, Message: "A key is kept in the keyring or in a file.",
			Hint: "--admin-key takes keyring, file or show; --agent-key takes keyring or file."}
	}
	if len(s.account) == 0 {
		s.account = nil
		if p.onTerminal() && !*quiet {
			return (&wizard{setup: s, ask: p.asker(*plain)}).run(ctx)
		}
		if len(s.allowIn)+len(s.allowOut) > 0 {
			return &discovery.Fault{Code: discovery.ValidationError, Message: "Lists belong to an account, and none is named.", Hint: "Put the account's name and its options behind the flags."}
		}
	}
	return s.unasked(ctx, *accept)
}

func placeKnown(k keyPlace, admin bool) bool {
	return k == "" || k == inKeyring || k == inFile || admin && k == shownOnce
}

// unasked does by its arguments alone what the wizard does by asking.
func (s *setup) unasked(ctx context.Context, accept bool) error {
	chain, err := s.keys(ctx)
	if err != nil {
		return err
	}
	if s.account != nil {
		if err := s.taken(ctx, chain); err != nil {
			return err
		}
		if err := s.find(ctx, accept); err != nil {
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
	return s.p.tellMade(s, m)
}

// keys finds the keys there are and makes those that may be made. They are not kept
// yet.
func (s *setup) keys(ctx context.Context) (*keyChain, error) {
	found, err := s.p.findKeys(ctx, s.path)
	if err != nil {
		return nil, err
	}
	chain := &keyChain{Keys: found}
	there, err := s.exists()
	switch {
	case err != nil:
		return nil, err
	case there && s.account != nil && !s.p.hasKey(vault.AdminKeyVar):
		// Where nobody answers questions, only who was given the key is the administrator.
		return nil, &discovery.Fault{Code: discovery.PermissionDenied, Message: "There is a vault already, and adding an account to it takes " + vault.AdminKeyVar + ".",
			Hint: "Set it, or the variable that ends in _FILE or _COMMAND, for this command; on a terminal, run 'postern init' without an account."}
	case there && chain.Admin.IsZero() || there && chain.Agent.IsZero() && s.account == nil:
		return nil, &discovery.Fault{Code: discovery.ConfigError, Message: "There is a vault already, and init needs its keys: " + vault.AdminKeyVar + " and " + vault.AgentKeyVar + ".",
			Hint: "Set them, or the variables that end in _FILE or _COMMAND, to the keys the vault was made with."}
	case there:
		return chain, nil
	case chain.Admin.IsZero() && s.adminPlace == "" || chain.Agent.IsZero() && s.agentPlace == "":
		return nil, &discovery.Fault{Code: discovery.ConfigError, Message: "Making a vault takes both keys: " + vault.AdminKeyVar + " and " + vault.AgentKeyVar + ".",
			Hint: "Print each with 'postern keygen', keep it, and set the variable, or the one that ends in _FILE to a file that holds it; or have them made: --admin-key file --agent-key file."}
	}
	return chain, chain.complete(s.path, s.adminPlace, s.agentPlace)
}

// taken refuses an account that is there already, before a person is asked for a
// password or a server for a login.
func (s *setup) taken(ctx context.Context, chain *keyChain) error {
	accounts, err := s.accounts(ctx, chain)
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

// accounts are those of a vault that is there; none where there is no vault.
func (s *setup) accounts(ctx context.Context, chain *keyChain) ([]mail.Account, error) {
	there, err := s.exists()
	if err != nil || !there {
		return nil, err
	}
	v, err := vault.Open(ctx, s.path, vault.Keys{Admin: chain.Admin}, nil)
	if err != nil {
		return nil, err
	}
	return v.Accounts(ctx)
}

// find adds the servers to an account that has an address and none of them. What the
// domain's own records say is used only when the person has agreed to that.
func (s *setup) find(ctx context.Context, accept bool) error {
	email, _ := s.option("--email")
	for _, given := range []string{"--imap-host", "--pop3-host", "--oauth-provider"} {
		if _, ok := s.option(given); ok || email == "" {
			return nil // account add says what is missing
		}
	}
	found, err := s.p.settingsFinder().Find(ctx, email)
	if errors.Is(err, autoconfig.ErrAddress) {
		return &discovery.Fault{Code: discovery.ValidationError, Message: sentence(err) + ".", Hint: "Give the whole address with --email.", Err: err}
	}
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
	if !own && !accept {
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

// use adds what was found to the account.
func (s *setup) use(found *autoconfig.Settings) {
	protocol, incoming := found.Protocol, found.Incoming
	if wanted, given := s.option("--protocol"); given && wanted == string(mail.POP3) && found.Provider != nil && !found.Provider.POP3.IsZero() {
		protocol, incoming = mail.POP3, found.Provider.POP3
	}
	s.add("--protocol", string(protocol))
	s.addEndpoint(string(protocol), incoming)
	if _, given := s.option("--smtp-host"); !given && !found.SMTP.IsZero() {
		s.addEndpoint("smtp", found.SMTP)
	}
	if email, _ := s.option("--email"); found.Username != email {
		s.add("--username", found.Username)
	}
	if found.Provider != nil && found.Provider.FilesSent && found.SMTP.Loopback() {
		s.add("--sent-copy", string(mail.SentNever))
	}
}

// keygen prints a fresh key.
func (p *process) keygen(_ context.Context, args []string) error {
	if err := parse(p.flags("keygen", ""), args, 0, 0); err != nil {
		return err
	}
	key, err := vault.NewKey()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.stdout, key)
	return err
}
