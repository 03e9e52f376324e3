package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"strings"
	"time"

	"github.com/peterh/liner"

	"github.com/postern-mail/postern/cmd/postern/internal/screen"
	"github.com/postern-mail/postern/cmd/postern/internal/terminal"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
)

// repl is the prompt; without a terminal it reads one command per line.
func (p *process) repl(ctx context.Context, args []string) error {
	f := p.flags("repl", "[--json] [--no-history]")
	asJSON := f.Bool("json", false, "answer in JSON on a terminal too")
	forget := f.Bool("no-history", false, "neither read nor keep what was typed; "+historyVar+"=off does the same")
	if err := parse(f, args, 0, 0); err != nil {
		return err
	}
	h, err := p.asOwner(gateway.FullProfile(), nil)
	if err != nil {
		return err
	}
	defer h.close()
	return p.converse(ctx, h, *asJSON, !*forget)
}

// converse is the prompt on a terminal and the line mode elsewhere.
func (p *process) converse(ctx context.Context, h *house, asJSON, remembers bool) error {
	if !p.onTerminal() {
		return p.lines(ctx, h, bufio.NewReader(p.stdin))
	}
	terminal := liner.NewLiner()
	resting, modeErr := liner.TerminalMode()
	c := &conversation{process: p, house: h, asJSON: asJSON, prompt: terminal, history: &history{}}
	defer func() {
		if modeErr == nil {
			c.abandon(resting)
		}
		_ = terminal.Close()
	}()
	c.seen.house = h
	terminal.SetCtrlCAborts(true)
	terminal.SetTabCompletionStyle(liner.TabPrints)
	terminal.SetWordCompleter(func(line string, pos int) (string, []string, string) {
		before, after := splitRunes(line, pos)
		head, list := c.complete(ctx, before)
		return head, list, after
	})
	if remembers {
		c.history = p.openHistory()
		for _, line := range c.history.lines {
			terminal.AppendHistory(line)
		}
	}
	fmt.Fprintln(p.stdout, "Postern. 'help' lists the commands, Tab completes, Ctrl-C stops a command, Ctrl-D ends.")
	return c.run(ctx)
}

// conversation is a prompt on a terminal.
type conversation struct {
	*process
	house   *house
	asJSON  bool
	prompt  prompter
	open    chan typedLine // has what comes of a prompt that nobody waits for any more; nil where there is none
	history *history
	seen    seen
}

// prompter asks for a line on the terminal, one at a time; *liner.State implements it.
type prompter interface {
	Prompt(text string) (string, error)
	AppendHistory(line string)
}

type typedLine struct {
	text string
	err  error
}

// read prompts for a line, unless ctx has ended. A prompt cannot be interrupted: where
// ctx ends before somebody answers, the next one waits until it is gone, and what is
// typed at it is an answer to nothing.
func (c *conversation) read(ctx context.Context, text string) (string, error) {
	if c.open != nil {
		select {
		case <-c.open:
			c.open = nil
		case <-ctx.Done():
		}
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	done := make(chan typedLine, 1)
	go func() {
		line, err := c.prompt.Prompt(text)
		done <- typedLine{line, err}
	}()
	select {
	case l := <-done:
		return l.text, l.err
	case <-ctx.Done():
		c.open = done
		return "", ctx.Err()
	}
}

// abandon waits until a prompt that nobody waits for any more has taken the terminal,
// which it does when it has been printed. What gives the terminal back has to come
// behind that. resting is the terminal's mode while there is no prompt.
func (c *conversation) abandon(resting liner.ModeApplier) {
	late := time.After(time.Second) // it may have failed, or somebody else set the same mode
	for c.open != nil {
		if mode, err := liner.TerminalMode(); err != nil || !reflect.DeepEqual(mode, resting) {
			return
		}
		select {
		case <-c.open:
			c.open = nil
		case <-late:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

func (c *conversation) run(ctx context.Context) error {
	for ctx.Err() == nil {
		line, err := c.read(ctx, "postern> ")
		switch {
		case errors.Is(err, liner.ErrPromptAborted):
			continue
		case errors.Is(err, io.EOF):
			fmt.Fprintln(c.stdout)
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
		c.prompt.AppendHistory(line)
		if kept, ok := c.house.remembered(line); ok {
			c.history.add(kept)
		}
		c.answer(ctx, line)
	}
	return ctx.Err()
}

// answer runs one command that Ctrl-C can stop without ending the prompt.
func (c *conversation) answer(ctx context.Context, line string) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	if id, ok := c.approves(line); ok {
		c.approve(ctx, id)
		return
	}
	r := gateway.Request{Line: line, CanAsk: c.mayAsk()}
	a := c.process.do(ctx, c.house, r)
	if a.Asked != nil {
		verdict := c.ask(ctx, a.Asked.Text)
		r.Reply = &gateway.Reply{State: a.Asked.State, Verdict: verdict}
		decided := c.process.do(ctx, c.house, r)
		if verdict != discovery.Unanswered { // else the first answer holds, which says where it waits
			a = decided
		}
	}
	c.show(a, line)
}

// do runs a command that asks nothing.
func (c *conversation) do(ctx context.Context, line string) gateway.Answer {
	return c.process.do(ctx, c.house, gateway.Request{Line: line})
}

// show shows an answer, which has arrived then.
func (c *conversation) show(a gateway.Answer, line string) {
	defer a.Delivered()
	c.seen.note(a.JSON)
	if c.asJSON {
		fmt.Fprintf(c.stdout, "%s\n", a.JSON)
		return
	}
	_, _ = io.WriteString(c.stdout, c.look().Render(a.JSON, c.house.pathOf(line)))
}

// pathOf is the command that a line names; empty for none.
func (h *house) pathOf(line string) string {
	tokens, err := gateway.Tokenize(line)
	if err != nil {
		return ""
	}
	found, err := h.registry.Resolve(tokens, h.visible)
	switch {
	case err != nil:
		return ""
	case found.Command == nil:
		return "help"
	}
	for _, t := range found.Rest {
		if t == "--help" {
			return "help"
		}
	}
	return found.Command.Path
}

func (p *process) onTerminal() bool { return terminal.Is(p.stdin) && terminal.Is(p.stdout) }

// look is how the terminal wants to be written to.
func (p *process) look() screen.Look {
	return screen.Look{Width: p.width(), Color: terminal.Color(p.getenv), Quote: discovery.Quote}
}

// width is how many columns answers are drawn in.
func (p *process) width() int {
	width, _ := terminal.Size(p.stdout)
	return max(width, 20)
}
