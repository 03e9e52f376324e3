package discovery

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/postern-mail/postern/internal/plain"
)

// HelpArgs are the arguments of the reserved command help.
type HelpArgs struct {
	Command []string `json:"command,omitempty" acli:"positional" jsonschema:"maxItems=8,maxLength=64" jsonschema_description:"Words of a command or group; the overview if left out"`
}

// HelpResult answers help: the overview and a group have commands, a command has
// arguments (002 section 6.2).
type HelpResult struct {
	Command     string         `json:"command,omitempty"`
	Description string         `json:"description"`
	Effect      string         `json:"effect,omitempty" jsonschema:"enum=meta,enum=read,enum=state,enum=flag,enum=write,enum=send,enum=admin"` // what a command can change
	Commands    []CommandHelp  `json:"commands,omitzero"`
	Arguments   []ArgumentHelp `json:"arguments,omitzero"`
	Usage       string         `json:"usage"`
	Examples    []string       `json:"examples"`
}

// CommandHelp is a line in a list of commands.
type CommandHelp struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// ArgumentHelp is everything binding will hold an argument to.
type ArgumentHelp struct {
	Name        string      `json:"name"`
	Short       string      `json:"short,omitempty"`
	Type        Kind        `json:"type"`
	Items       Kind        `json:"items,omitempty"`
	Required    bool        `json:"required,omitempty"`
	Default     any         `json:"default,omitempty"`
	Enum        []string    `json:"enum,omitempty"`
	Minimum     json.Number `json:"minimum,omitempty" jsonschema:"type=number"`
	Maximum     json.Number `json:"maximum,omitempty" jsonschema:"type=number"`
	MinLength   *uint64     `json:"min_length,omitempty"`
	MaxLength   *uint64     `json:"max_length,omitempty"`
	MinItems    *uint64     `json:"min_items,omitempty"`
	MaxItems    *uint64     `json:"max_items,omitempty"`
	Pattern     string      `json:"pattern,omitempty"`
	Requires    string      `json:"requires,omitempty"`
	Description string      `json:"description"`
	Examples    []string    `json:"examples,omitempty"`
}

const rootUsage = "<command> [subcommand] [arguments] [options]"

func newHelp(r *Registry) *Command {
	return New(Spec{
		Path:     "help",
		Summary:  "This page, or one command's arguments",
		Effect:   Meta,
		Examples: []string{"help", "help version"},
	}, func(_ context.Context, call *Call, args *HelpArgs) (HelpResult, error) {
		path := strings.Join(args.Command, " ")
		switch {
		case path == "":
			return r.rootHelp(call.Visible), nil
		case r.visibleCommand(path, call.Visible) != nil:
			return r.byPath[path].Help(), nil
		case r.groupVisible(path, call.Visible):
			return r.groupHelp(path, call.Visible), nil
		}
		return HelpResult{}, r.notFound(args.Command, call.Visible)
	})
}

// rootHelp lists the first words only, a group with its verbs: an agent reads this
// page at the start of every session, and guesses well what a verb does.
func (r *Registry) rootHelp(visible func(*Command) bool) HelpResult {
	h := HelpResult{Description: r.info.Description, Commands: []CommandHelp{}, Usage: rootUsage, Examples: []string{}}
	verbs := map[string][]string{}
	for _, c := range r.commands {
		if !visible(c) {
			continue
		}
		word, rest, grouped := strings.Cut(c.Path, " ")
		if verbs[word] == nil {
			h.Commands = append(h.Commands, CommandHelp{word, plain.Clip(c.Summary, 100)})
			verbs[word] = []string{}
		}
		verb, _, _ := strings.Cut(rest, " ")
		if grouped && !slices.Contains(verbs[word], verb) {
			verbs[word] = append(verbs[word], verb)
		}
	}
	for i, e := range h.Commands {
		if list := verbs[e.Name]; len(list) > 0 {
			h.Commands[i].Description = strings.Join(list, " ")
		}
	}
	for _, recipe := range r.info.Recipes {
		if found, err := r.Resolve(strings.Fields(recipe), visible); err == nil && found.Command != nil && visible(found.Command) {
			h.Examples = append(h.Examples, recipe)
		}
	}
	others := slices.DeleteFunc(slices.Clone(h.Commands), func(c CommandHelp) bool { return isExtension(c.Name) })
	if n := len(h.Commands) - len(others); n > maxExtensions {
		h.Commands = append(others, CommandHelp{"x-…", fmt.Sprintf("%d extensions; 'version' lists them", n)})
	}
	return h
}

// maxExtensions is how many extensions the overview names.
const maxExtensions = 20

// isExtension reports whether a command's first word is that of an extension (002
// section 9.1).
func isExtension(word string) bool { return strings.HasPrefix(word, "x-") }

// Extension is the name of the extension that the command is of; empty for none.
func (c *Command) Extension() string {
	if word, _, _ := strings.Cut(c.Path, " "); isExtension(word) {
		return word
	}
	return ""
}

func (r *Registry) groupHelp(group string, visible func(*Command) bool) HelpResult {
	h := HelpResult{Command: group, Description: r.info.Groups[group], Commands: []CommandHelp{}, Usage: group + " <subcommand> [options]", Examples: []string{}}
	for _, c := range r.commands {
		if visible(c) && under(c.Path, group) {
			h.Commands = append(h.Commands, CommandHelp{c.Path, c.Summary})
			h.Examples = append(h.Examples, c.Examples[0])
		}
	}
	h.Examples = h.Examples[:min(3, len(h.Examples))]
	return h
}

// Help is what the command help says of a command.
func (c *Command) Help() HelpResult {
	h := HelpResult{Command: c.Path, Description: c.Summary + ".", Effect: c.Effect.String(), Arguments: []ArgumentHelp{}, Usage: c.Usage(), Examples: c.Examples}
	if c.Details != "" {
		h.Description += " " + c.Details
	}
	for _, a := range c.args.list {
		e := ArgumentHelp{Name: a.Label(), Type: a.Kind, Items: a.Item, Required: a.Required, Default: a.Default, Enum: a.Enum,
			Minimum: a.Minimum, Maximum: a.Maximum, MinLength: a.MinLength, MaxLength: a.MaxLength,
			MinItems: a.MinItems, MaxItems: a.MaxItems, Description: a.Description, Examples: a.Examples}
		if a.Short != "" {
			e.Short = "-" + a.Short
		}
		if a.Requires != "" {
			e.Requires = "--" + a.Requires
		}
		if a.Pattern != nil {
			e.Pattern = a.Pattern.String()
		}
		h.Arguments = append(h.Arguments, e)
	}
	return h
}

// Usage is the command's form in one line.
func (c *Command) Usage() string {
	var b strings.Builder
	b.WriteString(c.Path)
	for _, a := range c.args.positionals {
		form := "<" + a.Name + ">"
		if a.Kind == KindArray {
			form += "…"
		}
		if !a.Required {
			form = "[" + form + "]"
		}
		b.WriteString(" " + form)
	}
	for _, a := range c.args.list {
		if a.Required && !a.Positional {
			fmt.Fprintf(&b, " --%s <%s>", a.Name, a.Kind)
		}
	}
	b.WriteString(" [options]")
	return b.String()
}

// VersionResult answers version (002 section 6.4).
type VersionResult struct {
	ACLIVersion    string         `json:"acli_version"`
	Implementation Implementation `json:"implementation"`
	Capabilities   Capabilities   `json:"capabilities"`
}

// Implementation names the program behind the server.
type Implementation struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Capabilities are the first words of the visible commands.
type Capabilities struct {
	Commands   []string `json:"commands"`
	Extensions []string `json:"extensions"`
}

// ACLIVersion is the version of the protocol document this implements.
const ACLIVersion = "0.1.0"

// VersionArgs are the arguments of the reserved command version: none.
type VersionArgs struct{}

func newVersion(r *Registry) *Command {
	return New(Spec{
		Path:     "version",
		Summary:  "Protocol and program version",
		Effect:   Meta,
		Examples: []string{"version"},
	}, func(_ context.Context, call *Call, _ *VersionArgs) (VersionResult, error) {
		v := VersionResult{ACLIVersion: ACLIVersion, Implementation: Implementation{r.info.Name, r.info.Version},
			Capabilities: Capabilities{Commands: []string{}, Extensions: []string{}}}
		for _, c := range r.commands {
			word, _, _ := strings.Cut(c.Path, " ")
			if !call.Visible(c) || slices.Contains(v.Capabilities.Commands, word) || slices.Contains(v.Capabilities.Extensions, word) {
				continue
			}
			if isExtension(word) {
				v.Capabilities.Extensions = append(v.Capabilities.Extensions, word)
			} else {
				v.Capabilities.Commands = append(v.Capabilities.Commands, word)
			}
		}
		return v, nil
	})
}
