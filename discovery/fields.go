package discovery

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/postern-mail/postern/internal/plain"
)

// fieldTree is the shape of an answer, or a selection of it: the names at each level, in
// order. A field has nil below where it has no fields, or is selected whole.
type fieldTree struct {
	names   []string
	below   map[string]*fieldTree
	columns []string          // those of the names that are columns of a Table
	instead map[string]string // of a selection: the twins of its names
}

// kept are the members of a compact answer that stay whatever is selected: what went
// wrong, and how to go on.
var kept = []string{"issues", "hint", "more"}

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
	if columns, ok := s.Properties.Get("columns"); ok && columns.Items != nil {
		for _, name := range columns.Items.Enum {
			t.columns = append(t.columns, name.(string))
		}
	}
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		if t.columns != nil && p.Key == "columns" {
			t.names = append(t.names, t.columns...)
		}
		if t.columns != nil && (p.Key == "columns" || p.Key == "rows") {
			continue
		}
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

// only is the full name of the one field below the topmost that is called name, with those of
// issues behind the others; empty for none and for several.
func (t *fieldTree) only(name string) string {
	var at, ofIssues []string
	for _, n := range t.list("", nil) {
		switch parent, field, _ := strings.Cut(n, "."); {
		case field != name:
		case slices.Contains(kept, parent):
			ofIssues = append(ofIssues, n)
		case !slices.Contains(at, t.twin(parent)+"."+name):
			at = append(at, n)
		}
	}
	if len(at) == 0 {
		at = ofIssues
	}
	if len(at) == 1 {
		return at[0]
	}
	return ""
}

// twin is the other one of two names for the same, such as message where there is one and
// messages where there are several. An answer has one of them. It is empty for other names.
func (t *fieldTree) twin(name string) string {
	other, several := strings.CutSuffix(name, "s")
	if !several {
		other = name + "s"
	}
	if a := t.below[name]; a == nil || t.below[other] == nil || !slices.Equal(a.list("", nil), t.below[other].list("", nil)) {
		return ""
	}
	return other
}

// choices are the topmost names, with "…" behind those that have others below them.
func (t *fieldTree) choices() (names []string) {
	if t == nil {
		return nil
	}
	for _, n := range t.names {
		if t.below[n] != nil {
			n += ".…"
		}
		names = append(names, n)
	}
	return names
}

// FieldNames lists every name that --fields takes for this command's full or compact
// answer, dotted where nested, sorted.
func (c *Command) FieldNames(full bool) []string {
	names := c.answer(full).fields.list("", nil)
	slices.Sort(names)
	return names
}

// Fields lists the topmost fields of the full answer in their order, those of its
// elements where it is an array.
func (c *Command) Fields() (names []string, array bool) {
	a := c.answer(true)
	if a.fields != nil {
		names = a.fields.names
	}
	return names, a.array
}

// Projection is a checked selection of fields of one command's answer.
type Projection struct{ root *fieldTree }

// Project checks the names given to --fields for the full or the compact answer. No names
// select everything: the Projection is then nil. Unknown ones are a VALIDATION_ERROR that
// lists the valid. Of a compact answer issues, hint and more always stay.
func (c *Command) Project(names []string, full bool) (*Projection, error) {
	if len(names) == 0 {
		return nil, nil
	}
	a, whole := c.answer(full), c.answer(true)
	root, elsewhere := &fieldTree{below: map[string]*fieldTree{}}, 0
	var unknown []string
	for _, name := range names {
		name = strings.TrimSpace(name)
		path := strings.Split(name, ".")
		if at := a.fields.only(name); at != "" && !a.fields.has(path) {
			path = strings.Split(at, ".") // what stands in one place needs no more than its own name
		}
		if a.fields.has(path) {
			root.add(path)
			continue
		}
		unknown = append(unknown, plain.Excerpt(name, 40))
		if whole.fields.has(path) || whole.fields.only(name) != "" {
			elsewhere++
		}
	}
	if len(unknown) > 0 {
		valid := a.fields.choices()
		if len(valid) == 0 {
			return nil, c.usageFault(ValidationError, "Leave --fields out.", "The answer has no fields to choose from.")
		}
		f := &Fault{Code: ValidationError, Message: fmt.Sprintf("The answer has no field '%s'.", strings.Join(unknown, "', '")),
			Hint: "Valid fields: " + strings.Join(valid, ", ") + "."}
		example, form := strings.TrimSuffix(valid[0], ".…"), ""
		if full {
			form = " --full"
		}
		if elsewhere == len(unknown) {
			f.Message, f.Hint = fmt.Sprintf("Only the full answer has a field '%s'.", strings.Join(unknown, "', '")), "Add --full, or choose from: "+strings.Join(valid, ", ")+"."
			example, form = strings.Join(names, ","), " --full"
		} else if meant := slices.DeleteFunc(c.FieldNames(full), func(n string) bool { return leaf(n) != leaf(unknown[0]) }); len(meant) > 0 {
			example = meant[max(0, slices.IndexFunc(meant, func(n string) bool { return !strings.HasPrefix(n, "issues.") }))]
			f.Hint = "Did you mean " + example + "? " + f.Hint
		}
		f.Examples = []string{c.Examples[0] + " --fields " + example + form}
		return nil, f
	}
	for _, name := range kept {
		if !full && a.fields.has([]string{name}) {
			root.add([]string{name})
		}
	}
	root.instead = map[string]string{}
	for _, name := range root.names {
		if twin := a.fields.twin(name); !slices.Contains(root.names, twin) {
			root.instead[name] = twin
		}
	}
	root.table(a.fields)
	return &Projection{root}, nil
}

// table notes in a selection which of its names are columns.
func (s *fieldTree) table(of *fieldTree) {
	if s == nil || of == nil {
		return
	}
	for _, name := range s.names {
		if slices.Contains(of.columns, name) {
			s.columns = append(s.columns, name)
		}
		s.below[name].table(of.below[name])
	}
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
	return p.root.of(data)
}

// of reduces one value.
func (s *fieldTree) of(data json.RawMessage) (json.RawMessage, error) {
	var parts [][]byte
	switch {
	case s == nil || len(data) == 0:
	case data[0] == '[':
		var items []json.RawMessage
		if err := json.Unmarshal(data, &items); err != nil {
			return nil, err
		}
		for _, item := range items {
			part, err := s.of(item)
			if err != nil {
				return nil, err
			}
			parts = append(parts, part)
		}
		return array(parts), nil
	case data[0] == '{':
		var object map[string]json.RawMessage
		if err := json.Unmarshal(data, &object); err != nil {
			return nil, err
		}
		names := s.names
		if len(s.columns) > 0 {
			var err error
			if object["columns"], object["rows"], err = choose(s.columns, object["columns"], object["rows"]); err != nil {
				return nil, err
			}
			names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(s.columns, n) })
			names = slices.Insert(names, 0, "columns", "rows")
		}
		for _, name := range names {
			below := s.below[name]
			value, ok := object[name]
			if !ok {
				name = s.instead[name]
				value, ok = object[name]
			}
			if ok {
				part, err := below.of(value)
				if err != nil {
					return nil, err
				}
				parts = append(parts, fmt.Appendf(nil, "%q:%s", name, part))
			}
		}
		return fmt.Appendf(nil, "{%s}", bytes.Join(parts, []byte(","))), nil
	}
	return data, nil
}

// choose reduces a table to some of its columns, in their order. One that the table left
// out stays out.
func choose(names []string, columns, rows json.RawMessage) (newColumns, newRows json.RawMessage, err error) {
	var has []string
	var all [][]json.RawMessage
	if err := errors.Join(json.Unmarshal(columns, &has), json.Unmarshal(rows, &all)); err != nil {
		return nil, nil, err
	}
	names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !slices.Contains(has, n) })
	chosen := make([][]byte, len(all))
	for i, row := range all {
		var cells [][]byte
		for _, n := range names {
			cells = append(cells, row[slices.Index(has, n)])
		}
		chosen[i] = array(cells)
	}
	newColumns, err = json.Marshal(names)
	return newColumns, array(chosen), err
}

// array is a JSON array of values, which json.Marshal would escape anew.
func array(values [][]byte) []byte { return fmt.Appendf(nil, "[%s]", bytes.Join(values, []byte(","))) }
