package discovery

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"
)

// JSONSchema is a JSON Schema 2020-12 document as bytes.
type JSONSchema json.RawMessage

// MarshalJSON returns the document itself.
func (s JSONSchema) MarshalJSON() ([]byte, error) { return s, nil }

// answerShape is what one form of a command's answer looks like.
type answerShape struct {
	schema    []byte // JSON Schema
	fields    *fieldTree
	array     bool     // the answer is one
	labelled  bool     // it is a Brief that names its untrusted fields itself
	untrusted []string // dotted names
}

// answer is the shape of the full answer or of the compact one.
func (c *Command) answer(full bool) *answerShape {
	c.generate()
	if full {
		return &c.answers[1]
	}
	return &c.answers[0]
}

// generate makes the schemas once; reflection costs tens of microseconds.
func (c *Command) generate() {
	c.schemaOnce.Do(func() {
		c.input = mustMarshal(c.args().schema)
		for i := range c.answers {
			var out *jsonschema.Schema
			a := &c.answers[i]
			if c.defined {
				out, a.untrusted = c.shape.schema(), []string{Everything}
			} else {
				t := c.result
				if i == 0 && c.brief != nil {
					t = c.brief.Out(0)
				}
				out, a.untrusted = reflectSchema(t), untrustedFields(t, "", 0)
			}
			a.fields, a.array = fieldsOf(out), out.Type == "array"
			if a.labelled = i == 0 && c.brief != nil && len(a.untrusted) > 0; a.labelled {
				out.Properties.Set("untrusted", &jsonschema.Schema{Type: "string", Description: "Fields and columns whose content a stranger may have written"})
			}
			a.schema = mustMarshal(out)
		}
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

// OutputSchema is the schema of the envelope's data, full or compact.
func (c *Command) OutputSchema(full bool) JSONSchema { return c.answer(full).schema }

// View is what a caller is shown of a result: all of it, or its compact form.
func (c *Command) View(result any, full bool) any {
	if full || c.brief == nil {
		return result
	}
	return reflect.ValueOf(result).MethodByName("Brief").Call(nil)[0].Interface()
}

// Untrusted lists the dotted names of the fields that are in an answer and whose content
// a stranger can choose; Everything stands for all of it. data is compact JSON. A name
// that is there at another place only may be listed too.
func (c *Command) Untrusted(data []byte, full bool) []string {
	var there []string
	for _, name := range c.answer(full).untrusted {
		// In a string the quotes would have backslashes before them.
		is := func(part, behind string) bool { return bytes.Contains(data, []byte(`"`+part+`"`+behind)) }
		above := strings.Split(name, ".")
		above = above[:len(above)-1]
		if name == Everything || is(leaf(name), "") && !slices.ContainsFunc(above, func(part string) bool { return !is(part, ":") }) {
			there = append(there, name)
		}
	}
	return there
}

func leaf(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// Label adds to a compact answer that a method Brief made which of its fields and columns
// are untrusted, in a member named untrusted, before them. It reports false for any other answer.
func (c *Command) Label(data []byte) ([]byte, bool) {
	if !c.answer(false).labelled || !bytes.HasPrefix(data, []byte("{")) {
		return data, false
	}
	var names []string
	for _, name := range c.Untrusted(data, false) {
		if name = leaf(name); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return data, true
	}
	return append(fmt.Appendf(nil, `{"untrusted":%q,`, strings.Join(names, " ")), data[1:]...), true
}

func untrustedFields(t reflect.Type, prefix string, depth int) []string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || depth > 8 {
		return nil
	}
	var out []string
	if table, ok := reflect.Zero(t).Interface().(tabular); ok {
		out = untrustedFields(table.row(), prefix, depth+1)
	}
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
	Command []string `json:"command,omitempty" acli:"positional" jsonschema:"maxItems=8,maxLength=64" jsonschema_description:"Words of a command or group; all if left out"`
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
		Summary:  "Schemas",
		Effect:   Meta,
		Examples: []string{"schema version", "schema"},
	}, func(_ context.Context, call *Call, args *SchemaArgs) (SchemaResult, error) {
		path := strings.Join(args.Command, " ")
		if c := r.visibleCommand(path, call.Visible); c != nil {
			return SchemaResult{Command: c.Path, Input: c.InputSchema(), Output: c.OutputSchema(call.Full)}, nil
		}
		if path != "" && !r.groupVisible(path, call.Visible) {
			return SchemaResult{}, r.notFound("schema ", args.Command, call.Visible)
		}
		all := SchemaResult{Commands: []CommandSchema{}}
		for _, c := range r.commands {
			if call.Visible(c) && (path == "" || under(c.Path, path)) {
				all.Commands = append(all.Commands, CommandSchema{c.Path, c.InputSchema(), c.OutputSchema(call.Full)})
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
