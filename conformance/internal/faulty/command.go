package faulty

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The types of arguments (002 section 7.2).
const (
	typeString   = "string"
	typeInteger  = "integer"
	typeNumber   = "number"
	typeBoolean  = "boolean"
	typeFlag     = "flag"
	typeDatetime = "datetime"
	typeArray    = "array"
	typeEnum     = "enum" // not of the specification: a string of a list
)

// argument is the one definition of an argument: binding, help and schema read it.
type argument struct {
	name       string // without dashes
	short      string // one letter; none if empty
	positional bool
	kind       string
	items      string // type of an array's elements; empty for string
	required   bool
	def        any // nil for none
	enum       []string
	low, high  *float64 // of a number's value
	maxLength  int      // characters of a text or element; 0 for no bound
	maxItems   int      // 0 for no bound
	path       bool     // names a file below the server's directory
	secret     bool     // its value is shown nowhere
	about      string
	examples   []string
}

func (a *argument) label() string {
	if a.positional {
		return a.name
	}
	return "--" + a.name
}

// command is a command, or a group if it has subcommands.
type command struct {
	name     string
	about    string
	effect   string // "none", "read", "write"; of a command
	args     []*argument
	examples []string
	output   object // schema of what it answers
	run      func(ctx context.Context, s *Server, values map[string]any) (any, *problem)
	sub      []*command
	parent   *command
}

func (c *command) path() string {
	if c.parent == nil || c.parent.name == "" {
		return c.name
	}
	return c.parent.path() + " " + c.name
}

func bound(v float64) *float64 { return &v }

// tree is the registry (002 section 8.2: what is not in it does not run).
func tree() *command {
	texts := object{{"type", "array"}, {"items", object{{"type", "string"}}}}
	root := &command{sub: []*command{
		{name: "echo", about: "Answer the arguments as they were bound", effect: "none", run: echo,
			examples: []string{"echo one 'two words'", "echo --count 3 --style bold", "echo --offset=-5 --tags a,b"},
			output:   object{{"type", "object"}, {"required", []string{"arguments"}}, {"properties", object{{"arguments", object{{"type", "object"}}}}}},
			args: []*argument{
				{name: "words", kind: typeArray, positional: true, maxLength: 300, maxItems: 90, about: "Any words"},
				{name: "text", short: "m", kind: typeString, about: "Any text", examples: []string{"some text"}},
				{name: "count", short: "n", kind: typeInteger, def: 10, low: bound(1), high: bound(500), about: "How many"},
				{name: "offset", kind: typeInteger, def: 0, low: bound(-1000), high: bound(1000), about: "Where to start"},
				{name: "ratio", kind: typeNumber, def: 0.5, low: bound(-100.5), high: bound(100.5), about: "What part"},
				{name: "bright", kind: typeBoolean, def: true, about: "Whether it is bright"},
				{name: "loud", short: "l", kind: typeFlag, about: "Say it louder"},
				{name: "at", kind: typeDatetime, about: "When", examples: []string{"2026-02-02", "2026-02-02T10:00:00Z"}},
				{name: "tags", kind: typeArray, maxLength: 40, maxItems: 10, about: "Labels, separated by commas", examples: []string{"a,b"}},
				{name: "numbers", kind: typeArray, items: typeInteger, low: bound(0), high: bound(99), about: "Numbers, separated by commas", examples: []string{"1,2"}},
				{name: "colours", kind: typeArray, def: []string{"red"}, enum: []string{"red", "green", "blue"}, about: "Colours, separated by commas"},
				{name: "style", kind: typeEnum, def: "plain", enum: []string{"plain", "bold", "quiet"}, about: "How to say it"},
			}},
		{name: "note", about: "Keep notes", sub: []*command{
			{name: "list", about: "List notes, the newest first", effect: "read", run: listNotes,
				examples: []string{"note list", "note list --limit 2 --oldest-first", "note list --since 2026-02-01"},
				output:   object{{"type", "object"}, {"required", []string{"notes"}}, {"properties", object{{"notes", object{{"type", "array"}, {"items", noteSchema}}}}}},
				args: []*argument{
					{name: "limit", short: "n", kind: typeInteger, def: 20, low: bound(1), high: bound(100), about: "At most this many"},
					{name: "since", kind: typeDatetime, about: "Only notes from then on", examples: []string{"2026-02-02"}},
					{name: "until", kind: typeDatetime, def: "2030-01-01T00:00:00Z", about: "Only notes before then"},
					{name: "order", kind: typeString, def: "created", enum: []string{"created", "title"}, about: "What to sort by"},
					{name: "oldest-first", kind: typeFlag, about: "Start with the oldest"},
				}},
			{name: "show", about: "Show one note", effect: "read", run: showNote, examples: []string{"note show 1"}, output: noteSchema,
				args: []*argument{{name: "id", kind: typeInteger, positional: true, required: true, low: bound(1), high: bound(100000), about: "Number of the note", examples: []string{"1"}}}},
			{name: "add", about: "Add a note", effect: "write", run: addNote,
				examples: []string{"note add --title 'Buy milk'", "note add --title Call --due 2026-02-03T09:00:00Z"}, output: noteSchema,
				args: []*argument{
					{name: "title", kind: typeString, required: true, maxLength: 200, about: "What it is about", examples: []string{"Buy milk"}},
					{name: "due", kind: typeDatetime, about: "When it has to be done"},
					{name: "tags", kind: typeArray, about: "Labels, separated by commas"},
				}},
		}},
		{name: "file", about: "Look at files", sub: []*command{
			{name: "read", about: "Show the text of a file", effect: "read", run: readFile,
				examples: []string{"file read --path notes/today.txt"},
				output:   object{{"type", "object"}, {"required", []string{"path"}}, {"properties", object{{"path", object{{"type", "string"}}}, {"text", object{{"type", "string"}}}}}},
				args:     []*argument{{name: "path", kind: typeString, required: true, path: true, maxLength: 200, about: "Path of the file, below the notes", examples: []string{"notes/today.txt"}}}},
		}},
		{name: "wait", about: "Take a while, as slow work does", effect: "none", run: wait, examples: []string{"wait --milliseconds 1"},
			output: object{{"type", "object"}, {"required", []string{"waited_ms"}}, {"properties", object{{"waited_ms", object{{"type", "integer"}}}}}},
			args:   []*argument{{name: "milliseconds", kind: typeInteger, def: 1, low: bound(0), high: bound(60000), about: "How long"}}},
		{name: "ration", about: "Answer so many times in a second", effect: "none", run: ration, examples: []string{"ration"},
			output: object{{"type", "object"}, {"required", []string{"left"}}, {"properties", object{{"left", object{{"type", "integer"}}}}}}},
		{name: "login", about: "Log in to nothing", effect: "none", run: login, examples: []string{"login --user ann --token xyz"},
			output: object{{"type", "object"}, {"required", []string{"user"}}, {"properties", object{{"user", object{{"type", "string"}}}}}},
			args: []*argument{
				{name: "user", kind: typeString, required: true, maxLength: 20, about: "Name of the user", examples: []string{"ann"}},
				{name: "token", kind: typeString, secret: true, maxLength: 20, about: "Secret token", examples: []string{"xyz"}},
			}},
		{name: "x-example-reverse", about: "Turn a text around", effect: "none", run: reverse, examples: []string{"x-example-reverse --text abc"},
			output: object{{"type", "object"}, {"required", []string{"text"}}, {"properties", object{{"text", object{{"type", "string"}}}}}},
			args:   []*argument{{name: "text", kind: typeString, required: true, maxLength: 1000, about: "What to turn around", examples: []string{"abc"}}}},
		{name: "help", about: "What there is, or one command", effect: "none", run: help, examples: []string{"help", "help echo"}, output: object{{"type", "object"}, {"required", []string{"description"}}},
			args: []*argument{{name: "command", kind: typeArray, positional: true, maxItems: 8, about: "Words of a command"}}},
		{name: "schema", about: "JSON Schemas of commands", effect: "none", run: schema, examples: []string{"schema", "schema echo"}, output: object{{"type", "object"}},
			args: []*argument{{name: "command", kind: typeArray, positional: true, maxItems: 8, about: "Words of a command"}}},
		{name: "version", about: "Versions of the protocol and of the server", effect: "none", run: version, examples: []string{"version"},
			output: object{{"type", "object"}, {"required", []string{"acli_version", "implementation", "capabilities"}}, {"properties", object{
				{"acli_version", object{{"type", "string"}}},
				{"implementation", object{{"type", "object"}, {"required", []string{"name", "version"}}}},
				{"capabilities", object{{"type", "object"}, {"required", []string{"commands", "extensions"}}, {"properties", object{{"commands", texts}, {"extensions", texts}}}}},
			}}}},
	}}
	adopt(root)
	return root
}

func adopt(c *command) {
	for _, sub := range c.sub {
		sub.parent = c
		adopt(sub)
	}
}

var noteSchema = object{{"type", "object"}, {"required", []string{"id", "title"}}, {"properties", object{
	{"id", object{{"type", "integer"}}}, {"title", object{{"type", "string"}}}, {"created", object{{"type", "string"}, {"format", "date-time"}}},
}}}

type note struct {
	ID      int       `json:"id"`
	Title   string    `json:"title"`
	Created time.Time `json:"created"`
}

func firstNotes() []note {
	day := func(d int) time.Time { return time.Date(2026, time.February, d, 9, 0, 0, 0, time.UTC) }
	return []note{{1, "Buy milk", day(1)}, {2, "Water the plants", day(2)}, {3, "Call Ann", day(3)}}
}

// find returns the subcommand of a group with a name, or nil. A nil group means the root.
func (s *Server) find(group *command, name string) *command {
	if group == nil {
		group = s.root
	}
	if s.is(IgnoresCommandCase) {
		name = strings.ToLower(name)
	}
	for _, c := range group.sub {
		switch {
		case s.is(NoVersionCommand) && c.name == "version", s.is(NoSchemaCommand) && c.name == "schema", s.is(NoHelpCommand) && c.name == "help":
		case c.name == name, s.is(CompletesCommands) && name != "" && strings.HasPrefix(c.name, name):
			return c
		}
	}
	return nil
}

// resolve follows the words as far as they name a command.
func (s *Server) resolve(words []string) (c *command, rest []string, p *problem) {
	c = s.root
	for i, w := range words {
		if len(c.sub) == 0 || c != s.root && strings.HasPrefix(w, "-") {
			return c, words[i:], nil
		}
		next := s.find(c, w)
		switch {
		case next == nil && s.is(SubcommandIgnored) && c != s.root:
			return c, nil, nil
		case next == nil:
			return nil, nil, s.unknown(c, words[:i+1])
		}
		c = next
	}
	return c, nil, nil
}

func (s *Server) unknown(group *command, words []string) *problem {
	name := words[len(words)-1]
	p := &problem{code: "COMMAND_NOT_FOUND", message: fmt.Sprintf("Command '%s' not found.", shown(strings.Join(words, " "))),
		hint: "Run 'help' for available commands.", examples: []string{"help"}}
	if s.is(UnknownAsValidation) {
		p.code = "VALIDATION_ERROR"
	}
	if near := nearest(name, group.sub); near != nil && !s.is(NoSuggestion) {
		p.hint = fmt.Sprintf("Did you mean '%s'? %s", near.path(), p.hint)
		p.examples = []string{"help " + near.path()}
	}
	return p
}

// nearest is the command whose name takes the fewest changes to become another, if
// that is less than half of it.
func nearest(name string, list []*command) *command {
	if len(name) > 64 { // no name is near, and looking takes its square
		return nil
	}
	var best *command
	least := max(1, len(name)/2) + 1
	for _, c := range list {
		if d := distance(name, c.name); d < least {
			best, least = c, d
		}
	}
	return best
}

// distance counts the letters to insert, delete or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, before+1, row[j]+1)
		}
	}
	return row[len(b)]
}

func echo(_ context.Context, _ *Server, values map[string]any) (any, *problem) {
	return object{{"arguments", values}}, nil
}

func listNotes(_ context.Context, s *Server, values map[string]any) (any, *problem) {
	s.mu.Lock()
	list := slices.Clone(s.notes)
	s.mu.Unlock()
	if values["order"] == "title" {
		slices.SortFunc(list, func(a, b note) int { return strings.Compare(a.Title, b.Title) })
	}
	if values["oldest-first"] != true {
		slices.Reverse(list)
	}
	if since, ok := values["since"].(string); ok {
		if t, err := parseDatetime(since); err == nil {
			list = slices.DeleteFunc(list, func(n note) bool { return n.Created.Before(t) })
		}
	}
	if until, ok := values["until"].(string); ok {
		if t, err := parseDatetime(until); err == nil {
			list = slices.DeleteFunc(list, func(n note) bool { return !n.Created.Before(t) })
		}
	}
	if limit, ok := values["limit"].(int); ok {
		list = list[:max(0, min(limit, len(list)))]
	}
	return object{{"notes", list}}, nil
}

func showNote(_ context.Context, s *Server, values map[string]any) (any, *problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.notes {
		if n.ID == values["id"] {
			return n, nil
		}
	}
	return nil, &problem{code: "EXECUTION_ERROR", message: "There is no such note.", hint: "Run 'note list' for the notes there are."}
}

func addNote(_ context.Context, s *Server, values map[string]any) (any, *problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	title, _ := values["title"].(string)
	n := note{len(s.notes) + 1, title, time.Now().UTC()}
	s.notes = append(s.notes, n)
	return n, nil
}

func readFile(_ context.Context, _ *Server, values map[string]any) (any, *problem) {
	path, _ := values["path"].(string)
	if path != "notes/today.txt" {
		return nil, &problem{code: "EXECUTION_ERROR", message: "There is no such file.", hint: "There is notes/today.txt."}
	}
	return object{{"path", path}, {"text", "Buy milk.\n"}}, nil
}

func wait(ctx context.Context, _ *Server, values map[string]any) (any, *problem) {
	ms, _ := values["milliseconds"].(int)
	select {
	case <-time.After(time.Duration(ms) * time.Millisecond):
		return object{{"waited_ms", ms}}, nil
	case <-ctx.Done():
		return nil, &problem{code: "TIMEOUT", message: "The command timed out.", hint: "Wait for less."}
	}
}

// rations is the number of answers that ration gives within a second.
const rations = 60

func ration(_ context.Context, s *Server, _ map[string]any) (any, *problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.rations = slices.DeleteFunc(s.rations, func(t time.Time) bool { return now.Sub(t) > time.Second })
	if len(s.rations) == rations {
		return nil, &problem{code: "RATE_LIMITED", message: "That is too often.", hint: "Wait 1 second before the next."}
	}
	s.rations = append(s.rations, now)
	return object{{"left", rations - len(s.rations)}}, nil
}

func login(_ context.Context, _ *Server, values map[string]any) (any, *problem) {
	return object{{"user", values["user"]}}, nil
}

func reverse(_ context.Context, _ *Server, values map[string]any) (any, *problem) {
	text, _ := values["text"].(string)
	r := []rune(text)
	slices.Reverse(r)
	return object{{"text", string(r)}}, nil
}
