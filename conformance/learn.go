package conformance

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// model is the server's description of itself.
type model struct {
	protocols    []string
	commands     []*command
	groups       []*group
	listed       []string // every path that help lists, of groups too, in its order
	schemas      []string // names that schema without a command lists
	capabilities []any    // names that version lists as commands
	extensions   []any    // and as extensions
	root         any      // data of help
	common       []any    // names of the options that its usage names, for all commands
	readOnly     bool
}

type group struct {
	path     string
	help     any
	commands []string
}

type command struct {
	path      string
	help      map[string]any
	schema    any // data of schema PATH; nil without
	harmless  bool
	disturbs  bool // it waits, or stops things
	arguments []*argument
	common    []any // those of the model
	examples  []string
	base      string
	hasBase   bool
}

var optionPattern = regexp.MustCompile(`--[a-z][a-z0-9-]*`)

// Bounds of learning, so that it ends for a server with endless help.
const (
	maxCommands  = 500
	maxWords     = 5
	maxArguments = 200
)

// list adds paths that help lists, each once.
func (m *model) list(paths []string) {
	for _, p := range paths {
		if len(m.listed) < maxCommands && !slices.Contains(m.listed, p) {
			m.listed = append(m.listed, p)
		}
	}
}

// isGroup reports whether help has a group of that path.
func (m *model) isGroup(path string) bool {
	return slices.ContainsFunc(m.groups, func(g *group) bool { return g.path == path })
}

// lists reports whether help lists a name: a path, the last words of one, or what is below one of
// which help does not say what it holds.
func (m *model) lists(name string) bool {
	return m.isGroup(name) || slices.ContainsFunc(m.listed, func(p string) bool {
		return p == name || strings.HasSuffix(p, " "+name) || strings.HasPrefix(name, p+" ") && !m.isGroup(p)
	})
}

// schemaNames are the names of the commands in the answer to schema, whose form 002 leaves open:
// each object with an input schema has the member command or name, or is the member of an object.
func schemaNames(data any) (names []string) {
	var walk func(key string, v any, depth int)
	walk = func(key string, v any, depth int) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk("", e, depth+1)
			}
		case map[string]any:
			if _, ok := v["inputSchema"]; ok {
				name := cmp.Or(textAt(v, "/command"), textAt(v, "/name"), key)
				if name != "" && len(name) <= 200 && len(names) < maxCommands && !slices.Contains(names, name) {
					names = append(names, name)
				}
				return
			}
			for _, k := range slices.Sorted(maps.Keys(v)) {
				if depth < maxWords {
					walk(k, v[k], depth+1)
				}
			}
		}
	}
	walk("", data, 0)
	return names
}

func (m *model) find(path string) *command {
	for _, c := range m.commands {
		if c.path == path {
			return c
		}
	}
	return nil
}

// learn asks the server for its commands. Missing answers, and those not in the
// form of the specification, are missing from the model; the cases report them.
func (r *runner) learn(ctx context.Context) *model {
	m := &model{}
	r.model = m
	r.learnProtocols(ctx)
	if s, _ := r.sharedSession(ctx); s != nil {
		a := r.ask(ctx, s, "", false, false, func(ctx context.Context) answer { return s.request(ctx, "tools/list", json.RawMessage("{}")) })
		r.countLost(a)
		var names []string
		for _, t := range listAt(a.doc, "/result/tools") {
			hint, _ := pointer(t, "/annotations/readOnlyHint")
			m.readOnly = m.readOnly || textAt(t, "/name") == r.o.Tool && hint == true
			names = append(names, textAt(t, "/name"))
		}
		switch {
		case r.o.Tool != defaultTool:
			r.note("the tool %s was asked, as was said; section 3.1 says that it is called %s", r.o.Tool, defaultTool)
		case len(names) == 1 && names[0] != r.o.Tool:
			r.note("there is no tool %s; with --tool %s the one that there is would be asked", defaultTool, clip(names[0], 80))
		}
	}
	version := r.command(ctx, "version")
	m.extensions = listAt(version.doc, "/data/capabilities/extensions")
	m.capabilities = listAt(version.doc, "/data/capabilities/commands")
	if name, ok := pointer(version.doc, "/data/implementation/name"); ok {
		number, _ := pointer(version.doc, "/data/implementation/version")
		r.report.Server = clip(strings.TrimSpace(textOf(name)+" "+textOf(number)), 200)
	}
	help := r.command(ctx, "help")
	m.root, _ = pointer(help.doc, "/data")
	words, _ := entries(m.root)
	m.list(words)
	m.schemas = schemaNames(r.command(ctx, "schema").doc["data"])
	usage, _ := pointer(m.root, "/usage")
	for _, option := range optionPattern.FindAllString(textOf(usage), -1) {
		m.common = append(m.common, anys(spellings(strings.TrimLeft(option, "-")))...)
	}
	for _, path := range words {
		if group, _, several := strings.Cut(path, " "); several {
			r.learnPath(ctx, group, 1)
		}
		r.learnPath(ctx, path, len(strings.Fields(path)))
	}
	if len(m.commands) == 0 {
		r.note("help lists no command that could be learned")
	}
	// Arguments that bind alike are tried in few commands, first in those that can be run.
	rank := map[bool]int{true: 0, false: 1}
	slices.SortStableFunc(m.commands, func(a, b *command) int { return rank[a.harmless] - rank[b.harmless] })
	if r.ranging {
		for _, c := range m.commands {
			r.learnContexts(ctx, c)
		}
	}
	return m
}

// learnProtocols finds the MCP versions the server can speak, without holding it
// against a server that has never heard of the question.
func (r *runner) learnProtocols(ctx context.Context) {
	if r.shared == nil {
		return // it does not even speak the common one
	}
	r.model.protocols = append(r.model.protocols, r.shared.agreed)
	s, _ := r.open(ctx, statelessVersion, false)
	if s == nil {
		return
	}
	defer s.conn.Close()
	a := r.ask(ctx, s, "", false, false, func(ctx context.Context) answer { return s.request(ctx, "server/discover", nil) })
	for _, v := range texts(a.doc, "/result/supportedVersions") {
		if !slices.Contains(r.model.protocols, v) && len(r.model.protocols) < 20 {
			r.model.protocols = append(r.model.protocols, v)
		}
	}
}

// entries returns the names that a page of help lists, and whether it lists any.
func entries(data any) ([]string, bool) {
	for _, name := range []string{"commands", "subcommands"} {
		list, ok := pointer(data, "/"+name)
		all, isList := list.([]any)
		if !ok || !isList {
			continue
		}
		var names []string
		for _, e := range all {
			if object, ok := e.(map[string]any); ok {
				e = object["name"]
			}
			if text, ok := e.(string); ok && text != "" && len(text) <= 200 && !strings.ContainsAny(text, "'\"\\\n\t$") {
				names = append(names, text)
			}
		}
		return names, true
	}
	return nil, false
}

// learnPath asks for help about a command or group, and its entries.
func (r *runner) learnPath(ctx context.Context, path string, depth int) {
	m := r.model
	if depth > maxWords || len(m.commands) >= maxCommands || len(m.groups) >= maxCommands || r.gone {
		return
	}
	if m.find(path) != nil || m.isGroup(path) {
		return
	}
	a := r.command(ctx, "help "+path)
	data, _ := pointer(a.doc, "/data")
	help, ok := data.(map[string]any)
	if !ok || a.doc["success"] != true {
		return
	}
	if list, ok := help["arguments"].([]any); ok {
		m.commands = append(m.commands, r.learnCommand(ctx, path, help, list))
	}
	names, isGroup := entries(help)
	if !isGroup {
		return
	}
	g := &group{path: path, help: help}
	for _, n := range names {
		if !strings.HasPrefix(n, path+" ") {
			n = path + " " + n
		}
		g.commands = append(g.commands, n)
	}
	m.groups = append(m.groups, g)
	m.list(g.commands)
	for _, n := range g.commands {
		r.learnPath(ctx, n, len(strings.Fields(n)))
	}
}

func (r *runner) learnCommand(ctx context.Context, path string, help map[string]any, list []any) *command {
	c := &command{path: path, help: help, common: r.model.common}
	schema := r.command(ctx, "schema "+path)
	if schema.doc["success"] == true {
		c.schema, _ = pointer(schema.doc, "/data")
	}
	c.harmless = r.harmless(c)
	for _, e := range list[:min(len(list), maxArguments)] {
		if entry, ok := e.(map[string]any); ok {
			if a := newArgument(c, entry); a != nil {
				c.arguments = append(c.arguments, a)
			}
		}
	}
	for _, e := range texts(help, "/examples") {
		if len(e) < 2000 {
			c.examples = append(c.examples, e)
		}
	}
	c.disturbs = disturbing.MatchString(textAt(help, "/description")) || c.argument("wait") != nil
	c.base, c.hasBase = c.compose(nil)
	return c
}

// disturbing matches the description of a command that waits for something, or that stops the work
// of others. Carried out, it would cost the run its answers; so would one with an option "wait".
var disturbing = regexp.MustCompile(`(?i)\A\s*(waits?|watch(es)?|stops?|shuts? down|quits?|exits?|restarts?)\b`)

// harmless reports whether a command is known to change nothing.
func (r *runner) harmless(c *command) bool {
	switch c.help["effect"] {
	case "none", "meta", "read":
		return true
	}
	if slices.Contains(reserved, c.path) || r.model.readOnly {
		return true
	}
	return matchesAny(r.o.Harmless, c.path)
}

var reserved = []string{"help", "schema", "version"}

// compose makes a command string with all required arguments, except the one to
// leave out.
func (c *command) compose(without *argument) (string, bool) {
	options, positionals := c.path, ""
	for _, a := range c.arguments {
		if !a.required || a == without {
			continue
		}
		if !a.hasValid {
			return "", false
		}
		if a.positional {
			positionals += " " + quote(a.valid)
		} else {
			options += " " + a.label + a.spaced(a.valid)
		}
	}
	return options + positionals, true
}

// spaced writes a value behind an option's name; a flag has none.
func (a *argument) spaced(value string) string {
	if a.kind == "flag" {
		return ""
	}
	s, _ := filter(value, "value") // the filter exists
	return s
}

// learnContexts finds for each argument a command string around it.
func (r *runner) learnContexts(ctx context.Context, c *command) {
	var candidates []string
	if c.hasBase {
		candidates = append(candidates, c.base)
	}
	for _, e := range c.examples {
		if tokens, ok := split(e); ok && c.owns(tokens) {
			candidates = append(candidates, e)
		}
	}
	if !slices.Contains(candidates, c.path) {
		candidates = append(candidates, c.path)
	}
	accepted := map[string]answer{}
	for _, a := range c.arguments {
		if a.positional {
			a.around(c)
			continue
		}
		var usable []string
		for _, text := range candidates {
			tokens, ok := split(text)
			if !ok || slices.Contains(tokens, "--") || slices.ContainsFunc(tokens, a.isIn) {
				continue
			}
			if other := c.argument(a.requires); other != nil && !slices.ContainsFunc(tokens, other.isIn) {
				text += " " + other.label + other.spaced(other.valid)
			}
			usable = append(usable, text)
		}
		if len(usable) == 0 {
			continue
		}
		a.context, a.hasContext = usable[0], true
		if !r.mayRun(c) || c.disturbs || !a.hasValid && a.kind != "flag" || !r.o.Exhaustive && r.seenTwice(c, a) {
			continue
		}
		a.context = r.choose(ctx, a, usable, accepted)
		if a.accepted && c.takesNone() {
			a.taken = r.takenShort(ctx, c, a)
		}
	}
}

// shortPattern is a short option as help speaks of it.
var shortPattern = regexp.MustCompile(`(?:^|[^A-Za-z0-9_-])(-[A-Za-z])(?:[^A-Za-z0-9_-]|[0-9]|$)`)

// takenShort returns a short option that takes the option's value behind a space, where help has no
// member that says so (002 section 6.2.2 knows none): -n as 002 has it, the first letter of the name
// and what help and examples speak of are tried; empty without one. What is taken alone is a flag.
func (r *runner) takenShort(ctx context.Context, c *command, a *argument) string {
	if _, said := a.entry["short"]; said || a.kind == "flag" || strings.HasPrefix(a.valid, "-") {
		return ""
	}
	candidates := []string{"-n", "-" + a.name[:1]}
	for _, m := range shortPattern.FindAllStringSubmatch(show(a.entry)+strings.Join(c.examples, " "), 3) {
		candidates = append(candidates, m[1])
	}
	slices.Sort(candidates)
	for _, short := range slices.Compact(candidates) {
		taken := func(rest string) bool { return r.command(ctx, a.context+" "+short+rest).doc["success"] == true }
		if taken(" "+quote(a.valid)) && !taken("") {
			return short
		}
	}
	return ""
}

// takesNone reports whether a command has no positionals, so that each word behind an option that
// is taken is its value.
func (c *command) takesNone() bool {
	return !slices.ContainsFunc(c.arguments, func(a *argument) bool { return a.positional })
}

// seenTwice reports whether an equal argument has been learned of two commands before
// this one.
func (r *runner) seenTwice(c *command, a *argument) bool {
	n := 0
	for _, other := range r.model.commands {
		if other == c || n >= sharedBy {
			break
		}
		if slices.ContainsFunc(other.arguments, func(b *argument) bool { return b.print == a.print }) {
			n++
		}
	}
	return n >= sharedBy
}

// sharedBy is how many of the commands with equal arguments are asked for them.
const sharedBy = 2

// choose tries contexts and returns the first in which the option with a plausible
// value is accepted, else the first whose refusal does not name the option.
func (r *runner) choose(ctx context.Context, a *argument, usable []string, seen map[string]answer) string {
	second := ""
	for _, text := range usable {
		line := text + " " + a.label + a.spaced(a.valid)
		got, ok := seen[line]
		if !ok {
			got = r.command(ctx, line)
			seen[line] = got
		}
		says, _ := got.doc["says"].(string)
		switch code := got.doc["code"]; {
		case got.outcome != OutcomeResult:
			return text
		case got.doc["success"] == true:
			a.accepted = true
			return text
		case code != "VALIDATION_ERROR" && code != "PARSE_ERROR" && code != "COMMAND_NOT_FOUND" && code != "INVALID_DATE_FORMAT":
			return text
		case second == "" && !containsWord(says, a.name):
			second = text
		}
	}
	if second != "" {
		return second
	}
	return usable[0]
}

// owns reports whether tokens are a call of the command.
func (c *command) owns(tokens []string) bool {
	words := strings.Fields(c.path)
	return len(tokens) >= len(words) && slices.Equal(tokens[:len(words)], words)
}

func (c *command) argument(name string) *argument {
	for _, a := range c.arguments {
		if name != "" && a.name == name {
			return a
		}
	}
	return nil
}

// around finds the text before and after a positional.
func (a *argument) around(c *command) {
	options, before, after, passed := c.path, "", "", false
	for _, o := range c.arguments {
		switch {
		case o == a:
			passed = true
		case !o.positional && !o.required, o.positional && passed && !o.required:
		case !o.hasValid, o.positional && !passed && o.kind == "array":
			return // nothing is known to put there
		case !o.positional:
			options += " " + o.label + o.spaced(o.valid)
		case passed:
			after += " " + quote(o.valid)
		default:
			before += " " + quote(o.valid)
		}
	}
	a.before, a.after, a.hasContext = options+before, after, true
}

// tokenPattern is a token as 002 section 4.1 has it, and tokenPart a run in it with a backslash
// or quotes.
var (
	tokenPattern = regexp.MustCompile(`(?s)(?:[^ \t\r\n'"\\]|` + tokenPart.String() + `)+`)
	tokenPart    = regexp.MustCompile(`(?s)\\.|'[^']*'|"(?:[^"\\]|\\.)*"`)
	tokenEscape  = regexp.MustCompile(`(?s)\\(.)`)
)

// split reads a command string, well enough for examples.
func split(s string) (tokens []string, ok bool) {
	for _, t := range tokenPattern.FindAllString(s, -1) {
		tokens = append(tokens, tokenPart.ReplaceAllStringFunc(t, func(part string) string {
			switch part[0] {
			case '\'':
				return part[1 : len(part)-1]
			case '"':
				part = part[1 : len(part)-1]
			}
			return tokenEscape.ReplaceAllString(part, "$1")
		}))
	}
	return tokens, strings.Trim(tokenPattern.ReplaceAllString(s, ""), " \t\r\n") == ""
}
