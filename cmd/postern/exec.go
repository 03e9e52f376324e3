package main

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/postern-mail/postern/cmd/postern/internal/prompt"
	"github.com/postern-mail/postern/cmd/postern/internal/terminal"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
)

// exec runs one command string.
func (p *process) exec(ctx context.Context, args []string) error {
	f := p.flags("exec", "'<command string>'")
	if err := parse(f, args, 1, 1); err != nil {
		return err
	}
	return p.once(ctx, gateway.Request{Line: f.Arg(0)})
}

// direct runs the process's own arguments as the tokens of one command. They are
// never joined and split again: the shell has done that already.
func (p *process) direct(ctx context.Context) error {
	err := p.once(ctx, gateway.Request{Tokens: p.args})
	if near := discovery.Nearest(p.args[0], slices.Sorted(maps.Keys(p.verbs())), 1); err != nil && len(near) > 0 && near[0] != completeVerb {
		fmt.Fprintf(p.stderr, "Did you mean 'postern %s'?\n", near[0])
	}
	return err
}

func (p *process) once(ctx context.Context, r gateway.Request) error {
	h, err := p.asOwner(gateway.FullProfile(), bufio.NewReader(p.stdin))
	if err != nil {
		return err
	}
	defer h.Close()
	door := commandDoor(h)
	line := r.Line
	if r.Tokens != nil {
		line = discovery.JoinCommand(r.Tokens)
	}
	if page := door.Help(line); page && terminal.Is(p.stdout) {
		r.Full = true
		answer := p.progress().Do(ctx, door, r)
		prompt.Draw(p.stdout, p.getenv, answer, "help")
		return statusOf(answer)
	} else if !page {
		if err := p.unsealed(ctx); err != nil {
			return err
		}
	}
	if p.onTerminal() {
		if status, ok := prompt.Approve(ctx, p.promptOptions(h), line); ok {
			if status != 0 {
				return exitStatus(status)
			}
			return nil
		}
	}
	answer := p.progress().Do(ctx, door, r)
	if _, err := answer.WriteTo(p.stdout); err != nil {
		return err
	}
	return statusOf(answer)
}

// statusOf is the status of an answer, also of a success that tells of a failed check; nil for 0.
func statusOf(a gateway.Answer) error {
	if status := a.ExitStatus(); status != 0 {
		return exitStatus(status)
	}
	return nil
}
