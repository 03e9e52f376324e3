package extension

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/postern-mail/postern/discovery"
)

// Bounds of a manifest, in characters unless said otherwise.
const (
	maxManifestBytes = 32 << 10
	maxNameChars     = 64
	maxSummary       = 100
	maxLongText      = 600 // any other text, also one that a program prints as an error
)

// manifest is an extension's manifest file. Either it is one command, or it has
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

// command is one command in a manifest.
type command struct {
	Summary   string           `json:"summary"`
	Details   string           `json:"details"`
	Effect    string           `json:"effect"`
	Timeout   int              `json:"timeout"` // seconds; 0 means as any other
	Arguments []argument       `json:"arguments"`
	Examples  []string         `json:"examples"`
	Output    *discovery.Shape `json:"output"`

	effect discovery.Effect // what Effect names
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

var (
	namePattern    = regexp.MustCompile(`\Ax-[a-z0-9-]+\z`)
	subPattern     = regexp.MustCompile(`\A[a-z][a-z0-9-]*\z`)
	programPattern = regexp.MustCompile(`\A[A-Za-z0-9_][A-Za-z0-9._-]*\z`)
)

// Words that cannot name a command below an extension, or an argument: a person would
// take the first for the built-in commands, and the others have a special meaning in
// programs that use objects as maps.
var (
	reservedWords = []string{"help", "schema", "version"}
	reservedNames = []string{"constructor", "prototype"}
)

// parseManifest reads the manifest of the extension that lies in a directory of this
// name. The error follows the words "its manifest is not valid".
func parseManifest(raw []byte, directory string) (*manifest, error) {
	clean, err := scrub(raw, true)
	if err != nil {
		return nil, err
	}
	var m manifest
	if err := decode(clean, &m); err != nil {
		return nil, err
	}
	switch {
	case m.Name != directory:
		return nil, errors.New("its name is not that of its directory")
	case !programPattern.MatchString(m.Program) || len(m.Program) > maxNameChars || m.Program == manifestName:
		return nil, errors.New("its program is not the name of a file beside it: no path, only letters, digits, '.', '_' and '-'")
	case m.Commands == nil:
		return &m, m.command.check()
	case len(m.Commands) == 0:
		return nil, errors.New("it has no commands")
	case m.Details != "" || m.Effect != "" || m.Timeout != 0 || m.Arguments != nil || m.Examples != nil || m.Output != nil:
		return nil, errors.New("it has a list of commands, and also describes itself as one command")
	}
	if err := checkSummary(m.Summary); err != nil {
		return nil, err
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

// check checks the rules that neither scrub nor discovery does.
func (c *command) check() error {
	for c.effect = discovery.Read; c.effect.String() != c.Effect; c.effect++ {
		if c.effect == discovery.Admin {
			return errors.New("its effect is not one of read, state, flag, write, send, admin")
		}
	}
	switch {
	case c.Timeout < 0:
		return errors.New("its timeout is negative")
	case slices.ContainsFunc(c.Arguments, func(a argument) bool { return slices.Contains(reservedNames, a.Name) }):
		return errors.New("the name of one of its arguments is not allowed")
	}
	return checkSummary(c.Summary)
}

func checkSummary(s string) error {
	if n := utf8.RuneCountInString(s); n == 0 || n > maxSummary {
		return fmt.Errorf("its summary is missing or longer than %d characters", maxSummary)
	}
	return nil
}

// definition is the command for discovery.Define.
func (c *command) definition() (discovery.Definition, error) {
	d := discovery.Definition{Output: c.Output}
	for _, a := range c.Arguments {
		var pattern *regexp.Regexp
		if a.Pattern != "" {
			var err error
			if pattern, err = regexp.Compile(a.Pattern); err != nil {
				return d, fmt.Errorf("argument %s: its pattern cannot be read", a.Name)
			}
		}
		d.Arguments = append(d.Arguments, discovery.Argument{Name: a.Name, Kind: a.Type, Item: a.Items, Short: a.Short, Description: a.Description,
			Required: a.Required, Positional: a.Positional, Sensitive: a.Sensitive, Requires: a.Requires, Default: a.Default, Enum: a.Enum,
			Examples: a.Examples, Minimum: a.Minimum, Maximum: a.Maximum, MinLength: a.MinLength, MaxLength: a.MaxLength,
			MinItems: a.MinItems, MaxItems: a.MaxItems, Pattern: pattern})
	}
	return d, nil
}
