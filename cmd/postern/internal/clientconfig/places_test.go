package clientconfig

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
)

// The files are where each client's documentation has them.
func TestWhereClientsLook(t *testing.T) {
	everywhere := map[string]string{"claude-code": "H/.claude.json", "cursor": "H/.cursor/mcp.json", "codex": "H/.codex/config.toml", "gemini-cli": "H/.gemini/settings.json", "windsurf": "H/.codeium/windsurf/mcp_config.json"}
	for system, want := range map[string]map[string]string{
		"linux":   {"claude-desktop": "H/.config/Claude/claude_desktop_config.json", "vscode": "H/.config/Code/User/mcp.json"},
		"darwin":  {"claude-desktop": "H/Library/Application Support/Claude/claude_desktop_config.json", "vscode": "H/Library/Application Support/Code/User/mcp.json"},
		"windows": {"claude-desktop": "A/Claude/claude_desktop_config.json", "vscode": "A/Code/User/mcp.json"},
	} {
		env := map[string]string{"HOME": "H", "USERPROFILE": "H", "APPDATA": "A"}
		delete(env, map[bool]string{true: "HOME", false: "USERPROFILE"}[system == "windows"])
		maps.Copy(want, everywhere)
		for _, c := range clients {
			got, err := c.userFile(system, func(name string) string { return env[name] })
			if err != nil || filepath.ToSlash(got) != want[c.Name] {
				t.Errorf("%s on %s: %s, %v", c.Name, system, got, err)
			}
			if _, err := c.userFile(system, func(string) string { return "" }); err == nil {
				t.Errorf("%s on %s: found without a home", c.Name, system)
			}
		}
	}
	dir := t.TempDir()
	for variable, client := range map[string]string{"CLAUDE_CONFIG_DIR": "claude-code", "CODEX_HOME": "codex"} {
		path, err := named(t, client).UserFile(func(name string) string { return map[string]string{variable: dir}[name] })
		if err != nil || filepath.Dir(path) != dir {
			t.Errorf("%s: %s, %v", variable, path, err)
		}
	}
	for client, want := range map[string]string{"claude-code": ".mcp.json", "cursor": ".cursor/mcp.json", "vscode": ".vscode/mcp.json", "codex": ".codex/config.toml", "gemini-cli": ".gemini/settings.json"} {
		if path, ok := named(t, client).ProjectFile(dir); !ok || path != filepath.Join(dir, filepath.FromSlash(want)) {
			t.Errorf("%s: %s, %t", client, path, ok)
		}
	}
	if path, ok := named(t, "claude-desktop").ProjectFile(dir); ok || path != "" {
		t.Errorf("Claude Desktop has projects: %s", path)
	}
}

func TestNamesAreThoseOfClients(t *testing.T) {
	for _, name := range Names() {
		if c := named(t, name); c.Name != name || c.Title == "" || c.Reload == "" {
			t.Errorf("%+v", c)
		}
	}
	if c, ok := Named("emacs"); ok || c.Name != "" || len(Names()) != len(clients) {
		t.Errorf("%+v, %t, %v", c, ok, Names())
	}
	// The text to paste into any other client is that of Claude Desktop.
	if Paste("postern", sample()) != named(t, "claude-desktop").Paste("postern", sample()) {
		t.Error(Paste("postern", sample()))
	}
}

// A client is found by its file, or by the directory of its own that would hold it.
func TestFound(t *testing.T) {
	for name, dir := range map[string]string{"claude-code": "", "cursor": ".cursor", "windsurf": ".codeium/windsurf"} {
		c, home := named(t, name), t.TempDir()
		getenv := func(v string) string { return map[string]string{"HOME": home, "USERPROFILE": home}[v] }
		if c.Found(getenv) {
			t.Errorf("%s is found in an empty home directory", name)
		}
		if err := os.MkdirAll(filepath.Join(home, filepath.FromSlash(dir)), 0o700); err != nil {
			t.Fatal(err)
		}
		if c.Found(getenv) != (dir != "") {
			t.Errorf("%s with its directory: %v", name, c.Found(getenv))
		}
		if file, err := c.UserFile(getenv); err != nil || os.WriteFile(file, nil, 0o600) != nil || !c.Found(getenv) {
			t.Errorf("%s is not found by its file: %v", name, err)
		}
	}
}
