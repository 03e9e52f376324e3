package faulty

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// The version of 002 that the server names.
const acliVersion = "0.1.0"

// shownIn lists the subcommands of a group as help and schema show them.
func (s *Server) shownIn(group *command) []*command {
	return slices.DeleteFunc(slices.Clone(group.sub), func(c *command) bool {
		return s.find(group, c.name) != c || s.is(HelpOmitsCommand) && c.name == "login"
	})
}

func help(_ context.Context, s *Server, values map[string]any) (any, *problem) {
	words, _ := values["command"].([]string)
	if s.is(HelpIgnoresPath) && len(words) > 1 {
		words = words[:1]
	}
	c, rest, p := s.resolve(words)
	switch {
	case p != nil && (s.is(HelpUnknownIsRoot) || s.is(PrototypeNames) && prototype(words[0])):
		c = s.root
	case p != nil:
		return nil, p
	case len(rest) > 0:
		return nil, s.unknown(s.root, words)
	}
	return s.describe(c), nil
}

// describe is the help of the whole, of a group or of a command (002 section 6.2).
func (s *Server) describe(c *command) any {
	var h object
	switch {
	case c == s.root:
		h = object{{"description", "Notes, and commands to try a client with"}, {"commands", s.list(c)},
			{"usage", "<command> [subcommand] [arguments] [options]"}, {"examples", s.recipes()}}
	case len(c.sub) > 0:
		h = object{{"command", c.path()}, {"description", c.about}, {"commands", s.list(c)},
			{"usage", c.path() + " <subcommand> [arguments] [options]"}, {"examples", c.sub[0].examples}}
	default:
		h = object{{"command", c.path()}, {"description", c.about}, {"effect", c.effect}, {"arguments", s.entries(c)},
			{"usage", usage(c)}, {"examples", s.examples(c)}}
	}
	switch {
	case s.is(HelpNoUsage):
		return h.without("usage")
	case s.is(HelpNoExamples):
		return h.without("examples")
	case s.is(HelpNoDescription):
		return h.without("description")
	case s.is(HelpAsText):
		return fmt.Sprint(h)
	}
	return h
}

func (s *Server) recipes() []string {
	if s.is(HelpRecipeBroken) {
		return []string{"note list --limit 2", "note print 1"}
	}
	return []string{"note list --limit 2", "echo --count 3 'two words'", "help note list"}
}

func (s *Server) examples(c *command) []string {
	if s.is(HelpExampleBroken) && c.name == "list" {
		return append(slices.Clone(c.examples), "note list --newest 3")
	}
	return c.examples
}

// list names what is in a group.
func (s *Server) list(group *command) []object {
	list := []object{}
	for _, c := range s.shownIn(group) {
		entry := object{{"name", c.path()}, {"description", c.about}}
		if s.is(HelpNoDescription) {
			entry = entry.without("description")
		}
		list = append(list, entry)
	}
	if s.is(HelpListsGhost) && group == s.root {
		list = append(list, object{{"name", "ghost"}, {"description", "Nothing"}})
	}
	return list
}

// commands lists what can be run below a group.
func (s *Server) commands(group *command) []*command {
	var list []*command
	for _, c := range s.shownIn(group) {
		if len(c.sub) > 0 {
			list = append(list, s.commands(c)...)
		} else {
			list = append(list, c)
		}
	}
	return list
}

func usage(c *command) string {
	u := c.path()
	for _, a := range c.args {
		name := a.name
		if a.kind == typeArray {
			name += "…"
		}
		switch {
		case a.positional && a.required:
			u += " <" + name + ">"
		case a.positional:
			u += " [" + name + "]"
		}
	}
	return u + " [options]"
}

// entries describes a command's arguments.
func (s *Server) entries(c *command) any {
	list := []object{}
	for _, a := range c.args {
		if s.is(HelpLacksArgument) && a.name == "limit" {
			continue
		}
		list = append(list, s.entry(a))
	}
	if s.is(HelpExtraArgument) && c.name == "list" {
		list = append(list, object{{"name", "--colour"}, {"type", typeString}, {"description", "Colour of the notes"}})
	}
	if s.is(HelpNullArrays) && len(list) == 0 {
		return nil
	}
	return list
}

func (s *Server) entry(a *argument) object {
	e := object{{"name", a.label()}}
	add := func(name string, value any) { e = append(e, member{name, value}) }
	if a.short != "" {
		add("short", "-"+a.short)
	}
	kind := a.kind
	if s.is(HelpTypeUnknown) && kind == typeInteger {
		kind = "int"
	}
	add("type", kind)
	if a.items != "" {
		add("items", a.items)
	}
	if a.required {
		add("required", true)
	}
	if a.def != nil {
		switch {
		case s.is(HelpDefaultWrongType) && a.kind == typeInteger:
			add("default", fmt.Sprint(a.def))
		case s.is(HelpDefaultOutside) && a.high != nil:
			add("default", int(*a.high)+5)
		default:
			add("default", a.def)
		}
	}
	if a.enum != nil {
		add("enum", a.enum)
	}
	if a.low != nil {
		add("minimum", *a.low)
		add("maximum", *a.high)
	}
	if a.maxLength > 0 {
		add("max_length", a.maxLength)
	}
	if a.maxItems > 0 {
		add("max_items", a.maxItems)
	}
	if a.secret {
		add("sensitive", true)
	}
	if !s.is(HelpNoDescription) {
		add("description", a.about)
	}
	switch {
	case s.is(HelpExampleValueBroken) && a.kind == typeDatetime:
		add("examples", []string{"next week"})
	case a.examples != nil:
		add("examples", a.examples)
	}
	return e
}

func schema(_ context.Context, s *Server, values map[string]any) (any, *problem) {
	words, _ := values["command"].([]string)
	if s.is(SchemaIgnoresPath) {
		words = nil
	}
	c, rest, p := s.resolve(words)
	switch {
	case p != nil && (s.is(SchemaUnknownIsAll) || s.is(PrototypeNames) && prototype(words[0])):
		c = s.root
	case p != nil:
		return nil, p
	case len(rest) > 0:
		return nil, s.unknown(s.root, words)
	}
	if len(c.sub) == 0 {
		return s.schemas(c), nil
	}
	list := []any{}
	for _, sub := range s.commands(c) {
		if !s.is(SchemaIncomplete) || sub.name != "list" {
			list = append(list, s.schemas(sub))
		}
	}
	return object{{"commands", list}}, nil
}

// schemas are those of one command (002 section 6.3).
func (s *Server) schemas(c *command) object {
	o := object{{"command", c.path()}, {"inputSchema", s.inputSchema(c)}, {"outputSchema", c.output}}
	switch {
	case s.is(SchemaOtherCommand):
		return o.with("command", c.name+" it")
	case s.is(NoOutputSchema):
		return o.without("outputSchema")
	case s.is(NoInputSchema):
		return o.without("inputSchema")
	case s.is(OutputSchemaWrong):
		return o.with("outputSchema", c.output.with("required", []string{"no_such_member"}))
	}
	return o
}

func (s *Server) inputSchema(c *command) object {
	properties, required := object{}, []string{}
	for _, a := range c.args {
		if s.is(SchemaLacksArgument) && a.name == "limit" {
			continue
		}
		properties = append(properties, member{a.name, s.property(a)})
		if a.required || s.is(RequiredDisagrees) && a.name == "limit" {
			required = append(required, a.name)
		}
	}
	if s.is(SchemaExtraArgument) && c.name == "list" {
		properties = append(properties, member{"colour", object{{"type", "string"}}})
	}
	o := object{{"type", "object"}, {"properties", properties}, {"additionalProperties", false}}
	if len(required) > 0 {
		o = append(o, member{"required", required})
	}
	switch {
	case s.is(SchemaNotStrict):
		return o.without("additionalProperties")
	case s.is(SchemaNotObject):
		return o.with("type", "array")
	case s.is(SchemaOneOf):
		return append(o, member{"oneOf", []any{object{{"type", "object"}}}})
	case s.is(SchemaReferences):
		return append(o.with("properties", object{}), member{"allOf", []any{object{{"$ref", "#/$defs/arguments"}}}},
			member{"$defs", object{{"arguments", object{{"properties", properties}}}}})
	}
	return o
}

func (s *Server) property(a *argument) object {
	kind, p := a.kind, object{}
	switch {
	case kind == typeFlag:
		kind = "boolean"
	case kind == typeEnum:
		kind = typeString
	case kind == typeDatetime:
		kind, p = typeString, object{{"format", "date-time"}}
	case kind == typeInteger && s.is(SchemaOtherType):
		kind = typeNumber
	case kind == typeInteger && s.is(SchemaWrongType):
		kind = "int"
	}
	p = append(object{{"type", kind}}, p...)
	add := func(name string, value any) { p = append(p, member{name, value}) }
	if a.kind == typeArray {
		element := object{{"type", typeString}}
		if a.items != "" {
			element = object{{"type", a.items}}
		}
		add("items", append(element, s.bounds(a)...))
	} else {
		p = append(p, s.bounds(a)...)
	}
	if a.maxItems > 0 {
		add("maxItems", a.maxItems)
	}
	if a.def != nil {
		if n, ok := a.def.(int); ok && s.is(SchemaOtherDefault) {
			add("default", n+1)
		} else {
			add("default", a.def)
		}
	}
	add("description", a.about)
	return p
}

// bounds are those of one value.
func (s *Server) bounds(a *argument) object {
	var p object
	add := func(name string, value any) { p = append(p, member{name, value}) }
	if a.maxLength > 0 {
		add("maxLength", a.maxLength)
	}
	if a.low != nil {
		high := *a.high
		if s.is(SchemaOtherBound) {
			high++
		}
		add("minimum", *a.low)
		add("maximum", high)
	}
	if a.enum != nil {
		enum := a.enum
		if s.is(SchemaOtherEnum) {
			enum = append(slices.Clone(enum), "loud")
		}
		add("enum", enum)
	}
	return p
}

func version(_ context.Context, s *Server, _ map[string]any) (any, *problem) {
	commands, extensions := []string{}, []string{}
	for _, c := range s.root.sub {
		if s.find(s.root, c.name) != c {
			continue
		}
		if strings.HasPrefix(c.name, "x-") {
			extensions = append(extensions, c.name)
		} else {
			commands = append(commands, c.name)
		}
	}
	switch {
	case s.is(VersionGhost):
		commands = append(commands, "ghost")
	case s.is(ExtensionUndeclared):
		extensions = []string{}
	case s.is(ExtensionGhost):
		extensions = append(extensions, "x-example-ghost")
	}
	v := object{{"acli_version", acliVersion}, {"implementation", object{{"name", "example-acli"}, {"version", "1.0.0"}}},
		{"capabilities", object{{"commands", commands}, {"extensions", extensions}}}}
	switch {
	case s.is(NoVersion):
		return v.without("acli_version"), nil
	case s.is(OtherVersion):
		return v.with("acli_version", "1"), nil
	case s.is(VersionNoName):
		return v.without("implementation"), nil
	case s.is(NoCapabilities):
		return v.without("capabilities"), nil
	}
	return v, nil
}
