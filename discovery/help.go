package discovery

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/postern-mail/postern/internal/plain"
)

// HelpArgs are the arguments of the reserved command help.
type HelpArgs struct {
	Command []string `json:"command,omitempty" acli:"positional,value=COMMAND" jsonschema:"maxItems=8,maxLength=64" jsonschema_description:"Words of a command or group"`
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

// CommandHelp is a command in a list.
type CommandHelp struct {
	Name        string `json:"name"`
	Usage       string `json:"usage"`
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

	global bool // told once, in the root help
}

// helpBrief is the compact help. Bounds and patterns are in schema.
type helpBrief struct {
	Command     string          `json:"command,omitempty"`
	Description string          `json:"description"`
	Effect      string          `json:"effect,omitempty" jsonschema:"enum=meta,enum=read,enum=state,enum=flag,enum=write,enum=send,enum=admin"`
	Commands    []commandBrief  `json:"commands,omitzero"`
	Arguments   []argumentBrief `json:"arguments,omitzero"`
	Usage       string          `json:"usage,omitempty"` // a command's is what its arguments say
	Examples    []string        `json:"examples"`
}

// commandBrief has a command's signature before what it does.
type commandBrief struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

type argumentBrief struct {
	Name        string   `json:"name"`
	Short       string   `json:"short,omitempty"`
	Type        Kind     `json:"type"`
	Required    bool     `json:"required,omitempty"`
	Default     any      `json:"default,omitempty"`
	Enum        []string `json:"enum,omitempty"`
	Description string   `json:"description"`
}

// Brief is the help that is enough to write a command.
func (h HelpResult) Brief() helpBrief {
	b := helpBrief{Command: h.Command, Description: h.Description, Effect: h.Effect, Examples: h.Examples}
	if h.Arguments == nil {
		b.Usage, b.Commands = h.Usage, []commandBrief{}
	} else {
		b.Arguments = []argumentBrief{}
	}
	for _, c := range h.Commands {
		line := c.Description
		if signature := strings.TrimSpace(strings.TrimPrefix(c.Usage, c.Name)); signature != "" {
			line = signature + ": " + line
		}
		if isExtension(c.Name) {
			line = plain.Clip(line, maxExtensionLine)
		}
		b.Commands = append(b.Commands, commandBrief{c.Name, line})
	}
	for _, a := range h.Arguments {
		if !a.global {
			b.Arguments = append(b.Arguments, argumentBrief{a.Name, a.Short, a.Type, a.Required, a.Default, a.Enum, a.Description})
		}
	}
	return b
}

const rootUsage = "<command> [arguments] [options]"

func newHelp(r *Registry) *Command {
	return New(Spec{
		Path:     "help",
		Summary:  "This page, or one",
		Effect:   Meta,
		Examples: []string{"help", "help version"},
	}, func(ctx context.Context, call *Call, args *HelpArgs) (h HelpResult, err error) {
		path := strings.Join(args.Command, " ")
		switch {
		case path == "":
			h = r.rootHelp(call.Visible)
		case r.visibleCommand(path, call.Visible) != nil:
			h = r.byPath[path].Help()
		case r.groupVisible(path, call.Visible):
			h = r.groupHelp(path, call.Visible)
		default:
			return h, r.notFound("help ", args.Command, call.Visible)
		}
		h.Examples = r.Here(ctx, "", h.Examples)
		return h, nil
	})
}

// Here returns the examples as they run for the caller of ctx (Info.Here), on this account unless
// that is empty.
func (r *Registry) Here(ctx context.Context, account string, examples []string) []string {
	if r.info.Here == nil || len(examples) == 0 {
		return examples
	}
	complete, here := r.info.Here(ctx, account), slices.Clone(examples)
	for i, e := range here {
		if found, err := r.Resolve(strings.Fields(e), func(*Command) bool { return true }); err == nil && found.Command != nil {
			here[i] = complete(found.Command, e)
		}
	}
	return here
}

// rootHelp has every command: an agent reads this page at the start of a session, and
// needs no other for an ordinary errand.
func (r *Registry) rootHelp(visible func(*Command) bool) HelpResult {
	h := HelpResult{Description: r.info.Description, Commands: r.lines("", visible), Usage: cmp.Or(r.info.Usage, rootUsage), Examples: []string{}}
	for _, recipe := range r.info.Recipes {
		if found, err := r.Resolve(strings.Fields(recipe), visible); err == nil && found.Command != nil && visible(found.Command) {
			h.Examples = append(h.Examples, recipe)
		}
	}
	others := slices.DeleteFunc(slices.Clone(h.Commands), func(c CommandHelp) bool { return isExtension(c.Name) })
	if n := len(h.Commands) - len(others); n > maxExtensions {
		h.Commands = append(others, CommandHelp{"x-…", "x-…", fmt.Sprintf("%d commands of extensions; 'version' lists these", n)})
	}
	return h
}

func (r *Registry) groupHelp(group string, visible func(*Command) bool) HelpResult {
	h := HelpResult{Command: group, Description: r.info.Groups[group], Commands: r.lines(group, visible), Usage: group + " <subcommand> [arguments] [options]", Examples: []string{}}
	for _, c := range h.Commands[:min(3, len(h.Commands))] {
		h.Examples = append(h.Examples, r.byPath[c.Name].Examples[0])
	}
	return h
}

// lines are the commands of a group, or all.
func (r *Registry) lines(group string, visible func(*Command) bool) []CommandHelp {
	list := []CommandHelp{}
	for _, c := range r.commands {
		if visible(c) && (group == "" || under(c.Path, group)) {
			list = append(list, CommandHelp{c.Path, c.Usage(), c.Summary})
		}
	}
	return list
}

const (
	maxExtensions    = 20  // commands of extensions that the root help names
	maxExtensionLine = 160 // characters of one's compact line
)

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

// Help is what the command help says of a command.
func (c *Command) Help() HelpResult {
	h := HelpResult{Command: c.Path, Description: c.Summary + ".", Effect: c.Effect.String(), Arguments: []ArgumentHelp{}, Usage: c.Usage(), Examples: c.Examples}
	if c.Details != "" {
		h.Description += " " + c.Details
	}
	for _, a := range c.args().list {
		e := ArgumentHelp{Name: a.Label(), Type: a.Kind, Items: a.Item, Required: a.Required, Default: a.Default, Enum: a.Enum,
			Minimum: a.Minimum, Maximum: a.Maximum, MinLength: a.MinLength, MaxLength: a.MaxLength,
			MinItems: a.MinItems, MaxItems: a.MaxItems, Description: a.Description, Examples: a.Examples, global: a.Global}
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
		Summary:  "Versions",
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
