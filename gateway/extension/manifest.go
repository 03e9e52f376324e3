package extension

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/internal/plain"
)

// Bounds of a manifest, in characters unless said otherwise.
const (
	maxManifestBytes = 32 << 10
	maxNameChars     = 64
	maxCommands      = 20
	maxArguments     = 40
	maxShortText     = 100 // summaries, values
	maxLongText      = 600 // everything else that is shown
)

// manifest is what an extension says of itself. Either it is one command, or it has
// commands below its name.
type manifest struct {
	Name     string `json:"name"`    // as its directory
	Program  string `json:"program"` // name of a file beside the manifest
	Commands []struct {
		Name string `json:"name"`
		command
	} `json:"commands"`
	command
}

// command is what a manifest says of one command.
type command struct {
	Summary   string     `json:"summary"`
	Details   string     `json:"details"`
	Effect    string     `json:"effect"`
	Timeout   int        `json:"timeout"` // seconds; 0 means as any other
	Arguments []argument `json:"arguments"`
	Examples  []string   `json:"examples"`
	Output    *output    `json:"output"`
}

// argument has the members that help has for an argument.
type argument struct {
	Name        string         `json:"name"`
	Short       string         `json:"short"`
	Type        discovery.Kind `json:"type"`
	Items       discovery.Kind `json:"items"`
	Description string         `json:"description"`
	Required    bool           `json:"required"`
	Positional  bool           `json:"positional"`
	Sensitive   bool           `json:"sensitive"`
	Requires    string         `json:"requires"`
	Default     any            `json:"default"`
	Enum        []string       `json:"enum"`
	Examples    []string       `json:"examples"`
	Minimum     json.Number    `json:"minimum"`
	Maximum     json.Number    `json:"maximum"`
	MinLength   *uint64        `json:"min_length"`
	MaxLength   *uint64        `json:"max_length"`
	MinItems    *uint64        `json:"min_items"`
	MaxItems    *uint64        `json:"max_items"`
	Pattern     string         `json:"pattern"`
}

// output has the members of JSON Schema that discovery.Shape knows.
type output struct {
	Type        string             `json:"type"`
	Description string             `json:"description"`
	Properties  map[string]*output `json:"properties"`
	Required    []string           `json:"required"`
	Items       *output            `json:"items"`
	Enum        []string           `json:"enum"`
}

var (
	namePattern    = regexp.MustCompile(`\Ax-[a-z0-9-]+\z`)
	subPattern     = regexp.MustCompile(`\A[a-z][a-z0-9-]*\z`)
	programPattern = regexp.MustCompile(`\A[A-Za-z0-9_][A-Za-z0-9._-]*\z`)
)

// Words that are not the name of a command below an extension, or of an argument: a
// person would take the first for what they are everywhere else, and the others mean
// something to programs that keep objects carelessly.
var (
	reservedWords = []string{"help", "schema", "version"}
	reservedNames = []string{"constructor", "prototype"}
)

// parseManifest reads the manifest of the extension that lies in a directory of this
// name. The error follows the words "its manifest is not right".
func parseManifest(raw []byte, directory string) (*manifest, error) {
	var m manifest
	if err := decodeStrict(raw, &m); err != nil {
		return nil, err
	}
	switch {
	case m.Name != directory:
		return nil, errors.New("its name is not that of its directory")
	case !programPattern.MatchString(m.Program) || len(m.Program) > maxNameChars || m.Program == manifestName:
		return nil, errors.New("its program is not the name of a file beside it: no path, only letters, digits, '.', '_' and '-'")
	case len(m.Commands) > maxCommands:
		return nil, fmt.Errorf("it has more than %d commands", maxCommands)
	}
	if m.Commands == nil {
		return &m, m.command.check()
	}
	if m.Details != "" || m.Effect != "" || m.Timeout != 0 || m.Arguments != nil || m.Examples != nil || m.Output != nil {
		return nil, errors.New("beside its commands it describes one of its own")
	}
	if len(m.Commands) == 0 {
		return nil, errors.New("it has no commands")
	}
	if err := shown(m.Summary, 1, maxShortText); err != nil {
		return nil, fmt.Errorf("its summary: %w", err)
	}
	for i := range m.Commands {
		c := &m.Commands[i]
		if !subPattern.MatchString(c.Name) || len(c.Name) > maxNameChars || slices.Contains(reservedWords, c.Name) {
			return nil, errors.New("the name of one of its commands is not allowed")
		}
		if err := c.check(); err != nil {
			return nil, fmt.Errorf("command %s: %w", c.Name, err)
		}
	}
	return &m, nil
}

// check looks at what discovery does not: how long and how visible texts are.
func (c *command) check() error {
	if err := shown(c.Summary, 1, maxShortText); err != nil {
		return fmt.Errorf("its summary: %w", err)
	}
	if err := shown(c.Details, 0, maxLongText); err != nil {
		return fmt.Errorf("its details: %w", err)
	}
	switch {
	case c.Effect == "":
		return errors.New("it does not say its effect: read, state, flag, write, send or admin")
	case len(c.Arguments) > maxArguments:
		return fmt.Errorf("it has more than %d arguments", maxArguments)
	case c.Timeout < 0:
		return errors.New("its timeout is negative")
	}
	if err := allShown(c.Examples, 1, maxLongText); err != nil {
		return fmt.Errorf("its examples: %w", err)
	}
	for _, a := range c.Arguments {
		if len(a.Name) > maxNameChars || slices.Contains(reservedNames, a.Name) {
			return errors.New("the name of one of its arguments is not allowed")
		}
		if err := errors.Join(shown(a.Description, 1, maxLongText), shown(a.Pattern, 0, maxShortText),
			allShown(a.Enum, 1, maxShortText), allShown(a.Examples, 1, maxLongText)); err != nil {
			return fmt.Errorf("argument %q: %w", a.Name, err)
		}
		if text, ok := a.Default.(string); ok {
			if err := shown(text, 0, maxShortText); err != nil {
				return fmt.Errorf("argument %q: its default: %w", a.Name, err)
			}
		}
	}
	return c.Output.check(0)
}

func (o *output) check(depth int) error {
	if o == nil || depth > maxDepth {
		return nil // discovery refuses what nests too deep
	}
	if err := errors.Join(shown(o.Description, 0, maxLongText), allShown(o.Enum, 1, maxShortText)); err != nil {
		return fmt.Errorf("its output: %w", err)
	}
	for _, p := range o.Properties {
		if err := p.check(depth + 1); err != nil {
			return err
		}
	}
	return o.Items.check(depth + 1)
}

// shown refuses a text that help should not show: one with characters that nobody
// sees, or on several lines.
func shown(s string, low, high int) error {
	n := utf8.RuneCountInString(s)
	switch {
	case n < low:
		return errors.New("a text is missing")
	case n > high:
		return fmt.Errorf("a text is longer than %d characters", high)
	case strings.ContainsAny(s, "\n\t") || plain.Text(s) != s:
		return errInvisible
	}
	return nil
}

func allShown(list []string, low, high int) error {
	if len(list) > maxShortText {
		return fmt.Errorf("there are more than %d", maxShortText)
	}
	for _, s := range list {
		if err := shown(s, low, high); err != nil {
			return err
		}
	}
	return nil
}

// effect is what a manifest says a command does. A word that is not known, as of a
// later version, counts as the strongest.
func (c *command) effect() discovery.Effect {
	for e := discovery.Read; e < discovery.Admin; e++ {
		if c.Effect == e.String() {
			return e
		}
	}
	return discovery.Admin
}

// definition is the command for discovery.Define.
func (c *command) definition() (discovery.Definition, error) {
	var d discovery.Definition
	for _, a := range c.Arguments {
		pattern, err := compile(a.Pattern)
		if err != nil {
			return d, fmt.Errorf("argument %s: its pattern cannot be read", a.Name)
		}
		d.Arguments = append(d.Arguments, discovery.Argument{Name: a.Name, Kind: a.Type, Item: a.Items, Short: a.Short, Description: a.Description,
			Required: a.Required, Positional: a.Positional, Sensitive: a.Sensitive, Requires: a.Requires, Default: a.Default, Enum: a.Enum,
			Examples: a.Examples, Minimum: a.Minimum, Maximum: a.Maximum, MinLength: a.MinLength, MaxLength: a.MaxLength,
			MinItems: a.MinItems, MaxItems: a.MaxItems, Pattern: pattern})
	}
	var err error
	d.Output, err = c.Output.shape(0)
	return d, err
}

func compile(pattern string) (*regexp.Regexp, error) {
	if pattern == "" {
		return nil, nil
	}
	return regexp.Compile(pattern)
}

func (o *output) shape(depth int) (*discovery.Shape, error) {
	if o == nil || depth > maxDepth {
		return nil, nil
	}
	s := &discovery.Shape{Type: o.Type, Description: o.Description, Enum: o.Enum}
	var err error
	if s.Items, err = o.Items.shape(depth + 1); err != nil {
		return nil, err
	}
	for _, r := range o.Required {
		if o.Properties[r] == nil {
			return nil, errors.New("output: something is required that is not a property")
		}
	}
	names := make([]string, 0, len(o.Properties))
	for n := range o.Properties {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		below, err := o.Properties[n].shape(depth + 1)
		if err != nil {
			return nil, err
		}
		s.Properties = append(s.Properties, discovery.Property{Name: n, Required: slices.Contains(o.Required, n), Shape: below})
	}
	return s, nil
}
