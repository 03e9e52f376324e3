package discovery

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"
)

// JSONSchema is a JSON Schema 2020-12 document as bytes.
type JSONSchema json.RawMessage

// MarshalJSON returns the document itself.
func (s JSONSchema) MarshalJSON() ([]byte, error) { return s, nil }

// generate makes the schemas once; reflection costs tens of microseconds.
func (c *Command) generate() {
	c.schemaOnce.Do(func() {
		c.input = mustMarshal(c.args.schema)
		var out *jsonschema.Schema
		if c.defined {
			out, c.untrusted = c.shape.schema(), []string{Everything}
		} else {
			out, c.untrusted = reflectSchema(c.result), untrustedFields(c.result, "", 0)
		}
		c.output = mustMarshal(out)
		c.fields, c.array = fieldsOf(out), out.Type == "array"
	})
}

func mustMarshal(s *jsonschema.Schema) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		// A schema is made of our own types at start; only a fault in them
		// gets here, and every test of the registry would meet it.
		panic(fmt.Sprintf("discovery: schema: %v", err))
	}
	return b
}

// InputSchema is the schema of the command's arguments, common options included:
// an object whose properties bear the arguments' names without dashes.
func (c *Command) InputSchema() JSONSchema {
	c.generate()
	return c.input
}

// OutputSchema is the schema of the envelope's data.
func (c *Command) OutputSchema() JSONSchema {
	c.generate()
	return c.output
}

// Untrusted lists the dotted names of the fields that are in an answer and whose content
// a stranger can choose; Everything stands for all of it. data is compact JSON. A name
// that is there at another place only may be listed too.
func (c *Command) Untrusted(data []byte) []string {
	c.generate()
	var there []string
	for _, name := range c.untrusted {
		// In a string the quotes would have backslashes before them.
		if last := name[strings.LastIndexByte(name, '.')+1:]; name == Everything || bytes.Contains(data, []byte(`"`+last+`":`)) {
			there = append(there, name)
		}
	}
	return there
}

func untrustedFields(t reflect.Type, prefix string, depth int) []string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || depth > 8 {
		return nil
	}
	var out []string
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || !f.IsExported() || name == "-" || name == "" {
			continue
		}
		if f.Tag.Get("acli") == "untrusted" {
			out = append(out, prefix+name)
			continue
		}
		out = append(out, untrustedFields(f.Type, prefix+name+".", depth+1)...)
	}
	return out
}

// SchemaArgs are the arguments of the reserved command schema.
type SchemaArgs struct {
	Command []string `json:"command,omitempty" acli:"positional" jsonschema:"maxItems=8,maxLength=64" jsonschema_description:"Words of a command or group; all commands if left out"`
}

// CommandSchema is one command's pair of schemas (002 section 6.3).
type CommandSchema struct {
	Command string     `json:"command"`
	Input   JSONSchema `json:"inputSchema"`
	Output  JSONSchema `json:"outputSchema"`
}

// SchemaResult answers schema: one pair for a command, a list for a group or all.
type SchemaResult struct {
	Command  string          `json:"command,omitempty"`
	Input    JSONSchema      `json:"inputSchema,omitempty"`
	Output   JSONSchema      `json:"outputSchema,omitempty"`
	Commands []CommandSchema `json:"commands,omitzero"`
}

func newSchema(r *Registry) *Command {
	return New(Spec{
		Path:     "schema",
		Summary:  "JSON Schemas of commands",
		Effect:   Meta,
		Examples: []string{"schema version", "schema"},
	}, func(_ context.Context, call *Call, args *SchemaArgs) (SchemaResult, error) {
		path := strings.Join(args.Command, " ")
		if c := r.visibleCommand(path, call.Visible); c != nil {
			return SchemaResult{Command: c.Path, Input: c.InputSchema(), Output: c.OutputSchema()}, nil
		}
		if path != "" && !r.groupVisible(path, call.Visible) {
			return SchemaResult{}, r.notFound(args.Command, call.Visible)
		}
		all := SchemaResult{Commands: []CommandSchema{}}
		for _, c := range r.commands {
			if call.Visible(c) && (path == "" || under(c.Path, path)) {
				all.Commands = append(all.Commands, CommandSchema{c.Path, c.InputSchema(), c.OutputSchema()})
			}
		}
		return all, nil
	})
}

// visibleCommand returns the command with this path or alias if the caller may
// know of it.
func (r *Registry) visibleCommand(path string, visible func(*Command) bool) *Command {
	if c := r.byPath[path]; c != nil && visible(c) {
		return c
	}
	return nil
}
