package main

import (
	"bufio"
	"context"
	"fmt"

	"github.com/postern-mail/postern/gateway"
)

// exec runs one command string.
func (p *process) exec(ctx context.Context, args []string) error {
	f := p.flags("exec", "'<command string>'")
	if err := parse(f, args, 1, 1); err != nil {
		return err
	}
	return p.once(ctx, func(ctx context.Context, h *house) gateway.Answer { return h.gateway.Do(ctx, h.principal, f.Arg(0)) })
}

// direct runs the process's own arguments as the tokens of one command. They are
// never joined and split again: the shell has done that already.
func (p *process) direct(ctx context.Context) error {
	return p.once(ctx, func(ctx context.Context, h *house) gateway.Answer {
		return h.gateway.DoTokens(ctx, h.principal, p.args)
	})
}

func (p *process) once(ctx context.Context, do func(context.Context, *house) gateway.Answer) error {
	h, err := p.asOwner(gateway.FullProfile(), bufio.NewReader(p.stdin))
	if err != nil {
		return err
	}
	defer h.close()
	shown := p.progress(ctx)
	answer := do(shown.ctx, h)
	shown.end()
	if _, err := fmt.Fprintf(p.stdout, "%s\n", answer.JSON); err != nil {
		return err
	}
	answer.Delivered()
	if !answer.Success() {
		return exitStatus(answer.ExitStatus())
	}
	return nil
}
