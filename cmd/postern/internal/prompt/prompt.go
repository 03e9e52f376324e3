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
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/peterh/liner"

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
	c, l, end := begin(o)
	defer end()
	l.completes(func(line string, pos int) (string, []string, string) {
		before, after := splitRunes(line, pos)
		head, list := c.complete.line(ctx, before)
		return head, list, after
	})
	if o.History {
		c.history = openHistory(o.Getenv, o.Stderr)
		for _, line := range c.history.lines {
			l.AppendHistory(line)
		}
	}
	c.tell("Postern. Try inbox, read ID, reply ID, search WORDS. 'help' lists all, Tab completes, Ctrl-C stops a command, Ctrl-D ends.")
	return c.run(ctx)
}

// begin takes the terminal for a conversation until end.
func begin(o Options) (c *conversation, l *lineEditor, end func()) {
	before, modeErr := liner.TerminalMode()
	l = &lineEditor{State: newLine()}
	c = &conversation{Options: o, prompt: l, history: &history{}, complete: NewCompleter(o.Door)}
	if resting, err := liner.TerminalMode(); err == nil && modeErr == nil {
		terminal.Keys(o.Stdin)
		c.before, c.resting = before, resting
		c.asked, _ = liner.TerminalMode()
		_ = resting.ApplyMode()
	}
	return c, l, func() {
		if c.resting != nil {
			c.abandon()
		}
		_ = l.Close()
	}
}

func newLine() *liner.State {
	l := liner.NewLiner()
	l.SetCtrlCAborts(true)
	l.SetMultiLineMode(true)
	l.SetTabCompletionStyle(liner.TabPrints)
	return l
}

// lineEditor is the prompt's liner. It can begin anew, with nothing read ahead.
type lineEditor struct {
	*liner.State
	completer liner.WordCompleter
	typed     []string // the history
}

func (l *lineEditor) completes(f liner.WordCompleter) {
	l.completer = f
	l.SetWordCompleter(f)
}

// AppendHistory adds a line to the history.
func (l *lineEditor) AppendHistory(line string) {
	l.typed = append(l.typed, line)
	l.State.AppendHistory(line)
}

func (l *lineEditor) anew() {
	_ = l.Close()
	l.State = newLine()
	l.SetWordCompleter(l.completer)
	for _, line := range l.typed {
		l.State.AppendHistory(line)
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
	c, _, end := begin(o)
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
	announced int            // how many entries waited when that was said last
	open      chan typedLine // gets the line of a prompt that was abandoned; nil without one
	history   *history
	complete  *Completer
	filed     *filing // what 'undo' takes back
	next      string  // the command of 'more'; empty for none
	temporary string  // a directory that is removed at the end; empty for none

	// The terminal's mode before the prompt, between lines, and from before a question is seen
	// until it has been answered; nil without one.
	before, resting, asked liner.ModeApplier
}

// prompter asks for a line on the terminal, one at a time; *lineEditor implements it.
type prompter interface {
	Prompt(text string) (string, error)
	AppendHistory(line string)
}

type typedLine struct {
	text string
	err  error
}

// read prompts for a line, unless ctx has ended. A prompt cannot be interrupted: where
// ctx ends before somebody answers, the next one waits until it is gone, and a line typed
// at it is discarded.
func (c *conversation) read(ctx context.Context, text string) (string, error) {
	return c.readFrom(ctx, func() {}, func() (string, error) { return c.prompt.Prompt(text) })
}

// readNow reads an answer to a question that decides: what was typed or pasted ahead of it is none,
// and no later line, whether it is still with the terminal or was read along with the line before.
func (c *conversation) readNow(ctx context.Context, text string) (string, error) {
	editor, ok := c.prompt.(*lineEditor)
	if !ok { // in tests
		return c.read(ctx, text)
	}
	var l *liner.State
	return c.readFrom(ctx, func() {
		if c.asked != nil {
			_ = c.before.ApplyMode() // where liner returns to for a question as wide as the window
		}
		terminal.Discard(c.Stdin)
		l = newLine()
		editor.anew()
	}, func() (string, error) {
		defer l.Close()
		return l.Prompt(text)
	})
}

func (c *conversation) readFrom(ctx context.Context, ready func(), prompt func() (string, error)) (string, error) {
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
	ready()
	// The question is seen before liner makes Ctrl-C a key: as a signal it would give up the
	// question, and leave it open.
	if c.asked != nil {
		_ = c.asked.ApplyMode()
	}
	done := make(chan typedLine, 1)
	go func() {
		line, err := prompt()
		done <- typedLine{line, err}
	}()
	select {
	case l := <-done:
		if c.resting != nil {
			_ = c.resting.ApplyMode()
		}
		return l.text, l.err
	case <-ctx.Done():
		c.open = done
		return "", ctx.Err()
	}
}

// abandon waits until a prompt that was given up has taken the terminal, which it does
// when it has been printed: the terminal has to be given back after that.
func (c *conversation) abandon() {
	late := time.After(time.Second) // it may have failed, or somebody else set the same mode
	for c.open != nil {
		if mode, err := liner.TerminalMode(); err != nil || !reflect.DeepEqual(mode, c.asked) {
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
	defer c.forget()
	for ctx.Err() == nil {
		c.announce(ctx)
		line, err := c.read(ctx, "postern> ")
		switch {
		case errors.Is(err, liner.ErrPromptAborted):
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
		c.prompt.AppendHistory(line)
		if kept, ok := c.remembered(line); ok {
			c.history.add(kept)
		}
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
			c.status, c.open = admin.status, admin.open
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
	for n := min(len(about), 3); n > 0 && !d.Registry.Exists(path); n-- {
		path = strings.Join(about[:n], " ")
	}
	if !d.Registry.Exists(path) {
		return ""
	}
	return path
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
