package prompt

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/postern-mail/postern/cmd/postern/internal/screen"
	"github.com/postern-mail/postern/cmd/postern/internal/terminal"
	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
)

// Bounds of completion.
const (
	completionTime = 300 * time.Millisecond // how long a prompt waits for names
	maxProposals   = 200
	maxSeenIDs     = 100
)

// openWord finds the word that a line ends with, which may be in quotes that are not
// closed yet: where it begins, and what it says so far.
func openWord(line string) (start int, word string) {
	for start = len(line); start >= 0; start-- {
		before, err := gateway.Tokenize(line[:start])
		if err != nil || start > 0 && !strings.ContainsRune(" \t\r\n", rune(line[start-1])) {
			continue
		}
		for _, end := range []string{`""`, `"`, `'`} {
			if all, err := gateway.Tokenize(line + end); err == nil && len(all) == len(before)+1 {
				return start, all[len(before)]
			}
		}
	}
	return len(line), ""
}

// line proposes what the word that a line ends with may become, quoted where it
// needs quotes, and what stands before it.
func (c *Completer) line(ctx context.Context, line string) (head string, list []string) {
	start, word := openWord(line)
	head = line[:start]
	tokens, err := gateway.Tokenize(head)
	if err != nil {
		return head, nil
	}
	for _, w := range c.Propose(ctx, tokens, word) {
		list = append(list, discovery.Quote(w)+" ")
	}
	return head, list
}

// Propose returns the completions of a word that follows other ones: words of commands,
// then options, then the values of one. Each begins with the word.
func (c *Completer) Propose(ctx context.Context, tokens []string, word string) (list []string) {
	var proposals []string
	found, err := c.door.Registry.Resolve(tokens, c.door.visible)
	switch {
	case len(tokens) == 0:
		proposals = Words()
	case tokens[0] == "approve":
		return StartingWith(word, c.ids("outbox_id"))
	case tokens[0] == "write":
		return StartingWith(word, []string{"again"})
	case slices.Contains(Words(), tokens[0]):
		return StartingWith(word, c.messages(ctx))
	}
	if err != nil || found.Command == nil {
		proposals = append(proposals, c.Words(strings.Join(tokens, " "))...)
	} else if name, _, attached := strings.Cut(word, "="); attached && strings.HasPrefix(name, "--") {
		if a := option(found.Command, name); a != nil {
			for _, v := range c.values(ctx, found.Command, a, tokens) {
				proposals = append(proposals, name+"="+v)
			}
		}
	} else {
		proposals = c.arguments(ctx, found, tokens, word)
	}
	if len(tokens) == 1 && tokens[0] == "help" {
		proposals = append(proposals, Words()...)
	}
	return StartingWith(word, proposals)
}

// StartingWith are those of the proposals that begin with a word, not too many of them.
func StartingWith(word string, proposals []string) (list []string) {
	for _, p := range proposals {
		if strings.HasPrefix(p, word) && len(list) < maxProposals {
			list = append(list, p)
		}
	}
	return list
}

// Words are what may follow the words of a group.
func (c *Completer) Words(group string) []string {
	var words []string
	for _, command := range c.door.Registry.Commands() {
		rest := command.Path
		if group != "" {
			var ok bool
			if rest, ok = strings.CutPrefix(command.Path, group+" "); !ok {
				continue
			}
		}
		word, _, _ := strings.Cut(rest, " ")
		if c.door.visible(command) && !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return words
}

func option(c *discovery.Command, label string) *discovery.Argument {
	for _, a := range c.Arguments() {
		if !a.Positional && (a.Label() == label || a.Short != "" && "-"+a.Short == label) {
			return a
		}
	}
	return nil
}

// arguments are the values of the option that is open, else the options that are not
// given yet and the values of a positional.
func (c *Completer) arguments(ctx context.Context, found discovery.Resolved, tokens []string, word string) []string {
	if c.isHelp(found.Command) {
		return c.Words(strings.Join(found.Rest, " "))
	}
	if n := len(found.Rest); n > 0 {
		if a := option(found.Command, found.Rest[n-1]); a != nil && a.Kind != discovery.KindFlag {
			return c.values(ctx, found.Command, a, tokens)
		}
	}
	var list []string
	for _, a := range found.Command.Arguments() {
		if a.Positional && word == "" && (len(found.Rest) == 0 || a.Kind == discovery.KindArray) {
			// What has to be named comes before what may be added.
			if known := c.values(ctx, found.Command, a, tokens); len(known) > 0 {
				return known
			}
		}
		switch given := slices.ContainsFunc(found.Rest, func(t string) bool { return t == a.Label() || strings.HasPrefix(t, a.Label()+"=") }); {
		case a.Positional && !strings.HasPrefix(word, "-"):
			list = append(list, c.values(ctx, found.Command, a, tokens)...)
		case !a.Positional && (!given || a.Kind == discovery.KindArray):
			list = append(list, a.Label())
		}
	}
	return list
}

func (c *Completer) isHelp(command *discovery.Command) bool {
	return command.Path == "help" || command.Path == "schema"
}

// values are the known values of an argument.
func (c *Completer) values(ctx context.Context, command *discovery.Command, a *discovery.Argument, tokens []string) []string {
	transfers := command.Path == "mail copy" || command.Path == "mail move"
	switch group, _, _ := strings.Cut(command.Path, " "); {
	case len(a.Enum) > 0:
		return a.Enum
	case a.Kind == discovery.KindBoolean:
		return []string{"true", "false"}
	case a.Name == "account" || a.Name == "to-account" || a.Name == "name" && group == "account" && command.Path != "account add":
		return c.accounts(ctx)
	case a.Name == "folder" || a.Name == "to" && transfers:
		return c.folders(accountIn(tokens))
	case a.Name == "id" && group == "outbox":
		return c.ids("outbox_id")
	case a.Name == "id", group == "mail" && slices.Contains([]string{"reply-to", "forward", "attach-from", "append-to", "draft"}, a.Name):
		return c.messages(ctx)
	}
	return nil
}

// accountIn is the account that the line names so far.
func accountIn(tokens []string) string {
	for i, t := range tokens {
		if name, ok := strings.CutPrefix(t, "--account="); ok {
			return name
		}
		if t == "--account" && i+1 < len(tokens) {
			return tokens[i+1]
		}
	}
	return ""
}

// files proposes what the last of several file names in a line may become. One that needs quotes
// there, or that would not be printed as it is, is not proposed.
func files(line string) (head string, list []string) {
	word := strings.TrimLeft(line[strings.LastIndex(line, ",")+1:], " ")
	dir, base := filepath.Split(word)
	ctx, cancel := context.WithTimeout(context.Background(), completionTime)
	defer cancel()
	entries, _ := terminal.Await(ctx, func() ([]os.DirEntry, error) { return os.ReadDir(cmp.Or(atHome(dir), ".")) })
	for _, e := range entries {
		name := e.Name()
		hidden := base == "" && name[0] == '.' || strings.ContainsAny(name, `,"`) || screen.Visible(name) != name
		if hidden || !strings.HasPrefix(name, base) || len(list) == maxProposals {
			continue
		}
		if e.IsDir() {
			name += "/"
		}
		list = append(list, dir+name)
	}
	return strings.TrimSuffix(line, word), list
}

func (c *Completer) accounts(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	list, err := terminal.Await(ctx, func() ([]string, error) { return c.door.Accounts(ctx) })
	if err != nil {
		return nil
	}
	return list
}

// Completer proposes completions of a word of a command: from the registry, the accounts,
// and the names in earlier answers. It is safe for concurrent use.
type Completer struct {
	door Door

	mu      sync.Mutex
	named   map[string][]string // ids, newest first, by the name of their field
	listed  map[string][]string // folders, by account
	current string              // the account of the last answer
}

// NewCompleter completes lines typed at a door.
func NewCompleter(d Door) *Completer {
	return &Completer{door: d, named: map[string][]string{}, listed: map[string][]string{}}
}

// note keeps the names in an answer.
func (c *Completer) note(a gateway.Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch r := a.Result.(type) {
	case *commands.MailFoldersResult:
		c.current, c.listed[r.Account] = r.Account, nil
		for _, f := range r.Folders {
			if screen.Visible(f.Name) == f.Name { // what is proposed is printed
				c.listed[r.Account] = append(c.listed[r.Account], f.Name)
			}
		}
	case *commands.MailListResult:
		c.current = cmp.Or(r.Account, c.current)
	case *commands.MailSearchResult:
		c.current = cmp.Or(r.Account, c.current)
	case *commands.MailThreadResult:
		c.current = r.Account
	case *commands.MailGetResult:
		for _, m := range r.Details() {
			c.name("message_id", m.ID)
		}
	}
	for _, m := range gateway.Member[[]commands.MessageEntry](a) {
		c.name("message_id", m.ID)
	}
	for _, m := range gateway.Member[[]commands.ThreadEntry](a) {
		c.name("message_id", m.ID)
	}
	for _, e := range gateway.Member[[]commands.OutboxEntry](a) {
		c.name("outbox_id", e.ID)
	}
	c.name("outbox_id", gateway.Member[commands.Sending](a).ID)
	c.name("outbox_id", outboxID(a)) // what waits for a person
}

// name keeps an id, the latest first.
func (c *Completer) name(field, id string) {
	if id == "" || screen.Visible(id) != id {
		return
	}
	list := slices.DeleteFunc(c.named[field], func(other string) bool { return other == id })
	c.named[field] = slices.Insert(list, 0, id)[:min(len(list)+1, maxSeenIDs)]
}

func (c *Completer) ids(field string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.named[field])
}

// messages are the ids of messages that were shown, as they are typed.
func (c *Completer) messages(ctx context.Context) []string {
	list := c.ids("message_id")
	if c.door.Short == nil || len(list) == 0 {
		return list
	}
	several := len(c.accounts(ctx)) > 1
	for i, id := range list {
		list[i] = c.door.Short(id, several)
	}
	return list
}

// folders are those of an account that an answer has listed; empty means the account of
// the last answer. No server is asked for a mere press of Tab.
func (c *Completer) folders(account string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if account == "" {
		account = c.current
	}
	if names := c.listed[account]; names != nil {
		return slices.Clone(names)
	}
	return []string{"INBOX"}
}
