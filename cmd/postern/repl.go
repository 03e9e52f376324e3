package main

import (
	"context"
	"slices"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/cmd/postern/internal/prompt"
	"github.com/postern-mail/postern/cmd/postern/internal/terminal"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
)

// repl is the prompt; without a terminal it reads one command per line.
func (p *process) repl(ctx context.Context, args []string) error {
	f := p.flags("repl", "[--json] [--no-history]")
	asJSON := f.Bool("json", false, "answer in JSON on a terminal too")
	forget := f.Bool("no-history", false, "neither read nor keep the history of typed lines; "+prompt.HistoryVar+"=off does the same")
	if err := parse(f, args, 0, 0); err != nil {
		return err
	}
	if err := p.unsealed(ctx); err != nil {
		return err
	}
	h, err := p.asOwner(gateway.FullProfile(), nil)
	if err != nil {
		return err
	}
	defer h.Close()
	return p.converse(ctx, h, *asJSON, !*forget)
}

// converse is the prompt on a terminal and the line mode elsewhere.
func (p *process) converse(ctx context.Context, h *house.House, asJSON, history bool) error {
	o := p.promptOptions(h)
	o.JSON, o.History = asJSON, history
	if p.onTerminal() {
		return prompt.Run(ctx, o)
	}
	status, err := prompt.Lines(ctx, o)
	if err == nil {
		err = statusError(status)
	}
	return err
}

func (p *process) promptOptions(h *house.House) prompt.Options {
	return prompt.Options{Door: commandDoor(h), Getenv: p.getenv, Stdin: p.stdin, Stdout: p.stdout, Stderr: p.stderr, Progress: p.progress(), Stage: h.Stage, Person: mail.PersonPrincipal,
		Administrator: func(ctx context.Context) (prompt.Door, func(), error) {
			admin, end, err := p.administrator(ctx)
			return admin.Door, end, err
		},
		KeyKept: func() bool {
			open, _ := p.system().AdminOpener()
			return open != nil
		}}
}

// commandDoor is where commands of the house's principal go in.
func commandDoor(h *house.House) prompt.Door {
	return prompt.Door{Gateway: h.Gateway, Registry: h.Registry, Principal: h.Principal, Accounts: func(ctx context.Context) (names []string, err error) {
		accounts, err := h.Accounts(ctx)
		for _, a := range accounts {
			names = append(names, a.Name)
		}
		return names, err
	}, Short: shortID, Waiting: h.Waiting}
}

// shortID is the id of a message as lists show it.
func shortID(id string, account bool) string {
	if r, err := mail.ParseRef(id); err == nil {
		return r.Short(account)
	}
	return id
}

// progress is the one line about the command that runs.
func (p *process) progress() *prompt.Progress {
	if p.shown == nil {
		p.shown = prompt.NewProgress(p.stderr, p.getenv)
	}
	return p.shown
}

func (p *process) onTerminal() bool { return terminal.Is(p.stdin) && terminal.Is(p.stdout) }

// attended reports whether any of the process's streams is a terminal, which a person has
// also when a command is part of a pipe.
func (p *process) attended() bool {
	return slices.ContainsFunc([]any{p.stdin, p.stdout, p.stderr}, terminal.Is)
}
