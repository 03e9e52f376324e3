package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// problem is where a value breaks a schema.
type problem struct {
	At, Want string
	got      any
}

// maxSchemaDepth bounds references that go round in circles.
const maxSchemaDepth = 64

// validate holds a value to a JSON Schema (2020-12) and returns where it breaks it.
// The keywords of the core that servers use are enforced, others ignored; $ref works
// within the document.
func validate(schema, value any, at string) []problem {
	budget := maxChecks
	v := validator{root: schema, budget: &budget}
	v.check(schema, value, at, 0)
	if budget < 0 && len(v.found) == 0 { // an alternative may have hidden it
		v.miss(at, "a schema that ends, for a value of a few thousand parts", nil)
	}
	return v.found
}

// maxChecks bounds the work for one value: a schema that refers to itself twice would
// double it at every level.
const maxChecks = 200_000

type validator struct {
	root   any
	budget *int // checks that are left, of all validators for one value
	found  []problem
}

func (v *validator) miss(at, want string, got any) {
	if len(v.found) < maxMismatches {
		v.found = append(v.found, problem{at, want, got})
	}
}

func (v *validator) holds(schema, value any, depth int) bool {
	w := validator{root: v.root, budget: v.budget}
	w.check(schema, value, "", depth+1)
	return len(w.found) == 0
}

func (v *validator) check(schema, value any, at string, depth int) {
	if *v.budget--; depth > maxSchemaDepth || *v.budget < 0 {
		v.miss(at, "a schema that ends, for a value of a few thousand parts", nil)
		return
	}
	if b, ok := schema.(bool); ok {
		if !b {
			v.miss(at, "nothing, as its schema says", value)
		}
		return
	}
	s, ok := schema.(map[string]any)
	if !ok {
		v.miss(at, "a schema that is an object", schema)
		return
	}
	if ref, ok := s["$ref"].(string); ok {
		target, found := any(nil), false
		if strings.HasPrefix(ref, "#") && (ref == "#" || ref[1] == '/') {
			target, found = pointer(v.root, ref[1:])
		}
		if !found {
			v.miss(at, "a schema without the reference "+ref, nil)
			return
		}
		v.check(target, value, at, depth+1)
	}
	v.basics(s, value, at)
	v.combined(s, value, at, depth)
	switch value := value.(type) {
	case string:
		v.text(s, value, at)
	case json.Number:
		v.number(s, value, at)
	case []any:
		v.array(s, value, at, depth)
	case map[string]any:
		v.object(s, value, at, depth)
	}
}

func (v *validator) basics(s map[string]any, value any, at string) {
	if t, ok := s["type"]; ok {
		names, ok := t.([]any)
		if !ok {
			names = []any{t}
		}
		if !slices.ContainsFunc(names, func(n any) bool { name, ok := n.(string); return ok && hasType(value, name) }) {
			v.miss(at, "type "+textOf(t), value)
		}
	}
	if list, ok := s["enum"].([]any); ok && !slices.ContainsFunc(list, func(e any) bool { return equal(e, value) }) {
		v.miss(at, "one of "+show(list), value)
	}
	if c, ok := s["const"]; ok && !equal(c, value) {
		v.miss(at, show(c), value)
	}
}

func (v *validator) combined(s map[string]any, value any, at string, depth int) {
	list := func(name string) []any { l, _ := s[name].([]any); return l }
	for _, sub := range list("allOf") {
		v.check(sub, value, at, depth+1)
	}
	matching := func(l []any) (n int) {
		for _, sub := range l {
			if v.holds(sub, value, depth) {
				n++
			}
		}
		return n
	}
	if l := list("anyOf"); len(l) > 0 && matching(l) == 0 {
		v.miss(at, "a value of one schema in anyOf", value)
	}
	if l := list("oneOf"); len(l) > 0 && matching(l) != 1 {
		v.miss(at, "a value of exactly one schema in oneOf", value)
	}
	if not, ok := s["not"]; ok && v.holds(not, value, depth) {
		v.miss(at, "no value of the schema in not", value)
	}
}

// bound reads a numeric keyword.
func bound(s map[string]any, name string) (json.Number, bool) {
	n, ok := s[name].(json.Number)
	return n, ok
}

func (v *validator) length(s map[string]any, n int, low, high, at string, value any) {
	got := json.Number(strconv.Itoa(n))
	if b, ok := bound(s, low); ok && compareNumbers(got, b) < 0 {
		v.miss(at, fmt.Sprintf("%s %s", low, b), value)
	}
	if b, ok := bound(s, high); ok && compareNumbers(got, b) > 0 {
		v.miss(at, fmt.Sprintf("%s %s", high, b), value)
	}
}

func (v *validator) text(s map[string]any, value, at string) {
	v.length(s, utf8.RuneCountInString(value), "minLength", "maxLength", at, value)
	if p, ok := s["pattern"].(string); ok {
		// A pattern that RE2 does not have is not this value's fault.
		if re, err := regexp.Compile(p); err == nil && !re.MatchString(value) {
			v.miss(at, "a match of "+p, value)
		}
	}
	if s["format"] == "date-time" {
		if _, err := time.Parse(time.RFC3339, value); err != nil {
			v.miss(at, "a date-time of RFC 3339", value)
		}
	}
}

func (v *validator) number(s map[string]any, value json.Number, at string) {
	for name, bad := range map[string]func(int) bool{
		"minimum":          func(c int) bool { return c < 0 },
		"maximum":          func(c int) bool { return c > 0 },
		"exclusiveMinimum": func(c int) bool { return c <= 0 },
		"exclusiveMaximum": func(c int) bool { return c >= 0 },
	} {
		if b, ok := bound(s, name); ok && bad(compareNumbers(value, b)) {
			v.miss(at, fmt.Sprintf("%s %s", name, b), value)
		}
	}
	if b, ok := bound(s, "multipleOf"); ok {
		x, ok1 := number(value)
		y, ok2 := number(b)
		if ok1 && ok2 && y.Sign() > 0 && !new(big.Rat).Quo(x, y).IsInt() {
			v.miss(at, "a multiple of "+b.String(), value)
		}
	}
}

func (v *validator) array(s map[string]any, value []any, at string, depth int) {
	v.length(s, len(value), "minItems", "maxItems", at, value)
	prefix, _ := s["prefixItems"].([]any)
	for i, e := range value {
		switch items, ok := s["items"]; {
		case i < len(prefix):
			v.check(prefix[i], e, at+"/"+strconv.Itoa(i), depth+1)
		case ok:
			v.check(items, e, at+"/"+strconv.Itoa(i), depth+1)
		}
	}
	if s["uniqueItems"] == true {
		for i, e := range value[:min(len(value), maxCompared)] {
			if slices.ContainsFunc(value[:i], func(o any) bool { return equal(o, e) }) {
				v.miss(at, "nothing twice", e)
				break
			}
		}
	}
}

func (v *validator) object(s map[string]any, value map[string]any, at string, depth int) {
	v.length(s, len(value), "minProperties", "maxProperties", at, value)
	required, _ := s["required"].([]any)
	for _, r := range required {
		if name, ok := r.(string); ok {
			if _, there := value[name]; !there {
				v.miss(at+"/"+escapePointer(name), "a value, since it is required", missing{})
			}
		}
	}
	properties, _ := s["properties"].(map[string]any)
	patterns, _ := s["patternProperties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(value)) {
		here, known := at+"/"+escapePointer(name), false
		if sub, ok := properties[name]; ok {
			known = true
			v.check(sub, value[name], here, depth+1)
		}
		for p, sub := range patterns {
			if re, err := regexp.Compile(p); err == nil && re.MatchString(name) {
				known = true
				v.check(sub, value[name], here, depth+1)
			}
		}
		if more, ok := s["additionalProperties"]; ok && !known {
			v.check(more, value[name], here, depth+1)
		}
	}
}
