// Command postern is the one door between a person's mail and the agents that
// work for them: an MCP server, a prompt, and a program that runs one command.
//
// This package only wires: it turns flags and environment into the objects of the
// other packages. What happens to a command is gateway.Gateway.Do.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	_ "time/tzdata" // a zone in the settings must mean the same on a machine that knows none

	"github.com/postern-mail/postern/cmd/postern/internal/hardening"
	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/cmd/postern/internal/prompt"
	"github.com/postern-mail/postern/cmd/postern/internal/quickstart"
	"github.com/postern-mail/postern/cmd/postern/internal/screen"
	"github.com/postern-mail/postern/cmd/postern/internal/setup"
	"github.com/postern-mail/postern/cmd/postern/internal/terminal"
	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway/extension"
	"github.com/postern-mail/postern/mail/autoconfig"
	"github.com/postern-mail/postern/mail/login"
	"github.com/postern-mail/postern/mail/pdftext"
	"github.com/postern-mail/postern/vault"
)

// process is the part of the operating system that main's functions use, so that the
// same code runs in a test.
type process struct {
	args    []string // without the program's name
	getenv  func(string) string
	environ []string // NAME=value, without secrets: children get parts of it
	secrets []string // NAME=value, what the environment had of keys and passwords
	stdin   *os.File
	stdout  io.Writer
	stderr  io.Writer
	log     *slog.Logger
	self    string // the program's own file, empty when it is not to be started again

	identity string        // of --identity, which wins over the environment; see agentIdentity
	flagged  *flag.FlagSet // the verb's own, once it has made them

	finder setup.Finder
	ring   setup.Keyring
	seal   setup.Seal

	shown *prompt.Progress // see progress
	own   house.OwnKeys
}

// usage is the program's page: what is typed, and what that does.
var usage = []screen.Section{
	{Title: "Start", Rows: [][2]string{
		{"postern demo", "try everything on a sample mailbox, nothing to set up"},
		{"postern init", "set up: the vault, its keys and an account, or another one"},
		{"postern install CLIENT", "connect an MCP client, such as claude-code"},
		{"postern uninstall CLIENT", "take it out of the client again"},
		{"postern doctor", "check that everything works"},
	}},
	{Title: "For you", Rows: [][2]string{
		{"postern approve", "show what waits for you, and decide"},
		{"postern inbox", "the newest messages; 'postern read 50' reads one, 'postern reply 50' answers"},
		{"postern search WORDS", "messages with this phrase"},
		{"postern undo", "take back what you changed; 'postern undo --since 09:00' what anybody did"},
		{"postern repl", "a prompt, where you type commands without 'postern'"},
		{"postern outbox list", "what was sent, and what waits"},
		{"postern help", "every command; 'postern help read' one of them"},
		{"postern stop", "stop everything, until 'postern resume'"},
	}},
	{Title: "With the administrator's key, in POSTERN_ADMIN_KEY_FILE", Rows: [][2]string{
		{"postern account list", "the accounts; account show, add, edit and remove"},
		{"postern allow in add ADDRESS", "whose messages agents see; allow out add: to whom they write"},
		{"postern resume", "go on after 'postern stop'"},
	}},
	{Title: "For agents", Rows: [][2]string{
		{"postern serve", "speak MCP on standard input and output, or with --http"},
		{"postern exec 'COMMAND'", "run one command string, such as 'mail list -n 3'"},
		{"postern agent", "a mailbox between agents, in bare JSON"},
	}},
	{Title: "Tools", Rows: [][2]string{
		{"postern keygen", "print a fresh key"},
		{"postern vault copy FROM TO", "move the vault between a file and a database"},
		{"postern completion SHELL", "completion with Tab for bash, zsh or fish"},
		{"postern reference", "all commands as one document, --format markdown or man"},
		{"postern conformance -- SERVER", "judge an ACLI server, ours or another"},
	}},
}

const about = "postern: a door between a person's mail and the agents that work for them. On a terminal commands are shown as a person reads them, and in JSON with --json or in a pipe. -h behind anything explains it."

// page draws a page of this program.
func (p *process) page(out io.Writer, about string, sections ...screen.Section) {
	fmt.Fprint(out, prompt.LookOf(out, p.getenv).Page(about, sections...))
}

func main() { start(systemProcess()) }

// systemProcess is the process as the operating system started it.
func systemProcess() *process {
	p := &process{args: os.Args[1:], getenv: hardening.Getenv, environ: os.Environ(), secrets: hardening.Secrets(), stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		finder: &autoconfig.Finder{}, ring: &login.SystemKeyring{}, seal: vault.SealKey}
	p.self, _ = os.Executable()
	p.log = slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return p
}

// start runs a process to its end, and exits.
func start(p *process) {
	quickstart.Over()
	if len(p.args) > 0 && p.args[0] == house.PDFVerb {
		os.Exit(pdftext.Child(os.Stdin, os.Stdout, p.args[1:]))
	}
	if len(p.args) > 0 && p.args[0] == house.ExtensionVerb {
		os.Exit(extension.Launch(p.args[1:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // a second one ends the process at once
	// A reader that goes away is an error of the write, so that what is open is
	// closed and what is temporary removed.
	signal.Ignore(syscall.SIGPIPE)
	// Standard output is only the protocol: whatever else prints, prints there.
	os.Stdout = os.Stderr
	status := p.run(ctx)
	stop()
	os.Exit(status)
}

// verbs are the first words, one or two, that do not begin a command.
func (p *process) verbs() map[string]func(context.Context, []string) error {
	return map[string]func(context.Context, []string) error{
		"serve": p.serve, "exec": p.exec, "repl": p.repl, "demo": p.demo, "init": p.init, "keygen": p.keygen,
		"install": p.install, "uninstall": p.uninstall, "approve": p.approve,
		"agent": p.agent, "reference": p.reference, "conformance": p.conformance,
		"completion": p.completion, completeVerb: p.completeWords, "vault copy": p.copyVault,
	}
}

// verb returns what the first words name, and the words after them; nil for a command's.
func (p *process) verb(words []string) (run func(context.Context, []string) error, rest []string) {
	if len(words) > 1 {
		if run = p.verbs()[words[0]+" "+words[1]]; run != nil {
			return run, words[2:]
		}
	}
	return p.verbs()[words[0]], words[1:]
}

// run executes one process verb and returns the exit status.
func (p *process) run(ctx context.Context) int {
	if len(p.args) == 0 {
		p.page(p.stderr, about, usage...)
		return 2
	}
	switch verb := p.args[0]; verb {
	case "-h", "--help":
		p.page(p.stdout, about, usage...)
		return 0
	case "--version", "-v":
		fmt.Fprintln(p.stdout, "postern", version())
		return 0
	default:
		run, args := p.verb(p.args)
		if prompt := verb == "repl" || verb == "demo"; !prompt || !p.onTerminal() {
			// A prompt has Ctrl-C stop one command, everything else ends.
			var stop context.CancelFunc
			ctx, stop = signal.NotifyContext(ctx, os.Interrupt)
			defer stop()
			context.AfterFunc(ctx, stop)
		}
		if run == nil {
			return p.report(p.direct(ctx))
		}
		err := run(ctx, args)
		if errors.Is(err, context.Canceled) && (verb == "serve" || verb == "repl" || verb == "demo") {
			return 0 // told to stop, and stopped
		}
		return p.report(err)
	}
}

// exitStatus is an error that has been reported already, in an envelope.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// report writes an error to standard error, unless an envelope has carried it.
func (p *process) report(err error) int {
	var status exitStatus
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	case errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, context.Canceled):
		return 130 // a shell's status for an interrupted program
	case errors.Is(err, syscall.EPIPE):
		return 0 // nobody reads on
	}
	f := faultOf(err)
	for _, sentence := range []string{"postern: " + f.Message, f.Hint} {
		switch {
		case sentence == "":
		case terminal.Is(p.stderr):
			p.page(p.stderr, screen.Line(sentence))
		default:
			fmt.Fprintln(p.stderr, sentence)
		}
	}
	return f.Code.ExitStatus()
}

// faultOf is an error in the words that a person reads.
func faultOf(err error) *discovery.Fault {
	if f := commands.Faults(err); f != nil {
		return f
	}
	return &discovery.Fault{Code: discovery.ExecutionError, Message: err.Error()}
}

// withinParagraph is where a paragraph was broken in the source; the window breaks it anew.
var withinParagraph = regexp.MustCompile(`(\S)\n(\S)`)

// flags makes the flag set of a verb.
func (p *process) flags(verb, synopsis string) *flag.FlagSet {
	f := flag.NewFlagSet(verb, flag.ContinueOnError)
	f.SetOutput(p.stderr)
	p.flagged = f
	for _, section := range usage {
		for _, r := range section.Rows {
			if !strings.Contains(synopsis, "\n") && strings.HasPrefix(r[0]+" ", "postern "+verb+" ") {
				synopsis += "\n\n" + strings.ToUpper(r[1][:1]) + r[1][1:] + ".\n"
			}
		}
	}
	f.Usage = func() {
		for l := range strings.Lines(withinParagraph.ReplaceAllString("usage: postern "+verb+" "+synopsis, "$1 $2")) {
			if strings.HasPrefix(l, "  ") { // to be copied
				fmt.Fprint(f.Output(), l)
				continue
			}
			p.page(f.Output(), strings.TrimRight(l, " \n"))
		}
		var rows [][2]string
		f.VisitAll(func(g *flag.Flag) {
			value, about := flag.UnquoteUsage(g)
			if !slices.Contains([]string{"", "0", "false"}, g.DefValue) {
				about += " (default " + g.DefValue + ")"
			}
			rows = append(rows, [2]string{strings.TrimRight("--"+g.Name+" "+strings.ToUpper(value), " "), screen.Line(about)})
		})
		if len(rows) > 0 {
			p.page(f.Output(), "", screen.Section{Title: "Options", Rows: rows})
		}
	}
	return f
}

// repeated adds a flag that may be given several times. split takes one apart.
func repeated(f *flag.FlagSet, list *[]string, name, usage string, split func(string) []string) {
	f.Func(name, usage, func(s string) error {
		*list = append(*list, split(s)...)
		return nil
	})
}

// oneOf is a flag that takes one of a few words, in any case. Completion proposes them.
type oneOf struct {
	value *string
	words []string
}

// choose adds a flag whose default is the value that the variable has.
func choose(f *flag.FlagSet, value *string, name, usage string, words ...string) {
	f.Var(&oneOf{value, words}, name, usage)
}

func (c *oneOf) String() string {
	if c.value == nil { // the flag package asks a zero value
		return ""
	}
	return *c.value
}

func (c *oneOf) Set(s string) error {
	for _, w := range c.words {
		if strings.EqualFold(w, s) {
			*c.value = w
			return nil
		}
	}
	return errors.New("it takes " + strings.Join(c.words, ", "))
}

// parse reads a verb's flags; what is left must number between low and high.
func parse(f *flag.FlagSet, args []string, low, high int) error {
	// The flag package would put its reason before all of the flags, out of sight.
	out, usage := f.Output(), f.Usage
	f.SetOutput(io.Discard)
	f.Usage = func() {}
	err := f.Parse(args)
	f.SetOutput(out)
	f.Usage = usage
	switch {
	case errors.Is(err, flag.ErrHelp):
		f.Usage()
		return err
	case err != nil:
		fmt.Fprintf(out, "postern: %v\nRun 'postern %s -h' for what it takes.\n", err, f.Name())
		return exitStatus(2)
	}
	if n := f.NArg(); n < low || n > high {
		f.Usage()
		return exitStatus(2)
	}
	return nil
}
