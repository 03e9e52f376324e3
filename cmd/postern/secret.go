package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/postern-mail/postern/cmd/postern/internal/terminal"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault"
)

// readSecret reads the first line of the source that --password-from names, from a terminal
// without echo. It gives up when ctx ends.
func (p *process) readSecret(ctx context.Context, stdin *bufio.Reader, source string) (mail.Secret, error) {
	kind, name, _ := strings.Cut(source, ":")
	switch {
	case kind == "env" && p.getenv(name) == "":
		return mail.Secret{}, fmt.Errorf("the variable %s is not set", name)
	case kind == "env":
		return firstLine(strings.NewReader(p.getenv(name)))
	case kind == "file":
		return terminal.Await(ctx, func() (mail.Secret, error) {
			f, err := os.Open(name)
			if err != nil {
				return mail.Secret{}, err
			}
			defer f.Close()
			return firstLine(f)
		})
	case p.onTerminal() || stdin != nil && terminal.Is(p.stdin):
		typed, err := terminal.ReadHidden(ctx, p.stdin, p.stderr, "Password: ")
		defer clear(typed)
		return mail.NewSecret(typed), err
	case stdin == nil:
		return mail.Secret{}, &discovery.Fault{Code: discovery.ValidationError, Message: "Standard input carries commands here, so a password cannot come from it.",
			Hint: "Use --password-from env:NAME or file:PATH, or run the command with 'postern exec'."}
	}
	return terminal.Await(ctx, func() (mail.Secret, error) { return firstLine(stdin) })
}

// passphrase asks for the passphrase of the administrator's key; see house.System. The
// terminal must be the standard input: an agent's command, which has another, is not to wait
// on the terminal of the person who started the agent.
func (p *process) passphrase(ctx context.Context, again bool) (mail.Secret, error) {
	if !p.asksHidden() {
		return mail.Secret{}, vault.ErrSealed
	}
	defer p.progress().Aside()()
	if again {
		fmt.Fprintln(p.stderr, "This passphrase does not open the key.")
	}
	typed, err := terminal.ReadHidden(ctx, p.stdin, p.stderr, "Passphrase of the administrator's key: ")
	defer clear(typed)
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("the input ended: %w", context.Canceled)
	}
	return mail.NewSecret(typed), err
}

// unsealed asks for the passphrase of the administrator's key of the environment, where it
// has one, before a command begins that has its own time. Ctrl-C ends the question.
func (p *process) unsealed(ctx context.Context) error {
	if !p.asksHidden() {
		return nil // the command says what to do
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	return p.system().Unseal(ctx)
}

func (p *process) asksHidden() bool { return terminal.Is(p.stdin) && terminal.Is(p.stderr) }

func firstLine(r io.Reader) (mail.Secret, error) {
	line, err := bufio.NewReader(io.LimitReader(r, terminal.MaxHidden)).ReadBytes('\n')
	defer clear(line)
	if err != nil && !errors.Is(err, io.EOF) {
		return mail.Secret{}, err
	}
	n := len(line)
	for n > 0 && (line[n-1] == '\n' || line[n-1] == '\r') {
		n--
	}
	return mail.NewSecret(line[:n]), nil
}
