package prompt

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"

	"github.com/postern-mail/postern/cmd/postern/internal/screen"
	"github.com/postern-mail/postern/cmd/postern/internal/terminal"
	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
)

// A word is what a person types in place of a command. It runs commands as they would be
// typed, through the same door, and knows of them what their help says. What it gets wrong
// costs a person a look at 'help', never a message.
type word struct {
	name, takes, about string
	examples           []string
	low, high          int // how many arguments it takes; high of -1 is any number
	do                 func(c *conversation, ctx context.Context, args []string)
}

// words are all of them. It is a function because what they do refers to them.
func words() []word {
	return []word{
		{"inbox", "[N]", "the newest messages of all accounts", []string{"inbox", "inbox 50", "inbox --before 38"}, 0, -1, (*conversation).inbox},
		{"read", "ID...", "show messages, and mark them as read", []string{"read 50", "read 49 50"}, 1, -1, (*conversation).reads},
		{"thread", "ID", "the conversation of a message", []string{"thread 50"}, 1, 1, (*conversation).thread},
		{"search", "WORDS...", "messages with this phrase, in all accounts", []string{"search invoice", "search --from ann@example.org --last-days 30"}, 1, -1, (*conversation).search},
		{"more", "", "the next page of the last search", []string{"more"}, 0, 0, (*conversation).more},
		{"write", "[TO...]", "a letter, in your editor; 'write again': one that did not leave", []string{"write ann@example.org", "write again"}, 0, -1, (*conversation).write},
		{"reply", "ID [all]", "an answer, to its sender or to all", []string{"reply 50", "reply 50 all"}, 1, 2, (*conversation).reply},
		{"forward", "ID [TO...]", "hand a message on", []string{"forward 50 ann@example.org"}, 1, -1, (*conversation).forward},
		{"archive", "ID...", "put messages into the archive", []string{"archive 49 50"}, 1, -1, (*conversation).archive},
		{"trash", "ID...", "put messages into the trash", []string{"trash 50"}, 1, -1, (*conversation).trash},
		{"undo", "[ID] [--since T] [--by NAME]", "take back what you changed last, or what anybody changed", []string{"undo", "undo --since 09:00", "undo --by agent --since 09:00"}, 0, -1, (*conversation).undo},
		{"save", "ID [PART] [PLACE]", "keep the attachments of a message", []string{"save 50", "save 50 2 ~/Desktop"}, 1, 3, (*conversation).save},
		{"open", "ID [PART]", "look at an attachment", []string{"open 50", "open 50 2"}, 1, 2, (*conversation).opens},
		{"approve", "[ID]", "decide about what waits for you", []string{"approve", "approve 01kb"}, 0, 1, (*conversation).decides},
	}
}

// help shows the words, above the page of the commands.
func (c *conversation) help() {
	var rows [][2]string
	for _, w := range words() {
		rows = append(rows, [2]string{strings.TrimSpace(w.name + " " + w.takes), w.about})
	}
	fmt.Fprintln(c.Stdout, c.look().Page("", screen.Section{Title: "Words", Rows: rows}))
}

// Words are the names of the words, for completion.
func Words() (names []string) {
	for _, w := range words() {
		names = append(names, w.name)
	}
	return names
}

// Meant is the word that a person likely meant who typed another: one with a similar name, or what
// other programs call the same. It is empty for no idea.
func Meant(typed string) string {
	switch typed = strings.ToLower(typed); typed {
	case "list", "ls", "dir", "unread":
		return "inbox"
	case "show", "view", "cat", "get":
		return "read"
	case "find", "grep":
		return "search"
	case "send", "compose", "draft":
		return "write"
	case "answer", "r":
		return "reply"
	case "fwd":
		return "forward"
	case "move", "mv", "file":
		return "archive"
	case "delete", "del", "rm", "remove":
		return "trash"
	case "attachment", "attachments", "download":
		return "save"
	}
	if typed != "" && strings.Trim(typed, "0123456789") == "" {
		return "read"
	}
	return strings.Join(discovery.Nearest(typed, Words(), 1), "")
}

// wordOf is the word that a line begins with, with its arguments, or asks for help with.
func wordOf(line string) (w word, args []string, ok bool) {
	tokens, err := gateway.Tokenize(line)
	if err != nil || len(tokens) == 0 {
		return w, nil, false
	}
	if len(tokens) == 2 && tokens[0] == "help" {
		tokens = []string{tokens[1], "-h"}
	}
	i := slices.IndexFunc(words(), func(w word) bool { return w.name == tokens[0] })
	if i < 0 {
		return w, nil, false
	}
	return words()[i], tokens[1:], true
}

// AsksPage reports whether a line asks for its page, which needs no vault.
func AsksPage(args []string) bool {
	return slices.Contains(args, "-h") || slices.Contains(args, "--help")
}

// page is the page of a word, in the form of that of a command.
func (w *word) page() gateway.Answer {
	return gateway.Answer{Result: discovery.HelpResult{Command: w.name, Description: strings.ToUpper(w.about[:1]) + w.about[1:] + ".",
		Usage: strings.TrimSpace(w.name + " " + w.takes), Examples: w.examples}}
}

// takesAll reports whether a word takes that many arguments.
func (w *word) takesAll(args []string) bool {
	return len(args) >= w.low && (w.high < 0 || len(args) <= w.high)
}

// runWord does what a word says.
func (c *conversation) runWord(ctx context.Context, w word, args []string) {
	if c.status = 0; !w.takesAll(args) {
		c.status = discovery.ValidationError.ExitStatus()
	}
	if asks := AsksPage(args); asks || c.status != 0 {
		if asks {
			c.status = 0
		}
		_, _ = io.WriteString(c.Stdout, c.look().Render(w.page()))
		return
	}
	_, stop := signal.NotifyContext(context.Background(), os.Interrupt) // Ctrl-C stops a command, and not what is around it
	defer stop()
	w.do(c, ctx, args)
}

// Word runs a word of the process's own arguments. ok is false where the first is none.
func Word(ctx context.Context, o Options, tokens []string) (status int, ok bool) {
	w, args, ok := wordOf(discovery.JoinCommand(tokens))
	if !ok {
		return 0, false
	}
	c, end := begin(o)
	defer end()
	c.runWord(ctx, w, args) // a file that it opened stays: its viewer may still read it
	if w.name == "inbox" && c.status == 0 && !AsksPage(args) {
		c.announce(ctx)
	}
	return c.status, true
}

// Shows is the command that the process's own arguments stand for where their word only shows
// something, for what has no terminal; nil for any other. It changes nothing: 'read' in a pipe marks
// no message as read.
func Shows(ctx context.Context, o Options, tokens []string) []string {
	c, args := &conversation{Options: o}, tokens[1:]
	switch tokens[0] {
	case "inbox":
		return c.lists(ctx, "", args)
	case "read":
		return gets(args)
	case "thread":
		return threads(args)
	case "search":
		return c.searches(ctx, args)
	}
	return nil
}

// tell says a sentence to the person.
func (c *conversation) tell(s string) {
	for _, l := range screen.Words(screen.Visible(s), c.look().Width) {
		fmt.Fprintln(c.Stdout, l)
	}
}

// command makes a command string.
func command(tokens ...string) string { return discovery.JoinCommand(tokens) }

// resultOf runs a command and returns what it returned. If it fails, the person has been told.
func resultOf[R any](ctx context.Context, c *conversation, line string) (result R, ok bool) {
	a, ok := c.ask(ctx, line)
	if ok {
		result, ok = a.Result.(R)
	}
	return result, ok
}

// ask runs a command whose answer is shown otherwise. If it fails, the person has been told.
func (c *conversation) ask(ctx context.Context, line string) (a gateway.Answer, ok bool) {
	if a = c.do(ctx, line); !a.Success() {
		c.show(a)
		return a, false
	}
	a.Delivered()
	c.complete.note(a)
	c.status = 0
	return a, true
}

// message is one message, and its account. If it fails, the person has been told.
func (c *conversation) message(ctx context.Context, id, chars string) (m *commands.MessageDetail, account string, ok bool) {
	r, ok := resultOf[*commands.MailGetResult](ctx, c, command("mail", "get", "--chars", chars, id))
	if !ok || len(r.Details()) != 1 {
		return nil, "", false
	}
	return r.Details()[0], r.Account, true
}

// view runs a command and shows its answer, with a pager where it is longer than the window.
func (c *conversation) view(ctx context.Context, line string) gateway.Answer {
	a, ok := c.ask(ctx, line)
	if ok {
		c.pager(ctx, c.look().Render(a))
	}
	return a
}

// pager shows text that may be longer than the window: with the program that PAGER names, else
// a page at a time.
func (c *conversation) pager(ctx context.Context, text string) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	_, height := terminal.Size(c.Stdout)
	if len(lines) < height { // the prompt has the last one
		_, _ = io.WriteString(c.Stdout, text)
		return
	}
	if argv, err := gateway.Tokenize(c.Getenv("PAGER")); err == nil && len(argv) > 0 {
		cmd := exec.Command(argv[0], argv[1:]...)
		if cmd.Env = os.Environ(); c.Getenv("LESS") == "" {
			cmd.Env = append(cmd.Env, "LESS=FRX")
		}
		if c.lend(cmd, strings.NewReader(text)) == nil {
			return
		}
	}
	c.page(ctx, lines)
}

// all adds to a list's words that it is of all accounts, where there are several and none is named.
func (c *conversation) all(ctx context.Context, args []string) []string {
	if !AsksPage(args) && c.several(ctx) && !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--account") }) {
		return append([]string{"--account", "all"}, args...)
	}
	return args
}

// lists lists as many messages as the first word says, else n; where that is empty, as many as the
// command does by itself.
func (c *conversation) lists(ctx context.Context, n string, args []string) []string {
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		n, args = args[0], args[1:]
	}
	if args = c.all(ctx, args); n != "" {
		args = append([]string{"--limit", n}, args...)
	}
	return append([]string{"mail", "list"}, args...)
}

func (c *conversation) inbox(ctx context.Context, args []string) {
	_, height := terminal.Size(c.Stdout)
	typed := "inbox"
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		if typed = command("inbox", args[0]); strings.Trim(args[0], "0123456789") != "" {
			c.status = discovery.ValidationError.ExitStatus()
			c.tell("How many messages is a number: " + c.typedAs("inbox 50") + ". " + c.typedAs("inbox --unread") + " lists what is unread, " + c.typedAs("inbox --folder Sent") + " another folder.")
			return
		}
	}
	line := command(c.lists(ctx, strconv.Itoa(min(max(height-10, 10), 100)), args)...)
	if a, ok := c.ask(ctx, line); ok {
		if !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--before") }) {
			goesOn(a, typed, "--before")
		}
		c.pager(ctx, c.look().Render(a))
	}
}

// goesOn has the next page be shown with other words: with typed, and the option that
// says where that page begins, or where its value is not for typing, with typed alone. It returns the
// command that they stand for; empty where there is no next page.
func goesOn(a gateway.Answer, typed, option string) (line string) {
	next := gateway.Member[*commands.NextAction](a)
	if next == nil {
		return ""
	}
	line = next.Arguments.Command
	tokens, err := gateway.Tokenize(line)
	at := slices.Index(tokens, option)
	if err != nil || at < 0 || at+1 >= len(tokens) {
		return ""
	}
	if option == "--before" {
		typed += " " + command(tokens[at:at+2]...)
	}
	next.Arguments.Command = typed
	return line
}

func (c *conversation) search(ctx context.Context, args []string) {
	c.next = ""
	c.found(ctx, command(c.searches(ctx, args)...))
}

func (c *conversation) more(ctx context.Context, _ []string) {
	switch {
	case c.next != "":
		c.found(ctx, c.next)
		return
	case c.Shell:
		c.tell("'more' is for the prompt, 'postern repl'; here the command at the end of a search shows its next page.")
	default:
		c.tell("The last search has no next page.")
	}
	c.status = discovery.NotFound.ExitStatus()
}

// found shows a page of a search. At the prompt 'more' shows the next one.
func (c *conversation) found(ctx context.Context, line string) {
	if a, ok := c.ask(ctx, line); ok {
		if !c.Shell {
			c.next = goesOn(a, "more", "--cursor")
		}
		c.pager(ctx, c.look().Render(a))
	}
}

func (c *conversation) searches(ctx context.Context, args []string) []string {
	return append([]string{"mail", "search"}, c.all(ctx, args)...)
}

// longest is as much of a text as a command gives at once, in characters.
const longest = "20000"

func gets(args []string) []string {
	return append([]string{"mail", "get", "--chars", longest, "--headers", "none"}, args...)
}

// reads shows messages, and marks those as read that were not.
func (c *conversation) reads(ctx context.Context, args []string) {
	r, whole := c.view(ctx, command(gets(args)...)).Result.(*commands.MailGetResult)
	if !whole {
		return
	}
	marked := 0
	for _, m := range r.Details() {
		if !isPOP3(m) && !slices.Contains(m.Flags, `\Seen`) {
			// Where nothing may be changed it stays unread, and nobody needs to be told.
			a := c.do(ctx, command("mail", "mark-read", m.ID))
			if a.Delivered(); a.Success() {
				marked++
			}
		}
	}
	if marked > 0 {
		c.tell(counted(marked, "message") + " marked as read.")
	}
}

// isPOP3 reports whether a message is in a mailbox that has neither flags nor folders.
func isPOP3(m *commands.MessageDetail) bool { return strings.HasPrefix(m.ID, "pop3:") }

func (c *conversation) thread(ctx context.Context, args []string) {
	c.view(ctx, command(threads(args)...))
}

func threads(args []string) []string {
	return append([]string{"mail", "thread", "--chars", longest}, args...)
}

func (c *conversation) trash(ctx context.Context, args []string) {
	c.runs(ctx, append([]string{"mail", "trash"}, args...))
}

// archive moves messages to the folder for the archive, which only their account knows.
func (c *conversation) archive(ctx context.Context, args []string) {
	m, account, ok := c.message(ctx, args[0], "100")
	if !ok {
		return
	}
	if isPOP3(m) { // it has no folders, and the command says what to do
		c.runs(ctx, append([]string{"mail", "move", "--to=Archive"}, args...))
		return
	}
	r, ok := resultOf[*commands.MailFoldersResult](ctx, c, command("mail", "folders", "--account", account))
	if !ok {
		return
	}
	for _, role := range []string{"archive", "all"} {
		for _, f := range r.Folders {
			if f.Role == role {
				c.runs(ctx, append([]string{"mail", "move", "--to=" + f.Name}, args...))
				return
			}
		}
	}
	c.status = discovery.NotFound.ExitStatus()
	c.tell("The account " + account + " has no folder for the archive. " + c.typedAs("mail move ID --to FOLDER") + " takes any.")
}

// runs runs a command and shows its answer.
func (c *conversation) runs(ctx context.Context, tokens []string) {
	line := command(tokens...)
	c.execute(ctx, gateway.Request{Line: line}, line)
}

// undo takes back what the person changed last. With words behind it, it is what anybody changed,
// which takes the administrator's key where that is found.
func (c *conversation) undo(ctx context.Context, args []string) {
	tokens := append([]string{"mail", "undo"}, args...)
	switch {
	case len(args) == 0:
		c.runs(ctx, append(tokens, "--by", c.Principal.Name))
		if c.status == discovery.NotFound.ExitStatus() {
			c.tell(c.typedAs("undo --since 09:00") + " takes back what anybody changed since then, agents too.")
		}
		return
	case c.Principal.Admin, !c.decidesHere():
		c.runs(ctx, tokens)
		return
	}
	if !yes(c.typed(ctx, "This takes back what anybody changed, with the administrator's key. y does it, anything else does not: ")) {
		c.status = discovery.ApprovalRequired.ExitStatus()
		c.tell("Nothing was taken back.")
		return
	}
	if admin, end, ok := c.administrator(ctx); ok {
		defer end()
		admin.runs(ctx, tokens)
		c.status = admin.status
	}
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
