package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Level is a conformance level (002 section 11.1). Each includes the one before.
type Level string

// The levels, and the level of a server that reaches none of them.
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

// Case is one requirement and its test. With a For it is a template, which is
// run once for each item of the quantifier.
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

	Suite    string `json:"-"` // of its file
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

// For is a quantifier over the server's description of itself.
type For struct {
	Each  string   `json:"each"`
	Where *Pattern `json:"where,omitempty"`
}

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
	OutcomeNone   = "none"   // no answer, as to a notification
	OutcomeLost   = "lost"   // the server hung, ended, flooded or sent nonsense
)

var outcomes = []string{OutcomeResult, OutcomeError, OutcomeNone, OutcomeLost}

// Text is a string, in JSON as such or as an array of strings and of objects
// {"repeat": string, "times": n}, so that ten thousand characters need no line of
// that length. In place of times, "to" says how many characters the whole has with
// it, a repeated text of one character given.
type Text struct {
	raw   json.RawMessage
	parts []textPart
}

type textPart struct {
	text  string
	times int
	to    int // length of the whole, in characters; 0 for times
}

// maxText bounds an expanded Text, in bytes.
const maxText = 1 << 20

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(b []byte) error {
	t.raw = bytes.Clone(b)
	if len(b) > 0 && b[0] == '"' {
		b = []byte("[" + string(b) + "]")
	}
	var list []json.RawMessage
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	size := 0
	for _, raw := range list {
		repeated := struct {
			Repeat string `json:"repeat"`
			Times  int    `json:"times"`
			To     int    `json:"to"`
		}{Times: 1}
		var into any = &repeated
		if raw[0] == '"' {
			into = &repeated.Repeat
		}
		if err := json.Unmarshal(raw, into); err != nil {
			return err
		}
		if size += len(repeated.Repeat) * max(repeated.Times, repeated.To); size > maxText {
			return fmt.Errorf("a text has more than %d bytes", maxText)
		}
		t.parts = append(t.parts, textPart{repeated.Repeat, repeated.Times, repeated.To})
	}
	return nil
}

// MarshalJSON implements json.Marshaler, for the list of cases.
func (t *Text) MarshalJSON() ([]byte, error) { return t.raw, nil }

// expand puts the text together, its placeholders filled from vars.
func (t *Text) expand(vars scope) (string, error) {
	texts, length := make([]string, len(t.parts)), 0
	for i, p := range t.parts {
		s, err := vars.expand(p.text)
		if err != nil {
			return "", err
		}
		texts[i] = s
		if p.to == 0 {
			length += utf8.RuneCountInString(s) * p.times
		}
	}
	var b strings.Builder
	for i, p := range t.parts {
		s := texts[i]
		if p.to > 0 {
			p.times = max(p.to-length, 0)
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

// check returns the fault of a case that has the form of case.schema.json, and
// fills in a step's defaults.
func (c *Case) check() error {
	if c.Expect != nil && c.For == nil || c.Expect == nil && c.onAnswers() {
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
	if s.Protocol != "" && s.Session != "fresh" && s.Session != "bare" && s.Client == "" {
		return errors.New("a protocol version needs a session of its own")
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
	if s.Expect == nil && s.Save == nil && len(s.Outcome) == len(outcomes) {
		return errors.New("it expects nothing")
	}
	return nil
}
