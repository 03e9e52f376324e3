package clientconfig

import (
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
)

// someRules are rules as Rules makes them.
var someRules = []string{"Read(//home/ann/postern.db*)", "Bash(postern *)", "Bash(*POSTERN_ADMIN_KEY*)"}

// ruleText is a file of rules.
type ruleText struct{ Name, Text string }

// A person's rules and comments stay, a second time changes nothing, and taking the rules
// out brings back the file as it was; without a backup, too, only ours go.
func TestDenyLeavesTheRestAlone(t *testing.T) {
	c := named(t, "claude-code")
	for _, f := range testmain.Table[ruleText](t, "testdata/cases/rules.txt") {
		name, text := f.Name, f.Text
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "settings.json")
			if text != "" {
				write(t, path, text)
			}
			must(t)(c.Deny(path, nil, someRules))
			after := textOf(path)
			kept(t, text, after)
			for _, r := range someRules {
				if strings.Count(after, quoteJSON(r)) != 1 {
					t.Errorf("%s is in it %d times:\n%s", r, strings.Count(after, quoteJSON(r)), after)
				}
			}
			same(t, path, after)(c.Deny(path, someRules, someRules))
			other := []string{"Read(//srv/other.db*)", someRules[1]}
			must(t)(c.Deny(path, someRules, other))
			if now := textOf(path); strings.Contains(now, "/home/ann") || !strings.Contains(now, other[0]) {
				t.Errorf("another vault:\n%s", now)
			}
			must(t)(c.Deny(path, other, nil))
			if now := textOf(path); now != text {
				t.Errorf("it was %q and is %q", text, now)
			}
			if left, _ := filepath.Glob(path + "*"); len(left) > 1 || text == "" && len(left) > 0 {
				t.Errorf("%q stays", left)
			}
			if changed, err := c.Deny(path, someRules, nil); err != nil || changed != strings.Contains(text, someRules[1]) {
				t.Errorf("taken out twice: %t, %v", changed, err)
			}
		})
		t.Run(name+" and changes since", func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "settings.json")
			write(t, path, text)
			must(t)(c.Deny(path, nil, someRules))
			added := strings.Replace(textOf(path), quoteJSON(someRules[2]), quoteJSON(someRules[2])+`, "Read(~/.ssh/**)"`, 1)
			write(t, path, added)
			must(t)(c.Deny(path, someRules, nil))
			want := append(denied([]byte(text)), "Read(~/.ssh/**)")
			if got := denied([]byte(textOf(path))); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
				t.Errorf("%q in place of %q", got, want)
			}
			kept(t, strings.TrimSpace(text), textOf(path))
		})
	}
}

// What is not understood stays as it is.
func TestDenyLeavesOtherFormsAlone(t *testing.T) {
	c := named(t, "claude-code")
	for text, said := range map[string]string{`{"permissions": []}`: "form", `{"permissions": {"deny": {}}}`: "form", `[1]`: "object", `{"permissions": {`: "early", `{"permissions": {}, "permissions": {}}`: "twice"} {
		path := filepath.Join(t.TempDir(), "settings.json")
		write(t, path, text)
		for _, rules := range [][]string{someRules, nil} {
			if changed, err := c.Deny(path, someRules, rules); changed || err == nil || !strings.Contains(err.Error(), said) || textOf(path) != text {
				t.Errorf("%s: %t, %v", text, changed, err)
			}
		}
	}
}

// The rules have the forms that the clients document.
func TestRulesAreInTheClientsForm(t *testing.T) {
	g := Guarded{Program: "/usr/local/bin/postern", Files: []string{"/home/ann/postern.db", "/home/ann/postern.db.key", "/srv/agent.key"}, Dirs: []string{"/home/ann-admin"}}
	windows := Guarded{Program: `C:\Tools\postern.exe`, Files: []string{`C:\Users\Ann B\postern.db`}, Dirs: []string{`C:\Users\Ann B-admin`}}
	spaced := Guarded{Program: "/Applications/My Mail/postern", Files: []string{"/Users/ann/Library/Application Support/postern/postern.db"}}
	for name, c := range map[string]struct {
		got  []string
		want string
	}{
		"Claude Code": {claudeRules("linux", g), "Read(//home/ann/postern.db) Read(//home/ann/postern.db*) Read(//home/ann/postern.db.key) Read(//srv/agent.key) Read(//srv/agent.key*) Read(//home/ann-admin/**) " +
			"Bash(postern *) Bash(/usr/local/bin/postern *) Bash(*POSTERN_ADMIN_KEY*) Bash(secret-tool *postern*)"},
		"Claude Code, macOS": {claudeRules("darwin", spaced), "Read(//Users/ann/Library/Application Support/postern/postern.db) Read(//Users/ann/Library/Application Support/postern/postern.db*) " +
			"Bash(postern *) Bash(*POSTERN_ADMIN_KEY*) Bash(security *postern*)"},
		"Claude Code, Windows": {claudeRules("windows", windows), "Read(//c/Users/Ann B/postern.db) Read(//c/Users/Ann B/postern.db*) Read(//c/Users/Ann B-admin/**) " +
			"Bash(postern *) Bash(postern.exe *) Bash(*POSTERN_ADMIN_KEY*) PowerShell(postern *) PowerShell(postern.exe *) PowerShell(*POSTERN_ADMIN_KEY*)"},
		"Cursor": {cursorRules("linux", g), "Read(/home/ann/postern.db) Read(/home/ann/postern.db*) Read(/home/ann/postern.db.key) Read(/srv/agent.key) Read(/srv/agent.key*) Read(/home/ann-admin/**) " +
			"Shell(postern) Shell(/usr/local/bin/postern)"},
		"Cursor, Windows": {cursorRules("windows", windows), ""},
		"Codex":           {named(t, "codex").Rules(g), ""},
		"nothing":         {named(t, "claude-code").Rules(Guarded{Program: "/bin/postern"}), ""},
	} {
		if got := strings.Join(c.got, " "); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
	for _, path := range []string{"/home/[ann]/postern.db", "/home/a*/postern.db", "/home/ann)/postern.db", "/home/!ann/x", `/home/a\b/x`, "/home/a\nb/x", "relative/x", "//server/x", ""} {
		if rules := claudeRules("linux", Guarded{Files: []string{path}}); rules != nil {
			t.Errorf("%q: %q", path, rules)
		}
	}
}

// The files of rules are where the clients document them; Cursor's has to be there.
func TestWhereRulesAre(t *testing.T) {
	home := t.TempDir()
	env := map[string]string{"HOME": home, "USERPROFILE": home, "APPDATA": home}
	getenv := func(name string) string { return env[name] }
	if file, who, ok := named(t, "claude-code").RuleFile(getenv); !ok || who != "Claude Code" || file != filepath.Join(home, ".claude", "settings.json") {
		t.Error(file, who, ok)
	}
	for variable, below := range map[string]string{"HOME": ".cursor", "CURSOR_CONFIG_DIR": "", "XDG_CONFIG_HOME": "cursor"} {
		if variable != "CURSOR_CONFIG_DIR" && (runtime.GOOS == "windows" || variable != "HOME" && runtime.GOOS == "darwin") {
			continue
		}
		env = map[string]string{"HOME": home, variable: t.TempDir()}
		want := filepath.Join(env[variable], below, "cli-config.json")
		if _, _, ok := named(t, "cursor").RuleFile(getenv); ok {
			t.Errorf("%s: a missing file is changed", variable)
		}
		write(t, want, "{}")
		if file, _, ok := named(t, "cursor").RuleFile(getenv); !ok || file != want {
			t.Errorf("%s: %s, %t", variable, file, ok)
		}
	}
	for _, name := range []string{"claude-desktop", "vscode", "codex"} {
		if file, _, ok := named(t, name).RuleFile(getenv); ok {
			t.Errorf("%s: %s", name, file)
		}
	}
}

// What is printed is what Deny writes into a missing file.
func TestPasteRulesIsTheFileThatDenyMakes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "settings.json")
	must(t)(named(t, "claude-code").Deny(path, nil, someRules))
	if now := textOf(path); now != PasteRules(someRules) || !strings.HasSuffix(now, "}\n") {
		t.Errorf("%s", now)
	}
}

// FuzzRules: whatever a file holds, it is refused, or afterwards has the rules and then
// has them no more.
func FuzzRules(f *testing.F) {
	for _, file := range testmain.Table[ruleText](f, "testdata/cases/rules.txt") {
		f.Add([]byte(file.Text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		with, err := setDenied(text, nil, someRules)
		if err != nil {
			return
		}
		if again, err := setDenied(with, nil, someRules); err != nil || string(again) != string(with) {
			t.Errorf("%v:\n%s\n%s", err, with, again)
		}
		without, err := setDenied(with, someRules, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range someRules {
			if !slices.Contains(denied(text), r) && slices.Contains(denied(without), r) {
				t.Errorf("%s stays:\n%s", r, without)
			}
		}
	})
}
