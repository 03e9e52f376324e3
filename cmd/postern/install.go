package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/postern-mail/postern/cmd/postern/internal/clientconfig"
	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/cmd/postern/internal/setup"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault"
)

// serverEntry makes the entry for the vault at path. profile is full, read or
// read-only; fingerprint may be empty. The error says why there can be no entry without a
// secret.
func (p *process) serverEntry(path, fingerprint, profile string) (*clientconfig.Entry, error) {
	self, err := stableProgram(p.self)
	if err != nil {
		return nil, err
	}
	e := &clientconfig.Entry{Command: self, Args: []string{"serve", "--profile", profile}}
	if profile == "read-only" {
		e.Args = []string{"serve", "--read-only"}
	}
	if hasPassword(path) {
		return nil, &discovery.Fault{Code: discovery.ConfigError, Message: "The database's password is in POSTERN_DB, and a client's configuration must not hold it.",
			Hint: "Put it into a password file that only you can read, ~/.pgpass, and take it out of the address."}
	}
	variable := func(name, value string) { e.Env = append(e.Env, clientconfig.Variable{Name: name, Value: value}) }
	variable("POSTERN_DB", path)
	value, file, command := p.getenv(vault.AgentKeyVar), p.getenv(vault.AgentKeyVar+"_FILE"), p.getenv(vault.AgentKeyVar+"_COMMAND")
	switch {
	case strings.HasPrefix(value, vault.KeyringPrefix) && mail.ValidAccountName(strings.TrimPrefix(value, vault.KeyringPrefix)):
		variable(vault.AgentKeyVar, value)
	case file != "":
		variable(vault.AgentKeyVar+"_FILE", absolute(file))
	case command != "":
		variable(vault.AgentKeyVar+"_COMMAND", command)
	case value != "":
		return nil, &discovery.Fault{Code: discovery.ConfigError, Message: "The agent's key itself is in " + vault.AgentKeyVar + ", and a client's configuration must not hold it.",
			Hint: "Put the key into a file that only you can read, and set " + vault.AgentKeyVar + "_FILE in place of it."}
	default:
		if _, err := os.Stat(house.AgentKeyFile(path)); err != nil {
			return nil, &discovery.Fault{Code: discovery.ConfigError, Message: "No agent's key was found for the client to use.",
				Hint: "Run 'postern init' first, or set " + vault.AgentKeyVar + "_FILE to the file of the key."}
		}
		variable(vault.AgentKeyVar+"_FILE", house.AgentKeyFile(path))
	}
	if fingerprint != "" {
		variable("POSTERN_POLICY_PIN", fingerprint)
	}
	if dir := p.getenv("POSTERN_ATTACHMENTS"); dir != "" {
		variable("POSTERN_ATTACHMENTS", absolute(dir))
	}
	return e, nil
}

// stableProgram is the path by which a client starts this program. If PATH finds it by its
// name, that path is used: a new version may replace it there.
func stableProgram(self string) (string, error) {
	if named, err := exec.LookPath("postern"); err == nil && filepath.IsAbs(named) {
		a, errA := os.Stat(named)
		b, errB := os.Stat(self)
		if errA == nil && errB == nil && os.SameFile(a, b) {
			return named, nil
		}
	}
	switch {
	case self == "":
		return "", &discovery.Fault{Code: discovery.ConfigError, Message: "The path of this program could not be found.", Hint: "Start it by its full path."}
	case strings.Contains(filepath.ToSlash(self), "/go-build"):
		return "", &discovery.Fault{Code: discovery.ConfigError, Message: "This program is a temporary build, and a client would not find it again.",
			Hint: "Build it first: go build -o postern ./cmd/postern"}
	}
	return self, nil
}

const installSynopsis = `[flags] CLIENT

Adds this program to an MCP client's configuration, and changes nothing else there. The
clients are claude-code, claude-desktop, cursor, vscode, codex, gemini-cli and windsurf.
Where the client has deny rules, those are added that keep its own tools from the vault and
the keys. Each file as it was is kept beside it, with the ending .postern-backup. No key or
password is written.
`

// installOptions are what install and uninstall share.
type installOptions struct {
	name, scope, profile string
	readOnly             bool
	print, remove        bool
}

func (p *process) install(ctx context.Context, args []string) error {
	var o installOptions
	f := p.flags("install", installSynopsis)
	f.StringVar(&o.name, "name", "postern", "what the client calls the server")
	o.scope = "user"
	choose(f, &o.scope, "scope", "user for every project, project for the one in this directory", "user", "project")
	choose(f, &o.profile, "profile", "which commands the client is offered: read or full; the read profile, marked read-only, without it", "read", "full")
	f.BoolVar(&o.readOnly, "read-only", false, "the read profile, and the tool says it is read-only")
	f.BoolVar(&o.print, "print", false, "print what to paste, and where, and change nothing")
	f.BoolVar(&o.remove, "remove", false, "take it out again, as uninstall does")
	name, err := parseClient(f, args)
	if err != nil {
		return err
	}
	return p.configure(ctx, name, &o)
}

func (p *process) uninstall(ctx context.Context, args []string) error {
	o := installOptions{remove: true, scope: "user"}
	f := p.flags("uninstall", "[flags] CLIENT\n\nTakes this program and its deny rules out of an MCP client's configuration.\n")
	f.StringVar(&o.name, "name", "postern", "what the client calls the server")
	choose(f, &o.scope, "scope", "user or project, as with install", "user", "project")
	name, err := parseClient(f, args)
	if err != nil {
		return err
	}
	return p.configure(ctx, name, &o)
}

// configure changes a client's configuration.
func (p *process) configure(ctx context.Context, name string, o *installOptions) error {
	c, ok := clientconfig.Named(name)
	if !ok {
		return misused(fmt.Sprintf("There is no client %q here.", name),
			"The clients are "+strings.Join(clientconfig.Names(), ", ")+"; for any other use --print with one of them and paste.")
	}
	if !mail.ValidAccountName(o.name) {
		return misused("The server's name cannot be used.", "It has 1 to 64 letters, digits, - and _.")
	}
	file, err := c.UserFile(p.getenv)
	if o.scope == "project" {
		if file, ok = c.ProjectFile(absolute(".")); !ok {
			return misused(c.Title+" knows no projects.", "Leave --scope out.")
		}
	} else if err != nil {
		return err
	}
	if o.remove {
		return p.takeOut(c, file, o.name)
	}
	profile := cmp.Or(o.profile, "read-only")
	if o.readOnly {
		if profile == "full" {
			return misused("--read-only and --profile full exclude each other.", "Give one of them.")
		}
		profile = "read-only"
	}
	path, err := vault.DefaultPath(p.getenv)
	if err != nil {
		return err
	}
	path = absolute(path)
	entry, err := p.serverEntry(path, p.fingerprint(ctx, path), profile)
	if err != nil {
		return err
	}
	if o.print {
		fmt.Fprintf(p.stderr, "For %s, in %s:\n", c.Title, file)
		if _, err := io.WriteString(p.stdout, c.Paste(o.name, entry)); err != nil {
			return err
		}
		deny := rules(c, entry)
		ruleFile, _, ok := c.RuleFile(p.getenv)
		if !ok || deny == nil {
			_, err := io.WriteString(p.stderr, withoutRules(c))
			return err
		}
		fmt.Fprintf(p.stderr, "To deny its tools the vault and the keys, in %s:\n", ruleFile)
		_, err := io.WriteString(p.stdout, clientconfig.PasteRules(deny))
		return err
	}
	return p.putIn(c, file, o.name, entry)
}

// fingerprint is that of the key that signs the vault's rules, where the vault can be
// opened now; else empty, and nothing is pinned.
func (p *process) fingerprint(ctx context.Context, path string) string {
	if pin := p.getenv("POSTERN_POLICY_PIN"); pin != "" {
		return pin
	}
	keys, err := p.system().Keys(ctx, path, true)
	if err != nil {
		return ""
	}
	v, err := vault.Open(ctx, path, keys, &vault.Options{AsAgent: true})
	if err != nil {
		return ""
	}
	return v.Fingerprint()
}

// rules are the client's deny rules for what an entry starts: for the vault with what lies
// beside it under its name, the agent's key, the directory of the administrator's, and the
// program. There are none for a nil entry.
func rules(c clientconfig.Client, e *clientconfig.Entry) []string {
	path, key := e.Variable("POSTERN_DB"), e.Variable(vault.AgentKeyVar+"_FILE")
	if path == "" {
		return nil
	}
	g := clientconfig.Guarded{Program: e.Command, Files: []string{vault.Beside(path)}, Dirs: []string{filepath.Dir(house.AdminKeyFile(path))}}
	if key != "" {
		g.Files = append(g.Files, key)
	}
	return c.Rules(g)
}

// deny writes the client's deny rules in place of former ones, and says so, or what to do
// where there can be none.
func (p *process) deny(c clientconfig.Client, former, rules []string) error {
	file, who, ok := c.RuleFile(p.getenv)
	if !ok || rules == nil {
		if err := setup.Show(p.stdout, withoutRules(c)); !ok || former == nil || err != nil {
			return err
		}
	}
	changed, err := c.Deny(file, former, rules)
	if err != nil {
		fmt.Fprintf(p.stderr, "To deny the tools of %s the vault and the keys by hand, put this into %s:\n\n%s\n", c.Title, file, clientconfig.PasteRules(rules))
		return configFault(file, err)
	}
	if changed && rules != nil {
		err = setup.Show(p.stdout, fmt.Sprintf("The tools of %s are denied the vault, the keys and the command postern: %s\n", who, file))
	}
	return err
}

// withoutRules says what to do where a client has no deny rules.
func withoutRules(c clientconfig.Client) string {
	return "No rules were written that deny the tools of " + c.Title + " the vault and the keys. If it has a shell, keep the administrator's key behind a passphrase, or run it as another user or in a container: see SECURITY.md.\n"
}

// profileOf is the profile of an entry of serverEntry.
func profileOf(e *clientconfig.Entry) string {
	if slices.Contains(e.Args, "full") {
		return "full"
	}
	return "read-only"
}

// putIn writes the entry into the client's file.
func (p *process) putIn(c clientconfig.Client, file, name string, entry *clientconfig.Entry) error {
	former := rules(c, c.Entry(file, name))
	changed, err := c.Put(file, name, entry)
	if err != nil {
		fmt.Fprintf(p.stderr, "Nothing was changed. To connect %s by hand, put this into %s:\n\n%s\n", c.Title, file, c.Paste(name, entry))
		return configFault(file, err)
	}
	if changed {
		err = setup.Show(p.stdout, fmt.Sprintf("%s starts Postern as %s: %s\nIt gets %s (%s).\n%s\n", c.Title, name, file, setup.Offers(profileOf(entry)), strings.Join(entry.Args[1:], " "), c.Reload))
	} else {
		err = setup.Show(p.stdout, fmt.Sprintf("%s has it already: %s\n", c.Title, file))
	}
	if err != nil {
		return err
	}
	return p.deny(c, former, rules(c, entry))
}

// takeOut takes the entry out of the client's file, and its deny rules with it.
func (p *process) takeOut(c clientconfig.Client, file, name string) error {
	former := rules(c, c.Entry(file, name))
	removed, err := c.Remove(file, name)
	if err != nil {
		return configFault(file, err)
	}
	if !removed {
		_, err = fmt.Fprintf(p.stdout, "%s has no server %s: %s\n", c.Title, name, file)
		return err
	}
	if _, err := fmt.Fprintf(p.stdout, "%s no longer starts %s: %s\n", c.Title, name, file); err != nil {
		return err
	}
	if file, _, ok := c.RuleFile(p.getenv); ok && former != nil {
		changed, err := c.Deny(file, former, nil)
		if err != nil {
			return configFault(file, err)
		}
		if changed {
			_, err = fmt.Fprintf(p.stdout, "Its deny rules are gone, too: %s\n", file)
		}
		return err
	}
	return nil
}

// configFault is the error for a client's file that was not changed.
func configFault(file string, err error) error {
	why := withoutPath(err).Error()
	if errors.Is(err, clientconfig.ErrForeign) {
		why += "; choose one with --name"
	}
	return &discovery.Fault{Code: discovery.ConfigError, Message: fmt.Sprintf("The file %s was left as it is: %s.", file, why),
		Hint: "Correct that, or change the file by hand.", Err: err}
}

func withoutPath(err error) error {
	if path, ok := errors.AsType[*os.PathError](err); ok {
		return path.Err
	}
	return err
}

// parseClient takes the client before or behind the flags.
func parseClient(f *flag.FlagSet, args []string) (name string, err error) {
	if len(args) > 0 && len(args[0]) > 0 && args[0][0] != '-' {
		return args[0], parse(f, args[1:], 0, 0)
	}
	err = parse(f, args, 1, 1)
	return f.Arg(0), err
}

// hasPassword reports whether a vault's place has a password in it.
func hasPassword(place string) bool {
	u, err := url.Parse(place)
	if address, _ := vault.IsAddress(place); !address || err != nil {
		return address // one that cannot be read may have it anywhere
	}
	_, has := u.User.Password()
	return has || u.Query().Has("password")
}

// absolute is a path that means the same in another directory.
func absolute(path string) string {
	if address, err := vault.IsAddress(path); address || err != nil {
		return path
	}
	if a, err := filepath.Abs(path); err == nil {
		return a
	}
	return path
}
