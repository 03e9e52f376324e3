package conformance

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// item is one element of a template's range.
type item struct {
	name string
	vars scope
	of   *command // that a step with executes may carry out; nil if not known
}

// items returns the elements a template applies to.
func (r *runner) items(c *Case) []item {
	var list []item
	for _, i := range r.known(c.For.Each) {
		if c.For.Where != nil {
			miss, err := c.For.Where.match(map[string]any(i.vars), nil)
			if r.fault(c, err); err != nil {
				return nil
			}
			if len(miss) > 0 {
				continue
			}
		}
		i.vars = maps.Clone(i.vars) // steps save into it
		list = append(list, i)
	}
	if each := c.For.Each; !r.o.Exhaustive && (each == "argument" || each == "bound" || each == "value") {
		list = r.fewOfEach(list)
		if each == "argument" && c.Expect == nil {
			list = spread(list, maxInstances)
		}
	}
	return list
}

// maxInstances bounds the arguments for which a template is run: one binder binds
// them all, so it treats ten of a kind as it does the rest.
const maxInstances = 10

// spread takes n elements at even distances, the first and the last among them.
func spread(list []item, n int) []item {
	if len(list) <= n {
		return list
	}
	out := make([]item, n)
	for i := range out {
		out[i] = list[i*(len(list)-1)/(n-1)]
	}
	return out
}

// fewOfEach leaves the instances of arguments that several commands share to the
// first of these commands.
func (r *runner) fewOfEach(list []item) []item {
	users := map[string][]string{} // of an argument as help describes it, the commands
	return slices.DeleteFunc(list, func(i item) bool {
		all := map[string]any(i.vars)
		print, of := textAt(all, "/print"), textAt(all, "/command/path")
		if !slices.Contains(users[print], of) {
			if len(users[print]) >= sharedBy {
				return true
			}
			users[print] = append(users[print], of)
		}
		return false
	})
}

// known is all, computed once; the examples of errors grow until they are asked about.
func (r *runner) known(each string) []item {
	if each == "failure_example" {
		return r.all(each)
	}
	list, ok := r.sets[each]
	if !ok {
		list = r.all(each)
		if r.sets == nil {
			r.sets = map[string][]item{}
		}
		r.sets[each] = list
	}
	return list
}

func (r *runner) all(each string) []item {
	m := r.model
	var list []item
	switch each {
	case "group":
		for _, g := range m.groups {
			list = append(list, item{name: g.path, vars: scope{"group": map[string]any{"path": g.path, "help": g.help, "commands": anys(g.commands)}}})
		}
	case "command":
		for _, c := range m.commands {
			list = append(list, item{name: c.path, vars: scope{"command": c.vars()}, of: c})
		}
	case "argument", "bound", "value":
		for _, c := range m.commands {
			cv := c.vars()
			for _, a := range c.arguments {
				list = append(list, argumentItems(each, c, cv, a)...)
			}
		}
	case "listed":
		for _, p := range m.listed {
			list = append(list, item{name: p, vars: scope{each: m.place(p)}})
		}
	case "probe":
		list = m.probe()
	case "schema":
		for _, n := range m.schemas {
			list = append(list, item{name: n, vars: scope{"schema": map[string]any{"name": n, "listed": m.lists(n)}}})
		}
	case "extension":
		for _, e := range m.extensions {
			list = append(list, item{name: show(e), vars: scope{"extension": map[string]any{"name": e}}})
		}
	case "capability":
		for _, e := range m.capabilities {
			list = append(list, item{name: show(e), vars: scope{"capability": map[string]any{"name": e}}})
		}
	case "example":
		list = append(list, r.exampleItems("", texts(m.root, "/examples"))...)
		for _, g := range m.groups {
			list = append(list, r.exampleItems(g.path, texts(g.help, "/examples"))...)
		}
		for _, c := range m.commands {
			list = append(list, r.exampleItems(c.path, c.examples)...)
		}
	case "failure_example":
		list = r.exampleItems("", r.examples)
	}
	return list
}

// place describes a path that help lists.
func (m *model) place(path string) map[string]any {
	at := strings.LastIndex(path, " ") + 1
	word := path[at:]
	_, size := utf8.DecodeRuneInString(word)
	v := map[string]any{"path": path, "group": path[:at], "word": word, "first": word[:size], "rest": word[size:]}
	switch {
	case m.find(path) != nil:
		v["kind"] = "command"
	case m.isGroup(path):
		v["kind"] = "group"
	}
	return v
}

var plainWord = regexp.MustCompile(`\A[A-Za-z][A-Za-z0-9_-]+( [A-Za-z][A-Za-z0-9_-]+)*\z`)

// probe is the command or group through whose help the reading of strings is asked: the one with the
// fewest words whose help was learned, a reserved one only if there is no other.
func (m *model) probe() []item {
	paths := slices.Clone(m.listed)
	for _, g := range m.groups { // of "mail list" help lists no "mail"
		paths = append(paths, g.path)
	}
	best, rank := "", 0
	for _, p := range paths {
		n := len(strings.Fields(p))
		if slices.Contains(reserved, p) {
			n += maxWords
		}
		if plainWord.MatchString(p) && (m.find(p) != nil || m.isGroup(p)) && (best == "" || n < rank) {
			best, rank = p, n
		}
	}
	if best == "" {
		return nil
	}
	return []item{{name: best, vars: scope{"probe": m.place(best)}}}
}

func argumentItems(each string, c *command, cv map[string]any, a *argument) []item {
	av := a.vars(c)
	made := func(suffix, name string, value any) item {
		v := scope{"command": cv, "argument": av, "print": a.print}
		if name != "" {
			v[name] = value
		}
		return item{name: strings.TrimSpace(c.path + " " + a.label + " " + suffix), vars: v, of: c}
	}
	var list []item
	switch each {
	case "argument":
		return []item{made("", "", nil)}
	case "bound":
		for _, e := range a.edges() {
			list = append(list, made(e.kind, "bound", map[string]any{"kind": e.kind, "at": e.at, "beyond": e.beyond}))
		}
	case "value":
		add := func(source string, v any) {
			if text := textOf(v); text != "" && v != nil {
				list = append(list, made(source+" "+clip(text, 40), "value", map[string]any{"text": text, "of": source, "raw": v}))
			}
		}
		for _, v := range a.enum() {
			add("enum", v)
		}
		if v, ok := a.said("default"); ok && a.kind != "flag" {
			add("default", v)
		}
		for _, e := range a.examples() {
			add("example", e)
		}
	}
	return list
}

// texts are the strings in the array that a JSON pointer names.
func texts(doc any, p string) []string {
	var out []string
	for _, e := range listAt(doc, p) {
		if text, ok := e.(string); ok {
			out = append(out, text)
		}
	}
	return out
}

func anys(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}

func (r *runner) exampleItems(of string, examples []string) []item {
	var list []item
	for _, e := range examples {
		v := map[string]any{"command": e, "of": of, "path": "", "bare": false, "harmless": false}
		var found *command
		if tokens, ok := split(e); ok {
			if c := r.model.longest(tokens); c != nil {
				v["path"], v["harmless"], v["bare"] = c.path, c.harmless, e == c.path
				found = c
				if schema, ok := pointer(c.schema, "/outputSchema"); ok {
					v["output_schema"] = schema
				}
			}
		}
		list = append(list, item{name: e, vars: scope{"example": v}, of: found})
	}
	return list
}

// longest is the command with the longest path that tokens start with, or nil.
func (m *model) longest(tokens []string) *command {
	var found *command
	for _, c := range m.commands {
		if c.owns(tokens) && (found == nil || len(c.path) > len(found.path)) {
			found = c
		}
	}
	return found
}

// vars returns the variables of a template.
func (c *command) vars() map[string]any {
	words := strings.Fields(c.path)
	v := map[string]any{
		"path": c.path, "words": anys(words), "help": any(c.help), "harmless": c.harmless,
		"extension": strings.HasPrefix(c.path, "x-"),
	}
	if c.schema != nil {
		v["schema"] = c.schema
	}
	if c.hasBase {
		v["base"] = c.base
	}
	var arguments, options, properties, required []any
	positionals, open := 0, false
	for _, a := range c.arguments {
		arguments = append(arguments, a.vars(c))
		properties = append(properties, a.propertyName)
		if a.required {
			required = append(required, a.propertyName)
		}
		if a.positional {
			positionals++
			open = open || a.many()
		} else {
			options = append(options, a.label)
		}
	}
	known := append(slices.Clone(properties), c.common...)
	for name, list := range map[string][]any{"arguments": arguments, "known_names": known, "option_names": options, "property_names": properties, "required_names": required} {
		if list == nil {
			list = []any{}
		}
		v[name] = list
	}
	if !open {
		v["positionals"] = json.Number(strconv.Itoa(positionals))
	}
	return v
}
