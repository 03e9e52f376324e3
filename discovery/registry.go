package discovery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/postern-mail/postern/internal/plain"
)

// Info is what a server says of itself in help and version.
type Info struct {
	Name        string // of the implementation
	Version     string
	Description string            // one sentence, for the root help
	Groups      map[string]string // path of a group of commands to its summary
	Recipes     []string          // commands the root help ends with; those not visible are left out
	Instead     map[string]string // words by which other documents call a command, to ours; they do not run, errors know them
	Usage       string            // how a command is written and what its words mean, for the root help

	// AdminHint tells a caller who is not the administrator, and asks about a command that is
	// the administrator's alone, how to become that. Empty says that there is no such command.
	AdminHint string

	// Here returns what completes an example of a command so that it runs as written for
	// the caller of ctx: a registry cannot know which account there is. account is the one that
	// the command was for; empty for none. It is called once for an answer. nil leaves examples
	// as they are.
	Here func(ctx context.Context, account string) (complete func(c *Command, example string) string)
}

// Registry holds the commands of a server. It does not change after NewRegistry
// and is safe for concurrent use.
type Registry struct {
	info     Info
	commands []*Command // in the order they were given, the reserved ones last
	byPath   map[string]*Command
	groups   map[string]bool
}

// NewRegistry adds the reserved commands help, schema and version to the given
// ones and checks them all, but for the arguments of those that New made; see there. The
// error names every command that has a mistake.
func NewRegistry(info Info, commands ...*Command) (*Registry, error) {
	r := &Registry{info: info, byPath: map[string]*Command{}, groups: map[string]bool{}}
	r.commands = append(slices.Clone(commands), newHelp(r), newSchema(r), newVersion(r))
	var errs []error
	for _, c := range r.commands {
		if c.err != nil {
			errs = append(errs, fmt.Errorf("command %q: %w", c.Path, c.err))
			continue
		}
		for _, path := range append([]string{c.Path}, c.Aliases...) {
			if r.byPath[path] != nil {
				errs = append(errs, fmt.Errorf("command %q: the path is taken", path))
			}
			r.byPath[path] = c
		}
	}
	for _, c := range r.commands {
		if all := c.args; c.err == nil {
			c.args = sync.OnceValue(func() *argumentSet {
				set := all()
				set.drop(func(a *Argument) bool { return a.With != "" && r.byPath[a.With] == nil })
				return set
			})
		}
	}
	for path := range r.byPath {
		for i, char := range path {
			if char == ' ' {
				r.groups[path[:i]] = true
			}
		}
	}
	for path := range r.byPath {
		if r.groups[path] {
			errs = append(errs, fmt.Errorf("command %q: other commands are below it", path))
		}
	}
	return r, errors.Join(errs...)
}

// Commands returns every command in the order of registration. The caller must
// not change the slice.
func (r *Registry) Commands() []*Command { return r.commands }

// Lookup returns the command with exactly this path or alias, or nil.
func (r *Registry) Lookup(path string) *Command { return r.byPath[path] }

// Exists reports whether path names a command or a group of commands.
func (r *Registry) Exists(path string) bool { return r.byPath[path] != nil || r.groups[path] }

// Resembles reports whether word is one of a command's words, or near to one.
func (r *Registry) Resembles(word string) bool {
	for path := range r.byPath {
		if len(Nearest(word, strings.Fields(path), 1)) > 0 {
			return true
		}
	}
	return false
}

// Resolved is what a token list names: a command and the tokens that are its
// arguments, or a group named alone.
type Resolved struct {
	Command *Command
	Path    []string // the command's words as they were written
	Rest    []string
	Group   string // path of a group, when Command is nil
}

// Resolve finds the command a token list begins with. A --help or -h among the words of a
// path counts as if it stood behind them. The error is a Fault with code
// COMMAND_NOT_FOUND whose suggestions are taken from what visible lets through.
func (r *Registry) Resolve(tokens []string, visible func(*Command) bool) (Resolved, error) {
	words, help := tokens, []string(nil)
	path, n := "", 0
	for ; n < len(words); n++ {
		if word := words[n]; word == "--help" || word == "-h" {
			words, help = slices.Delete(slices.Clone(words), n, n+1), []string{word}
			n--
			continue
		}
		next := strings.TrimPrefix(path+" "+words[n], " ")
		if strings.Contains(words[n], " ") { // "mail list" as one token is not two words
			break
		}
		if c := r.byPath[next]; c != nil {
			return Resolved{Command: c, Path: words[:n+1], Rest: append(help, words[n+1:]...)}, nil
		}
		if !r.groups[next] {
			break
		}
		path = next
	}
	switch {
	case n == len(words) && path == "" && help != nil:
		return Resolved{Command: r.byPath["help"], Path: tokens}, nil
	case n == len(words) && path != "" && r.groupVisible(path, visible):
		return Resolved{Group: path}, nil
	}
	return Resolved{}, r.notFound("", words, visible)
}

func (r *Registry) groupVisible(group string, visible func(*Command) bool) bool {
	return slices.ContainsFunc(r.commands, func(c *Command) bool { return under(c.Path, group) && visible(c) })
}

func under(path, group string) bool { return strings.HasPrefix(path, group+" ") }

// notFound suggests the commands nearest to the tokens. about is what a page about a command
// begins with; empty where the command was to be run.
func (r *Registry) notFound(about string, tokens []string, visible func(*Command) bool) *Fault {
	if len(tokens) == 0 {
		return &Fault{Code: CommandNotFound, Message: "There is no command in an empty line.",
			Hint: "Run 'help' for the available commands.", Examples: []string{"help"}}
	}
	if c := r.byPath[tokens[0]]; c != nil && visible(c) && strings.Contains(tokens[0], " ") {
		return &Fault{Code: CommandNotFound, Message: fmt.Sprintf("'%s' is given as one word.", tokens[0]),
			Hint: "Give the words of a command apart, without quotes around them.", Examples: c.Examples[:1]}
	}
	if path := r.administrators(tokens, visible); path != "" {
		return &Fault{Code: PermissionDenied, Message: fmt.Sprintf("'%s' is for the administrator alone.", path), Hint: r.info.AdminHint, Reason: "role"}
	}
	seen := slices.DeleteFunc(slices.Clone(r.commands), func(c *Command) bool { return !visible(c) })
	words := 1
	if len(tokens) > 1 && !strings.HasPrefix(tokens[1], "-") {
		words = 2
	}
	wanted := strings.Join(tokens[:words], " ")
	near, paths := r.triedFor(tokens, words, seen), make([]string, len(seen))
	for i, c := range seen {
		paths[i] = c.Path
	}
	// Of two as near, the one that changes less.
	mild := slices.SortedStableFunc(slices.Values(paths), func(a, b string) int { return int(r.byPath[a].Effect) - int(r.byPath[b].Effect) })
	group := r.groups[tokens[0]] && r.groupVisible(tokens[0], visible)
	switch {
	case len(near) > 0:
	case group && words == 2: // what they share makes no two commands alike
		var lasts []string
		for _, p := range mild {
			if under(p, tokens[0]) {
				lasts = append(lasts, p[len(tokens[0])+1:])
			}
		}
		for _, last := range Nearest(tokens[1], lasts, 3) {
			near = append(near, tokens[0]+" "+last)
		}
	default:
		near = Nearest(wanted, mild, 3)
	}
	if len(near) == 0 {
		near = r.byLastWord(tokens[:words], paths)
	}
	if len(near) == 0 && !group {
		near = Nearest(tokens[0], paths, 3)
	}
	shown := tokens[0]
	if r.groups[tokens[0]] {
		shown = wanted
	}
	f := &Fault{Code: CommandNotFound, Message: fmt.Sprintf("There is no command '%s'.", plain.Excerpt(shown, 64)),
		Hint: "Run 'help' for the available commands.", Examples: []string{"help"}}
	switch {
	case len(near) == 0 && group:
		f.Hint, f.Examples = fmt.Sprintf("Run 'help %s' for its commands.", tokens[0]), []string{"help " + tokens[0]}
	case len(near) > 0 && about != "":
		f.Hint, f.Examples = didYouMean(near, "'")+" "+f.Hint, []string{about + near[0]}
	case len(near) > 0:
		f.Hint, f.Examples = didYouMean(near, "'")+" "+f.Hint, r.byPath[near[0]].exampleWith(shown[strings.LastIndexByte(shown, ' ')+1:])
	}
	return f
}

// triedFor finds at most three commands that people try the tokens for, of which n are words.
func (r *Registry) triedFor(tokens []string, n int, commands []*Command) (found []string) {
	for n := min(len(tokens), 3); n > 0 && len(found) == 0; n-- {
		if c := r.byPath[r.info.Instead[strings.ToLower(strings.Join(tokens[:n], " "))]]; slices.Contains(commands, c) {
			found = []string{c.Path}
		}
	}
	words := tokens[:n]
	word, in := words[0], ""
	if group := Nearest(word, slices.Sorted(maps.Keys(r.groups)), 1); len(group) > 0 && len(words) > 1 {
		word, in = words[1], group[0]
	}
	for _, c := range commands {
		if (in == "" || under(c.Path, in)) && slices.Contains(c.Also, strings.ToLower(word)) && !slices.Contains(found, c.Path) && len(found) < 3 {
			found = append(found, c.Path)
		}
	}
	return found
}

// exampleWith is the command's first example that has the word, else its first.
func (c *Command) exampleWith(word string) []string {
	return c.Examples[max(0, slices.IndexFunc(c.Examples, func(example string) bool {
		return slices.ContainsFunc(strings.Fields(example), func(w string) bool { return strings.EqualFold(strings.TrimLeft(w, "-"), word) })
	})):][:1]
}

// administrators returns the command or group that the tokens begin with, where all of it is the
// administrator's and the caller is to be told; else it is empty.
func (r *Registry) administrators(tokens []string, visible func(*Command) bool) (path string) {
	for n := min(len(tokens), 3); n > 0 && !r.Exists(path); n-- {
		path = strings.Join(tokens[:n], " ")
	}
	others := func(c *Command) bool {
		return (c.Path == path || under(c.Path, path)) && (c.Effect != Admin || visible(c))
	}
	if r.info.AdminHint == "" || !r.Exists(path) || slices.ContainsFunc(r.commands, others) {
		return ""
	}
	return path
}

// byLastWord finds commands whose own word is near to one of the words written,
// for a group that was left out or wrong: "list" for "mail list".
func (r *Registry) byLastWord(words, paths []string) []string {
	var lasts []string
	of := map[string][]string{}
	for _, p := range paths {
		last := p[strings.LastIndexByte(p, ' ')+1:]
		if of[last] == nil {
			lasts = append(lasts, last)
		}
		of[last] = append(of[last], p)
	}
	var found []string
	for _, w := range words {
		for _, last := range Nearest(w, lasts, 3) {
			found = append(found, of[last]...)
		}
	}
	return found[:min(3, len(found))]
}
