package prompt

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/mail"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/postern-mail/postern/cmd/postern/internal/orderedjson"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
)

// letter is what a person writes: fields on top, an empty line, and the text.
type letter struct {
	fields []string // those it has, in order
	values map[string]string
	text   string

	command []string // what sends it, without what was written
	below   string   // what follows the text when it leaves, to be said
}

func newLetter(command []string, fields ...string) *letter {
	return &letter{fields: fields, values: map[string]string{}, command: command}
}

// format is the letter as the editor gets it.
func (l *letter) format() string {
	var b strings.Builder
	for _, f := range l.fields {
		b.WriteString(strings.TrimRight(f+": "+l.values[f], " ") + "\n")
	}
	return b.String() + "\n" + l.text
}

// parse reads what the editor left.
func (l *letter) parse(s string) error {
	head, text, _ := strings.Cut(strings.ReplaceAll(s, "\r\n", "\n"), "\n\n")
	if strings.HasPrefix(s, "\n") {
		head, text = "", s[1:]
	}
	values, last := map[string]string{}, ""
	for line := range strings.Lines(head) {
		line = strings.TrimRight(line, "\n")
		if last != "" && (strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t")) {
			values[last] += " " + strings.TrimSpace(line)
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		i := slices.IndexFunc(l.fields, func(f string) bool { return strings.EqualFold(f, strings.TrimSpace(name)) })
		if !ok || i < 0 {
			return fmt.Errorf("the line %q above the empty one is none of %s", line, strings.Join(l.fields, ", "))
		}
		if last = l.fields[i]; values[last] != "" {
			value = values[last] + ", " + value
		}
		values[last] = strings.TrimSpace(value)
	}
	l.values, l.text = values, strings.Trim(text, "\n")
	return nil
}

// addresses takes a field apart.
func addresses(value string) ([]string, error) {
	if strings.TrimSpace(value) == "" {
		return nil, nil
	}
	parsed, err := (&mail.AddressParser{}).ParseList(value)
	if err != nil {
		return nil, fmt.Errorf("%q cannot be read as addresses: put a comma between them, and a name with a comma in double quotes", value)
	}
	var list []string
	for _, a := range parsed {
		if a.Name == "" {
			list = append(list, a.Address)
		} else {
			list = append(list, `"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(a.Name)+`" <`+a.Address+`>`)
		}
	}
	return list, nil
}

// tokens is the command that sends the letter. What does not fit into a command is staged;
// remove takes it away again.
func (l *letter) tokens(ctx context.Context, stage func(context.Context, string) (string, func(), error), extra ...string) (tokens []string, remove func(), err error) {
	var removes []func()
	remove = func() {
		for _, r := range removes {
			r()
		}
	}
	tokens = slices.Concat(l.command, extra)
	for _, f := range []string{"To", "Cc", "Bcc"} {
		list, err := addresses(l.values[f])
		if err != nil {
			return nil, remove, fmt.Errorf("%s: %w", f, err)
		}
		for _, a := range list {
			tokens = append(tokens, "--"+strings.ToLower(f)+"="+strings.ReplaceAll(a, ",", `\,`))
		}
	}
	if s := l.values["Subject"]; s != "" {
		tokens = append(tokens, "--subject="+s)
	}
	if f := l.values["From"]; f != "" {
		tokens = append(tokens, "--as="+f)
	}
	for file := range strings.SplitSeq(l.values["Attach"], ",") {
		if file = strings.TrimSpace(file); file == "" {
			continue
		}
		name, gone, err := stage(ctx, atHome(file))
		if err != nil {
			return nil, remove, fmt.Errorf("attach: %w", err)
		}
		removes = append(removes, gone)
		tokens = append(tokens, "--attach="+strings.ReplaceAll(name, ",", `\,`))
	}
	return append(tokens, "--body="+l.text), remove, nil
}

// atHome is a file name in which ~ stands for the home directory.
func atHome(file string) string {
	rest, ok := strings.CutPrefix(file, "~/")
	if home, err := os.UserHomeDir(); ok && err == nil {
		return filepath.Join(home, rest)
	}
	return file
}

func (c *conversation) write(ctx context.Context, args []string) {
	l := newLetter([]string{"mail", "send"}, "To", "Cc", "Subject", "Attach")
	l.values["To"] = strings.Join(args, ", ")
	if names, err := c.Accounts(ctx); err == nil && len(names) > 1 {
		l.fields = append([]string{"Account"}, l.fields...)
		l.values["Account"] = c.usual(ctx)
	}
	c.compose(ctx, l)
}

// usual is the account that commands without --account are for.
func (c *conversation) usual(ctx context.Context) string {
	data, _ := c.data(ctx, "mail accounts --full")
	return data.Str("default_account")
}

// reply begins with whom the answer reaches, as the command itself would have it.
func (c *conversation) reply(ctx context.Context, args []string) {
	if len(args) == 2 && strings.TrimLeft(args[1], "-") != "all" {
		c.tell("'reply ID' answers the sender, 'reply ID all' everybody it reached.")
		return
	}
	data, ok := c.data(ctx, command("mail", "get", "--chars", longest, "--full", args[0]))
	if !ok || len(messagesOf(data)) != 1 {
		return
	}
	m := messagesOf(data)[0]
	id := m.Str("message_id")
	dry, ok := c.data(ctx, command("mail", "reply", "--body", "x", "--dry-run", "--full", id))
	if !ok {
		return
	}
	l := newLetter([]string{"mail", "send", "--reply-to", id}, "To", "Cc", "Subject", "Attach")
	to := dry.Strings("recipients")
	l.values["To"], l.values["Subject"] = strings.Join(to, ", "), dry.Str("subject")
	if len(args) == 2 {
		whole, ok := c.data(ctx, command("mail", "reply", "--all", "--body", "x", "--dry-run", "--full", id))
		if !ok {
			return
		}
		l.values["Cc"] = strings.Join(slices.DeleteFunc(whole.Strings("recipients"), func(a string) bool { return slices.Contains(to, a) }), ", ")
	}
	l.text = "\n" + quotation(m)
	c.compose(ctx, l)
}

// quotation is a message as an answer quotes it.
func quotation(m orderedjson.Object) string {
	day, _, _ := strings.Cut(m.Str("date"), "T")
	var b strings.Builder
	fmt.Fprintf(&b, "On %s, %s wrote:\n", day, m.Str("from"))
	for line := range strings.SplitSeq(strings.TrimRight(m.Str("body_text"), "\n"), "\n") {
		b.WriteString(strings.TrimRight("> "+line, " ") + "\n")
	}
	return b.String()
}

func (c *conversation) forward(ctx context.Context, args []string) {
	data, ok := c.data(ctx, command("mail", "get", "--chars", "100", "--full", args[0]))
	if !ok || len(messagesOf(data)) != 1 {
		return
	}
	m := messagesOf(data)[0]
	l := newLetter([]string{"mail", "forward", m.Str("message_id")}, "To", "Cc", "Attach")
	l.values["To"] = strings.Join(args[1:], ", ")
	l.below = "Below it follows: " + m.Str("subject") + ", from " + m.Str("from") + "."
	c.compose(ctx, l)
}

// compose has the person write a letter, and sends it when they say so. What was written is
// kept in a file until it has left, and the person is told where.
func (c *conversation) compose(ctx context.Context, l *letter) {
	kept := filepath.Join(cmp.Or(stateDir(c.Getenv), os.TempDir()), "letters")
	err := os.MkdirAll(kept, 0o700)
	var dir string
	if err == nil {
		dir, err = os.MkdirTemp(kept, "letter-")
	}
	if err != nil {
		c.tell("The letter cannot be kept anywhere: " + err.Error())
		return
	}
	file := filepath.Join(dir, "letter.txt")
	given, empty := l.format(), l.text
	done := func() { _ = os.RemoveAll(dir) }
	if err := os.WriteFile(file, []byte(given), 0o600); err != nil {
		done()
		c.tell("The letter cannot be kept: " + err.Error())
		return
	}
	for {
		if err := c.edit(ctx, l, file); err != nil {
			c.status = discovery.ExecutionError.ExitStatus()
			c.tell("The editor failed: " + err.Error() + ". VISUAL or EDITOR names another one.")
			done()
			return
		}
		text, err := os.ReadFile(file)
		if err != nil || len(bytes.TrimSpace(text)) == 0 {
			c.tell("Nothing was written, and nothing was sent.")
			done()
			return
		}
		if err = l.parse(string(text)); err == nil && strings.TrimSpace(l.text) == strings.TrimSpace(empty) && l.below == "" {
			c.tell("Nothing was written, and nothing was sent.")
			done()
			return
		}
		question := "y sends it, e edits it again, d keeps it as a draft, Enter keeps the file: "
		if err != nil {
			c.tell("It cannot be read: " + err.Error() + ".")
			question = "e edits it again, Enter keeps the file: "
		} else {
			c.summarize(l)
		}
		switch answer := strings.ToLower(strings.TrimSpace(c.typed(ctx, question))); {
		case answer == "e":
			continue
		case (answer == "y" || answer == "yes") && err == nil:
			if c.post(ctx, l, false) {
				done()
				return
			}
			if again := strings.ToLower(strings.TrimSpace(c.typed(ctx, "e edits it again, Enter keeps the file: "))); again == "e" {
				continue
			}
		case answer == "d" && err == nil:
			if c.post(ctx, l, true) {
				done()
				return
			}
		}
		c.status = discovery.ApprovalRequired.ExitStatus()
		c.tell("It was not sent. What you wrote is in:")
		fmt.Fprintln(c.Stdout, "  "+file)
		return
	}
}

// summarize says what would leave.
func (c *conversation) summarize(l *letter) {
	for _, f := range l.fields {
		if v := l.values[f]; v != "" {
			c.tell(f + ": " + v)
		}
	}
	c.tell(fmt.Sprintf("%s of text. %s", counted(len(strings.Split(l.text, "\n")), "line"), l.below))
}

// post sends a letter, or keeps it as a draft. It reports whether the letter is safe: it was
// accepted, waits in the outbox, or is a draft.
func (c *conversation) post(ctx context.Context, l *letter, draft bool) bool {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	send := *l
	if draft {
		send.command = slices.Clone(l.command)
		switch {
		case l.command[1] == "forward":
			send.command = []string{"mail", "draft", "--forward", l.command[2]}
		default:
			send.command[1] = "draft"
		}
	}
	var extra []string
	if a := l.values["Account"]; a != "" {
		extra = append(extra, "--account", a)
	}
	tokens, remove, err := send.tokens(ctx, c.Stage, extra...)
	defer remove()
	if err != nil {
		c.tell("It cannot be sent: " + err.Error() + ".")
		return false
	}
	// A text that is too long for a command is a file of its own.
	if len(command(tokens...)) > gateway.MaxCommandChars*3/4 {
		tokens = tokens[:len(tokens)-1]
		name, gone, err := c.stageText(ctx, l.text)
		if err != nil {
			c.tell("It cannot be sent: " + err.Error() + ".")
			return false
		}
		defer gone()
		tokens = append(tokens, "--body-file="+name)
	}
	a := c.execute(ctx, gateway.Request{Tokens: tokens}, command(tokens...))
	return a.Success() || a.Code == discovery.ApprovalRequired
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

// edit has the person write in the editor of VISUAL or EDITOR, or without one at the prompt.
func (c *conversation) edit(ctx context.Context, l *letter, file string) error {
	editor := c.Getenv("VISUAL")
	if editor == "" {
		editor = c.Getenv("EDITOR")
	}
	if editor == "" {
		return c.typedLetter(ctx, l, file)
	}
	argv, err := gateway.Tokenize(editor)
	if err != nil || len(argv) == 0 {
		return errors.New("its name cannot be read")
	}
	cmd := exec.Command(argv[0], append(argv[1:], file)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, c.Stderr
	return cmd.Run()
}

// typedLetter asks for a letter line by line.
func (c *conversation) typedLetter(ctx context.Context, l *letter, file string) error {
	quoted := strings.TrimLeft(l.text, "\n")
	for _, f := range l.fields {
		before := ""
		if v := l.values[f]; v != "" {
			before = " [" + v + "]"
		}
		value, err := c.read(ctx, f+before+": ")
		if err != nil {
			return os.WriteFile(file, nil, 0o600)
		}
		if value = strings.TrimSpace(value); value != "" {
			l.values[f] = value
		}
	}
	c.tell("Type the text; a line with a dot alone ends it.")
	var b strings.Builder
	for {
		line, err := c.read(ctx, "> ")
		if errors.Is(err, io.EOF) || line == "." {
			break
		}
		if err != nil {
			return os.WriteFile(file, nil, 0o600)
		}
		b.WriteString(line + "\n")
	}
	if strings.TrimSpace(b.String()) == "" && l.below == "" {
		return os.WriteFile(file, nil, 0o600)
	}
	l.text = b.String()
	if quoted != "" {
		l.text += "\n" + quoted
	}
	return os.WriteFile(file, []byte(l.format()), 0o600)
}
