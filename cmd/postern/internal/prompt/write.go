package prompt

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/postern-mail/postern/cmd/postern/internal/screen"
	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
)

func (c *conversation) write(ctx context.Context, args []string) {
	if len(args) > 0 && args[0] == "again" {
		c.again(ctx, args[1:])
		return
	}
	l := newLetter([]string{"mail", "send"}, "To", "Cc", "Subject", "Attach")
	l.values["To"], l.named = strings.Join(args, ", "), len(args) > 0
	if names, err := c.Accounts(ctx); err == nil && len(names) > 1 {
		l.fields = append([]string{"Account"}, l.fields...)
		l.values["Account"] = cmp.Or(c.usual(ctx), strings.Join(names, " or "))
	}
	c.compose(ctx, l, "")
}

// usual is the account that commands without --account are for.
func (c *conversation) usual(ctx context.Context) string {
	if r, ok := resultOf[*commands.MailAccountsResult](ctx, c, "mail accounts"); ok {
		return r.Default
	}
	return ""
}

// reply begins with whom the answer reaches, as the command itself would have it. An account
// for drafts alone is not told that: there the draft takes it from the message.
func (c *conversation) reply(ctx context.Context, args []string) {
	all := len(args) == 2
	if all && strings.TrimLeft(args[1], "-") != "all" {
		c.status = discovery.ValidationError.ExitStatus()
		c.tell(c.typedAs("reply ID") + " answers the sender, " + c.typedAs("reply ID all") + " everybody it reached.")
		return
	}
	m, account, ok := c.message(ctx, args[0], longest)
	if !ok {
		return
	}
	l := newLetter([]string{"mail", "send", "--reply-to", m.ID}, "To", "Cc", "Subject", "Attach")
	l.account = account
	try := []string{"mail", "reply", "--body", "x", "--dry-run", m.ID}
	if to := m.AnswersTo; to != "" {
		c.tell("Its sender asks that answers go elsewhere, to " + screen.Line(to) + ". The answer is to that address unless you change To.")
		try = append(try, "--to="+to)
	}
	if c.mode(ctx, l) == "draft" {
		c.tell("The account " + l.account + " allows drafts, and no sending. An empty To is whom the message says.")
		if l.command[1] = "draft"; all {
			l.command = append(l.command, "--all")
		}
	} else if dry, ok := resultOf[*commands.MailSendResult](ctx, c, command(try...)); ok {
		to := dry.Recipients
		l.values["To"], l.values["Subject"] = strings.Join(to, ", "), dry.Subject
		if all {
			if dry, ok = resultOf[*commands.MailSendResult](ctx, c, command(append(try, "--all")...)); !ok {
				return
			}
			l.values["Cc"] = strings.Join(slices.DeleteFunc(dry.Recipients, func(a string) bool { return slices.Contains(to, a) }), ", ")
		}
	} else {
		return
	}
	l.quoted = quotation(m)
	l.text = "\n" + l.quoted + "\n"
	c.compose(ctx, l, "")
}

// mode is what the account of a letter allows; empty where that cannot be told.
func (c *conversation) mode(ctx context.Context, l *letter) string {
	r, ok := resultOf[*commands.MailAccountsResult](ctx, c, "mail accounts")
	if !ok {
		return ""
	}
	account := cmp.Or(l.values["Account"], l.account, r.Default)
	for _, a := range r.Accounts {
		if a.ID == account || len(r.Accounts) == 1 {
			return string(a.Mode)
		}
	}
	return ""
}

// sends says what a yes does to a letter, which may need the administrator's word.
func (c *conversation) sends(ctx context.Context, l *letter) string {
	switch mode := c.mode(ctx, l); {
	case mode == "approve" && c.decidesHere():
		return "y shows it for your approval"
	case mode == "approve":
		return "y has it wait for the administrator's approval"
	case mode == "reply" && !c.decidesHere():
		return "y sends it, or has it wait for the administrator's approval"
	}
	return "y sends it"
}

// modeline is what has an editor take a line of a file for its own settings.
var modeline = regexp.MustCompile(`(^|\s)([vV]im?|ex)([<=>]?\d*):`)

// quotation is a message as an answer quotes it. Nothing in it steers an editor or a terminal.
func quotation(m *commands.MessageDetail) string {
	head := screen.Line(m.From) + " wrote:"
	if date, err := time.Parse(time.RFC3339, m.Date); err == nil {
		head = "On " + date.Format("2 January 2006 at 15:04") + ", " + head // as 'mail reply --quote' has it
	}
	lines := []string{head}
	for line := range strings.SplitSeq(strings.TrimRight(m.BodyText, "\n"), "\n") {
		line = strings.Map(func(r rune) rune {
			if unicode.IsControl(r) && r != '\t' {
				return -1
			}
			return r
		}, modeline.ReplaceAllString(line, "$1$2$3 :"))
		lines = append(lines, strings.TrimRight("> "+line, " "))
	}
	if m.Truncated {
		lines = append(lines, "> [...]")
	}
	return strings.Join(lines, "\n")
}

func (c *conversation) forward(ctx context.Context, args []string) {
	m, account, ok := c.message(ctx, args[0], "100")
	if !ok {
		return
	}
	l := newLetter([]string{"mail", "forward", m.ID}, "To", "Cc", "Attach")
	l.values["To"], l.named, l.account = strings.Join(args[1:], ", "), len(args) > 1, account
	l.below = "Below it follows: " + m.Subject + ", from " + m.From + "."
	c.compose(ctx, l, "")
}

// compose has the person write a letter, and sends it when they say so. What was written is
// kept in a file until it has left, and the person is told where. dir is where one was kept
// that is taken up again; empty for a new one.
func (c *conversation) compose(ctx context.Context, l *letter, dir string) {
	var err error
	given, edits := "", dir == ""
	if edits {
		given = l.format()
		if dir, err = letterDir(c.Getenv); err == nil {
			err = os.WriteFile(filepath.Join(dir, letterFile), []byte(given), 0o600)
		}
	}
	file := filepath.Join(dir, letterFile)
	drop := func() { _ = os.RemoveAll(dir) }
	if err != nil {
		drop()
		c.status = discovery.ExecutionError.ExitStatus()
		c.tell("The letter cannot be kept anywhere: " + err.Error())
		return
	}
	keep := func(s string) {
		c.tell(s + " What you wrote is in:")
		fmt.Fprintln(c.Stdout, "  "+file)
		if l.keep(dir, s) == nil {
			c.tell(c.typedAs("write again") + " takes it up.")
		}
	}
	for {
		if edits {
			err = c.edit(ctx, l, file)
		}
		text, unread := os.ReadFile(file)
		left, _ := os.ReadDir(dir) // an editor that was killed may leave a file of its own
		same := unread == nil && string(text) == given && len(left) == 1
		switch {
		case errors.Is(err, errGivenUp) && same:
			c.tell("Nothing was sent.")
			drop()
			return
		case errors.Is(err, errGivenUp):
			c.status = discovery.ApprovalRequired.ExitStatus()
			keep("It was not sent.")
			return
		case err != nil:
			c.status = discovery.ExecutionError.ExitStatus()
			c.tell("The editor failed: " + err.Error() + ". VISUAL or EDITOR names another one.")
			if same {
				drop()
			} else {
				keep("It was not sent.")
			}
			return
		case errors.Is(unread, fs.ErrNotExist), unread == nil && len(bytes.TrimSpace(text)) == 0:
			c.tell("Nothing was written, and nothing was sent.")
			drop()
			return
		}
		question, may := "e edits it, d drafts it, t throws it away, Enter keeps the file: ", "edt"
		if same = same && (l.below == "" || l.values["To"] == ""); same { // the editor may have gone on without us
			question, may = "Nothing was written yet. e edits it, Enter drops it: ", "e"
		} else {
			if unread == nil {
				unread = l.parse(string(text))
			}
			if unread != nil {
				c.tell("It cannot be read: " + unread.Error() + ".")
				question, may = "e edits it, t throws it away, Enter keeps the file: ", "et"
			} else if c.summarize(l); !l.drafts() {
				question, may = c.sends(ctx, l)+", "+question, may+"y"
			}
		}
		answer := strings.ToLower(strings.TrimSpace(c.typed(ctx, question)))
		if yes(answer) {
			answer = "y"
		}
		known := len(answer) == 1 && strings.Contains(may, answer)
		edits = answer == "e"
		switch {
		case edits:
		case known && answer == "t":
			if yes(c.typed(ctx, "Throw away what you wrote, for good? y does, anything else goes back: ")) {
				c.status = 0
				c.tell("It was thrown away, and not sent.")
				drop()
				return
			}
		case known:
			switch c.post(ctx, l, answer == "d") {
			case safe:
				drop()
				return
			case perhaps:
				keep("It may have left: look among what was sent, or ask the recipients, before you send it again.")
				return
			}
		case answer != "" && answer != "n" && answer != "no":
			c.tell("That is no answer, and nothing was sent.")
		case same:
			if now, err := os.ReadFile(file); err == nil && string(now) == given {
				c.tell("Nothing was sent.")
				drop()
				return
			}
		default:
			c.status = discovery.ApprovalRequired.ExitStatus()
			keep("It was not sent.")
			return
		}
	}
}

// The files of a letter in its directory.
const (
	letterFile = "letter.txt"
	keptFile   = "kept.json" // there while nobody is at work on the letter
)

// typedAs is a word of ours in quotes, as it is typed here.
func (c *conversation) typedAs(line string) string {
	if c.Shell {
		line = "postern " + line
	}
	return "'" + line + "'"
}

// summarize says what would leave.
func (c *conversation) summarize(l *letter) {
	for _, f := range l.fields {
		if v := l.values[f]; v != "" {
			c.tell(f + ": " + v)
		}
	}
	lines, head := 0, strings.SplitN(l.quoted, "\n", 2)[0]
	for line := range strings.SplitSeq(l.text, "\n") {
		if line = strings.TrimSpace(line); line != "" && line != head && line[0] != '>' {
			lines++
		}
	}
	c.tell(strings.TrimSpace(counted(lines, "line") + " of text. " + l.below))
}

// outcome is what became of a letter.
type outcome int

const (
	unsent  outcome = iota
	safe            // it was accepted, waits in the outbox, or is a draft
	perhaps         // it may have left
)

// post sends a letter, or keeps it as a draft.
func (c *conversation) post(ctx context.Context, l *letter, draft bool) outcome {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	send := *l
	switch send.command = slices.Clone(l.command); {
	case draft && l.command[1] == "forward":
		send.command = []string{"mail", "draft", "--forward", l.command[2]}
	case draft:
		send.command[1] = "draft"
	}
	var extra []string
	if a := l.values["Account"]; a != "" {
		extra = append(extra, "--account", a)
	}
	tokens, remove, err := send.tokens(ctx, c.Stage, extra...)
	defer remove()
	// A text that is too long for a command is a file of its own.
	if err == nil && len(command(tokens...)) > gateway.MaxCommandChars*3/4 {
		var name string
		var gone func()
		if name, gone, err = c.stageText(ctx, l.text); err == nil {
			defer gone()
			tokens[len(tokens)-1] = "--body-file=" + name
		}
	}
	if err != nil {
		c.tell("It cannot be sent: " + err.Error() + ".")
		return unsent
	}
	a := c.execute(ctx, gateway.Request{Tokens: tokens}, command(tokens...))
	id := outboxID(a)
	switch {
	case a.Success():
		return safe
	case draft:
		return unsent
	case id == "" && (a.Code == discovery.Timeout || a.Code == discovery.ExecutionError):
		return perhaps
	case id == "" && a.Code == discovery.ApprovalRequired:
		return safe
	case id == "":
		return unsent
	}
	switch c.stateOf(context.WithoutCancel(ctx), id) {
	case mail.OutboxAccepted, mail.OutboxWaiting:
		return safe
	case mail.OutboxRefused, mail.OutboxRejected, mail.OutboxCancelled:
		return unsent
	}
	return perhaps
}

// stageText stages a text that has no file yet.
func (c *conversation) stageText(ctx context.Context, text string) (name string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "postern-text-")
	if err != nil {
		return "", nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "text.txt")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return "", nil, err
	}
	return c.Stage(ctx, file)
}

// editor is what the person writes with; empty for the prompt.
func (c *conversation) editor() string { return cmp.Or(c.Getenv("VISUAL"), c.Getenv("EDITOR")) }

// edit has the person write in the editor of VISUAL or EDITOR, or without one at the prompt.
func (c *conversation) edit(ctx context.Context, l *letter, file string) error {
	editor := c.editor()
	if editor == "" {
		return c.typedLetter(ctx, l, file)
	}
	argv, err := gateway.Tokenize(editor)
	if program, found := exec.LookPath(editor); found == nil {
		argv, err = []string{program}, nil // its name may have spaces and backslashes
	}
	if err != nil || len(argv) == 0 {
		return errors.New("its name cannot be read")
	}
	return c.lend(exec.Command(argv[0], append(argv[1:], file)...), c.Stdin)
}

// lend runs a program on the terminal, which is then as it was before the prompt.
func (c *conversation) lend(cmd *exec.Cmd, in io.Reader) error {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, c.Stdout, c.Stderr
	defer c.prompt.Aside()()
	return cmd.Run()
}

// typedField asks for a field, whose value is kept where nothing is typed.
func (c *conversation) typedField(ctx context.Context, name string, value *string) error {
	before := ""
	if *value != "" {
		before = " [" + screen.Line(*value) + ", - for none]"
	}
	var with aids
	if name == "Attach" {
		with.propose = files
	}
	typed, err := c.prompt.Prompt(ctx, name+before+": ", with)
	if typed = strings.TrimSpace(typed); typed == "-" {
		*value = ""
	} else if typed != "" {
		*value = typed
	}
	return err
}

// errGivenUp ends a letter at one of its fields, with Ctrl-C or Ctrl-D.
var errGivenUp = errors.New("the letter was given up")

// typedLetter asks for a letter line by line. What was typed is kept also where it is not ended.
func (c *conversation) typedLetter(ctx context.Context, l *letter, file string) error {
	c.tell("Neither VISUAL nor EDITOR names an editor, so you type the letter here.")
	for i := 0; i < len(l.fields); i++ {
		f := l.fields[i]
		value := l.values[f]
		if f == "To" && l.named {
			l.named = false
		} else if err := c.typedField(ctx, f, &value); err != nil {
			fmt.Fprintln(c.Stdout)
			return cmp.Or(os.WriteFile(file, []byte(l.format()), 0o600), errGivenUp)
		}
		if err := check(f, value); err != nil {
			c.tell(f + ": " + err.Error() + ".")
			i-- // it is asked for again
			continue
		}
		l.values[f] = value
	}
	above := strings.Trim(strings.TrimSuffix(strings.TrimRight(l.text, "\n"), l.quoted), "\n")
	if above != "" {
		above += "\n"
		c.tell("What you type goes below what you wrote.")
	}
	c.tell("Type the text; a line with a dot alone ends it.")
	var b strings.Builder
	for {
		line, err := c.read(ctx, "> ")
		if err != nil {
			fmt.Fprintln(c.Stdout)
		}
		if err != nil || line == "." {
			break
		}
		b.WriteString(line + "\n")
	}
	l.text = above + b.String()
	if l.quoted != "" {
		l.text += "\n" + l.quoted + "\n"
	}
	return os.WriteFile(file, []byte(l.format()), 0o600)
}
