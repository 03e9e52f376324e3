package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// desk is a home directory with a vault in it, and clients that may be installed.
type desk struct {
	home string
	v    testVault
	env  map[string]string
	self string
}

func newDesk(t testing.TB) *desk {
	t.Helper()
	return deskOf(t, newVault(t))
}

// deskOf is newDesk with a vault that others have, too: nothing here changes it.
func deskOf(t testing.TB, v testVault) *desk {
	t.Helper()
	d := &desk{home: t.TempDir(), v: v, self: "/opt/postern/postern"}
	key := filepath.Join(t.TempDir(), "agent.key")
	if err := os.WriteFile(key, []byte(d.v.text[1]), 0o600); err != nil {
		t.Fatal(err)
	}
	d.env = map[string]string{"HOME": d.home, "USERPROFILE": d.home, "APPDATA": filepath.Join(d.home, "AppData"), "POSTERN_DB": d.v.path, "POSTERN_KEY_FILE": key}
	return d
}

// do runs install or uninstall.
func (d *desk) do(args ...string) (out, diagnostics string, err error) {
	var o, e bytes.Buffer
	p := &process{getenv: func(name string) string { return d.env[name] }, stdout: &o, stderr: &e, log: slog.New(slog.DiscardHandler), self: d.self, ring: brokenKeyring{}}
	verb := p.install
	if args[0] == "uninstall" {
		verb = p.uninstall
	}
	err = verb(context.Background(), args[1:])
	return o.String(), e.String(), err
}

func (d *desk) file(t testing.TB, client string) string {
	t.Helper()
	p := &process{getenv: func(name string) string { return d.env[name] }}
	file, err := clientNamed(client).file(p, "user")
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func (d *desk) write(t testing.TB, client, text string) string {
	t.Helper()
	file := d.file(t, client)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func read(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// existing are files as people and clients have them, by format.
var existing = map[string]map[string]string{
	"json": {
		"empty":              "",
		"blank":              "\n\n",
		"empty object":       "{}",
		"empty servers":      "{\n  \"CONTAINER\": {}\n}\n",
		"spaced out":         "{\n  \"CONTAINER\": {\n  }\n}\n",
		"other settings":     "{\n  \"theme\": \"dark\",\n  \"projects\": {\"/x\": {\"mcpServers\": {\"postern\": {}}}}\n}\n",
		"another server":     "{\n  \"CONTAINER\": {\n    \"files\": {\n      \"command\": \"npx\",\n      \"args\": [\"-y\", \"x\"]\n    }\n  },\n  \"z\": 1\n}\n",
		"four spaces":        "{\n    \"CONTAINER\": {\n        \"files\": {\n            \"command\": \"npx\"\n        }\n    }\n}",
		"tabs and CRLF":      "{\r\n\t\"CONTAINER\": {\r\n\t\t\"files\": {\r\n\t\t\t\"command\": \"npx\"\r\n\t\t}\r\n\t}\r\n}\r\n",
		"on one line":        `{"CONTAINER":{"files":{"command":"npx"}},"n":1.50}`,
		"one line inside":    "{\n  \"CONTAINER\": {\"files\": {\"command\": \"npx\"}}\n}\n",
		"byte order mark":    "\ufeff{\n  \"a\": \"\\u00e9é\"\n}\n",
		"brackets in a text": "{\n  \"CONTAINER\": {\n    \"files\": {\"command\": \"}{,//\\\"\"}\n  }\n}\n",
	},
	"comments": {
		"comments":           "// mine\n{\n  // servers\n  \"CONTAINER\": {\n    /* files */ \"files\": {\"command\": \"npx\"} // the first, with \"quotes\" {\n    // and no second yet\n  }\n}\n// end\n",
		"trailing commas":    "{\n  \"inputs\": [1, 2,],\n  \"CONTAINER\": {\n    \"files\": {\"command\": \"npx\",},\n  },\n}\n",
		"comment alone":      "{\n  \"CONTAINER\": {\n    // nothing yet\n  }\n}\n",
		"comma then comment": "{\n  \"CONTAINER\": {\n    \"files\": {}, // kept\n  }\n}\n",
	},
	"toml": {
		"empty":            "",
		"settings":         "model = \"o\" # comment\n\n[tui]\ntheme = 'x'\n",
		"no line end":      "model = \"o\"",
		"another server":   "[mcp_servers.files]\ncommand = \"npx\"\nargs = [\n  \"-y\", # yes\n  \"]\",\n]\n\n[mcp_servers.files.env]\nA = \"b\"\n",
		"CRLF":             "a = 1\r\n\r\n[b]\r\nc = 2024-01-02 03:04:05Z\r\n",
		"long strings":     "a = \"\"\"\n[mcp_servers.postern]\ncommand = \\\"x\\\"\n\"\"\"\nb = '''\n[x\n'''\n",
		"ends in comments": "[a]\nb = { c = [1, 2.5e3, -inf], \"d e\".f = true }\n# end\n\n# of it\n",
		"parent table":     "[mcp_servers]\n\n[[profiles]]\nx = 0xff\n[[profiles]]\n",
	},
}

// files are the existing files that a client could have.
func (c *client) files() map[string]string {
	all := make(map[string]string)
	take := func(kind, container string) {
		for name, text := range existing[kind] {
			all[name] = strings.ReplaceAll(text, "CONTAINER", container)
		}
	}
	switch f := c.format.(type) {
	case jsonFormat:
		take("json", f.container)
		if f.comments {
			take("comments", f.container)
		}
	case tomlFormat:
		take("toml", "")
	}
	return all
}

// What was there keeps every byte, what is added is found by the client, a second
// time changes nothing, and uninstall brings back the file as it was.
func TestInstallAndUninstallLeaveTheRestAlone(t *testing.T) {
	v := newVault(t)
	for _, c := range clients {
		for name, text := range c.files() {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				d := deskOf(t, v)
				file := d.write(t, c.name, text)
				if _, _, err := d.do("install", c.name); err != nil {
					t.Fatal(err)
				}
				after := read(t, file)
				d.started(t, &c, after)
				kept(t, text, after)
				if read(t, file+".postern-backup") != text {
					t.Error("the backup differs")
				}
				if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o644 {
					t.Errorf("%v, %v", info, err)
				}
				if out, _, err := d.do("install", c.name); err != nil || !strings.Contains(out, "has it already") || read(t, file) != after {
					t.Errorf("the second time: %v, %s", err, out)
				}
				// Another set of options changes the entry and nothing else.
				if _, _, err := d.do("install", c.name, "--profile", "full"); err != nil {
					t.Fatal(err)
				}
				full := read(t, file)
				kept(t, text, full)
				if !strings.Contains(full, `"full"`) || strings.Contains(full, "--read-only") || read(t, file+".postern-backup") != text {
					t.Errorf("not changed:\n%s", full)
				}
				if _, _, err := d.do("install", c.name, "--read-only"); err != nil || read(t, file) != after {
					t.Errorf("and back: %v\n%s", err, read(t, file))
				}
				if _, _, err := d.do("uninstall", c.name); err != nil {
					t.Fatal(err)
				}
				if now := read(t, file); now != text {
					t.Errorf("it was %q and is %q", text, now)
				}
				if _, err := os.Stat(file + ".postern-backup"); err == nil {
					t.Error("the backup stays")
				}
				if out, _, err := d.do("install", "--remove", c.name); err != nil || !strings.Contains(out, "has no server") || read(t, file) != text {
					t.Errorf("uninstalled twice: %v, %s", err, out)
				}
				// Without the backup, too, whatever is not white space is as it was.
				if _, _, err := d.do("install", c.name); err != nil {
					t.Fatal(err)
				}
				if err := os.Remove(file + ".postern-backup"); err != nil {
					t.Fatal(err)
				}
				if _, _, err := d.do("uninstall", c.name); err != nil {
					t.Fatal(err)
				}
				if now := readIfThere(file); now == "" {
					// Nothing tells it from a file that install made.
					if rest := strings.Join(strings.Fields(text), ""); rest != "" && !regexp.MustCompile(`^{"[a-zA-Z]+":{}}$`).MatchString(rest) {
						t.Errorf("%q is gone", text)
					}
				} else {
					kept(t, text, now)
				}
				if strings.Contains(withoutProjects(readIfThere(file)), "postern") && !strings.Contains(text, "postern") {
					t.Errorf("something stays:\n%s", readIfThere(file))
				}
			})
		}
	}
}

func readIfThere(file string) string {
	text, _ := os.ReadFile(file)
	return string(text)
}

func withoutProjects(s string) string {
	return regexp.MustCompile(`(?m)^.*"projects".*$`).ReplaceAllString(s, "")
}

// kept fails unless after is before with something put in between, in at most three
// places: an entry, a comma and white space.
func kept(t testing.TB, before, after string) {
	t.Helper()
	squeeze := func(s string) string { return strings.Join(strings.Fields(s), "") }
	b, a := squeeze(before), squeeze(after)
	at := 0
	for i := 0; i < len(a) && at < len(b); i++ {
		if a[i] == b[at] {
			at++
		}
	}
	if at < len(b) {
		t.Errorf("something is lost from %q on in\n%s", b[at:], after)
	}
	// Comments and line ends are somebody's.
	for _, line := range strings.SplitAfter(before, "\n") {
		if trimmed := strings.TrimSpace(line); strings.HasPrefix(trimmed, "//") || strings.HasPrefix(trimmed, "#") {
			if !strings.Contains(after, strings.TrimRight(line, "\r\n")) {
				t.Errorf("the comment %q is lost", trimmed)
			}
		}
	}
	if strings.Contains(before, "\r\n") && strings.Count(after, "\n") != strings.Count(after, "\r\n") {
		t.Errorf("line ends are mixed: %q", after)
	}
}

// started checks that a client would find the entry, and that no secret is in it.
func (d *desk) started(t testing.TB, c *client, text string) {
	t.Helper()
	raw, ok := c.format.entry([]byte(text), "postern")
	if !ok {
		t.Fatalf("there is no entry:\n%s", text)
	}
	for _, want := range []string{d.self, "serve", "--read-only", "POSTERN_DB", "POSTERN_KEY_FILE", "POSTERN_POLICY_PIN"} {
		if !strings.Contains(raw, want) {
			t.Errorf("%q is missing in %s", want, raw)
		}
	}
	for _, secret := range d.v.text {
		if strings.Contains(text, secret) {
			t.Error("a key is in it")
		}
	}
	f, isJSON := c.format.(jsonFormat)
	if !isJSON {
		return
	}
	if !f.comments && !json.Valid([]byte(strings.TrimPrefix(text, byteOrderMark))) {
		t.Errorf("no JSON any more:\n%s", text)
	}
	var entry struct {
		Type, Command string
		Args          []string
		Env           map[string]string
	}
	if err := json.Unmarshal([]byte(raw), &entry); err != nil || entry.Command != d.self || len(entry.Args) != 2 || len(entry.Env) != 3 || f.typed != (entry.Type == "stdio") {
		t.Errorf("%+v, %v", entry, err)
	}
}

// Without any file one is made, for its owner alone, and removed again.
func TestInstallMakesTheFileAndUninstallRemovesIt(t *testing.T) {
	for _, c := range clients {
		d := newDesk(t)
		file := d.file(t, c.name)
		if _, _, err := d.do("install", c.name, "--name", "my-mail"); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if _, ok := c.format.entry([]byte(read(t, file)), "my-mail"); !ok {
			t.Errorf("%s: %s", c.name, read(t, file))
		}
		if _, _, err := d.do("uninstall", c.name, "--name", "my-mail"); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if _, err := os.Stat(file); !os.IsNotExist(err) {
			t.Errorf("%s: %s stays: %v", c.name, file, err)
		}
	}
}

// What cannot be read, or is somebody else's, stays as it is; what to paste is shown.
func TestInstallRefusesWhatItDoesNotUnderstand(t *testing.T) {
	v := newVault(t)
	foreign := `{"command": "node", "args": ["x.js"]}`
	for name, c := range map[string]struct{ client, text, said string }{
		"malformed":            {"claude-code", `{"mcpServers": {`, "no valid JSON"},
		"comments":             {"claude-desktop", "{\n// no\n}", "no valid JSON"},
		"no object":            {"cursor", `[1]`, "no JSON object"},
		"servers no object":    {"cursor", `{"mcpServers": []}`, "no object"},
		"twice":                {"vscode", `{"servers": {}, "servers": {}}`, "twice"},
		"open comment":         {"vscode", `{ /* `, "does not end"},
		"two values":           {"vscode", `{} {}`, "line 1"},
		"missing comma":        {"vscode", "{\n\"a\": 1\n\"b\": 2}", "line 3"},
		"deep":                 {"vscode", `{"a":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`, "deeply"},
		"no UTF-8":             {"vscode", "{\"a\": \"\xff\"}", "UTF-8"},
		"somebody else's":      {"cursor", `{"mcpServers": {"postern": ` + foreign + `}}`, "another server"},
		"TOML malformed":       {"codex", "a = \n", "line 1"},
		"TOML unended":         {"codex", "a = \"\"\"x\n", "ends too early"},
		"TOML bare text":       {"codex", "[a]\nhello\n", "line 2"},
		"TOML twice":           {"codex", "[a]\n[a]\n", "twice"},
		"TOML inline":          {"codex", "mcp_servers = { x = { command = \"y\" } }\n", "form"},
		"TOML inline entry":    {"codex", "[mcp_servers]\npostern = { command = \"y\" }\n", "form"},
		"TOML dotted":          {"codex", "mcp_servers.postern.command = \"y\"\n", "form"},
		"TOML somebody else's": {"codex", "[mcp_servers.postern]\ncommand = \"node\"\nargs = [\"serve\"]\n", "another server"},
	} {
		t.Run(name, func(t *testing.T) {
			d := deskOf(t, v)
			file := d.write(t, c.client, c.text)
			_, pasted, err := d.do("install", c.client)
			if err == nil || !strings.Contains(err.Error(), c.said) {
				t.Errorf("%v", err)
			}
			if !strings.Contains(pasted, d.self) || !strings.Contains(pasted, file) {
				t.Errorf("nothing to paste: %s", pasted)
			}
			if _, _, err := d.do("uninstall", c.client); err == nil {
				t.Error("uninstall touched it")
			}
			if read(t, file) != c.text {
				t.Error("it was changed")
			}
			if entries, _ := os.ReadDir(filepath.Dir(file)); len(entries) != 1 && c.client != "claude-code" {
				t.Errorf("something was left beside it: %v", entries)
			}
		})
	}
	d := newDesk(t)
	for name, args := range map[string][]string{"client": {"install", "emacs"}, "scope": {"install", "cursor", "--scope", "world"}, "projects": {"install", "claude-desktop", "--scope", "project"},
		"profile": {"install", "cursor", "--profile", "all"}, "both": {"install", "cursor", "--profile", "full", "--read-only"}, "name": {"install", "cursor", "--name", "a b"}, "no client": {"install"}} {
		if _, _, err := d.do(args...); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// A link stays a link, and what is write-protected is not written.
func TestInstallKeepsLinksAndProtection(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links and modes are another matter there")
	}
	d := newDesk(t)
	file := d.file(t, "cursor")
	target := filepath.Join(t.TempDir(), "dotfiles.json")
	if err := os.WriteFile(target, []byte("{}\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, file); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.do("install", "cursor"); err != nil {
		t.Fatal(err)
	}
	if link, err := os.Readlink(file); err != nil || link != target || !strings.Contains(read(t, target), d.self) {
		t.Errorf("%s, %v\n%s", link, err, read(t, target))
	}
	if info, err := os.Stat(target); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info, err)
	}
	if _, _, err := d.do("uninstall", "cursor"); err != nil || read(t, target) != "{}\n" {
		t.Errorf("%v\n%s", err, read(t, target))
	}
	if err := os.Chmod(target, 0o400); err != nil {
		t.Fatal(err)
	}
	if _, pasted, err := d.do("install", "cursor"); err == nil || !strings.Contains(err.Error(), "write-protected") || !strings.Contains(pasted, d.self) || read(t, target) != "{}\n" {
		t.Errorf("%v\n%s", err, pasted)
	}
	// A link to where nothing is yet.
	if err := os.Remove(target); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.do("install", "cursor"); err != nil || !strings.Contains(read(t, target), d.self) {
		t.Errorf("%v", err)
	}
}

// A key in the environment itself never gets into a file; what points to one does.
func TestInstallWritesNoKey(t *testing.T) {
	for _, c := range clients {
		d := newDesk(t)
		delete(d.env, "POSTERN_KEY_FILE")
		d.env["POSTERN_KEY"] = d.v.text[1]
		for _, flag := range []string{"--print", "--read-only"} {
			out, pasted, err := d.do("install", c.name, flag)
			if err == nil || strings.Contains(out+pasted+err.Error(), d.v.text[1]) {
				t.Errorf("%s %s: %v", c.name, flag, err)
			}
		}
		if _, err := os.Stat(d.file(t, c.name)); err == nil {
			t.Errorf("%s: a file was written", c.name)
		}
		d.env["POSTERN_KEY"] = "keyring:agent-1"
		if out, where, err := d.do("install", c.name, "--print"); err != nil || !strings.Contains(out, "keyring:agent-1") || !strings.Contains(where, d.file(t, c.name)) {
			t.Errorf("%s: %v\n%s", c.name, err, out)
		}
		delete(d.env, "POSTERN_KEY")
		if _, _, err := d.do("install", c.name); err == nil || !strings.Contains(err.Error(), "no agent's key") {
			t.Errorf("%s without a key: %v", c.name, err)
		}
	}
}

// What a person added to an entry is theirs.
func TestInstallKeepsWhatAPersonAddedToTheEntry(t *testing.T) {
	for _, c := range clients {
		d := newDesk(t)
		if _, _, err := d.do("install", c.name); err != nil {
			t.Fatal(err)
		}
		file := d.file(t, c.name)
		text := read(t, file)
		if _, toml := c.format.(tomlFormat); toml {
			text = strings.Replace(text, "env = { ", "startup_timeout_sec = 20 # mine\nenv = { MINE = \"x\", POSTERN_OLD = \"y\", ", 1)
			text += "\n[mcp_servers.postern.tools.cli]\napproval_mode = \"prompt\"\n"
		} else {
			text = strings.Replace(text, `"env": {`, `"timeout": 20, "env": {"MINE": "x", "POSTERN_OLD": "y",`, 1)
		}
		d.write(t, c.name, text)
		d.self = "/usr/local/bin/postern"
		if _, _, err := d.do("install", c.name, "--profile", "full"); err != nil {
			t.Errorf("%s: %v\n%s", c.name, err, text)
			continue
		}
		now := read(t, file)
		for want, is := range map[string]bool{"MINE": true, "20": true, "POSTERN_OLD": false, "/opt/postern": false, d.self: true, `"full"`: true, "approval_mode": strings.Contains(text, "approval_mode")} {
			if strings.Contains(now, want) != is {
				t.Errorf("%s: %q: %t in\n%s", c.name, want, !is, now)
			}
		}
		if _, _, err := d.do("uninstall", c.name); err != nil || strings.Contains(readIfThere(file), "MINE") {
			t.Errorf("%s: %v\n%s", c.name, err, readIfThere(file))
		}
	}
}

// The files are where each client's documentation has them.
func TestWhereClientsLook(t *testing.T) {
	for system, want := range map[string]map[string]string{
		"linux":   {"claude-code": "H/.claude.json", "claude-desktop": "H/.config/Claude/claude_desktop_config.json", "cursor": "H/.cursor/mcp.json", "vscode": "H/.config/Code/User/mcp.json", "codex": "H/.codex/config.toml"},
		"darwin":  {"claude-code": "H/.claude.json", "claude-desktop": "H/Library/Application Support/Claude/claude_desktop_config.json", "cursor": "H/.cursor/mcp.json", "vscode": "H/Library/Application Support/Code/User/mcp.json", "codex": "H/.codex/config.toml"},
		"windows": {"claude-code": "U/.claude.json", "claude-desktop": "A/Claude/claude_desktop_config.json", "cursor": "U/.cursor/mcp.json", "vscode": "A/Code/User/mcp.json", "codex": "U/.codex/config.toml"},
	} {
		env := map[string]string{"HOME": "H", "USERPROFILE": "U", "APPDATA": "A"}
		for _, c := range clients {
			got, err := c.user(placesOf(system, func(name string) string { return env[name] }))
			if err != nil || filepath.ToSlash(got) != want[c.name] {
				t.Errorf("%s on %s: %s, %v", c.name, system, got, err)
			}
			if _, err := c.user(placesOf(system, func(string) string { return "" })); err == nil {
				t.Errorf("%s on %s: found without a home", c.name, system)
			}
		}
	}
	dir := t.TempDir()
	t.Chdir(dir)
	d := newDesk(t)
	for client, want := range map[string]string{"claude-code": ".mcp.json", "cursor": ".cursor/mcp.json", "vscode": ".vscode/mcp.json", "codex": ".codex/config.toml"} {
		if _, _, err := d.do("install", client, "--scope", "project"); err != nil || !strings.Contains(read(t, filepath.Join(dir, filepath.FromSlash(want))), d.self) {
			t.Errorf("%s: %v", client, err)
		}
	}
	for variable, client := range map[string]string{"CLAUDE_CONFIG_DIR": "claude-code", "CODEX_HOME": "codex"} {
		d.env[variable] = dir
		if got := d.file(t, client); filepath.Dir(got) != dir {
			t.Errorf("%s: %s", variable, got)
		}
	}
}

// A program that writes the file at the same time is not overwritten.
func TestInstallSeesThatTheFileChanged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.json")
	for _, before := range []string{"{}", ""} {
		if before != "" {
			if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, f, err := readConfig(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(`{"a":1}`), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := f.replace([]byte("{}"), true); err == nil || read(t, file) != `{"a":1}` {
			t.Errorf("%v: %s", err, read(t, file))
		}
		_ = os.Remove(file)
	}
}

// FuzzConfigs: whatever a file holds, it is refused and untouched, or still readable
// with the entry in it, and without the entry it is readable again.
func FuzzConfigs(f *testing.F) {
	for _, kind := range existing {
		for _, text := range kind {
			f.Add(text)
		}
	}
	entry := &serverEntry{Command: "/opt/postern", Args: []string{"serve", "--read-only"}, Env: []envVar{{"POSTERN_DB", "/x"}}}
	f.Fuzz(func(t *testing.T, text string) {
		for i, format := range []configFormat{jsonFormat{container: "mcpServers", comments: true}, jsonFormat{container: "mcpServers"}, tomlFormat{}} {
			what := fmt.Sprintf("format %d", i)
			_, had := format.entry([]byte(text), "postern")
			with, err := format.put([]byte(text), "postern", entry)
			if err != nil {
				continue
			}
			if again, err := format.put(with, "postern", entry); err != nil || !bytes.Equal(again, with) {
				t.Errorf("%s: %v\n%q\n%q", what, err, with, again)
			}
			raw, ok := format.entry(with, "postern")
			if !ok {
				t.Fatalf("%s: no entry in %q", what, with)
			}
			if !had && !format.restores([]byte(text), with, "postern", raw) {
				t.Errorf("%s: %q is not found again in %q", what, text, with)
			}
			without, err := format.remove(with, "postern")
			if err != nil {
				t.Errorf("%s: %v in %q", what, err, with)
			}
			if _, ok := format.entry(without, "postern"); ok {
				t.Errorf("%s: the entry stays in %q", what, without)
			}
			if _, err := format.put(without, "postern", entry); err != nil {
				t.Errorf("%s: %q became %q: %v", what, text, without, err)
			}
		}
	})
}
