package main

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/postern-mail/postern/cmd/postern/internal/prompt"
	"github.com/postern-mail/postern/cmd/postern/internal/terminal"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
)

// jsonFlag asks for the envelope on a terminal too.
const jsonFlag = "--json"

// exec runs one command string.
func (p *process) exec(ctx context.Context, args []string) error {
	f := p.flags("exec", "[--json] '<command string>'")
	asJSON := f.Bool(strings.TrimLeft(jsonFlag, "-"), false, "answer in JSON on a terminal too")
	if err := parse(f, args, 1, 1); err != nil {
		return err
	}
	return p.once(ctx, gateway.Request{Line: f.Arg(0)}, *asJSON)
}

// direct runs the process's own arguments as the tokens of one command. They are
// never joined and split again: the shell has done that already.
func (p *process) direct(ctx context.Context) error {
	tokens := slices.Clone(p.args)
	end := slices.Index(append(tokens, "--"), "--") // behind it nothing is an option
	at := slices.Index(tokens[:end], jsonFlag)      // no option takes a value with a dash as a word of its own
	if at >= 0 {
		tokens = slices.Delete(tokens, at, at+1)
	}
	err := p.once(ctx, gateway.Request{Tokens: tokens}, at >= 0)
	words, drawn := prompt.Words(), at < 0 && p.onTerminal()
	near := discovery.Nearest(p.args[0], append(slices.Sorted(maps.Keys(p.verbs())), words...), 1)
	if word := prompt.Meant(p.args[0]); drawn && word != "" {
		near = []string{word}
	}
	if err != nil && len(near) > 0 && near[0] != p.args[0] && near[0] != completeVerb && !strings.Contains(near[0], " ") {
		fmt.Fprintf(p.stderr, "Did you mean 'postern %s'?\n", near[0])
	}
	return err
}

// once runs one command, and shows the answer to a person on a terminal.
func (p *process) once(ctx context.Context, r gateway.Request, asJSON bool) error {
	line := r.Line
	if r.Tokens != nil {
		line = discovery.JoinCommand(r.Tokens)
	}
	if strings.TrimSpace(line) == "stop" {
		p.getenv = p.system().EnvironmentOfStop()
	}
	h, err := p.asOwner(gateway.FullProfile(), bufio.NewReader(p.stdin))
	if err != nil {
		return err
	}
	defer h.Close()
	o := p.promptOptions(h)
	o.Shell = true
	drawn := p.onTerminal() && !asJSON
	word := len(r.Tokens) > 0 && !drawn && slices.Contains(prompt.Words(), r.Tokens[0])
	if o.NeedsVault(line) || word && p.attended() && !prompt.AsksPage(r.Tokens) {
		if err := p.unsealed(ctx); err != nil {
			return err
		}
	}
	if word {
		// A person's word in a pipe is the command that it stands for. Where nobody sits at a
		// terminal there are commands alone.
		var shows []string
		if p.attended() {
			shows = prompt.Shows(ctx, o, r.Tokens)
		}
		if shows != nil {
			r.Tokens, line = shows, discovery.JoinCommand(shows)
		} else {
			fmt.Fprintf(p.stderr, "'postern %s' is for a person on a terminal: 'postern help' lists what there is for programs.\n", r.Tokens[0])
		}
	}
	if drawn {
		if status, ok := prompt.Word(ctx, o, r.Tokens); ok {
			return statusError(status)
		}
		if status, ok := prompt.Asks(ctx, o, line); ok {
			return statusError(status)
		}
	}
	r.Full = !asJSON && terminal.Is(p.stdout)
	answer := o.Answer(ctx, r, line)
	if r.Full {
		prompt.Show(o, answer)
	} else if _, err := answer.WriteTo(p.stdout); err != nil {
		return err
	}
	return statusOf(answer)
}

// statusOf is the status of an answer, also of a success that tells of a failed check; nil for 0.
func statusOf(a gateway.Answer) error { return statusError(a.ExitStatus()) }

// statusError is a status that was explained already; nil for 0.
func statusError(status int) error {
	if status != 0 {
		return exitStatus(status)
	}
	return nil
}
