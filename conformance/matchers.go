package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// operand is what a matcher takes.
type operand int

const (
	anyValue operand = iota
	aPattern
	patternList
	aString
	trueOnly
	aRange
	aType
	aRegex
	aPlaceholder
)

// matchers are all there are, with what each takes.
var matchers = map[string]operand{
	"$any":      trueOnly,
	"$absent":   trueOnly,
	"$unique":   trueOnly,
	"$compact":  trueOnly,
	"$type":     aType,
	"$regex":    aRegex,
	"$word":     aString,
	"$contains": aPattern,
	"$every":    aPattern,
	"$not":      aPattern,
	"$only":     aPattern,
	"$keys":     aPattern,
	"$optional": aPattern,
	"$oneOf":    patternList,
	"$allOf":    patternList,
	"$range":    aRange,
	"$length":   aRange,
	"$exact":    anyValue,
	"$set":      anyValue,
	"$schema":   aPlaceholder,
}

var types = []string{"null", "boolean", "string", "integer", "number", "array", "object"}

// checkPattern refuses what no value could be held to.
func checkPattern(v any) error {
	switch p := v.(type) {
	case string:
		return checkPlaceholders(p)
	case []any:
		for _, e := range p {
			if err := checkPattern(e); err != nil {
				return err
			}
		}
	case map[string]any:
		marked := 0
		for name := range p {
			if isMark(name) {
				marked++
			}
		}
		if marked != 0 && marked != len(p) {
			return errors.New("an object is a matcher or a value, not both")
		}
		for name, e := range p {
			if marked == 0 {
				if err := checkPattern(e); err != nil {
					return err
				}
				continue
			}
			kind, known := matchers[name]
			if !known {
				return fmt.Errorf("there is no matcher %q", name)
			}
			if err := checkOperand(kind, e); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

func checkOperand(kind operand, v any) error {
	switch kind {
	case aPattern:
		return checkPattern(v)
	case patternList:
		list, ok := v.([]any)
		if !ok || len(list) == 0 {
			return errors.New("it takes an array of patterns")
		}
		return checkPattern(v)
	case trueOnly:
		if v != true {
			return errors.New("it takes true")
		}
	case aString:
		s, ok := v.(string)
		if !ok || s == "" {
			return errors.New("it takes a string")
		}
		return checkPlaceholders(s)
	case aPlaceholder:
		if s, ok := v.(string); !ok || placeholder.FindString(s) != s {
			return errors.New("it takes one placeholder")
		}
	case aRegex:
		s, ok := v.(string)
		if !ok {
			return errors.New("it takes a string")
		}
		_, err := regexOf(placeholder.ReplaceAllString(s, "x"))
		return err
	case aType:
		names, ok := v.([]any)
		if !ok {
			names = []any{v}
		}
		for _, n := range names {
			if s, ok := n.(string); !ok || !slices.Contains(types, s) {
				return fmt.Errorf("%v is no type", n)
			}
		}
	case aRange:
		list, ok := v.([]any)
		if !ok || len(list) != 2 || list[0] == nil && list[1] == nil {
			return errors.New("it takes [least, most], of which one may be null")
		}
		for _, e := range list {
			if _, isNumber := e.(json.Number); e != nil && !isNumber {
				return errors.New("it takes numbers")
			}
		}
	}
	return nil
}

// apply holds a value to one matcher.
func (m *matcher) apply(at, name string, arg, value any) {
	if _, none := value.(missing); none && name != "$absent" && name != "$optional" && name != "$not" && name != "$oneOf" && name != "$allOf" {
		m.miss(at, "a value", value)
		return
	}
	switch name {
	case "$any":
	case "$absent":
		if _, none := value.(missing); !none {
			m.miss(at, "nothing", value)
		}
	case "$optional":
		if _, none := value.(missing); !none {
			m.value(at, arg, value)
		}
	case "$not":
		if m.try(arg, value) {
			m.miss(at, "anything but "+show(arg), value)
		}
	case "$oneOf":
		m.oneOf(at, arg.([]any), value)
	case "$allOf":
		for _, p := range arg.([]any) {
			m.value(at, p, value)
		}
	case "$type":
		names, ok := arg.([]any)
		if !ok {
			names = []any{arg}
		}
		if !slices.ContainsFunc(names, func(n any) bool { return hasType(value, n.(string)) }) {
			m.miss(at, "type "+textOf(arg), value)
		}
	case "$exact":
		m.exact(at, arg, value)
	case "$range":
		n, ok := value.(json.Number)
		if !ok || !inRange(n, arg.([]any)) {
			m.miss(at, "a number in "+show(arg), value)
		}
	case "$length":
		n, ok := lengthOf(value)
		if !ok || !inRange(json.Number(strconv.Itoa(n)), arg.([]any)) {
			m.miss(at, "a length in "+show(arg), value)
		}
	case "$regex", "$word", "$compact":
		m.text(at, name, arg, value)
	case "$schema":
		schema, err := m.vars.value(arg.(string))
		if err != nil {
			m.fail(err)
			return
		}
		for _, problem := range validate(schema, value, at) {
			m.miss(problem.At, problem.Want, problem.got)
		}
	default:
		m.collection(at, name, arg, value)
	}
}

// oneOf tells, where no pattern matches, what is amiss with the one that got deepest
// into the value.
func (m *matcher) oneOf(at string, list []any, value any) {
	var closest []Mismatch
	for _, p := range list {
		t := matcher{vars: m.vars}
		t.value(at, p, value)
		if t.err != nil {
			m.fail(t.err)
			return
		}
		if len(t.found) == 0 {
			return
		}
		if len(closest) == 0 || strings.Count(t.found[0].At, "/") > strings.Count(closest[0].At, "/") {
			closest = t.found
		}
	}
	m.miss(at, "one of "+show(list), value)
	m.found = append(m.found, closest...)
	m.found = m.found[:min(len(m.found), maxMismatches)]
}

// exact compares with a literal, in whose strings placeholders are filled and
// matchers mean nothing.
func (m *matcher) exact(at string, arg, value any) {
	want, err := m.vars.fill(arg)
	if err != nil {
		m.fail(err)
		return
	}
	if !equal(want, value) {
		m.miss(at, "exactly "+show(want), value)
	}
}

// fill replaces the placeholders in every string of a value.
func (v scope) fill(value any) (any, error) {
	var err error
	switch in := value.(type) {
	case string:
		return v.value(in)
	case []any:
		out := make([]any, len(in))
		for i, e := range in {
			if out[i], err = v.fill(e); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(in))
		for k, e := range in {
			if out[k], err = v.fill(e); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return value, nil
}

func inRange(n json.Number, bounds []any) bool {
	if low, ok := bounds[0].(json.Number); ok && compareNumbers(n, low) < 0 {
		return false
	}
	high, ok := bounds[1].(json.Number)
	return !ok || compareNumbers(n, high) <= 0
}

func lengthOf(v any) (int, bool) {
	switch v := v.(type) {
	case string:
		return utf8.RuneCountInString(v), true
	case []any:
		return len(v), true
	case map[string]any:
		return len(v), true
	}
	return 0, false
}

func (m *matcher) text(at, name string, arg, value any) {
	s, ok := value.(string)
	if !ok {
		m.miss(at, "a string", value)
		return
	}
	if name == "$compact" {
		if why := notCompact(s); why != "" {
			m.miss(at, "compact JSON: "+why, value)
		}
		return
	}
	want, err := m.vars.expand(arg.(string))
	if err != nil {
		m.fail(err)
		return
	}
	if name == "$word" {
		if !containsWord(s, want) {
			m.miss(at, "the word "+want, value)
		}
		return
	}
	re, err := regexOf(want)
	if err != nil {
		m.fail(err)
		return
	}
	if !re.MatchString(s) {
		m.miss(at, "a match of "+want, value)
	}
}

var space = regexp.MustCompile(`\A[ \t\r\n]`)

// notCompact says why a text is not one JSON value without white space around its
// tokens and without a member twice, or "".
func notCompact(s string) string {
	if !utf8.ValidString(s) {
		return "it is not UTF-8"
	}
	if space.MatchString(s) {
		return "it starts with white space"
	}
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ' ' || c == '\t' || c == '\r' || c == '\n'):
			return "there is white space between its tokens"
		}
	}
	if _, err := decode([]byte(s)); err != nil {
		return "it is not JSON"
	}
	if name := memberTwice(s); name != "" {
		return "the member " + name + " is there twice"
	}
	return ""
}

// memberTwice returns the name of a member that an object of the text has twice.
func memberTwice(s string) string {
	type level struct {
		names map[string]bool
		value bool // the next token is a value
	}
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	var stack []level
	for {
		t, err := d.Token()
		if err != nil {
			return ""
		}
		if len(stack) > 0 {
			top := &stack[len(stack)-1]
			if name, isName := t.(string); isName && top.names != nil && !top.value {
				if top.names[name] {
					return show(name)
				}
				top.names[name], top.value = true, true
				continue
			}
			top.value = false
		}
		switch t {
		case json.Delim('{'):
			stack = append(stack, level{names: map[string]bool{}})
		case json.Delim('['):
			stack = append(stack, level{})
		case json.Delim('}'), json.Delim(']'):
			stack = stack[:len(stack)-1]
		}
	}
}

// maxCompared bounds the elements that are compared each with each.
const maxCompared = 2000

// collection applies the matchers that look into arrays and objects.
func (m *matcher) collection(at, name string, arg, value any) {
	list, isList := value.([]any)
	object, isObject := value.(map[string]any)
	switch {
	case name == "$contains" && !isList:
		s, ok := value.(string)
		part, isText := arg.(string)
		if !ok || !isText {
			m.miss(at, "a string or array that contains "+show(arg), value)
			return
		}
		want, err := m.vars.expand(part)
		if err != nil {
			m.fail(err)
		} else if !strings.Contains(s, want) {
			m.miss(at, "a string that contains "+show(want), value)
		}
	case name == "$contains":
		if !slices.ContainsFunc(list, func(e any) bool { return m.try(arg, e) }) {
			m.miss(at, "an element like "+show(arg), value)
		}
	case name == "$every" && isObject:
		for _, k := range slices.Sorted(maps.Keys(object)) {
			m.value(at+"/"+escapePointer(k), arg, object[k])
		}
	case name == "$every" && isList:
		for i, e := range list {
			m.value(at+"/"+strconv.Itoa(i), arg, e)
		}
	case name == "$unique" && isList:
		if len(list) > maxCompared {
			m.miss(at, fmt.Sprintf("at most %d elements", maxCompared), nil)
			return
		}
		for i, e := range list {
			if slices.ContainsFunc(list[:i], func(o any) bool { return equal(o, e) }) {
				m.miss(at, "nothing twice", e)
				return
			}
		}
	case name == "$set":
		m.set(at, arg, list, isList, value)
	case name == "$only" && isObject:
		allowed, ok := arg.(map[string]any)
		if !ok {
			m.fail(errors.New("$only takes an object"))
			return
		}
		for _, k := range slices.Sorted(maps.Keys(object)) {
			if _, ok := allowed[k]; !ok {
				m.miss(at+"/"+escapePointer(k), "nothing", object[k])
			}
		}
		m.value(at, arg, value)
	case name == "$keys" && isObject:
		keys := []any{}
		for _, k := range slices.Sorted(maps.Keys(object)) {
			keys = append(keys, k)
		}
		m.value(at, arg, keys)
	default:
		want := "an array"
		if name == "$only" || name == "$keys" {
			want = "an object"
		}
		m.miss(at, want, value)
	}
}

func (m *matcher) set(at string, arg any, list []any, isList bool, value any) {
	want, err := m.vars.fill(arg)
	if err != nil {
		m.fail(err)
		return
	}
	wanted, ok := want.([]any)
	if !ok {
		m.fail(errors.New("$set takes an array"))
		return
	}
	within := func(a, b []any) bool {
		return !slices.ContainsFunc(a, func(e any) bool {
			return !slices.ContainsFunc(b, func(o any) bool { return equal(e, o) })
		})
	}
	if len(list) > maxCompared || len(wanted) > maxCompared {
		m.miss(at, fmt.Sprintf("at most %d elements", maxCompared), nil)
		return
	}
	if !isList || !within(wanted, list) || !within(list, wanted) {
		m.miss(at, "the elements "+show(want)+" in any order", value)
	}
}
