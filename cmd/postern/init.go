package main

import (
	"bufio"
	"context"
	"fmt"

	"github.com/postern-mail/postern/cmd/postern/internal/clientconfig"
	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/cmd/postern/internal/setup"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault"
)

const initSynopsis = `[flags] [NAME [options of 'account add']]

Makes the vault and its keys, and adds an account after its login was tried. On a
terminal and without NAME it asks for everything. Where --email is given and no server,
the servers are found from the address.

  postern init
  postern init --agent-key file --admin-key file work \
    --email ann@example.org --password-from file:PATH

'postern reference' tells the options of 'account add'.
`

// init makes the vault, its keys and an account. Without a terminal, or with an account
// among the arguments, it asks nothing.
func (p *process) init(ctx context.Context, args []string) error {
	path, err := vault.DefaultPath(p.getenv)
	if err != nil {
		return err
	}
	o := setup.Options{Path: absolute(path)}
	f := p.flags("init", initSynopsis)
	choose(f, (*string)(&o.AdminKey), "admin-key", "where a new administrator's key is kept: keyring, file, or show to print it once", string(setup.InKeyring), string(setup.InFile), string(setup.ShownOnce))
	choose(f, (*string)(&o.AgentKey), "agent-key", "where a new agent's key is kept: keyring or file", string(setup.InKeyring), string(setup.InFile))
	repeated(f, &o.AllowOut, "allow-out", "recipients the account may write to: addresses, @domains or *, separated by commas", setup.SplitList)
	repeated(f, &o.AllowIn, "allow-in", "senders whose mail is visible, separated by commas; everybody without it", setup.SplitList)
	f.BoolVar(&o.Device, "device", false, "with --auth oauth2: agree on another device, by a code")
	f.BoolVar(&o.AcceptFound, "accept-found", false, "use servers that the domain's own records name, without asking")
	quiet := f.Bool("no-questions", false, "ask nothing on a terminal either")
	f.BoolVar(&o.Plain, "plain", false, "ask line by line; ACCESSIBLE=1 in the environment does the same")
	if err := parse(f, args, 0, 10000); err != nil {
		return err
	}
	if f.NArg() > 0 {
		o.Account = f.Args()
	} else if p.onTerminal() && !*quiet {
		return setup.Ask(ctx, p.setupSystem(o.Path), o)
	}
	return setup.Run(ctx, p.setupSystem(o.Path), o)
}

// setupSystem is what a set-up of the vault at path needs of this process.
func (p *process) setupSystem(path string) *setup.System {
	return &setup.System{
		Getenv: p.getenv, Environ: p.environ, Stdin: p.stdin, Stdout: p.stdout,
		Keyring: p.ring, Finder: p.finder, Seal: p.seal,
		Keys:         func(ctx context.Context) (vault.Keys, error) { return p.system().FindKeys(ctx, path) },
		AgentKeyFile: house.AgentKeyFile(path), AdminKeyFile: house.AdminKeyFile(path),
		ReadSecret: func(ctx context.Context, source string) (mail.Secret, error) {
			return p.readSecret(ctx, bufio.NewReader(p.stdin), source)
		},
		ClientEntry: func(fingerprint, profile string) (string, error) {
			entry, err := p.serverEntry(path, fingerprint, profile)
			if err != nil {
				return "", err
			}
			return clientconfig.Paste("postern", entry), nil
		},
		Clients: p.clients,
		Connect: func(client, fingerprint, profile string) error { return p.connect(path, client, fingerprint, profile) },

		Administer: p.administer,
	}
}

// clients are the MCP clients that a set-up can connect.
func (p *process) clients() (clients []setup.Client) {
	for _, name := range clientconfig.Names() {
		c, _ := clientconfig.Named(name)
		one := setup.Client{Name: c.Name, Title: c.Title, Found: c.Found(p.getenv)}
		if file, _, ok := c.RuleFile(p.getenv); ok {
			one.Rules = file
		}
		clients = append(clients, one)
	}
	return clients
}

// connect puts the entry for the vault at path into a client's file for every project.
func (p *process) connect(path, client, fingerprint, profile string) error {
	c, _ := clientconfig.Named(client)
	file, err := c.UserFile(p.getenv)
	if err != nil {
		return err
	}
	entry, err := p.serverEntry(path, fingerprint, profile)
	if err != nil {
		return err
	}
	return p.putIn(c, file, "postern", entry)
}

// administrator runs the commands of a set-up; see setup.Administrator.
type administrator struct{ *house.House }

// administer wires a house for a set-up, with no other commands than a set-up runs.
func (p *process) administer(o setup.AdministratorOptions) (setup.Administrator, error) {
	h, err := p.house(house.Plan{Profile: gateway.OnlyProfile("setup", setup.Commands...), Principal: gateway.Principal{Name: "admin", Admin: true},
		Open: func(context.Context) (*vault.Vault, error) { return o.Vault, nil }, ReadSecret: o.ReadSecret, Authorize: o.Authorize, Keyring: o.Keyring})
	return administrator{h}, err
}

// Run runs one command and returns what that returned, or its error as a fault.
func (h administrator) Run(ctx context.Context, tokens ...string) (any, error) {
	answer := h.Gateway.Do(ctx, gateway.Request{Principal: h.Principal, Tokens: tokens, Full: true})
	defer answer.Delivered()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if answer.Fault != nil {
		return nil, answer.Fault
	}
	return answer.Result, nil
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
