package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/postern-mail/postern/cmd/postern/internal/clientconfig"
	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/discovery"
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
	key := writeFile(t, filepath.Join(t.TempDir(), "agent.key"), d.v.text[1])
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
	c, ok := clientconfig.Named(client)
	if !ok {
		t.Fatalf("there is no %s", client)
	}
	file, err := c.UserFile(func(name string) string { return d.env[name] })
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

// samples are files as people and clients have them, by client.
var samples = map[string]string{
	"claude-code":    "{\n  \"theme\": \"dark\",\n  \"projects\": {\"/x\": {\"mcpServers\": {\"postern\": {}}}}\n}\n",
	"claude-desktop": "{\r\n\t\"mcpServers\": {\r\n\t\t\"files\": {\r\n\t\t\t\"command\": \"npx\"\r\n\t\t}\r\n\t}\r\n}\r\n",
	"cursor":         "{\n  \"mcpServers\": {\n    \"files\": {\"command\": \"npx\",}, // mine\n  },\n}\n",
	"vscode":         "{\n  // servers\n  \"servers\": {}\n}\n",
	"codex":          "model = \"o\" # comment\n\n[mcp_servers.files]\ncommand = \"npx\"\n",
	"gemini-cli":     "{\n  // mine\n  \"security\": {\"auth\": {\"selectedType\": \"gemini-api-key\"}}\n}\n",
	"windsurf":       "{\n  \"mcpServers\": {\n    \"files\": {\n      \"serverUrl\": \"https://files.example.org/mcp\"\n    }\n  }\n}\n",
}

// A client finds the entry after install, a second time changes nothing, and uninstall
// brings back the file as it was.
func TestInstallAndUninstallLeaveTheRestAlone(t *testing.T) {
	v := newVault(t)
	for _, client := range clientconfig.Names() {
		t.Run(client, func(t *testing.T) {
			d, text := deskOf(t, v), samples[client]
			file := d.write(t, client, text)
			out, _, err := d.do("install", client)
			if err != nil || !strings.Contains(out, " starts Postern as postern: "+file+"\n") {
				t.Fatalf("%v\n%s", err, out)
			}
			after := read(t, file)
			for _, want := range []string{d.self, "serve", "--read-only", "POSTERN_DB", "POSTERN_KEY_FILE", "POSTERN_POLICY_PIN"} {
				if !strings.Contains(after, want) {
					t.Errorf("%q is missing in %s", want, after)
				}
			}
			for _, secret := range d.v.text {
				if strings.Contains(after, secret) {
					t.Error("a key is in it")
				}
			}
			if read(t, file+".postern-backup") != text {
				t.Error("the backup differs")
			}
			if out, _, err := d.do("install", client); err != nil || !strings.Contains(out, " has it already: "+file+"\n") || read(t, file) != after {
				t.Errorf("the second time: %v, %s", err, out)
			}
			if _, _, err := d.do("install", client, "--profile", "full"); err != nil {
				t.Fatal(err)
			}
			if full := read(t, file); !strings.Contains(full, `"full"`) || strings.Contains(full, "--read-only") {
				t.Errorf("not changed:\n%s", full)
			}
			if _, _, err := d.do("install", client, "--read-only"); err != nil || read(t, file) != after {
				t.Errorf("and back: %v\n%s", err, read(t, file))
			}
			if out, _, err := d.do("uninstall", client); err != nil || !strings.Contains(out, " no longer starts postern: "+file+"\n") || read(t, file) != text {
				t.Errorf("%v, %s\n%s", err, out, read(t, file))
			}
			if out, _, err := d.do("install", "--remove", client); err != nil || !strings.Contains(out, " has no server postern: "+file+"\n") || read(t, file) != text {
				t.Errorf("uninstalled twice: %v, %s", err, out)
			}
		})
	}
}

// What cannot be read, or is somebody else's, stays as it is; why is told, and what to
// paste is shown.
func TestInstallRefusesWhatItDoesNotUnderstand(t *testing.T) {
	v := newVault(t)
	for name, c := range map[string]struct{ client, text, said string }{
		"malformed":       {"claude-code", `{"mcpServers": {`, "it is not valid JSON: unexpected end of JSON input"},
		"somebody else's": {"cursor", `{"mcpServers": {"postern": {"command": "node", "args": ["x.js"]}}}`, "it has another server of that name; choose one with --name"},
		"TOML malformed":  {"codex", "a = \n", "it cannot be read from line 1 on"},
	} {
		t.Run(name, func(t *testing.T) {
			d := deskOf(t, v)
			file := d.write(t, c.client, c.text)
			_, pasted, err := d.do("install", c.client)
			if f := discovery.AsFault(err); f == nil || f.Code != discovery.ConfigError || f.Message != fmt.Sprintf("The file %s was left as it is: %s.", file, c.said) {
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

// A key in the environment itself never gets into a file; what points to one does.
func TestInstallWritesNoKey(t *testing.T) {
	for _, c := range clientconfig.Names() {
		d := newDesk(t)
		delete(d.env, "POSTERN_KEY_FILE")
		d.env["POSTERN_KEY"] = d.v.text[1]
		for _, flag := range []string{"--print", "--read-only"} {
			out, pasted, err := d.do("install", c, flag)
			if err == nil || strings.Contains(out+pasted+err.Error(), d.v.text[1]) {
				t.Errorf("%s %s: %v", c, flag, err)
			}
		}
		if _, err := os.Stat(d.file(t, c)); err == nil {
			t.Errorf("%s: a file was written", c)
		}
		d.env["POSTERN_KEY"] = "keyring:agent-1"
		if out, where, err := d.do("install", c, "--print"); err != nil || !strings.Contains(out, "keyring:agent-1") || !strings.Contains(where, d.file(t, c)) {
			t.Errorf("%s: %v\n%s", c, err, out)
		}
		delete(d.env, "POSTERN_KEY")
		if _, _, err := d.do("install", c); err == nil || !strings.Contains(err.Error(), "No agent's key") {
			t.Errorf("%s without a key: %v", c, err)
		}
	}
}

// install denies the tools of Claude Code the vault, the keys and this program, in a file of
// its own; a person's rules stay, and uninstall takes these out again.
func TestInstallWritesDenyRules(t *testing.T) {
	d := newDesk(t)
	file := filepath.Join(d.home, ".claude", "settings.json")
	own := "{\n  \"permissions\": {\n    \"deny\": [\n      \"Read(./.env)\"\n    ]\n  }\n}\n"
	d.write(t, "claude-code", "{}\n")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, file, own)
	printed, where, err := d.do("install", "claude-code", "--print")
	if err != nil || !strings.Contains(where, ", in "+file+":\n") || read(t, file) != own {
		t.Fatalf("%v\n%s", err, where)
	}
	out, _, err := d.do("install", "claude-code")
	if err != nil || !strings.Contains(out, "are denied the vault, the keys and the command postern: "+file+"\n") {
		t.Fatalf("%v\n%s", err, out)
	}
	after := read(t, file)
	rules := []string{`"Read(./.env)"`, `"Bash(postern *)"`, `"Bash(*POSTERN_ADMIN_KEY*)"`}
	if runtime.GOOS != "windows" {
		rules = append(rules, `"Read(/`+d.v.path+`)"`, `"Read(/`+d.v.path+`*)"`, `"Read(/`+d.env["POSTERN_KEY_FILE"]+`)"`,
			`"Read(/`+filepath.Dir(house.AdminKeyFile(d.v.path))+`/**)"`, `"Bash(`+d.self+` *)"`)
	}
	for i, r := range rules {
		if !strings.Contains(after, r) || i > 0 && !strings.Contains(printed, r) {
			t.Errorf("%s is missing in %s or %s", r, after, printed)
		}
	}
	if out, _, err := d.do("install", "claude-code"); err != nil || strings.Contains(out, "denied") || read(t, file) != after {
		t.Errorf("the second time: %v, %s", err, out)
	}
	// With the vault elsewhere, the rules are about it.
	former := d.v.path
	d.env["POSTERN_DB"] = filepath.Join(t.TempDir(), "moved.db")
	if _, _, err := d.do("install", "claude-code"); err != nil || strings.Contains(read(t, file), former) || !strings.Contains(read(t, file), "moved.db*)") {
		t.Errorf("%v\n%s", err, read(t, file))
	}
	if out, _, err := d.do("uninstall", "claude-code"); err != nil || !strings.Contains(out, "deny rules are gone, too: "+file+"\n") || read(t, file) != own {
		t.Errorf("%v, %s\n%s", err, out, read(t, file))
	}
	// A path that a rule would read as a pattern gets none, and the former rules go.
	if _, _, err := d.do("install", "claude-code"); err != nil {
		t.Fatal(err)
	}
	d.env["POSTERN_DB"] = filepath.Join(t.TempDir(), "[odd].db")
	if out, _, err := d.do("install", "claude-code"); err != nil || !strings.Contains(out, "No rules were written") || read(t, file) != own {
		t.Errorf("%v, %s\n%s", err, out, read(t, file))
	}
	d.env["POSTERN_DB"] = former
	// A file that is not understood keeps no one from the server, and is told.
	writeFile(t, file, "{")
	if _, pasted, err := d.do("install", "claude-code"); err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(pasted, "Bash(postern *)") || read(t, file) != "{" || !strings.Contains(read(t, d.file(t, "claude-code")), d.self) {
		t.Errorf("%v\n%s", err, pasted)
	}
}

// Where a client has no deny rules, install says so and what to do instead. Cursor's command
// line has them, in a file that it makes itself.
func TestInstallSaysWhereThereAreNoDenyRules(t *testing.T) {
	d := newDesk(t)
	for _, client := range []string{"claude-desktop", "cursor", "vscode", "codex"} {
		_, where, err := d.do("install", client, "--print")
		out, _, err2 := d.do("install", client)
		for _, said := range []string{where, out} {
			if err != nil || err2 != nil || !strings.Contains(said, "No rules were written") || !strings.Contains(said, "SECURITY.md") {
				t.Errorf("%s: %v, %v, %s", client, err, err2, said)
			}
		}
	}
	if runtime.GOOS == "windows" {
		return // how Cursor writes a path there is not documented
	}
	own := "{\n  \"version\": 1,\n  \"permissions\": {\n    \"allow\": [],\n    \"deny\": []\n  }\n}\n"
	file := writeFile(t, filepath.Join(d.home, ".cursor", "cli-config.json"), own)
	out, _, err := d.do("install", "cursor")
	if after := read(t, file); err != nil || !strings.Contains(out, "but not its editor, are denied") || !strings.Contains(after, `"Shell(postern)"`) || !strings.Contains(after, `"Read(`+d.v.path+`*)"`) {
		t.Errorf("%v, %s\n%s", err, out, after)
	}
	if _, _, err := d.do("uninstall", "cursor"); err != nil || read(t, file) != own {
		t.Errorf("%v\n%s", err, read(t, file))
	}
}

// The scope and the environment decide which of a client's files it is.
func TestInstallFindsTheClientsFile(t *testing.T) {
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
		if _, where, err := d.do("install", client, "--print"); err != nil || filepath.Dir(d.file(t, client)) != dir || !strings.Contains(where, ", in "+d.file(t, client)+":\n") {
			t.Errorf("%s: %v, %s", variable, err, where)
		}
	}
}
