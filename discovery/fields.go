package discovery

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/postern-mail/postern/internal/plain"
)

// fieldTree is the shape of an answer, or a selection of it: the names at each level, in
// order. A field has nil below where it has no fields, or is selected whole.
type fieldTree struct {
	names []string
	below map[string]*fieldTree
}

func fieldsOf(s *jsonschema.Schema) *fieldTree {
	if s == nil {
		return nil
	}
	if s.Type == "array" {
		return fieldsOf(s.Items)
	}
	if s.Properties == nil || s.Properties.Len() == 0 {
		return nil
	}
	t := &fieldTree{below: map[string]*fieldTree{}}
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		t.names = append(t.names, p.Key)
		t.below[p.Key] = fieldsOf(p.Value)
	}
	return t
}

func (t *fieldTree) list(prefix string, into []string) []string {
	if t == nil {
		return into
	}
	for _, n := range t.names {
		into = append(into, prefix+n)
		into = t.below[n].list(prefix+n+".", into)
	}
	return into
}

// FieldNames lists every name that --fields takes for this command, dotted where
// nested, sorted.
func (c *Command) FieldNames() []string {
	c.generate()
	names := c.fields.list("", nil)
	slices.Sort(names)
	return names
}

// Fields lists the topmost fields of the answer in their order, those of its elements
// where it is an array.
func (c *Command) Fields() (names []string, array bool) {
	c.generate()
	if c.fields != nil {
		names = c.fields.names
	}
	return names, c.array
}

// Projection is a checked selection of fields of one command's answer.
type Projection struct{ root *fieldTree }

// Project checks the names given to --fields. No names select everything: the
// Projection is then nil. Unknown ones are a VALIDATION_ERROR that lists the
// valid.
func (c *Command) Project(names []string) (*Projection, error) {
	if len(names) == 0 {
		return nil, nil
	}
	c.generate()
	root := &fieldTree{below: map[string]*fieldTree{}}
	var unknown []string
	for _, name := range names {
		name = strings.TrimSpace(name)
		if path := strings.Split(name, "."); c.fields.has(path) {
			root.add(path)
		} else {
			unknown = append(unknown, plain.Excerpt(name, 40))
		}
	}
	if len(unknown) > 0 {
		valid := c.FieldNames()
		if len(valid) == 0 {
			return nil, c.usageFault(ValidationError, "Leave --fields out.", "The answer has no fields to choose from.")
		}
		return nil, &Fault{Code: ValidationError,
			Message:  fmt.Sprintf("The answer has no field '%s'.", strings.Join(unknown, "', '")),
			Hint:     "Valid fields: " + strings.Join(valid, ", ") + ".",
			Examples: []string{c.Examples[0] + " --fields " + valid[0]}}
	}
	return &Projection{root}, nil
}

func (t *fieldTree) has(path []string) bool {
	for _, p := range path {
		if t == nil || !slices.Contains(t.names, p) {
			return false
		}
		t = t.below[p]
	}
	return true
}

// add selects a path. A field that is selected whole stays so.
func (s *fieldTree) add(path []string) {
	for i, p := range path {
		sub, seen := s.below[p]
		if !seen {
			s.names = append(s.names, p)
		}
		if seen && sub == nil {
			return
		}
		if i == len(path)-1 {
			s.below[p] = nil
			return
		}
		if sub == nil {
			sub = &fieldTree{below: map[string]*fieldTree{}}
			s.below[p] = sub
		}
		s = sub
	}
}

// Apply reduces marshalled data to the selected fields, in the order they were
// asked for, in every element of an array. What the answer leaves out stays out.
func (p *Projection) Apply(data json.RawMessage) (json.RawMessage, error) {
	if p == nil {
		return data, nil
	}
	var b bytes.Buffer
	if err := p.root.write(&b, data); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func (s *fieldTree) write(b *bytes.Buffer, data json.RawMessage) error {
	switch {
	case s == nil || len(data) == 0:
		b.Write(data)
		return nil
	case data[0] == '[':
		var items []json.RawMessage
		if err := json.Unmarshal(data, &items); err != nil {
			return err
		}
		b.WriteByte('[')
		for i, item := range items {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := s.write(b, item); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	case data[0] == '{':
		var object map[string]json.RawMessage
		if err := json.Unmarshal(data, &object); err != nil {
			return err
		}
		b.WriteByte('{')
		first := true
		for _, name := range s.names {
			value, ok := object[name]
			if !ok {
				continue
			}
			if !first {
				b.WriteByte(',')
			}
			first = false
			fmt.Fprintf(b, "%q:", name)
			if err := s.below[name].write(b, value); err != nil {
				return err
			}
		}
		b.WriteByte('}')
		return nil
	}
	b.Write(data)
	return nil
}
