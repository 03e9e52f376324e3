package faulty

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"time"
	"unicode/utf8"
)

// object is a JSON object whose members keep their order.
type object []member

type member struct {
	name  string
	value any
}

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := plain(m.name)
		if err != nil {
			return nil, err
		}
		value, err := plain(m.value)
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, name...), ':'), value...)
	}
	return append(b, '}'), nil
}

func (o object) without(name string) object {
	var kept object
	for _, m := range o {
		if m.name != name {
			kept = append(kept, m)
		}
	}
	return kept
}

func (o object) with(name string, value any) object {
	out := append(object(nil), o...)
	for i, m := range out {
		if m.name == name {
			out[i].value = value
			return out
		}
	}
	return append(out, member{name, value})
}

// plain writes JSON with <, > and & as they are.
func plain(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// problem is why a command failed (002 section 5.1.2).
type problem struct {
	code, message, hint string
	examples            []string
}

// Server is one process's worth of server: the commands, its notes and its one fault.
// It is safe for concurrent use.
type Server struct {
	fault    Fault
	root     *command
	deadline time.Duration

	mu      sync.Mutex
	notes   []note
	rations []time.Time
	last    string   // the command before, for MetaOtherCommand
	words   []string // of the command before, for Stateful
}

// New returns a server with a fault; the zero Fault makes it a correct one.
func New(fault Fault) *Server {
	return &Server{fault: fault, root: tree(), deadline: 100 * time.Millisecond, notes: firstNotes()}
}

func (s *Server) is(f Fault) bool { return s.fault.Name == f.Name }

// answer is the result of one command string.
type answer struct {
	data    any
	problem *problem
	words   []string
	took    time.Duration
}

// do runs one command string.
func (s *Server) do(ctx context.Context, line string) (a answer) {
	began := time.Now()
	defer func() { a.took = time.Since(began) }()
	if a.words, a.problem = s.tokenize(line); a.problem != nil {
		return a
	}
	if s.is(Stateful) {
		s.mu.Lock()
		before := s.words
		s.words = a.words
		s.mu.Unlock()
		if len(a.words) == 0 {
			a.words = before
		}
	}
	if len(a.words) == 0 {
		a.problem = s.unreadable("it is empty")
		if s.is(EmptyIsCrash) {
			a.problem.code = "EXECUTION_ERROR"
		}
		return a
	}
	c, rest, p := s.resolve(a.words)
	if p != nil {
		switch {
		case s.is(RunsUnlisted), s.is(PrototypeNames) && prototype(a.words[len(a.words)-1]):
			a.data = object{{"command", a.words[len(a.words)-1]}, {"arguments", []string{}}}
		default:
			a.problem = p
		}
		return a
	}
	if len(c.sub) > 0 {
		a.data, a.problem = s.group(c, rest)
		return a
	}
	values, asked, p := s.bind(c, rest)
	switch {
	case p != nil:
		a.problem = p
	case asked:
		a.data = s.describe(c)
	default:
		ctx, cancel := context.WithTimeout(ctx, s.deadline)
		defer cancel()
		a.data, a.problem = c.run(ctx, s, values)
	}
	return a
}

func prototype(name string) bool {
	switch name {
	case "__proto__", "constructor", "toString", "hasOwnProperty", "prototype", "valueOf":
		return true
	}
	return false
}

// group answers a group named alone, with --help or with anything else behind it.
func (s *Server) group(c *command, rest []string) (any, *problem) {
	switch {
	case len(rest) > 0 && rest[0] != "--help":
		return nil, &problem{code: "VALIDATION_ERROR", message: "There is no option '" + shown(rest[0]) + "'.",
			hint: "Run 'help " + c.path() + "' for its commands.", examples: []string{"help " + c.path()}}
	case s.is(GroupRefused):
		return nil, &problem{code: "EXECUTION_ERROR", message: c.path() + " is a group.", hint: "Name one of its commands."}
	}
	return s.describe(c), nil
}

// envelope makes the AcliResponse of an answer (002 section 5.1).
func (s *Server) envelope(line string, a answer) any {
	e := object{{"success", a.problem == nil}}
	meta := object{{"command", s.repeated(line, a.words)}}
	if p := a.problem; p != nil {
		failure := object{{"code", p.code}, {"message", p.message}, {"hint", p.hint}}
		if len(p.examples) > 0 {
			failure = append(failure, member{"examples", p.examples})
		}
		e = append(e, member{"error", s.spoilError(failure, p)})
	} else {
		e = append(e, member{"data", a.data})
	}
	if !s.is(NoDuration) {
		meta = append(meta, member{"duration_ms", a.took.Milliseconds()})
	}
	return s.spoil(append(e, member{"_meta", meta}), a.problem != nil)
}

// repeated is a command string as _meta repeats it: of bounded length and without
// secrets. Whatever follows the name of a secret is left out, so that a broken
// command string shows none either.
func (s *Server) repeated(line string, words []string) string {
	if s.is(MetaOtherCommand) {
		s.mu.Lock()
		defer s.mu.Unlock()
		before := s.last
		s.last = line
		return before
	}
	if !s.is(EchoesSecrets) {
		line = hide(line, words)
	}
	if utf8.RuneCountInString(line) > 256 {
		line = string([]rune(line)[:255]) + "…"
	}
	return line
}

// spoilError does to an error what the server's fault does to it.
func (s *Server) spoilError(e object, p *problem) any {
	switch {
	case s.is(NoCode):
		return e.without("code")
	case s.is(NumberCode):
		return e.with("code", 400)
	case s.is(CodeLowerCase):
		return e.with("code", string(bytes.ToLower([]byte(p.code))))
	case s.is(NoErrorMessage):
		return e.without("message")
	case s.is(EmptyErrorMessage):
		return e.with("message", "")
	case s.is(ErrorAsString):
		return p.message
	case s.is(NoHint):
		return e.without("hint")
	case s.is(EmptyHint):
		return e.with("hint", "")
	case s.is(NoExamples):
		return e.without("examples")
	case s.is(ExamplesAsString) && len(p.examples) > 0:
		return e.with("examples", p.examples[0])
	case s.is(BrokenExamples) && p.code == "VALIDATION_ERROR":
		return e.with("examples", []string{"echo --no-such-thing 1"})
	case s.is(ParseAsExecution) && p.code == "PARSE_ERROR":
		return e.with("code", "EXECUTION_ERROR")
	}
	return e
}

// spoil does to a response what the server's fault does to it.
func (s *Server) spoil(e object, failed bool) any {
	meta := func(change func(object) object) object {
		for _, m := range e {
			if m.name == "_meta" {
				return e.with("_meta", change(m.value.(object)))
			}
		}
		return e
	}
	switch {
	case s.is(NullData) && !failed:
		return e.with("data", nil)
	case s.is(NoData) && !failed:
		return e.without("data")
	case s.is(DataInFailure) && failed:
		return append(e, member{"data", object{}})
	case s.is(ErrorInSuccess) && !failed:
		return append(e, member{"error", nil})
	case s.is(SuccessAsString):
		return e.with("success", map[bool]string{true: "false", false: "true"}[failed])
	case s.is(SuccessAsNumber):
		return e.with("success", map[bool]int{true: 0, false: 1}[failed])
	case s.is(NoSuccess):
		return e.without("success")
	case s.is(SuccessOnFailure):
		return e.with("success", true)
	case s.is(MessageAsObject) && !failed:
		return append(e, member{"message", object{{"text", "done"}}})
	case s.is(NoMeta):
		return e.without("_meta")
	case s.is(MetaWithoutCommand):
		return meta(func(o object) object { return o.without("command") })
	case s.is(NegativeDuration):
		return meta(func(o object) object { return o.with("duration_ms", -1) })
	case s.is(DurationAsString):
		return meta(func(o object) object { return o.with("duration_ms", "1ms") })
	case s.is(ContentTwiceInOne):
		return append(e, member{"success", !failed})
	}
	return e
}

// result makes the CallToolResult of a response (002 section 5.3).
func (s *Server) result(line string, a answer) object {
	envelope := s.envelope(line, a)
	text, err := plain(envelope)
	if err != nil {
		text = []byte(`{"success":false,"error":{"code":"EXECUTION_ERROR","message":"The answer cannot be written.","hint":"Tell whoever wrote this server."}}`)
	}
	switch {
	case s.is(NoEnvelope) && a.problem != nil:
		text = []byte(a.problem.code + ": " + a.problem.message + " " + a.problem.hint)
	case s.is(NoEnvelope):
		if text, err = plain(a.data); err != nil {
			text = []byte("null")
		}
	case s.is(ContentNotJSON):
		text = []byte("Here is what you asked for.")
	case s.is(ContentFenced):
		text = []byte("```json\n" + string(text) + "\n```")
	case s.is(PrettyJSON):
		var b bytes.Buffer
		if json.Indent(&b, text, "", "  ") == nil {
			text = b.Bytes()
		}
	case s.is(TrailingText):
		text = append(text, "\nHave a nice day."...)
	}
	one := object{{"type", "text"}, {"text", string(text)}}
	contents := []any{one}
	failed := a.problem != nil
	var more object
	switch {
	case s.is(TwoContents):
		contents = []any{one, one}
	case s.is(NoContents):
		contents = []any{}
	case s.is(StructuredOnly):
		contents, more = []any{one.with("text", "")}, object{{"structuredContent", envelope}}
	case s.is(ResourceContent):
		contents = []any{object{{"type", "resource"}, {"resource", object{{"uri", "acli:answer"}, {"mimeType", "application/json"}, {"text", string(text)}}}}}
	case s.is(NeverIsError):
		failed = false
	case s.is(AlwaysIsError):
		failed = true
	}
	return append(object{{"content", contents}, {"isError", failed}}, more...)
}
