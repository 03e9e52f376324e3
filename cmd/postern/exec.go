package main

import (
	"bufio"
	"context"

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
	return p.once(ctx, gateway.Request{Tokens: p.args})
}

func (p *process) once(ctx context.Context, r gateway.Request) error {
	h, err := p.asOwner(gateway.FullProfile(), bufio.NewReader(p.stdin))
	if err != nil {
		return err
	}
	defer h.Close()
	answer := p.progress().Do(ctx, commandDoor(h), r)
	if _, err := answer.WriteTo(p.stdout); err != nil {
		return err
	}
	if !answer.Success() {
		return exitStatus(answer.ExitStatus())
	}
	return nil
}
