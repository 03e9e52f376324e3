package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/postern-mail/postern/discovery"
)

// client is a program that starts MCP servers, and where its documentation says that
// it looks for them.
type client struct {
	name   string // as install takes it
	title  string
	then   string // what makes it look again
	format configFormat

	user    func(*places) (string, error)
	project string // below the project's directory, with slashes; empty: it knows no projects
}

// configFormat changes the text of a configuration file. An empty text is a file that
// is not there.
type configFormat interface {
	// put returns the text with the entry in it, and everything else as it was. The
	// error says why the text is left alone.
	put(text []byte, name string, e *serverEntry) ([]byte, error)
	// remove returns the text without the entry.
	remove(text []byte, name string) ([]byte, error)
	// entry returns the entry as it stands in the text.
	entry(text []byte, name string) (raw string, ok bool)
	// restores reports whether putting the entry into the text backup makes what the
	// file holds now, so that backup is what it was.
	restores(backup, now []byte, name, raw string) bool
	// paste is a configuration with the entry alone.
	paste(e *serverEntry, name string) string
}

// places are the directories of the user that clients look in.
type places struct {
	getenv func(string) string
	home   func() (string, error)
	config func() (string, error) // os.UserConfigDir
}

func (p *places) inHome(elements ...string) (string, error) {
	home, err := p.home()
	return filepath.Join(append([]string{home}, elements...)...), err
}

func (p *places) inConfig(elements ...string) (string, error) {
	dir, err := p.config()
	return filepath.Join(append([]string{dir}, elements...)...), err
}

// orIn is a directory that a variable names, or one in the home directory.
func (p *places) orIn(variable string, inHome string, elements ...string) (string, error) {
	if dir := p.getenv(variable); dir != "" {
		return filepath.Join(append([]string{dir}, elements...)...), nil
	}
	return p.inHome(append([]string{inHome}, elements...)...)
}

var clients = []client{
	{
		name: "claude-code", title: "Claude Code", then: "Start it anew, or look with /mcp.", format: jsonFormat{container: "mcpServers", typed: true}, project: ".mcp.json",
		user: func(p *places) (string, error) { return p.orIn("CLAUDE_CONFIG_DIR", "", ".claude.json") },
	},
	{
		name: "claude-desktop", title: "Claude Desktop", then: "Quit it and start it anew.", format: jsonFormat{container: "mcpServers"},
		user: func(p *places) (string, error) { return p.inConfig("Claude", "claude_desktop_config.json") },
	},
	{
		name: "cursor", title: "Cursor", then: "Turn the server on in its settings, under MCP.", format: jsonFormat{container: "mcpServers", comments: true}, project: ".cursor/mcp.json",
		user: func(p *places) (string, error) { return p.inHome(".cursor", "mcp.json") },
	},
	{
		name: "vscode", title: "VS Code", then: "Run 'MCP: List Servers' there to start it.", format: jsonFormat{container: "servers", typed: true, comments: true}, project: ".vscode/mcp.json",
		user: func(p *places) (string, error) { return p.inConfig("Code", "User", "mcp.json") },
	},
	{
		name: "codex", title: "Codex", then: "Start it anew, or look with /mcp. A project's file counts only where Codex trusts the project.", format: tomlFormat{}, project: ".codex/config.toml",
		user: func(p *places) (string, error) { return p.orIn("CODEX_HOME", ".codex", "config.toml") },
	},
}

func clientNamed(name string) *client {
	for i := range clients {
		if clients[i].name == name {
			return &clients[i]
		}
	}
	return nil
}

func clientNames() (names []string) {
	for _, c := range clients {
		names = append(names, c.name)
	}
	return names
}

// file is where the client looks in a scope.
func (c *client) file(p *process, scope string) (string, error) {
	switch scope {
	case "user":
		return c.user(p.places())
	case "project":
		if c.project == "" {
			return "", &discovery.Fault{Code: discovery.ValidationError, Message: c.title + " knows no projects.", Hint: "Leave --scope out."}
		}
		dir, err := os.Getwd()
		return filepath.Join(dir, filepath.FromSlash(c.project)), err
	}
	return "", &discovery.Fault{Code: discovery.ValidationError, Message: fmt.Sprintf("There is no scope %q.", scope), Hint: "The scopes are user and project."}
}

// places are found by the environment that the process was given.
func (p *process) places() *places {
	return placesOf(runtime.GOOS, p.getenv)
}

var errNoHome = errors.New("it is not known where your home directory is")

// placesOf knows the directories of each system.
func placesOf(system string, getenv func(string) string) *places {
	need := func(variable string, elements ...string) func() (string, error) {
		return func() (string, error) {
			if dir := getenv(variable); dir != "" {
				return filepath.Join(append([]string{dir}, elements...)...), nil
			}
			return "", fmt.Errorf("%w: %s is not set", errNoHome, variable)
		}
	}
	switch system {
	case "windows":
		return &places{getenv: getenv, home: need("USERPROFILE"), config: need("APPDATA")}
	case "darwin":
		return &places{getenv: getenv, home: need("HOME"), config: need("HOME", "Library", "Application Support")}
	}
	config := need("HOME", ".config")
	if dir := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		config = func() (string, error) { return dir, nil }
	}
	return &places{getenv: getenv, home: need("HOME"), config: config}
}

// parseClient takes the client before or behind the flags.
func parseClient(f *flag.FlagSet, args []string) (name string, err error) {
	if len(args) > 0 && len(args[0]) > 0 && args[0][0] != '-' {
		return args[0], parse(f, args[1:], 0, 0)
	}
	err = parse(f, args, 1, 1)
	return f.Arg(0), err
}
