// Package clientconfig edits the configuration files of MCP clients: it finds the
// file of each client, and adds and removes a server's entry while everything else
// in the file stays unchanged, byte for byte.
//
// Call Named for a client, UserFile or ProjectFile for the place of its file, then Put or
// Remove; Paste returns the text that a person adds by hand. A file is read and replaced
// whole, at once, with its mode and its owner, and a link to it stays a link. An entry of
// another program, and a file that cannot be read or is write-protected, are not changed.
//
// Where Put or Remove fails, the file is unchanged. The error describes the file without
// its name, as in "it is write-protected", unless it is one of the operating system. It
// holds no control characters of the file's text.
//
// Two clients also have rules that keep their own tools from files and commands: Rules
// makes them, and Deny writes them and takes them out. What each client documents, read in
// November 2026: Claude Code (2.1.228 and later) denies files to its file tools and to the
// usual commands that print files, and commands by pattern, in its settings.json; Cursor's
// command line does so in cli-config.json, while Cursor's editor only has lists of what it
// allows. Nothing is written for Codex (0.138), where a path can be denied only in a
// permission profile that takes the place of the whole sandbox, and rules for commands are
// experimental; for VS Code, whose sandbox is for commands alone and whose other settings
// decide only what runs unasked; for Claude Desktop, which documents none; and for Gemini CLI
// and Windsurf, whose rules nobody has read for this yet.
//
// Only this program's own entries are changed: see ErrForeign. The package decides
// neither the program that a client starts nor its key, and knows nothing of mail,
// the vault or the command line. Its functions are safe for concurrent use.
package clientconfig

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
)

// ErrForeign says that another program's server has the name: its command is not
// called postern and no variable of it begins with POSTERN_, or its first argument
// is not serve or demo. It is not changed; choose another name.
var ErrForeign = errors.New("it has another server of that name")

var validName = regexp.MustCompile(`\A[A-Za-z0-9_-]+\z`)

// errName says that one of the formats would have to quote the name.
var errName = errors.New("a server's name there may only have letters, digits, - and _")

// Client is a program that starts MCP servers, with the documented places of its
// configuration. Named makes one; the methods of the zero Client panic.
type Client struct {
	Name   string // its name on our command line, such as claude-code
	Title  string // its own name, such as Claude Code
	Reload string // how to make it read its file again, in one sentence or more

	location
	format  format
	project string    // below the project's directory; empty for a client without projects
	deny    *ruleFile // nil for a client without deny rules that can be written here
}

// format changes the text of a configuration file. An empty text is a missing file.
type format interface {
	// put returns the text with the entry in it and everything else unchanged. The
	// error is the reason why the text is not changed.
	put(text []byte, name string, e *Entry) ([]byte, error)
	// remove returns the text without the entry.
	remove(text []byte, name string) ([]byte, error)
	// entry returns the entry as written in the text.
	entry(text []byte, name string) (raw string, ok bool)
	// restores reports whether putting the entry into the text backup gives the
	// present text of the file, so that backup is its original.
	restores(backup, now []byte, name, raw string) bool
	// paste returns a configuration with only the entry in it.
	paste(e *Entry, name string) string
}

// usual is the form of most clients.
var usual = jsonFormat{container: "mcpServers"}

// clients are all that Named knows. A new one also has rows in docs/clients.md and the package
// comment, and cases in TestWhereClientsLook and in the samples of cmd/postern/install_test.go.
var clients = []Client{
	{
		Name: "claude-code", Title: "Claude Code", Reload: "Restart it, or look with /mcp.", format: jsonFormat{container: "mcpServers", typed: true}, project: ".mcp.json",
		location: location{home: ".claude.json", variable: "CLAUDE_CONFIG_DIR"},
		deny:     &ruleFile{location: location{home: ".claude/settings.json", variable: "CLAUDE_CONFIG_DIR"}, who: "Claude Code", rules: claudeRules},
	},
	{
		Name: "claude-desktop", Title: "Claude Desktop", Reload: "Quit and restart it.", format: usual,
		location: location{config: "Claude/claude_desktop_config.json"},
	},
	{
		Name: "cursor", Title: "Cursor", Reload: "Turn the server on in its settings, under MCP.", format: jsonFormat{container: "mcpServers", comments: true}, project: ".cursor/mcp.json",
		location: location{home: ".cursor/mcp.json"},
		deny:     &ruleFile{location: location{home: ".cursor/cli-config.json", variable: "CURSOR_CONFIG_DIR", xdg: "cursor/cli-config.json"}, who: "Cursor's command line, but not its editor,", only: true, rules: cursorRules},
	},
	{
		Name: "vscode", Title: "VS Code", Reload: "Run 'MCP: List Servers' there to start it.", format: jsonFormat{container: "servers", typed: true, comments: true}, project: ".vscode/mcp.json",
		location: location{config: "Code/User/mcp.json"},
	},
	{
		Name: "codex", Title: "Codex", Reload: "Restart it, or look with /mcp. A project's file counts only where Codex trusts the project.", format: tomlFormat{}, project: ".codex/config.toml",
		location: location{home: ".codex/config.toml", variable: "CODEX_HOME"},
	},
	{
		Name: "gemini-cli", Title: "Gemini CLI", Reload: "Restart it, or look with /mcp.", format: jsonFormat{container: "mcpServers", comments: true}, project: ".gemini/settings.json",
		location: location{home: ".gemini/settings.json"},
	},
	{
		Name: "windsurf", Title: "Windsurf", Reload: "Refresh the list of servers in its panel for MCP.", format: usual,
		location: location{home: ".codeium/windsurf/mcp_config.json"},
	},
}

// Named returns the client with a name; ok is false for an unknown name.
func Named(name string) (c Client, ok bool) {
	for _, c := range clients {
		if c.Name == name {
			return c, true
		}
	}
	return Client{}, false
}

// Names returns the names that Named knows, in the order for display.
func Names() []string {
	names := make([]string, len(clients))
	for i, c := range clients {
		names[i] = c.Name
	}
	return names
}

// Found reports whether the client seems to be on this machine: its file for all projects is
// there, or the directory of its own that holds it.
func (c Client) Found(getenv func(string) string) bool {
	file, err := c.UserFile(getenv)
	if err != nil {
		return false
	}
	if _, err = os.Stat(file); err == nil || c.location.home == filepath.Base(file) {
		return err == nil
	}
	_, err = os.Stat(filepath.Dir(file))
	return err == nil
}

// UserFile returns the file for all projects of the user whose environment getenv
// reads, on this system. The file may be missing. The error names the missing variable
// without which the user's directories are unknown.
func (c Client) UserFile(getenv func(string) string) (string, error) {
	return c.userFile(runtime.GOOS, getenv)
}

// ProjectFile returns the file of the project in the directory dir; it may be
// missing. ok is false where the client has no projects.
func (c Client) ProjectFile(dir string) (file string, ok bool) {
	if c.project == "" {
		return "", false
	}
	return filepath.Join(dir, filepath.FromSlash(c.project)), true
}

// Put writes the entry into the client's configuration at path, under a name of one or
// more letters, digits, - and _. An entry of that name is changed where it differs: a
// person's additions to it stay, except variables whose names begin with POSTERN_ and,
// in a JSON file, comments between the members of the entry. changed is false where
// the file already has all of it; then nothing is written.
//
// A missing file is made with its directories, readable by its owner only. Where
// the name is new to a file, a copy of the original is kept beside it, with the
// ending .postern-backup. The error is ErrForeign for the name of another program's
// server; any other says what is wrong with the file, such as more than 64 MiB, or
// that another program changed it meanwhile.
func (c Client) Put(path, name string, e *Entry) (changed bool, err error) {
	if !validName.MatchString(name) {
		return false, errName
	}
	f, err := read(path)
	if err != nil {
		return false, err
	}
	after, err := c.format.put(f.text, name, e)
	if err != nil || bytes.Equal(f.text, after) {
		return false, err
	}
	_, had := c.format.entry(f.text, name)
	err = f.replace(after, !had)
	return err == nil, err
}

// Remove takes the entry out of the client's configuration at path. Where nothing else
// was changed since Put, the file gets its original text, byte for byte, and is
// removed if Put made it; the backup is removed once its content equals the file's.
// removed is false without such an entry. The errors are those of Put.
func (c Client) Remove(path, name string) (removed bool, err error) {
	f, err := read(path)
	if err != nil {
		return false, err
	}
	raw, had := c.format.entry(f.text, name)
	if !had && len(f.text) == 0 {
		return false, nil
	}
	after, err := c.format.remove(f.text, name)
	if err != nil || !had {
		return false, err
	}
	backup, backupErr := os.ReadFile(f.backup())
	switch {
	case backupErr == nil && c.format.restores(backup, f.text, name, raw):
		after = backup
	case errors.Is(backupErr, fs.ErrNotExist) && c.format.restores(nil, f.text, name, raw):
		after = nil // Put made the file
	}
	if err := f.replace(after, false); err != nil {
		return false, err
	}
	if backupErr == nil && bytes.Equal(after, backup) {
		_ = os.Remove(f.backup()) // its content equals the file's
	}
	return true, nil
}

// Entry returns the command and the variables of the client's entry at path, which may be
// another program's; nil without one in a JSON file that can be read.
func (c Client) Entry(path, name string) *Entry {
	var e struct {
		Command string
		Env     map[string]string
	}
	f, err := read(path)
	if err != nil {
		return nil
	}
	if raw, ok := c.format.entry(f.text, name); !ok || decode([]byte(raw), &e) != nil {
		return nil
	}
	entry := &Entry{Command: e.Command}
	for name, value := range e.Env {
		entry.Env = append(entry.Env, Variable{name, value})
	}
	return entry
}

// Paste returns a configuration of this client with only the entry in it, ending
// with a line end. The name is one that Put accepts.
func (c Client) Paste(name string, e *Entry) string { return c.format.paste(e, name) }

// Paste returns a configuration with only the entry in it, in the form of most
// clients, ending with a line end.
func Paste(name string, e *Entry) string { return usual.paste(e, name) }
