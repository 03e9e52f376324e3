package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Pattern is an expected value: JSON that is translated to a JSON Schema. README.md
// defines the translation.
type Pattern struct {
	node    any
	literal func() (*jsonschema.Schema, error) // makes the schema, once; nil where placeholders have to be filled first
}

// UnmarshalJSON implements json.Unmarshaler. A matcher that does not exist is an error.
func (p *Pattern) UnmarshalJSON(b []byte) error {
	node, err := decode(b)
	if err != nil {
		return err
	}
	t := translation{checking: true}
	doc, _ := t.schema(node)
	if t.err != nil {
		return t.err
	}
	p.node, p.literal = node, nil
	if !t.filled {
		p.literal = sync.OnceValues(func() (*jsonschema.Schema, error) { return compile(doc) })
	}
	return nil
}

// MarshalJSON implements json.Marshaler, for the list of cases.
func (p *Pattern) MarshalJSON() ([]byte, error) { return json.Marshal(p.node) }

// match compares a value with the pattern. An error is a fault of the case, such as
// an unknown placeholder.
func (p *Pattern) match(value any, vars scope) ([]Mismatch, error) {
	t := translation{vars: vars}
	compiled := p.literal
	if compiled == nil {
		compiled = func() (*jsonschema.Schema, error) { return t.compile(p.node) }
	}
	schema, err := compiled()
	if err != nil {
		return nil, err
	}
	found := mismatches(schema, value)
	if len(found) > 0 {
		found = append(t.unusable, found...)
	}
	return found, nil
}

// translation makes a JSON Schema of a pattern.
type translation struct {
	vars     scope
	checking bool // there are no values yet: any text stands for a placeholder
	filled   bool // there was a placeholder
	err      error

	sent     []any      // schemas of the server
	unusable []Mismatch // those of them that are not schemas
}

func (t *translation) compile(pattern any) (*jsonschema.Schema, error) {
	doc, _ := t.schema(pattern)
	if t.err != nil {
		return nil, t.err
	}
	return compile(doc, t.sent...)
}

// keywords are the keywords of JSON Schema that patterns support, each with the
// type that the value must have; empty for any.
var keywords = map[string]string{
	"type": "", "const": "", "enum": "", "not": "", "anyOf": "", "allOf": "",
	"pattern": "string", "minLength": "string", "maxLength": "string",
	"minimum": "number", "maximum": "number",
	"items": "array", "contains": "array", "minItems": "array", "maxItems": "array", "uniqueItems": "array",
	"required": "object", "propertyNames": "object", "additionalProperties": "object", "maxProperties": "object", "minProperties": "object",
}

// keys is a JSON Schema.
type keys = map[string]any

func (t *translation) fail(err error) {
	if t.err == nil {
		t.err = err
	}
}

// schema returns the schema of a pattern, and whether the pattern accepts a missing
// member.
func (t *translation) schema(pattern any) (s any, absent bool) {
	switch p := pattern.(type) {
	case []any:
		all := keys{"type": "array", "minItems": len(p), "maxItems": len(p)}
		if len(p) > 0 {
			all["prefixItems"], _ = t.list(p)
		}
		return all, false
	case map[string]any:
		marked := 0
		for name := range p {
			if isMark(name) {
				marked++
			}
		}
		switch marked {
		case 0:
			return t.object(p), false
		case len(p):
			return t.matchers(p)
		}
		t.fail(errors.New("an object is a matcher or a value, not both"))
	}
	return keys{"const": t.fill(pattern)}, false
}

// isMark reports whether a member's name is that of a matcher; one that is a
// placeholder is not.
func isMark(name string) bool {
	return strings.HasPrefix(name, "$") && !strings.HasPrefix(name, "${")
}

// list translates patterns and counts those that accept absence.
func (t *translation) list(patterns []any) (schemas []any, absences int) {
	for _, p := range patterns {
		s, absent := t.schema(p)
		schemas = append(schemas, s)
		if absent {
			absences++
		}
	}
	return schemas, absences
}

func (t *translation) object(p map[string]any) keys {
	properties, required := keys{}, []any{}
	for name, member := range p {
		name = textOf(t.fill(name))
		s, absent := t.schema(member)
		if properties[name] = s; !absent {
			required = append(required, name)
		}
	}
	return keys{"type": "object", "properties": properties, "required": required}
}

// matchers translates an object of matchers, all of which must hold.
func (t *translation) matchers(p map[string]any) (s any, absent bool) {
	var all []any
	absent = true
	for _, name := range slices.Sorted(maps.Keys(p)) {
		one, also := t.matcher(name[1:], p[name])
		all, absent = append(all, one), absent && also
	}
	if len(all) == 1 {
		return all[0], absent
	}
	return keys{"allOf": all}, absent
}

func (t *translation) matcher(name string, operand any) (s any, absent bool) {
	switch name {
	case "any", "absent":
		if operand != true {
			t.fail(fmt.Errorf("$%s takes true", name))
		}
		return name == "any", name == "absent"
	case "optional":
		s, _ = t.schema(operand)
		return s, true
	case "not":
		s, absent = t.schema(operand)
		return keys{"not": s}, !absent
	case "anyOf", "allOf":
		list, ok := operand.([]any)
		if !ok {
			t.fail(fmt.Errorf("$%s takes an array", name))
		}
		schemas, absences := t.list(list)
		return keys{name: schemas}, name == "anyOf" && absences > 0 || name == "allOf" && absences == len(list)
	case "only":
		object, ok := operand.(map[string]any)
		if !ok {
			t.fail(errors.New("$only takes an object"))
		}
		s := t.object(object)
		s["additionalProperties"] = false
		return s, false
	case "word":
		return keys{"type": "string", "pattern": wordPattern(textOf(t.fill(operand)))}, false
	case "set":
		return t.set(operand), false
	case "schema":
		return t.ofServer(operand), false
	}
	kind, known := keywords[name]
	if !known {
		t.fail(fmt.Errorf("there is no matcher $%s", name))
	}
	s = t.keyword(name, operand)
	if kind != "" {
		s.(keys)["type"] = kind
	}
	return s, false
}

// keyword is a schema of one keyword.
func (t *translation) keyword(name string, operand any) keys {
	switch name {
	case "items", "contains", "propertyNames", "additionalProperties":
		s, _ := t.schema(operand)
		return keys{name: s}
	case "pattern":
		text := textOf(t.fill(operand))
		if _, err := regexp.Compile(text); err != nil {
			t.fail(fmt.Errorf("the regular expression %q cannot be used: %w", text, err))
		}
		return keys{name: text}
	}
	if text, ok := operand.(string); ok && t.checking && placeholder.MatchString(text) {
		t.fill(text)
		return keys{} // it will be a value of another type
	}
	return keys{name: t.fill(operand)}
}

// set is an array with the elements of another, in any order.
func (t *translation) set(operand any) any {
	want := t.fill(operand)
	list, ok := want.([]any)
	if !ok {
		if _, later := want.(string); !later || !t.checking {
			t.fail(errors.New("$set takes an array"))
		}
		return true
	}
	all := []any{keys{"type": "array"}}
	for _, e := range list {
		all = append(all, keys{"contains": keys{"const": e}})
	}
	if len(list) == 0 {
		return keys{"type": "array", "maxItems": 0}
	}
	return keys{"allOf": append(all, keys{"items": keys{"enum": list}})}
}

// ofServer refers to the schema that a server sent. No value is valid under an
// unusable one.
func (t *translation) ofServer(operand any) any {
	name, ok := operand.(string)
	if !ok || placeholder.FindString(name) != name {
		t.fail(errors.New("$schema takes one placeholder"))
	}
	s := t.fill(operand)
	if t.checking || t.err != nil {
		return true
	}
	if _, err := compile(keys{"$ref": "urn:sent:0"}, s); err != nil {
		t.unusable = append(t.unusable, Mismatch{Want: "a JSON Schema: " + clip(err.Error(), 300), Got: show(s)})
		return false
	}
	t.sent = append(t.sent, s)
	return keys{"$ref": fmt.Sprintf("urn:sent:%d", len(t.sent)-1)}
}

// fill replaces the placeholders in the strings of a value.
func (t *translation) fill(value any) any {
	if b, err := json.Marshal(value); err != nil || !strings.Contains(string(b), "${") {
		return value
	}
	t.filled = true
	if !t.checking {
		out, err := t.vars.fill(value)
		if err != nil {
			t.fail(err)
		}
		return out
	}
	if s, ok := value.(string); ok {
		if err := checkPlaceholders(s); err != nil {
			t.fail(err)
		}
		return placeholder.ReplaceAllString(s, "x")
	}
	return value
}

// wordPattern returns a regular expression for a word in a text that is not a part of
// a longer name. Dashes before it belong to the way an option is written, and
// underscores do for those within, as in the languages that have no dashes in names.
func wordPattern(word string) string {
	return `(^|[^A-Za-z0-9_-])-*` + strings.ReplaceAll(regexp.QuoteMeta(word), "-", "[-_]") + `($|[^A-Za-z0-9_-]|-($|[^A-Za-z0-9_]))`
}

func containsWord(text, word string) bool {
	return word != "" && regexp.MustCompile(wordPattern(word)).MatchString(text)
}
