package conformance

import (
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// argument is one argument of a command, as help and schema describe it.
type argument struct {
	name, label  string
	kind         string // as help has it
	item         string // of an array's elements
	positional   bool
	required     bool
	requires     string // name of another option
	entry        map[string]any
	property     any    // nil without
	propertyName string // in the input schema
	print        string

	valid         string
	hasValid      bool
	source        string // of valid: "documented", "type" or "made"
	accepted      bool   // with its context
	taken         string // a short option that takes its value; empty without
	context       string // of an option
	before, after string // of a positional
	hasContext    bool
}

// newArgument reads an entry of help; nil for one without a name.
func newArgument(c *command, entry map[string]any) *argument {
	label, _ := entry["name"].(string)
	name := strings.TrimLeft(label, "-")
	if name == "" || len(name) > 200 {
		return nil
	}
	a := &argument{name: name, label: label, positional: !strings.HasPrefix(label, "-"), entry: entry}
	a.kind, _ = entry["type"].(string)
	a.required = entry["required"] == true
	requires, _ := entry["requires"].(string)
	a.requires = strings.TrimLeft(requires, "-")
	a.propertyName = name
	for _, n := range spellings(name) {
		if p, ok := pointer(c.schema, "/inputSchema/properties/"+escapePointer(n)); ok {
			a.property, a.propertyName = p, n
			break
		}
	}
	a.item, _ = entry["items"].(string)
	if t, ok := a.of("items/type"); ok && a.item == "" {
		a.item, _ = t.(string)
	}
	b, _ := marshalPlain(entry) // made of JSON values
	a.print = string(b)
	a.valid, a.source = a.plausible()
	a.hasValid = a.source != ""
	return a
}

// spellings are the names that an option may have in a schema, where names are often those of the
// server's language: due-before, due_before, dueBefore.
func spellings(name string) []string {
	words := strings.Split(name, "-")
	for i, w := range words[1:] {
		if w != "" {
			words[i+1] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	return []string{name, strings.ReplaceAll(name, "-", "_"), strings.Join(words, "")}
}

// many reports whether a positional takes several words: help need not call it an array.
func (a *argument) many() bool {
	kind, _ := a.of("type")
	return a.kind == "array" || a.positional && kind == "array"
}

// of returns a keyword of the argument's schema; a path goes into "items".
func (a *argument) of(keyword string) (any, bool) { return pointer(a.property, "/"+keyword) }

// said returns a member of the help, or else of the schema.
func (a *argument) said(name string) (any, bool) {
	if v, ok := a.entry[name]; ok {
		return v, true
	}
	return a.of(name)
}

// limit returns a numeric keyword of the values, of an array's elements too.
func (a *argument) limit(keyword string) (float64, bool) {
	if a.kind == "array" {
		keyword = "items/" + keyword
	}
	return a.ownLimit(keyword)
}

func (a *argument) ownLimit(keyword string) (float64, bool) {
	v, _ := a.of(keyword)
	n, ok := v.(json.Number)
	f, err := n.Float64()
	return f, ok && err == nil
}

// valueKind is the type of one value: of an element, for an array.
func (a *argument) valueKind() string {
	if a.kind == "array" {
		return a.item
	}
	return a.kind
}

func (a *argument) enum() []any {
	v, ok := a.said("enum")
	if !ok {
		v, _ = a.of("items/enum")
	}
	list, _ := v.([]any)
	return list
}

func (a *argument) examples() []any {
	v, _ := a.said("examples")
	list, _ := v.([]any)
	return list
}

// plausible returns a value that binding should accept, and its source:
// "documented", the declared "type", or "made" up, since a text can be wrong in
// undeclared ways. Both are empty if no value is known.
func (a *argument) plausible() (value, source string) {
	if a.kind == "flag" {
		return "", ""
	}
	if v, ok := a.said("default"); ok {
		if text := textOf(v); text != "" && v != nil && a.fits(text) {
			return text, "documented"
		}
	}
	for _, e := range a.examples() {
		if text := textOf(e); text != "" {
			return text, "documented"
		}
	}
	if list := a.enum(); len(list) > 0 {
		return textOf(list[0]), "documented"
	}
	switch a.valueKind() {
	case "boolean":
		return "true", "type"
	case "datetime":
		return "2026-02-02", "type"
	case "integer", "number":
		n := 1.
		if low, ok := a.limit("minimum"); ok {
			n = max(n, low)
		}
		if high, ok := a.limit("maximum"); ok {
			n = min(n, high)
		}
		return decimal(n), "type"
	case "string", "", "enum":
		if text, ok := a.ofLength(3); ok {
			return text, "made"
		}
	}
	return "", ""
}

// fits reports whether a text has the declared pattern and lengths.
func (a *argument) fits(text string) bool {
	length := float64(utf8.RuneCountInString(text))
	low, bounded := a.limit("minLength")
	high, above := a.limit("maxLength")
	return !(bounded && length < low || above && length > high) && a.patternHolds(text)
}

func (a *argument) patternHolds(text string) bool {
	v, ok := a.of("pattern")
	if !ok {
		v, ok = a.of("items/pattern")
	}
	p, isText := v.(string)
	if !ok || !isText {
		return true
	}
	re, err := regexp.Compile(p)
	return err == nil && re.MatchString(text)
}

// maxMade is the longest text made to try a bound; a command string has at most
// 10,000 characters.
const maxMade = 8000

// ofLength makes a text of about n characters that should be accepted.
func (a *argument) ofLength(n int) (string, bool) {
	if low, ok := whole(a.limit("minLength")); ok {
		n = max(n, low)
	}
	if high, ok := whole(a.limit("maxLength")); ok {
		n = min(n, high)
	}
	return a.made(n)
}

// made is a text of n characters with the declared pattern.
func (a *argument) made(n int) (string, bool) {
	if n < 0 || n > maxMade {
		return "", false
	}
	for _, letter := range []string{"a", "A", "1"} {
		if text := strings.Repeat(letter, n); a.patternHolds(text) {
			return text, true
		}
	}
	return "", false
}

// decimal writes a number as a person does: a whole one without a point.
func decimal(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// edge is a declared bound with the values at it and beyond.
type edge struct{ kind, at, beyond string }

// bounds are those that can be tried, in the order of their trials, with the step that
// leads beyond.
var bounds = []struct {
	kind, keyword string
	step          int
	edge          func(a *argument, keyword string, step int) (at, beyond string, ok bool)
}{
	{"minimum", "minimum", -1, (*argument).numberEdge}, {"maximum", "maximum", 1, (*argument).numberEdge},
	{"max_length", "maxLength", 1, (*argument).lengthEdge}, {"min_length", "minLength", -1, (*argument).lengthEdge},
	{"max_items", "maxItems", 1, (*argument).itemsEdge}, {"min_items", "minItems", -1, (*argument).itemsEdge},
}

// edges returns the bounds of an argument that can be tried.
func (a *argument) edges() []edge {
	var list []edge
	for _, b := range bounds {
		if at, beyond, ok := b.edge(a, b.keyword, b.step); ok {
			list = append(list, edge{b.kind, at, beyond})
		}
	}
	return list
}

func (a *argument) numberEdge(keyword string, step int) (at, beyond string, ok bool) {
	n, ok := a.limit(keyword)
	if kind := a.valueKind(); !ok || kind != "integer" && kind != "number" {
		return "", "", false
	}
	return decimal(n), decimal(n + float64(step)), true
}

func (a *argument) lengthEdge(keyword string, step int) (at, beyond string, ok bool) {
	length, ok := whole(a.limit(keyword))
	if !ok || a.valueKind() != "string" {
		return "", "", false
	}
	at, ok1 := a.made(length)
	beyond, ok2 := a.made(length + step)
	return at, beyond, ok1 && (ok2 || length+step == 0) // an empty text is too short with any pattern
}

// itemsEdge is about how many elements an array has.
func (a *argument) itemsEdge(keyword string, step int) (at, beyond string, ok bool) {
	item, _, _ := strings.Cut(a.valid, ",")
	count, ok := whole(a.ownLimit(keyword))
	unique, _ := a.of("uniqueItems")
	if !ok || a.kind != "array" || a.positional || unique == true || item == "" || count+step < 1 || count > maxMade/(len(item)+1) {
		return "", "", false
	}
	join := func(n int) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }
	return join(count), join(count + step), true
}

// whole is a number that is an int.
func whole(n float64, ok bool) (int, bool) {
	return int(n), ok && n == math.Trunc(n) && math.Abs(n) < 1<<31
}

// pathLike reports whether an argument seems to name a file.
func (a *argument) pathLike() bool {
	if a.valueKind() != "string" {
		return false
	}
	return slices.ContainsFunc(strings.Split(a.name, "-"), func(w string) bool {
		return slices.Contains([]string{"path", "file", "filename", "dir", "directory"}, w)
	})
}

// vars returns the variables of a template.
func (a *argument) vars(c *command) map[string]any {
	v := map[string]any{
		"name": a.name, "label": a.label, "type": a.kind, "positional": a.positional, "required": a.required, "entry": any(a.entry),
		"harmless": c.harmless, "path_like": a.pathLike(), "scalar": a.kind != "array" && a.kind != "flag",
	}
	if a.property != nil {
		v["property"] = a.property
	}
	if a.hasValid {
		v["valid"], v["source"], v["accepted"] = a.valid, a.source, a.accepted
	}
	if a.taken != "" {
		v["taken"] = a.taken
	}
	switch {
	case a.hasContext && a.positional:
		v["before"], v["after"] = a.before, a.after
	case a.hasContext:
		v["context"], v["before"], v["after"] = a.context, a.context+" "+a.label, ""
	}
	if text, ok := c.compose(a); ok && a.required {
		v["omitted"] = text
	}
	if short, ok := a.entry["short"].(string); ok && short != "" {
		v["short"] = "-" + strings.TrimLeft(short, "-")
	}
	if a.item != "" {
		v["items"] = a.item
	}
	for _, name := range []string{"default", "examples"} {
		if value, ok := a.said(name); ok {
			v[name] = value
		}
	}
	if list := a.enum(); len(list) > 0 {
		v["enum"] = list
	}
	_, patterned := a.of("pattern")
	_, itemPatterned := a.of("items/pattern")
	v["bounded"] = len(a.edges()) > 0 || len(a.enum()) > 0 || patterned || itemPatterned
	return v
}

// isIn reports whether a token sets the option.
func (a *argument) isIn(token string) bool {
	short, _ := a.entry["short"].(string)
	return token == a.label || strings.HasPrefix(token, a.label+"=") || len(short) == 2 && strings.HasPrefix(token, short)
}
