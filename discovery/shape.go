package discovery

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sync"

	"github.com/invopop/jsonschema"
)

// Shape says what a JSON value looks like that no Go type describes: the small part
// of JSON Schema that our own schemas are made of, written as there.
type Shape struct {
	Type        string            `json:"type"` // object, array, string, integer, number or boolean
	Description string            `json:"description"`
	Properties  map[string]*Shape `json:"properties"` // of an object, which has no others
	Required    []string          `json:"required"`   // of the properties
	Items       *Shape            `json:"items"`      // of an array
	Enum        []string          `json:"enum"`       // the values of a string; nil for any
}

// maxShapeDepth is how deep a Shape may nest.
const maxShapeDepth = 8

// A member's name has to be one that --fields can name.
var memberPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\A[A-Za-z_][A-Za-z0-9_-]{0,63}\z`)
})

// valid reports what is wrong with a shape. A nil Shape is right at the top only.
func (s *Shape) valid(depth int) error {
	switch {
	case s == nil && depth == 0:
		return nil
	case s == nil:
		return errors.New("something has no shape")
	case depth > maxShapeDepth:
		return fmt.Errorf("it nests deeper than %d", maxShapeDepth)
	case !slices.Contains([]string{"object", "array", "string", "integer", "number", "boolean"}, s.Type):
		return errors.New("a type is not one of object, array, string, integer, number, boolean")
	case len(s.Properties)+len(s.Required) > 0 && s.Type != "object", s.Items != nil && s.Type != "array", len(s.Enum) > 0 && s.Type != "string":
		return errors.New("only an object has properties, only an array items, and only a string an enumeration")
	case s.Type == "array":
		return s.Items.valid(depth + 1)
	}
	for name, p := range s.Properties {
		if !memberPattern().MatchString(name) || name == "__proto__" {
			return errors.New("a property's name is not allowed")
		}
		if err := p.valid(depth + 1); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(s.Required, func(name string) bool { return s.Properties[name] == nil }) {
		return errors.New("something is required that is not a property")
	}
	return nil
}

// schema is the shape as JSON Schema; a nil Shape lets everything through.
func (s *Shape) schema() *jsonschema.Schema {
	if s == nil {
		return &jsonschema.Schema{Description: "Any JSON value"}
	}
	j := &jsonschema.Schema{Type: s.Type, Description: s.Description}
	for _, e := range s.Enum {
		j.Enum = append(j.Enum, e)
	}
	switch s.Type {
	case "array":
		j.Items = s.Items.schema()
	case "object":
		j.Properties, j.AdditionalProperties = jsonschema.NewProperties(), jsonschema.FalseSchema
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			j.Properties.Set(name, s.Properties[name].schema())
		}
		j.Required = slices.Sorted(slices.Values(s.Required))
	}
	return j
}

// Fits reports whether a decoded JSON value has the shape. Numbers are json.Number.
// A nil Shape fits everything.
func (s *Shape) Fits(v any) bool {
	if s == nil {
		return true
	}
	switch s.Type {
	case "object":
		o, ok := v.(map[string]any)
		if !ok {
			return false
		}
		for name, member := range o {
			if p := s.Properties[name]; p == nil || !p.Fits(member) {
				return false
			}
		}
		return !slices.ContainsFunc(s.Required, func(name string) bool { _, there := o[name]; return !there })
	case "array":
		list, ok := v.([]any)
		return ok && !slices.ContainsFunc(list, func(e any) bool { return !s.Items.Fits(e) })
	case "string":
		text, ok := v.(string)
		return ok && (len(s.Enum) == 0 || slices.Contains(s.Enum, text))
	case "integer":
		n, ok := v.(json.Number)
		return ok && integerPattern.MatchString(n.String())
	case "number":
		_, ok := v.(json.Number)
		return ok
	case "boolean":
		_, ok := v.(bool)
		return ok
	}
	return false
}
