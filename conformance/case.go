package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// Level is a conformance level (002 section 11.1). Each includes the one before.
type Level string

// The levels, and what a server has that reaches none.
const (
	NoLevel  Level = "none"
	Minimal  Level = "Minimal"
	Standard Level = "Standard"
	Full     Level = "Full"
)

// levels are those a case may have, the lowest first.
var levels = []Level{Minimal, Standard, Full}

// Category is what a case tests (002 section 11.2).
type Category string

// The categories.
const (
	Parser    Category = "Parser"
	Security  Category = "Security"
	Discovery Category = "Discovery"
	Response  Category = "Response"
)

var categories = []Category{Parser, Security, Discovery, Response}

// Strength says what a failure means: a must that fails is a fault of the server, a
// should that fails is one too unless the server's makers decided otherwise, so it
// costs no level.
type Strength string

// The strengths. A case without one is a must.
const (
	Must   Strength = "must"
	Should Strength = "should"
)

// Case is one thing that a server is asked and held to. With a For it is a
// template, which stands for as many questions as the quantifier finds.
type Case struct {
	ID       string    `json:"id"`
	Clause   string    `json:"clause"`
	Level    Level     `json:"level"`
	Category Category  `json:"category"`
	Strength Strength  `json:"strength,omitempty"`
	Title    string    `json:"title"`
	Requires *Requires `json:"requires,omitempty"`
	For      *For      `json:"for,omitempty"`
	Steps    []*Step   `json:"steps,omitempty"`

	// Expect stands in the place of steps in a template: what each item has to match,
	// or each answer where For.Each is "answer".
	Expect *Pattern `json:"expect,omitempty"`

	Suite    string `json:"-"` // of the file it stands in
	Document string `json:"-"` // number of the specification that Clause is of
	File     string `json:"-"`
}

// Requires says what a server must offer for a case to be applicable.
type Requires struct {
	Command   string `json:"command,omitempty"`   // path that help lists
	Option    string `json:"option,omitempty"`    // of that command, with its dashes
	Transport string `json:"transport,omitempty"` // "stdio"
	Protocol  string `json:"protocol,omitempty"`  // MCP protocol version the server can speak
	Effects   bool   `json:"effects,omitempty"`   // the operator allows commands that change things
}

// For is a quantifier over what the server says of itself.
type For struct {
	Each  string   `json:"each"`
	Where *Pattern `json:"where,omitempty"`
}

// The sets a template can range over.
var quantifiers = []string{"group", "command", "argument", "bound", "value", "example", "extension", "capability", "answer", "failure_example"}

// Step is one message to the server and what is expected of the answer. Exactly one
// of Command, Arguments, Request, Notify, Line and Client is given.
type Step struct {
	Command   *Text           `json:"command,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Request   *Message        `json:"request,omitempty"`
	Notify    *Message        `json:"notify,omitempty"`
	Line      *Text           `json:"line,omitempty"`
	Client    string          `json:"client,omitempty"`

	Session  string `json:"session,omitempty"`
	Protocol string `json:"protocol,omitempty"`

	// Executes marks a command that a server may carry out; it is sent only where
	// the command is known to be harmless or the operator allows effects.
	Executes bool `json:"executes,omitempty"`

	Outcome []string          `json:"outcome,omitempty"`
	Save    map[string]string `json:"save,omitempty"`
	Expect  *Pattern          `json:"expect,omitempty"`
}

// Message is a JSON-RPC request or notification without its id.
type Message struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
}

// Outcomes of a step.
const (
	OutcomeResult = "result" // a JSON-RPC result
	OutcomeError  = "error"  // a JSON-RPC error
	OutcomeNone   = "none"   // nothing, as a notification has it
	OutcomeLost   = "lost"   // the server hung, ended, flooded or talked nonsense
)

var outcomes = []string{OutcomeResult, OutcomeError, OutcomeNone, OutcomeLost}

// Text is a string, in JSON as such or as an array of strings and of objects
// {"repeat": string, "times": n}, so that ten thousand characters need no line of
// that length.
type Text struct{ parts []textPart }

type textPart struct {
	text  string
	times int
}

// maxText bounds in bytes what a Text can become.
const maxText = 1 << 20

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		t.parts = []textPart{{s, 1}}
		return nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(b, &list); err != nil || len(list) == 0 {
		return errors.New("a text is a string or an array of its parts")
	}
	size := 0
	for _, raw := range list {
		p := textPart{times: 1}
		if raw[0] == '"' {
			if err := json.Unmarshal(raw, &p.text); err != nil {
				return err
			}
		} else {
			var r struct {
				Repeat string `json:"repeat"`
				Times  int    `json:"times"`
			}
			if err := strictly(raw, &r); err != nil {
				return err
			}
			if r.Repeat == "" || r.Times < 1 || r.Times > maxText {
				return errors.New(`a repeated part needs "repeat" and a positive "times"`)
			}
			p = textPart{r.Repeat, r.Times}
		}
		if size += len(p.text) * p.times; size > maxText {
			return fmt.Errorf("a text has more than %d bytes", maxText)
		}
		t.parts = append(t.parts, p)
	}
	return nil
}

// MarshalJSON implements json.Marshaler.
func (t *Text) MarshalJSON() ([]byte, error) {
	if len(t.parts) == 1 && t.parts[0].times == 1 {
		return json.Marshal(t.parts[0].text)
	}
	var list []any
	for _, p := range t.parts {
		if p.times == 1 {
			list = append(list, p.text)
		} else {
			list = append(list, map[string]any{"repeat": p.text, "times": p.times})
		}
	}
	return json.Marshal(list)
}

// expand puts the text together, its placeholders filled from vars.
func (t *Text) expand(vars scope) (string, error) {
	var b strings.Builder
	for _, p := range t.parts {
		s, err := vars.expand(p.text)
		if err != nil {
			return "", err
		}
		if len(s)*p.times > maxText {
			return "", fmt.Errorf("a text has more than %d bytes", maxText)
		}
		for range p.times {
			b.WriteString(s)
		}
	}
	return b.String(), nil
}

// strictly decodes one JSON value and refuses members the target does not have and
// anything that follows.
func strictly(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something follows the JSON value")
	}
	return nil
}

var (
	idPattern       = regexp.MustCompile(`\A[a-z0-9]+([._-][a-z0-9]+)*\z`)
	documentPattern = regexp.MustCompile(`\A[0-9]{3}\z`)

	// A section, an appendix, or a requirement by its own name, such as AC12.
	clausePattern = regexp.MustCompile(`\A([1-9][0-9]*(\.[1-9][0-9]*){0,2}[a-z]?|[A-Z][A-Z0-9]*(-[A-Z0-9]+)*)\z`)
)

// check says what is wrong with a case beyond its form.
func (c *Case) check() error {
	switch {
	case !idPattern.MatchString(c.ID):
		return errors.New("its id is not lower-case words joined by dots, dashes or underscores")
	case !clausePattern.MatchString(c.Clause):
		return fmt.Errorf("clause %q is no section number", c.Clause)
	case !slices.Contains(levels, c.Level):
		return fmt.Errorf("level %q is none of %v", c.Level, levels)
	case !slices.Contains(categories, c.Category):
		return fmt.Errorf("category %q is none of %v", c.Category, categories)
	case c.Strength != Must && c.Strength != Should:
		return fmt.Errorf("strength %q is neither must nor should", c.Strength)
	case c.Title == "":
		return errors.New("it has no title")
	}
	if c.For != nil && !slices.Contains(quantifiers, c.For.Each) {
		return fmt.Errorf("for each %q is none of %v", c.For.Each, quantifiers)
	}
	if r := c.Requires; r != nil {
		switch {
		case r.Option != "" && r.Command == "":
			return errors.New("it requires an option of no command")
		case r.Transport != "" && r.Transport != "stdio" && r.Transport != "http":
			return fmt.Errorf("transport %q is neither stdio nor http", r.Transport)
		}
	}
	switch {
	case (c.Expect != nil) == (len(c.Steps) > 0):
		return errors.New(`it needs either steps or "expect"`)
	case c.Expect != nil && c.For == nil, c.Expect == nil && c.onAnswers():
		return errors.New(`"expect" is for a template, and the only form for each answer`)
	}
	for i, s := range c.Steps {
		if err := s.check(); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	return nil
}

func (s *Step) check() error {
	n := 0
	for _, given := range []bool{s.Command != nil, s.Arguments != nil, s.Request != nil, s.Notify != nil, s.Line != nil, s.Client != ""} {
		if given {
			n++
		}
	}
	if n != 1 {
		return errors.New("it needs exactly one of command, arguments, request, notify, line and client")
	}
	switch s.Session {
	case "", "shared", "fresh", "bare":
	default:
		return fmt.Errorf("session %q is none of shared, fresh and bare", s.Session)
	}
	if s.Protocol != "" && s.Session != "fresh" && s.Session != "bare" && s.Client == "" {
		return errors.New("a protocol version needs a session of its own")
	}
	for _, m := range []*Message{s.Request, s.Notify} {
		if m != nil && m.Method == "" {
			return errors.New("a message has no method")
		}
	}
	for _, o := range s.Outcome {
		if !slices.Contains(outcomes, o) {
			return fmt.Errorf("outcome %q is none of %v", o, outcomes)
		}
	}
	for _, t := range []*Text{s.Command, s.Line} {
		if t == nil {
			continue
		}
		for _, part := range t.parts {
			if err := checkPlaceholders(part.text); err != nil {
				return err
			}
		}
	}
	if len(s.Outcome) == 0 {
		s.Outcome = []string{OutcomeResult}
		if s.Notify != nil {
			s.Outcome = []string{OutcomeNone}
		}
	}
	for name, pointer := range s.Save {
		if !namePattern.MatchString(name) || pointer != "" && pointer[0] != '/' {
			return fmt.Errorf("saving %q as %q: a name is lower-case letters, digits and underscores, and what is saved a JSON pointer", pointer, name)
		}
	}
	if s.Expect == nil && s.Save == nil && len(s.Outcome) == len(outcomes) {
		return errors.New("it expects nothing")
	}
	return nil
}

var namePattern = regexp.MustCompile(`\A[a-z][a-z0-9_]*\z`)
