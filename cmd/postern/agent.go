package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault"
)

// agentDBVar names the vault of the agent mailbox for the bare process alone (003
// FR7).
const agentDBVar = "AGENT_MAIL_DB"

// agentIdentityVar binds a process to one identity in the agent mailbox.
const agentIdentityVar = "POSTERN_AGENT_IDENTITY"

const identityFlagName = "identity"

// identityFlag adds --identity to the flags of a verb that serves one principal.
func (p *process) identityFlag(f *flag.FlagSet) {
	f.StringVar(&p.identity, identityFlagName, "", "whom a client may act as in the agent mailbox, `PROJECT:NAME`; "+agentIdentityVar+" otherwise")
}

// bindIdentity refuses to start with an identity that is none. One that is given and
// empty, as an unset variable leaves it, is none too: it would bind nobody.
func (p *process) bindIdentity(f *flag.FlagSet) error {
	given := false
	f.Visit(func(f *flag.Flag) { given = given || f.Name == identityFlagName })
	switch identity := p.agentIdentity(); {
	case given && !vault.ValidAgentIdentity(p.identity):
		return &discovery.Fault{Code: discovery.ValidationError, Message: fmt.Sprintf("--%s %q is no identity.", identityFlagName, p.identity),
			Hint: "It must be project:name, in lower-case letters, digits and hyphens."}
	case identity != "" && !vault.ValidAgentIdentity(identity):
		return commands.BadIdentity()
	}
	return nil
}

// agentIdentity is whom this process may act as in the agent mailbox; empty is anybody.
func (p *process) agentIdentity() string {
	if p.identity != "" {
		return p.identity
	}
	return p.getenv(agentIdentityVar)
}

// agent is the agent mailbox as a program of its own (003 NFR1, NFR2): the answer of
// the gateway without its envelope on standard output, and failures as JSON on
// standard error. What happens is the gateway's affair, as for every other verb.
func (p *process) agent(ctx context.Context, args []string) error {
	if len(args) == 0 || len(args) == 1 && (args[0] == "-h" || args[0] == "--help") {
		args = []string{"describe"}
	}
	h, err := p.asCorrespondent()
	if err != nil {
		return p.agentError(err)
	}
	defer h.close()
	answer := h.gateway.DoTokens(ctx, h.principal, append([]string{"agent"}, args...))
	out, err := bareAnswer(answer)
	if err != nil {
		return p.agentError(err)
	}
	if !answer.Success() {
		return p.agentFailure(string(out), answer.ExitStatus())
	}
	if _, err := p.stdout.Write(append(out, '\n')); err != nil {
		return err
	}
	answer.Delivered()
	return nil
}

// agentError is report with the error in JSON.
func (p *process) agentError(err error) error {
	f := commands.Faults(err)
	if f == nil {
		f = &discovery.Fault{Code: discovery.ExecutionError, Message: err.Error()}
	}
	return p.agentFailure(bareMessage(f.Message, f.Hint), f.Code.ExitStatus())
}

func (p *process) agentFailure(message string, status int) error {
	var b bytes.Buffer
	b.WriteString(`{"error": `)
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(message); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1) // the encoder's line end
	fmt.Fprintf(p.stderr, "%s\n", append(plainUnicode(b.Bytes()), '}'))
	return exitStatus(status)
}

// bareMessage is a failure as one text. The commands that its hint names are written for
// a shell, where help is something else.
func bareMessage(message, hint string) string {
	if hint == "" {
		return message
	}
	return message + " " + inShell.Replace(hint)
}

var inShell = strings.NewReplacer("'help", "'postern help", "'agent ", "'postern agent ")

// bareAnswer takes the envelope off an answer: the data, indented by two spaces, or
// the text of the failure.
func bareAnswer(a gateway.Answer) ([]byte, error) {
	var envelope struct {
		Data  json.RawMessage `json:"data"`
		Error struct {
			Message string `json:"message"`
			Hint    string `json:"hint"`
		} `json:"error"`
	}
	if err := json.Unmarshal(a.JSON, &envelope); err != nil {
		return nil, err
	}
	if !a.Success() {
		return []byte(bareMessage(envelope.Error.Message, envelope.Error.Hint)), nil
	}
	var b bytes.Buffer
	if err := json.Indent(&b, envelope.Data, "", "  "); err != nil {
		return nil, err
	}
	return plainUnicode(b.Bytes()), nil
}

// plainUnicode writes the characters of JSON that it has as escapes as themselves,
// from U+00A0 up: what steers a terminal stays an escape.
func plainUnicode(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); {
		if b[i] != '\\' || i+1 >= len(b) {
			out = append(out, b[i])
			i++
			continue
		}
		r, n := escaped(b[i:])
		if low, m := escaped(b[i+n:]); utf16.IsSurrogate(r) && m > 0 {
			r, n = utf16.DecodeRune(r, low), n+m
		}
		if r < 0xa0 || r == utf8.RuneError || utf16.IsSurrogate(r) {
			out = append(out, b[i], b[i+1])
			i += 2
			continue
		}
		out = utf8.AppendRune(out, r)
		i += n
	}
	return out
}

// escaped reads one \uXXXX. It returns 0, 0 where there is none.
func escaped(b []byte) (rune, int) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, 0
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	if err != nil {
		return 0, 0
	}
	return rune(n), 6
}

// asCorrespondent wires for the bare process: with the vault of the environment, or
// with the one that AGENT_MAIL_DB names.
func (p *process) asCorrespondent() (*house, error) {
	principal := gateway.Principal{Name: "agent"}
	if p.hasKey(vault.AdminKeyVar) {
		principal = gateway.Principal{Name: "admin", Admin: true}
	}
	open := p.opener(false)
	if path := p.getenv(agentDBVar); path != "" {
		open = func(ctx context.Context) (*vault.Vault, error) { return p.openMailbox(ctx, path) }
	}
	return p.wire(plan{profile: gateway.FullProfile(), principal: principal, open: open, hostFile: readHostFile})
}

// hasKey reports whether the environment has a key in any form.
func (p *process) hasKey(name string) bool {
	for _, form := range []string{"", "_FILE", "_COMMAND"} {
		if p.getenv(name+form) != "" {
			return true
		}
	}
	return false
}

// Where the keys of a mailbox lie that was made without any in the environment. Both
// files have the form that POSTERN_KEY_FILE and POSTERN_ADMIN_KEY_FILE take.
const (
	mailboxKey      = ".key"
	mailboxAdminKey = ".admin.key"
)

// openMailbox opens the vault at path, which it makes where there is none (003 NFR4).
// With a key in the environment it uses that and no other, so that a wrong key fails;
// with none it uses those beside the file. POSTERN_POLICY_PIN speaks of the vault with
// the accounts, and is not asked for here.
func (p *process) openMailbox(ctx context.Context, path string) (*vault.Vault, error) {
	keys, err := vault.KeysFromEnv(ctx, p.getenv)
	if err != nil {
		return nil, err
	}
	_, err = os.Stat(path)
	missing := errors.Is(err, fs.ErrNotExist)
	if missing {
		if optional(ctx) {
			return nil, fmt.Errorf("%w at %s", vault.ErrNoVault, path) // describe makes nothing
		}
		if keys, err = p.makeMailbox(ctx, path, keys); err != nil {
			return nil, err
		}
	} else if keys.Admin.IsZero() && keys.Agent.IsZero() {
		if keys.Agent, err = keyBeside(ctx, path+mailboxKey); err != nil {
			return nil, err
		}
	}
	return vault.Open(ctx, path, keys, nil)
}

// makeMailbox makes a vault with the keys there are, and with random ones beside it
// in place of those that are missing. Of several processes that do so at once all end
// up with the same keys and the same vault. It returns the keys to open it with.
func (p *process) makeMailbox(ctx context.Context, path string, given vault.Keys) (vault.Keys, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return vault.Keys{}, err
	}
	all := given
	for _, k := range []struct {
		secret *mail.Secret
		file   string
	}{{&all.Agent, path + mailboxKey}, {&all.Admin, path + mailboxAdminKey}} {
		if !k.secret.IsZero() {
			continue
		}
		if err := settleKey(k.file); err != nil {
			return vault.Keys{}, err
		}
		var err error
		if *k.secret, err = keyBeside(ctx, k.file); err != nil {
			return vault.Keys{}, err
		}
	}
	if _, err := vault.Init(ctx, path, all); err != nil {
		return vault.Keys{}, err
	}
	if given.Admin.IsZero() {
		return vault.Keys{Agent: all.Agent}, nil
	}
	return given, nil
}

// keyBeside reads a key file as KeysFromEnv does, which refuses one that others can
// read. It is zero where there is no file.
func keyBeside(ctx context.Context, file string) (mail.Secret, error) {
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return mail.Secret{}, nil
	}
	keys, err := vault.KeysFromEnv(ctx, func(name string) string {
		if name == vault.AgentKeyVar+"_FILE" {
			return file
		}
		return ""
	})
	return keys.Agent, err
}

// settleKey makes a key file unless there is one. It appears whole or not at all.
func settleKey(file string) (err error) {
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	key, err := vault.NewKey()
	if err != nil {
		return err
	}
	aside, err := os.CreateTemp(filepath.Dir(file), ".postern-*.key") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(aside.Name()) }()
	_, err = io.WriteString(aside, key+"\n")
	if err == nil {
		err = aside.Sync()
	}
	if err := errors.Join(err, aside.Close()); err != nil {
		return err
	}
	if err := os.Link(aside.Name(), file); err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	return settleWithoutLinks(aside.Name(), file)
}

// settleWithoutLinks is for file systems that have none. Who makes a vault while
// somebody else does finds a key that does not fit, and fails.
func settleWithoutLinks(aside, file string) error {
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(aside, file)
}

// readHostFile reads a file that the shell's user named. It must be a regular one:
// opening a pipe would wait for whoever writes to it.
func readHostFile(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &discovery.Fault{Code: discovery.NotFound, Message: fmt.Sprintf("There is no file %q.", path), Hint: "Check the path.", Err: err}
	case err != nil:
		return nil, hostFileFault(path, err)
	case !info.Mode().IsRegular():
		return nil, &discovery.Fault{Code: discovery.ValidationError, Message: fmt.Sprintf("%q is not a regular file.", path), Hint: "Name a text file in UTF-8."}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, hostFileFault(path, err)
	}
	defer func() { _ = f.Close() }()
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	switch {
	case err != nil:
		return nil, hostFileFault(path, err)
	case int64(len(content)) > limit:
		return nil, commands.ErrTooLarge
	}
	return content, nil
}

func hostFileFault(path string, err error) error {
	var failed *fs.PathError
	if errors.As(err, &failed) {
		err = failed.Err
	}
	return &discovery.Fault{Code: discovery.ExecutionError, Message: fmt.Sprintf("The file %q cannot be read: %s.", path, err), Hint: "Check the path and who may read it.", Err: err}
}
