package extension

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/internal/plain"
)

const (
	manifestName  = "manifest.json"
	maxExtensions = 32
	maxFilesOfOne = 5000 // of an extension, all levels together
	// maxSchemaBytes is how much all extensions together may add to an answer that
	// lists every schema, so that they cannot take that answer away.
	maxSchemaBytes = 64 << 10
)

// Options say how extensions are run. The zero Options are the defaults.
type Options struct {
	// Launcher is the argument vector of a program that calls Launch, such as our own
	// executable with a hidden verb. Without one there are no limits on a program's
	// memory and processor time.
	Launcher []string

	// Environ is the environment, NAME=value, from which a program gets the few
	// variables that it needs; nil gives it none but those.
	Environ []string
}

// Set is the content of a directory of extensions when it was read. It does not change.
type Set struct {
	Names    []string          // of the extensions that are whole, in order
	Groups   map[string]string // summaries of those that have commands below them, for discovery.Info
	Commands []*discovery.Command
	Problems []Problem // extensions that were left out, and other things their author should know
}

// Problem is why an extension was left out, or what else a person should know of it.
type Problem struct {
	Extension string // name of its directory; empty for all of them
	Message   string // what is wrong, and what to do
}

// String names the extension too.
func (p Problem) String() string {
	if p.Extension == "" {
		return "Extensions: " + p.Message
	}
	return "Extension " + p.Extension + ": " + p.Message
}

// Load reads the extensions in a directory. A fault of one extension leaves out that one
// and is a Problem; a fault of the directory leaves out all. The error matches
// fs.ErrNotExist where the directory is missing; Load returns no other, and a Set in any
// case. Nothing that is read is run.
func Load(dir string, o Options) (*Set, error) {
	s := &Set{Groups: map[string]string{}}
	if !filepath.IsAbs(dir) {
		s.refuse("", "The directory is not named by an absolute path, so it depends on where the program is started. Name it from the root.")
		return s, nil
	}
	base, err := resolve(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, err
	case err != nil:
		s.refuse("", "No extension is used: %s.", err)
		return s, nil
	}
	names, err := candidates(base)
	if err != nil {
		s.refuse("", "No extension is used: %s.", err)
		return s, nil
	}
	if len(names) > maxExtensions {
		s.refuse("", "There are more than %d; the last ones by name are left out.", maxExtensions)
		names = names[:maxExtensions]
	}
	r := newRunner(dir, o)
	room := maxSchemaBytes
	for _, name := range names {
		e, summary, err := read(base, name, r)
		if err == nil {
			size := 0
			for _, c := range e {
				size += len(c.InputSchema()) + len(c.OutputSchema(true))
			}
			if room -= size; room < 0 {
				room += size
				err = fmt.Errorf("with it, the schemas of all extensions would exceed %d KiB; describe less, or remove another", maxSchemaBytes>>10)
			}
		}
		if err != nil {
			s.refuse(shortName(name), "It is left out: %s.", err)
			continue
		}
		s.Names = append(s.Names, name)
		s.Commands = append(s.Commands, e...)
		if summary != "" {
			s.Groups[name] = summary
		}
	}
	return s, nil
}

func (s *Set) refuse(name, format string, v ...any) {
	s.Problems = append(s.Problems, Problem{Extension: name, Message: fmt.Sprintf(format, v...)})
}

// shortName makes a file's name fit for being shown.
func shortName(name string) string {
	if len(name) <= maxNameChars && namePattern.MatchString(name) {
		return name
	}
	return strconv.QuoteToASCII(plain.Clip(name, 40))
}

// candidates returns the names in the directory that may be extensions, sorted: those of
// directories, and of other files with an extension's name. Hidden ones are left out.
func candidates(base string) ([]string, error) {
	entries, err := os.ReadDir(base)
	if err != nil {
		return nil, errors.New("the directory cannot be read; check its permissions")
	}
	var names []string
	for _, e := range entries {
		if n := e.Name(); !strings.HasPrefix(n, ".") && (e.IsDir() || strings.HasPrefix(n, "x-")) {
			names = append(names, n)
		}
	}
	return names, nil
}

// read makes the commands of one extension. group is its summary where they are
// below its name.
func read(base, name string, r *runner) (commands []*discovery.Command, group string, err error) {
	if !namePattern.MatchString(name) || len(name) > maxNameChars {
		return nil, "", fmt.Errorf("its name is not x- with lower-case letters, digits and hyphens behind, at most %d characters", maxNameChars)
	}
	dir := filepath.Join(base, name)
	if _, err := trusted(dir, true); err != nil {
		return nil, "", fmt.Errorf("its directory %w", err)
	}
	raw, err := readManifest(dir)
	if err != nil {
		return nil, "", err
	}
	m, err := parseManifest(raw, name)
	if err != nil {
		return nil, "", fmt.Errorf("its manifest is not valid: %w", err)
	}
	p, err := findProgram(dir, m.Program)
	if err != nil {
		return nil, "", err
	}
	if err := trustedTree(dir); err != nil {
		return nil, "", err
	}
	if m.Commands == nil {
		c, err := define(name, &m.command, p, r)
		if err != nil {
			return nil, "", fmt.Errorf("its manifest is not valid: %w", err)
		}
		return append(commands, c), "", nil
	}
	for i := range m.Commands {
		c, err := define(name+" "+m.Commands[i].Name, &m.Commands[i].command, p, r)
		if err == nil && slices.ContainsFunc(commands, func(other *discovery.Command) bool { return other.Path == c.Path }) {
			err = errors.New("the name is taken")
		}
		if err != nil {
			return nil, "", fmt.Errorf("its manifest is not valid: command %s: %w", m.Commands[i].Name, err)
		}
		commands = append(commands, c)
	}
	return commands, m.Summary, nil
}

// define makes one command from its manifest, and tries its examples.
func define(path string, c *command, p *program, r *runner) (*discovery.Command, error) {
	d, err := c.definition()
	if err != nil {
		return nil, err
	}
	job := &job{path: path, program: p, output: d.Output, effect: c.effect}
	for _, a := range c.Arguments {
		if a.Sensitive {
			job.sensitive = append(job.sensitive, a.Name)
		}
	}
	spec := discovery.Spec{Path: path, Summary: c.Summary, Details: c.Details, Effect: c.effect, Examples: c.Examples, Timeout: c.Timeout}
	made := discovery.Define(spec, d, func(ctx context.Context, call *discovery.Call, args json.RawMessage) (json.RawMessage, error) {
		return r.run(ctx, call, job, args)
	})
	if err := made.Err(); err != nil {
		return nil, err
	}
	for i, e := range c.Examples {
		if err := try(made, e); err != nil {
			return nil, fmt.Errorf("its example %d is not valid: %w", i+1, err)
		}
	}
	return made, nil
}

// try binds an example to the command that it is an example of.
func try(c *discovery.Command, example string) error {
	tokens, err := gateway.Tokenize(example)
	if err != nil {
		return errors.New("it cannot be split into words")
	}
	words := strings.Fields(c.Path)
	if len(tokens) < len(words) || !slices.Equal(tokens[:len(words)], words) {
		return fmt.Errorf("it does not begin with %s", c.Path)
	}
	bound, err := c.Bind(tokens[len(words):], time.UTC)
	if err != nil {
		return errors.New(strings.TrimSuffix(err.Error(), "."))
	}
	if bound.Help {
		return errors.New("it asks for help")
	}
	_, err = c.Project(bound.Common.Fields, bound.Common.Full)
	return err
}

// readManifest reads the file in an extension's directory, which is trusted already:
// nobody else can put another in its place meanwhile.
func readManifest(dir string) ([]byte, error) {
	path := filepath.Join(dir, manifestName)
	info, err := trusted(path, false)
	switch {
	case errors.Is(err, errMissing):
		return nil, fmt.Errorf("it has no file %s", manifestName)
	case err != nil:
		return nil, fmt.Errorf("its manifest %w", err)
	case info.Size() > maxManifestBytes:
		return nil, fmt.Errorf("its manifest is larger than %d KiB", maxManifestBytes>>10)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, errors.New("its manifest cannot be read")
	}
	return raw, nil
}

// trustedTree checks every file in an extension's directory: a program may read or run
// files beside it.
func trustedTree(dir string) error {
	seen := 0
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return errors.New("a directory in it cannot be read")
		}
		if seen++; seen > maxFilesOfOne {
			return fmt.Errorf("it has more than %d files", maxFilesOfOne)
		}
		info, err := e.Info()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // a program of another process is at work in there
		case err != nil:
			return errors.New("a file in it cannot be looked at")
		case info.Mode()&fs.ModeSymlink != 0:
			err = ownedLink("it", info)
		default:
			err = onlyOurs(path, info)
		}
		if err != nil {
			name := []rune(strings.TrimPrefix(path, dir+string(filepath.Separator)))
			return fmt.Errorf("a file in it, %s, %w", strconv.QuoteToASCII(string(name[max(0, len(name)-60):])), err)
		}
		return nil
	})
}

// program is the executable of an extension as it was when the directory was read.
type program struct {
	dir  string // the extension's, resolved
	path string
	info fs.FileInfo
}

// findProgram looks at the file that will be run.
func findProgram(dir, file string) (*program, error) {
	if runtime.GOOS == "windows" && !strings.EqualFold(filepath.Ext(file), ".exe") {
		// Batch files are run by a shell, and others not at all.
		file += ".exe"
	}
	p := &program{dir: dir, path: filepath.Join(dir, file)}
	var err error
	p.info, err = p.look()
	return p, err
}

// look returns the program as it is now, if it can be run and nobody else can change it.
func (p *program) look() (fs.FileInfo, error) {
	info, err := trusted(p.path, false)
	switch {
	case err != nil:
		return nil, fmt.Errorf("its program %w", err)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o111 == 0:
		return nil, errors.New("its program is not executable: run chmod +x on it")
	case info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0:
		return nil, errors.New("its program would run with somebody else's rights (setuid or setgid)")
	}
	return info, nil
}

// check reports whether the program is still the checked file that the manifest describes,
// and nobody else can change it. Between this and its start only the person and root can,
// who alone may write to its directory.
func (p *program) check(dir string) error {
	base, err := resolve(dir)
	if err != nil {
		return err
	}
	if base != filepath.Dir(p.dir) {
		return errors.New("the directory of extensions was replaced")
	}
	if _, err := trusted(p.dir, true); err != nil {
		return fmt.Errorf("its directory %w", err)
	}
	info, err := p.look()
	if err != nil {
		return err
	}
	if !os.SameFile(info, p.info) || info.Size() != p.info.Size() || !info.ModTime().Equal(p.info.ModTime()) {
		return errors.New("its program was changed since it was read")
	}
	return nil
}
