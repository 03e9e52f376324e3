// Package prompt reads commands: the prompt of a person on a terminal, which
// completes, shows answers as a person reads them and asks before a message leaves,
// and the line mode of a program, with one command and one answer a line. Every
// command goes to the gateway as it was typed. The package knows no vault and no mail
// server, and of mail only what answers say.
package prompt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"

	"github.com/postern-mail/postern/cmd/postern/internal/screen"
	"github.com/postern-mail/postern/cmd/postern/internal/terminal"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
)

// Door is one principal's way into the gateway.
type Door struct {
	Gateway   *gateway.Gateway
	Registry  *discovery.Registry // of the gateway
	Principal gateway.Principal

	// Accounts names the principal's accounts, for completion.
	Accounts func(ctx context.Context) ([]string, error)
	// Short is a message's id as lists show it, of a long one, with its account where there are
	// several; nil leaves ids as they are.
	Short func(id string, account bool) string
	// Waiting counts what waits for a person, for the prompt; nil counts nothing.
	Waiting func(ctx context.Context) (int, error)
}

// visible reports whether a command exists for the principal.
func (d *Door) visible(c *discovery.Command) bool {
	return d.Gateway.Visible(context.Background(), d.Principal, c)
}

// several reports whether there are several accounts, so that an id needs its account.
func (d *Door) several(ctx context.Context) bool {
	names, err := d.Accounts(ctx)
	return err == nil && len(names) > 1
}

// Options configure a prompt.
type Options struct {
	Door
	Getenv   func(string) string
	Stdin    *os.File
	Stdout   io.Writer
	Stderr   io.Writer
	Progress *Progress
	Shell    bool   // lines are typed in a shell, behind the program's name
	Person   string // the principal of a person who types without the administrator's key

	// Administrator opens the administrator's door until end, for what shows a person of another
	// principal each thing and asks. KeyKept reports whether it finds the key for that by itself.
	Administrator func(ctx context.Context) (d Door, end func(), err error)
	KeyKept       func() bool

	// Stage puts a file of the person's where a command may send it from, until remove.
	Stage func(ctx context.Context, file string) (name string, remove func(), err error)

	JSON    bool // answers are shown in JSON
	History bool // the history is read and kept
}

// Run is the prompt on a terminal, until the person or ctx ends it.
func Run(ctx context.Context, o Options) error {
	c, end := begin(o)
	defer end()
	if o.History {
		c.history = openHistory(o.Getenv, o.Stderr)
	}
	c.tell("Postern. Try inbox, read ID, reply ID, search WORDS. 'help' lists all, Tab completes, Ctrl-C stops a command, Ctrl-D ends.")
	return c.run(ctx)
}

// begin takes the terminal for a conversation until end.
func begin(o Options) (c *conversation, end func()) {
	interrupts := make(chan os.Signal, 1) // between a line and a command they end nothing
	signal.Notify(interrupts, os.Interrupt)
	e := newEditor(o.Stdin, o.Stdout, o.Getenv)
	return &conversation{Options: o, prompt: e, history: &history{}, complete: NewCompleter(o.Door)}, func() {
		e.Aside()
		signal.Stop(interrupts)
	}
}

// Asks answers a line that asks a person on a terminal, as the prompt does: an 'outbox approve'
// without the code, an 'account edit' without options, an 'account remove', what shows something
// with a key that has to be found. ok is false for any other line. The status is that of a process
// that ends with it.
func Asks(ctx context.Context, o Options, line string) (status int, ok bool) {
	if (&conversation{Options: o}).asking(line) == nil {
		return 0, false
	}
	c, end := begin(o)
	defer end()
	c.asking(line)(ctx)
	return c.status, true
}

// asking is what a line that asks does; nil for any other line.
func (c *conversation) asking(line string) func(context.Context) {
	_, found, err := c.resolve(line)
	if c.mayLook(line, found.Command) {
		return func(ctx context.Context) { c.lookAsAdministrator(ctx, line) }
	}
	if err != nil || !c.mayAsk() || found.Command == nil || len(found.Rest) != 1 || strings.HasPrefix(found.Rest[0], "-") {
		return nil
	}
	name := found.Rest[0]
	switch found.Command.Path {
	case "outbox approve":
		return func(ctx context.Context) { c.approveOne(ctx, name) }
	case "account remove":
		return func(ctx context.Context) { c.removeAccount(ctx, name) }
	case "account edit":
		return func(ctx context.Context) { c.editAccount(ctx, found.Command, name) }
	}
	return nil
}

// conversation is a prompt on a terminal.
type conversation struct {
	Options
	status    int // of the last answer that was shown
	prompt    prompter
	announced int // how many entries waited when that was said last
	history   *history
	complete  *Completer
	next      string // the command of 'more'; empty for none
	temporary string // a directory that is removed at the end; empty for none
}

// prompter asks for a line on the terminal, one at a time; *editor implements it.
type prompter interface {
	Prompt(ctx context.Context, text string, with aids) (string, error)
	Discard()
	Aside() (again func())
}

// readNow reads an answer to a question that decides: what was typed or pasted ahead of it is none,
// and no later line.
func (c *conversation) readNow(ctx context.Context, text string) (string, error) {
	c.prompt.Discard()
	return c.read(ctx, text)
}

// read asks for a line that is no command.
func (c *conversation) read(ctx context.Context, text string) (string, error) {
	return c.prompt.Prompt(ctx, text, aids{})
}

func (c *conversation) run(ctx context.Context) error {
	defer c.forget()
	for ctx.Err() == nil {
		c.announce(ctx)
		line, err := c.prompt.Prompt(ctx, "postern> ", aids{c.history.lines, func(line string) (string, []string) { return c.complete.line(ctx, line) }})
		switch {
		case errors.Is(err, errInterrupted):
			continue
		case errors.Is(err, io.EOF):
			fmt.Fprintln(c.Stdout)
			return nil
		case err != nil:
			return err
		}
		switch strings.TrimSpace(line) {
		case "":
			continue
		case "exit", "quit", "q":
			return nil
		case "?":
			line = "help"
		}
		kept, _ := c.remembered(line)
		c.history.add(line, kept)
		if w, args, ok := wordOf(line); ok && !c.JSON {
			c.runWord(ctx, w, args)
		} else {
			c.answer(ctx, line)
		}
	}
	return ctx.Err()
}

// answer runs one command that Ctrl-C can stop without ending the prompt.
func (c *conversation) answer(ctx context.Context, line string) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	if ask := c.asking(line); ask != nil {
		ask(ctx)
		return
	}
	if strings.TrimSpace(line) == "help" && !c.JSON {
		c.help()
	}
	c.execute(ctx, gateway.Request{Line: line}, line)
}

// execute runs a command and shows its answer. What then waits for a person's word is shown
// to whoever can give it, who is asked about it at once.
func (c *conversation) execute(ctx context.Context, r gateway.Request, line string) gateway.Answer {
	r.Full = true
	a := c.Answer(ctx, r, line)
	if id := waitsAs(a); id != "" && c.decidesHere() {
		defer a.Delivered()
		c.complete.note(a)
		decided := false
		if admin, end, ok := c.administrator(ctx); ok {
			admin.status = a.ExitStatus()
			decided, _ = admin.walk(ctx, id, false)
			c.status = admin.status
			end()
		}
		if !decided && c.status == a.ExitStatus() {
			c.announced = max(c.announced, 1)
			c.tell("It waits in the outbox as " + id + ": " + c.typedAs("approve") + " asks again.")
		}
		return a
	}
	c.show(a)
	if a.Code == discovery.ApprovalRequired {
		c.announced = max(c.announced, 1) // the answer says so
	}
	first, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	if word := Meant(first); a.Code == discovery.CommandNotFound && word != "" && !c.JSON && !c.Shell {
		c.tell("Or the word '" + word + "' of this prompt?")
	}
	return a
}

// waitsAs is the id of what an answer says to wait for a person; empty for none.
func waitsAs(a gateway.Answer) string {
	if a.Code != discovery.ApprovalRequired {
		return ""
	}
	return outboxID(a)
}

// outboxID is the entry of the outbox that a failure names; empty for none.
func outboxID(a gateway.Answer) string {
	if a.Fault == nil {
		return ""
	}
	for _, x := range a.Fault.Examples {
		if id, ok := strings.CutPrefix(x, "outbox show "); ok {
			return id
		}
	}
	return ""
}

// do runs a command that asks nothing. Ctrl-C stops it.
func (c *conversation) do(ctx context.Context, line string) gateway.Answer {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	return c.Progress.Do(ctx, c.Door, gateway.Request{Line: line, Full: true})
}

// show shows an answer, which has arrived then.
func (c *conversation) show(a gateway.Answer) {
	defer a.Delivered()
	c.status = a.ExitStatus()
	c.complete.note(a)
	if c.JSON {
		fmt.Fprintf(c.Stdout, "%s\n", a.JSON)
		return
	}
	_, _ = io.WriteString(c.Stdout, c.look().Render(a))
}

// resolve takes a line apart and finds its command, which is nil for a group.
func (d *Door) resolve(line string) (tokens []string, found discovery.Resolved, err error) {
	if tokens, err = gateway.Tokenize(line); err == nil {
		found, err = d.Registry.Resolve(tokens, d.visible)
	}
	return tokens, found, err
}

// NeedsVault reports whether the answer to a line takes the vault: it is no page, and nothing is
// wrong with it that can be told without.
func (d *Door) NeedsVault(line string) bool {
	if w, args, ok := wordOf(line); ok {
		return !AsksPage(args) && w.takesAll(args)
	}
	_, found, err := d.resolve(line)
	if err != nil || found.Command == nil || found.Command.Effect == discovery.Meta {
		return false
	}
	ahead := found.Command.Peek(found.Rest)
	return !ahead.Help && !ahead.Wrong
}

// Answer runs a command. A refused line that only asks for a page, for a person also by the name of
// a group alone, gets that: what the administrator may do is no secret, and a page runs nothing.
func (o *Options) Answer(ctx context.Context, r gateway.Request, line string) gateway.Answer {
	a := o.Progress.Do(ctx, o.Door, r)
	tokens := r.Tokens
	if tokens == nil && r.Full {
		tokens, _ = gateway.Tokenize(line)
	}
	page := o.pageOf(tokens, r.Full)
	if a.Code != discovery.PermissionDenied || o.JSON || page == "" {
		return a
	}
	door := o.Door
	door.Principal.Admin = true
	return o.Progress.Do(ctx, door, gateway.Request{Line: "help " + page, Full: r.Full})
}

// pageOf is the command or group whose page the tokens ask for; empty for none.
func (d *Door) pageOf(tokens []string, group bool) (path string) {
	about := slices.DeleteFunc(slices.Clone(tokens), func(t string) bool { return t == "-h" || t == "--help" })
	switch {
	case len(about) > 0 && about[0] == "help":
		about = about[1:]
	case len(about) < len(tokens):
	case !group || d.Registry.Lookup(strings.Join(tokens, " ")) != nil || !d.Registry.Exists(strings.Join(tokens, " ")):
		return ""
	}
	for n := min(len(about), 3); n > 0; n-- {
		if path = strings.Join(about[:n], " "); d.Registry.Exists(path) {
			return path
		}
	}
	return ""
}

// Show writes a full answer. It has arrived then.
func Show(o Options, a gateway.Answer) {
	_, _ = io.WriteString(o.Stdout, (&conversation{Options: o}).look().Render(a))
	a.Delivered()
}

// LookOf is how a terminal wants to be written to.
func LookOf(out io.Writer, getenv func(string) string) screen.Look {
	width, _ := terminal.Size(out)
	return screen.Look{Width: max(width, 20), Color: terminal.Color(getenv) && terminal.Is(out), Quote: discovery.Quote}
}

func (c *conversation) look() screen.Look {
	look := LookOf(c.Stdout, c.Getenv)
	several := sync.OnceValue(func() bool { return c.several(context.Background()) })
	if c.Short != nil {
		look.ID = func(long string) string { return c.Short(long, several()) }
	}
	if c.Shell {
		look.Shell = Words()
		for _, command := range c.Registry.Commands() {
			first, _, _ := strings.Cut(command.Path, " ")
			look.Shell = append(look.Shell, first)
		}
	}
	return look
}
