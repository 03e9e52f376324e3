package commands_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/gateway/gatewaytest"
)

var update = flag.Bool("update", false, "write the schema snapshots anew")

func newRegistry(t testing.TB) *discovery.Registry {
	t.Helper()
	r, err := discovery.NewRegistry(commands.Info(&commands.Deps{}, "test"), commands.All(&commands.Deps{})...)
	must(t, err)
	return r
}

func newBareGateway(t testing.TB) *gateway.Gateway {
	t.Helper()
	g, err := gateway.New(gateway.Options{Registry: newRegistry(t), Profile: gateway.FullProfile()})
	must(t, err)
	return g
}

func everything(*discovery.Command) bool { return true }

// TestEveryExampleBinds takes each example of each command, and each recipe of the
// root help, the way an agent would.
func TestEveryExampleBinds(t *testing.T) {
	r := newRegistry(t)
	for _, c := range r.Commands() {
		if err := c.Err(); err != nil {
			t.Errorf("%s: %v", c.Path, err)
		}
	}
	check := func(t *testing.T, line, want string) {
		tokens, err := gateway.Tokenize(line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			return
		}
		found, err := r.Resolve(tokens, everything)
		if err != nil || found.Command == nil {
			t.Errorf("%s: resolves to nothing: %v", line, err)
			return
		}
		if want != "" && found.Command.Path != want {
			t.Errorf("%s: is an example of %s and runs %s", line, want, found.Command.Path)
		}
		if _, err := found.Command.Bind(found.Rest, time.UTC); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	for _, c := range r.Commands() {
		for _, e := range c.Examples {
			if strings.Contains(e, " --account ") {
				t.Errorf("%q names an account; where there are several it gets one of them", e)
			}
			check(t, e, c.Path)
		}
	}
	info := commands.Info(&commands.Deps{}, "")
	if len(info.Recipes) != 1 {
		t.Errorf("%d recipes", len(info.Recipes))
	}
	for _, e := range info.Recipes {
		check(t, e, "")
	}
}

// What strangers and models type in place of a command names it, with its own example, and runs
// nothing. Whether it is typed with the group or without makes no difference but to other groups.
func TestWordsThatAreTriedNameCommands(t *testing.T) {
	r := newRegistry(t)
	answer := func(line string) (hint, example string) {
		_, err := r.Resolve(strings.Fields(line), everything)
		f := discovery.AsFault(err)
		if f == nil || f.Code != discovery.CommandNotFound {
			t.Errorf("%s: %v", line, err)
			return "", ""
		}
		return f.Hint, f.Examples[0]
	}
	for _, c := range r.Commands() {
		group, last, _ := strings.Cut(c.Path, " ")
		for _, word := range c.Also {
			if hint, _ := answer(word + " 1"); !strings.Contains(hint, "'"+c.Path+"'") {
				t.Errorf("%s: %s", word, hint)
			}
			if word == last {
				continue
			}
			if hint, _ := answer(group + " " + word); !strings.Contains(hint, "'"+c.Path+"'") || len(hint) > 110 {
				t.Errorf("%s %s: %s", group, word, hint)
			}
		}
	}
	for line, want := range map[string]string{
		"mail read 1": "mail get 50 49", "read 1": "mail get 50 49", "show 1": "mail get 50 49", "inbox": "mail list --unread --limit 20", "sent": "mail list --folder Sent --snippet 120",
		"mail find x": "mail search invoice --since 2026-02-01", "rm 5": "mail trash 50 49", "get 1": "mail get 50 49", "list --account a": "mail list --unread --limit 20", "mail status": "mail verify",
		"imap_get_message_raw": "mail raw 50", "email_fetch": "mail list --unread --limit 20", "status": "agent status", "WHITELIST in add work a@b.org": "allow in add ann@example.org", "mail del 5": "mail trash 50 49", "send": "mail send --to ann@example.org --subject Lunch --body 'Shall we say noon?'",
	} {
		if hint, example := answer(line); example != want {
			t.Errorf("%s: %s %s", line, hint, example)
		}
	}
}

func TestEveryGroupHasASummaryAndEveryArgumentADescription(t *testing.T) {
	groups := commands.Info(&commands.Deps{}, "").Groups
	for _, c := range newRegistry(t).Commands() {
		if group, _, ok := strings.Cut(c.Path, " "); ok && groups[group] == "" {
			t.Errorf("group %s has no summary", group)
		}
		for _, a := range c.Arguments() {
			if a.Description == "" || strings.HasSuffix(a.Description, ".") || len(a.Description) > 160 {
				t.Errorf("%s %s: description %q is missing, too long or ends with a full stop", c.Path, a.Label(), a.Description)
			}
		}
	}
}

func TestSchemaSnapshots(t *testing.T) {
	dir := filepath.Join("testdata", "schemas")
	want := map[string]bool{}
	for _, c := range newRegistry(t).Commands() {
		name := strings.ReplaceAll(c.Path, " ", "_") + ".json"
		want[name] = true
		got, err := json.MarshalIndent(discovery.CommandSchema{Command: c.Path, Input: c.InputSchema(), Output: c.OutputSchema(true)}, "", "  ")
		must(t, err)
		got = append(got, '\n')
		file := filepath.Join(dir, name)
		if *update {
			must(t, os.MkdirAll(dir, 0o755))
			must(t, os.WriteFile(file, got, 0o644))
			continue
		}
		old, err := os.ReadFile(file)
		if err != nil || !bytes.Equal(old, got) {
			t.Errorf("%s differs from %s: if that is meant, run go test ./commands -run SchemaSnapshots -update", c.Path, file)
		}
	}
	files, err := os.ReadDir(dir)
	must(t, err)
	for _, f := range files {
		if !want[f.Name()] {
			t.Errorf("%s belongs to no command", f.Name())
		}
	}
}

// TestSchemasAreWhatClientsTake walks every schema: inline, closed, and without the
// keywords that clients break on.
func TestSchemasAreWhatClientsTake(t *testing.T) {
	for _, c := range newRegistry(t).Commands() {
		for kind, raw := range map[string][]byte{"input": c.InputSchema(), "output": c.OutputSchema(true), "compact output": c.OutputSchema(false)} {
			gatewaytest.Schema(t, raw)
			var v any
			must(t, json.Unmarshal(raw, &v))
			walkSchema(t, c.Path+" "+kind, v)
		}
	}
}

func walkSchema(t *testing.T, where string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range []string{"oneOf", "anyOf", "allOf", "not", "if", "$ref", "$defs", "$schema", "$id"} {
			if _, ok := v[k]; ok {
				t.Errorf("%s: %s", where, k)
			}
		}
		if _, has := v["properties"].(map[string]any); has && v["type"] == "object" && v["additionalProperties"] != false {
			t.Errorf("%s: additionalProperties is not false", where)
		}
		for k, x := range v {
			walkSchema(t, where+"."+k, x)
		}
	case []any:
		for _, x := range v {
			walkSchema(t, where, x)
		}
	}
}
