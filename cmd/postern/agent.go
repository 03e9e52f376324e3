package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/cmd/postern/internal/prompt"
	"github.com/postern-mail/postern/cmd/postern/internal/terminal"
	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/commands/agents"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/vault"
)

// agentDBVar names the vault of the agent mailbox, for the bare process only (003
// FR7).
const agentDBVar = "AGENT_MAIL_DB"

// agentIdentityVar binds a process to one identity in the agent mailbox.
const agentIdentityVar = "POSTERN_AGENT_IDENTITY"

const identityFlagName = "identity"

// identityFlag adds --identity to the flags of a verb that serves one principal.
func (p *process) identityFlag(f *flag.FlagSet) {
	f.StringVar(&p.identity, identityFlagName, "", "the identity a client has in the agent mailbox, `PROJECT:NAME`; "+agentIdentityVar+" otherwise")
}

// bindIdentity refuses to start with an invalid identity. An empty --identity, as an
// unset variable leaves it, is invalid too: it would not bind the process.
func (p *process) bindIdentity(f *flag.FlagSet) error {
	given := false
	f.Visit(func(f *flag.Flag) { given = given || f.Name == identityFlagName })
	switch identity := p.agentIdentity(); {
	case given && !vault.ValidAgentIdentity(p.identity):
		return &discovery.Fault{Code: discovery.ValidationError, Message: fmt.Sprintf("--%s %q is not an identity.", identityFlagName, p.identity),
			Hint: "It must be project:name, in lower-case letters, digits and hyphens."}
	case identity != "" && !vault.ValidAgentIdentity(identity):
		return agents.BadIdentity()
	}
	return nil
}

// agentIdentity is the identity this process is bound to in the agent mailbox; empty
// means any.
func (p *process) agentIdentity() string {
	if p.identity != "" {
		return p.identity
	}
	return p.getenv(agentIdentityVar)
}

// agent is the agent mailbox as a program of its own (003 NFR1, NFR2): the answer of
// the gateway without its envelope on standard output, and failures as JSON on
// standard error. The gateway does the rest, as for every other verb.
func (p *process) agent(ctx context.Context, args []string) error {
	if len(args) == 0 || len(args) == 1 && (args[0] == "-h" || args[0] == "--help") {
		args = []string{"describe"}
	}
	h, err := p.asCorrespondent()
	if err != nil {
		return p.agentError(err)
	}
	defer h.Close()
	tokens := append([]string{"agent"}, args...)
	answer := h.Gateway.Do(ctx, gateway.Request{Principal: h.Principal, Tokens: tokens, Full: true})
	if answer.Fault != nil {
		return p.agentError(answer.Fault)
	}
	switch answer.Result.(type) {
	case discovery.HelpResult, *agents.Description:
		if o := p.promptOptions(h); terminal.Is(p.stdout) {
			o.Shell = true
			prompt.Show(o, answer)
			return nil
		}
	}
	var out bytes.Buffer
	if err := json.Indent(&out, answer.Data, "", "  "); err != nil {
		return p.agentError(err)
	}
	if _, err := p.stdout.Write(append(plainUnicode(out.Bytes()), '\n')); err != nil {
		return err
	}
	if answer.Cut {
		p.agentSays("note", inShell.Replace(answer.Message))
	}
	answer.Delivered()
	return nil
}

// agentError is report with the error in JSON, as one text. The commands that its hint names are written for
// a shell, where help is something else.
func (p *process) agentError(err error) error {
	f := faultOf(err)
	p.agentSays("error", strings.TrimSpace(f.Message+" "+inShell.Replace(f.Hint)))
	return exitStatus(f.Code.ExitStatus())
}

// agentSays writes an object with one text to standard error.
func (p *process) agentSays(name, text string) {
	b, _ := plain.JSON(text)
	fmt.Fprintf(p.stderr, "{%q: %s}\n", name, plainUnicode(b))
}

var inShell = strings.NewReplacer("'help", "'postern help", "'agent ", "'postern agent ", "Usage: agent ", "Usage: postern agent ")

// escapes are those of characters in JSON, and any other one of theirs, so that none is seen within it.
var escapes = regexp.MustCompile(`\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|\\u[0-9a-f]{4}|\\.`)

// plainUnicode replaces the escapes of JSON from U+00A0 up by the characters; those that
// steer a terminal stay escaped.
func plainUnicode(b []byte) []byte {
	return escapes.ReplaceAllFunc(b, func(escape []byte) []byte {
		var s string
		if err := json.Unmarshal(fmt.Appendf(nil, "\"%s\"", escape), &s); err != nil || s < "\u00a0" || s == string(utf8.RuneError) {
			return escape
		}
		return []byte(s)
	})
}

// asCorrespondent wires for the bare process: with the vault that AGENT_MAIL_DB names, else
// with that of the environment, and where there is neither with one of its own in the home
// directory (003 NFR4, TC8).
func (p *process) asCorrespondent() (*house.House, error) {
	s := p.system()
	open := s.Opener(false)
	path := p.getenv(agentDBVar)
	if path == "" && p.getenv("POSTERN_DB") == "" {
		path = ownMailbox()
	}
	if path != "" {
		open = func(ctx context.Context) (*vault.Vault, error) { return s.OpenMailbox(ctx, path) }
	}
	return p.house(house.Plan{Profile: gateway.FullProfile(), Principal: s.Principal(), Open: open, ReadHostFile: readHostFile})
}

// ownMailbox is ~/.agent-mail/mail.db where the default vault does not exist, else empty.
func ownMailbox() string {
	none := func(string) string { return "" }
	path, err := vault.DefaultPath(none)
	if err == nil {
		if _, err = os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return ""
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".agent-mail", "mail.db")
}

// readHostFile reads a file that the shell's user named.
func readHostFile(path string, limit int64) ([]byte, error) {
	content, err := house.ReadFile(path, limit)
	if err == nil || errors.Is(err, commands.ErrTooLarge) {
		return content, err
	}
	f := &discovery.Fault{Code: discovery.ExecutionError, Message: fmt.Sprintf("The file %q cannot be read: %s.", path, withoutPath(err)), Hint: "Check the path and who may read it.", Err: err}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.Code = discovery.NotFound
	case errors.Is(err, house.ErrNotRegular):
		f.Code, f.Hint = discovery.ValidationError, "Name a text file in UTF-8."
	}
	return nil, f
}
