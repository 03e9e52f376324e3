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

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
)

var update = flag.Bool("update", false, "write the schema snapshots anew")

func newRegistry(t testing.TB) *discovery.Registry {
	t.Helper()
	r, err := discovery.NewRegistry(commands.Info(&commands.Deps{}, "test"), commands.All(&commands.Deps{})...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func newBareGateway(t testing.TB) *gateway.Gateway {
	t.Helper()
	g, err := gateway.New(gateway.Options{Registry: newRegistry(t), Profile: gateway.FullProfile()})
	if err != nil {
		t.Fatal(err)
	}
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
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, '\n')
		file := filepath.Join(dir, name)
		if *update {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		old, err := os.ReadFile(file)
		if err != nil || !bytes.Equal(old, got) {
			t.Errorf("%s differs from %s: if that is meant, run go test ./commands -run SchemaSnapshots -update", c.Path, file)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
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
			compile(t, raw)
			var v any
			if err := json.Unmarshal(raw, &v); err != nil {
				t.Fatal(err)
			}
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

func compile(t testing.TB, raw []byte) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}
