package house

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/postern-mail/postern/commands/admin"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway/extension"
	"github.com/postern-mail/postern/vault"
)

const (
	// ExtensionVerb is the hidden verb that limits its process and becomes an
	// extension's program, see package extension.
	ExtensionVerb = "run-extension"

	// ExtensionsVar names the directory of extensions.
	ExtensionsVar = "POSTERN_EXTENSIONS"
)

// ExtensionsFrom says where a verb takes its extensions from. The zero value means none.
type ExtensionsFrom uint8

const (
	WhereNamed  ExtensionsFrom = iota + 1 // the directory that POSTERN_EXTENSIONS names, if it is set
	BesideVault                           // there, else in a directory beside the vault
)

// loadExtensions reads the directory of extensions. It reports problems once on standard
// error, as doctor does; they stop nothing.
func (s *System) loadExtensions(from ExtensionsFrom) *extension.Set {
	dir := s.Getenv(ExtensionsVar)
	named := dir != ""
	switch {
	case from == 0 || from == WhereNamed && !named:
		return &extension.Set{}
	case !named:
		path, err := vault.DefaultPath(s.Getenv)
		if err == nil {
			path, err = filepath.Abs(vault.Beside(path))
		}
		if err != nil {
			return &extension.Set{} // the command that needs the vault says why it cannot be found
		}
		dir = filepath.Join(filepath.Dir(path), "extensions")
	}
	o := extension.Options{Environ: s.Environ}
	if s.Self != "" {
		o.Launcher = []string{s.Self, ExtensionVerb}
	}
	set, err := extension.Load(dir, o)
	if errors.Is(err, fs.ErrNotExist) && named {
		set.Problems = append(set.Problems, extension.Problem{Message: "The directory that " + ExtensionsVar + " names does not exist."})
	}
	for _, problem := range set.Problems {
		fmt.Fprintf(s.Stderr, "postern: %s\n", problem)
	}
	return set
}

// extensionChecks are doctor's lines about extensions: one for those that are there
// and one for each problem. A grant's caller gets none: they name
// extensions it has no part in, and files of the machine.
func (h *House) extensionChecks(ctx context.Context, set *extension.Set) []admin.Check {
	if principalOf(ctx).Scope != nil {
		return nil
	}
	var checks []admin.Check
	if len(set.Names) > 0 {
		checks = append(checks, admin.Check{Name: "extensions", OK: true, Detail: "In use: " + strings.Join(set.Names, ", ") + "."})
	}
	if c, err := h.store.Config(ctx); err == nil && !c.ExtensionsSend && len(h.store.sending) > 0 {
		checks = append(checks, admin.Check{Name: "extensions that send", OK: true, Detail: "Only the administrator may run them: " + strings.Join(h.store.sending, ", ") + ". 'config set extensions_send on' lets agents."})
	}
	for _, problem := range set.Problems {
		checks = append(checks, admin.Check{Name: strings.TrimSpace("extension " + problem.Extension), Detail: problem.Message, Code: discovery.ConfigError,
			Hint: "The person who installed it mends or removes it and starts Postern again."})
	}
	return checks
}
