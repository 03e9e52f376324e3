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

	"github.com/peterh/liner"
	"golang.org/x/term"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
)

// repl is the prompt; without a terminal it reads one command per line.
func (p *process) repl(ctx context.Context, args []string) error {
	f := p.flags("repl", "[--json]")
	asJSON := f.Bool("json", false, "answer in JSON on a terminal too")
	if err := parse(f, args, 0, 0); err != nil {
		return err
	}
	h, err := p.asOwner(gateway.FullProfile(), nil)
	if err != nil {
		return err
	}
	defer h.close()
	return p.converse(ctx, h, *asJSON)
}

// converse is the prompt on a terminal and the line mode elsewhere.
func (p *process) converse(ctx context.Context, h *house, asJSON bool) error {
	if !p.onTerminal() {
		return p.lines(ctx, h, bufio.NewReader(p.stdin))
	}
	prompt := liner.NewLiner()
	defer prompt.Close()
	prompt.SetCtrlCAborts(true)
	prompt.SetTabCompletionStyle(liner.TabPrints)
	prompt.SetCompleter(func(line string) []string { return complete(h, line) })
	fmt.Fprintln(p.stdout, "Postern. 'help' lists the commands, Tab completes, Ctrl-C stops a command, Ctrl-D ends.")
	for ctx.Err() == nil {
		line, err := unlessDone(ctx, func() (string, error) { return prompt.Prompt("postern> ") })
		switch {
		case errors.Is(err, liner.ErrPromptAborted):
			continue
		case errors.Is(err, io.EOF):
			fmt.Fprintln(p.stdout)
			return nil
		case err != nil:
			return err
		}
		switch strings.TrimSpace(line) {
		case "":
			continue
		case "exit", "quit":
			return nil
		}
		prompt.AppendHistory(line)
		p.answer(ctx, h, line, asJSON)
	}
	return ctx.Err()
}

// answer runs one command that Ctrl-C can stop without ending the prompt.
func (p *process) answer(ctx context.Context, h *house, line string, asJSON bool) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	a := h.gateway.Do(ctx, h.principal, line)
	defer a.Delivered()
	if asJSON {
		fmt.Fprintf(p.stdout, "%s\n", a.JSON)
		return
	}
	render(p.stdout, a.JSON, p.width())
}

func (p *process) onTerminal() bool {
	out, ok := p.stdout.(*os.File)
	return ok && term.IsTerminal(int(p.stdin.Fd())) && term.IsTerminal(int(out.Fd()))
}

// width is how many columns the terminal has.
func (p *process) width() int {
	if out, ok := p.stdout.(*os.File); ok {
		if w, _, err := term.GetSize(int(out.Fd())); err == nil && w > 20 {
			return w
		}
	}
	return 80
}

// complete proposes what the line may go on with: words of commands, then the
// options of the command, then the values of an enumerated option.
func complete(h *house, line string) []string {
	head := line[:strings.LastIndexByte(line, ' ')+1]
	last := line[len(head):]
	words := strings.Fields(head)
	visible := func(c *discovery.Command) bool { return h.gateway.Visible(context.Background(), h.principal, c) }
	found, err := h.registry.Resolve(words, visible)
	var proposals []string
	if err == nil && found.Command != nil {
		proposals = proposeArguments(found.Command, found.Rest)
	} else {
		proposals = proposeWords(h.registry, strings.Join(words, " "), visible)
	}
	var out []string
	for _, w := range proposals {
		if strings.HasPrefix(w, last) {
			out = append(out, head+w+" ")
		}
	}
	return out
}

func proposeWords(r *discovery.Registry, group string, visible func(*discovery.Command) bool) []string {
	var words []string
	seen := map[string]bool{}
	for _, c := range r.Commands() {
		rest := c.Path
		if group != "" {
			var ok bool
			if rest, ok = strings.CutPrefix(c.Path, group+" "); !ok {
				continue
			}
		}
		word, _, _ := strings.Cut(rest, " ")
		if visible(c) && !seen[word] {
			seen[word] = true
			words = append(words, word)
		}
	}
	return words
}

func proposeArguments(c *discovery.Command, rest []string) []string {
	var words []string
	for _, a := range c.Arguments() {
		if len(rest) > 0 && rest[len(rest)-1] == a.Label() && len(a.Enum) > 0 {
			return a.Enum
		}
		if !a.Positional {
			words = append(words, a.Label())
		}
	}
	return words
}
