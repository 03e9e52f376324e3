package clientconfig

import (
	"errors"
	"regexp"
	"strings"
	"testing"
)

// A person's additions to an entry stay.
func TestWhatAPersonAddedToTheEntryIsKept(t *testing.T) {
	for _, c := range clients {
		path := place(t, c)
		must(t)(c.Put(path, "postern", sample("--read-only")))
		text := textOf(path)
		if _, toml := c.format.(tomlFormat); toml {
			text = strings.Replace(text, "env = { ", "startup_timeout_sec = 20 # mine\nenv = { MINE = \"x\", POSTERN_OLD = \"y\", ", 1)
			text += "\n[mcp_servers.postern.tools.cli]\napproval_mode = \"prompt\"\n"
		} else {
			text = strings.Replace(text, `"env": {`, `"timeout": 20, "env": {"MINE": "x", "POSTERN_OLD": "y",`, 1)
		}
		write(t, path, text)
		moved := sample("--profile", "full")
		moved.Command = "/usr/local/bin/postern"
		if _, err := c.Put(path, "postern", moved); err != nil {
			t.Errorf("%s: %v\n%s", c.Name, err, text)
			continue
		}
		now := textOf(path)
		for want, is := range map[string]bool{"MINE": true, "20": true, "POSTERN_OLD": false, program: false, moved.Command: true, `"full"`: true, "approval_mode": strings.Contains(text, "approval_mode")} {
			if strings.Contains(now, want) != is {
				t.Errorf("%s: %q: %t in\n%s", c.Name, want, !is, now)
			}
		}
		if _, err := c.Remove(path, "postern"); err != nil || strings.Contains(textOf(path), "MINE") {
			t.Errorf("%s: %v\n%s", c.Name, err, textOf(path))
		}
	}
}

// Comments in an entry are a person's, too, and a value changes only where it differs.
func TestOnlyWhatDiffersInAnEntryIsChanged(t *testing.T) {
	c := named(t, "vscode")
	const before = `{
  "servers": {
    "postern": { // mail
      "type": "stdio",
      // mine
      "command": "/opt/postern/postern", // the program
      "args": [ARGS], // its rights
      "timeout": 1, /* of seconds */
      "env": {
        // where the vault is
        "POSTERN_DB": PATH, // at home
        // it was renamed
        "POSTERN_OLD": "y",
        "MINE": "x", // kept
      },
    },
  },
}
`
	written := func(args, db string) string { return strings.NewReplacer("ARGS", args, "PATH", db).Replace(before) }
	want := strings.Replace(written(`"serve", "--profile", "read"`, `"1"`), "        \"POSTERN_OLD\": \"y\",\n", "", 1)
	e := &Entry{Command: program, Args: []string{"serve", "--profile", "read"}, Env: []Variable{{"POSTERN_DB", "1"}}}
	for _, text := range []string{
		written(`"serve", "--profile", "full"`, `"2"`),
		written(`"serve", "--profile read"`, `"1"`),
		written(`"serve", "--profile", "read"`, `1`),
	} {
		path := place(t, c, text)
		must(t)(c.Put(path, "postern", e))
		if now := textOf(path); now != want {
			t.Errorf("it is\n%s\nand not\n%s", now, want)
		}
	}
	text := strings.Replace(want, `["serve", `, `[ /* always */ "\u0073erve", `, 1)
	path := place(t, c, text)
	same(t, path, text)(c.Put(path, "postern", e))
	// Missing members are added, in their order.
	path = place(t, c, "{\n  \"servers\": {\n    \"postern\": {\n      // mine\n      \"command\": \"postern\",\n      \"args\": [\"serve\"]\n    }\n  }\n}\n")
	must(t)(c.Put(path, "postern", sample()))
	now := textOf(path)
	if !strings.Contains(now, "      // mine\n      \"command\": \""+program+`"`) || !regexp.MustCompile(`(?s)stdio.*POSTERN_DB.*POSTERN_KEY_FILE.*POSTERN_POLICY_PIN`).MatchString(now) {
		t.Error(now)
	}
}

// Codex writes the variables as a table of their own when it writes the file again.
func TestVariablesInATableOfTheirOwn(t *testing.T) {
	c := named(t, "codex")
	const before, after = "a = 1\n\n", "\n[z]\nb = 2\n"
	path := place(t, c, before+"[mcp_servers.postern]\ncommand = '/old/postern'\nargs = [\"serve\"]\n# kept\n\n[mcp_servers.postern.env]\nMINE = 'x' # too\nPOSTERN_DB = \"/old\"\n"+after)
	e := sample()
	must(t)(c.Put(path, "postern", e))
	want := before + "[mcp_servers.postern]\nenv = " + e.tomlKeys([]string{"MINE = 'x'"})[2].value.(string) + "\ncommand = \"" + program + "\"\nargs = [\"serve\"]\n# kept\n" + after
	if now := textOf(path); now != want {
		t.Errorf("it is\n%s\nand not\n%s", now, want)
	}
	must(t)(c.Remove(path, "postern"))
	if now := textOf(path); now != strings.TrimSuffix(before, "\n")+"# kept\n"+after {
		t.Errorf("it is\n%s", now)
	}
	for _, env := range []string{"env.POSTERN_DB = \"/x\"\n", "env = { POSTERN_N = 1 }\n", "[mcp_servers.postern.env]\nPOSTERN_DB = \"\"\"/x\"\"\"\n"} {
		text := "[mcp_servers.postern]\ncommand = \"postern\"\nargs = [\"serve\"]\n" + env
		write(t, path, text)
		if changed, err := c.Put(path, "postern", e); changed || !errors.Is(err, errOtherForm) || textOf(path) != text {
			t.Errorf("%q: %t, %v", env, changed, err)
		}
	}
}
