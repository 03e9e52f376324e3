package clientconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"

	"github.com/postern-mail/postern/internal/plain"
)

// jsonFormat is a JSON file with an object of servers in it. Only the entry is
// changed: the text of people and other programs keeps its bytes, with comments where
// the client allows them.
type jsonFormat struct {
	container string // the name of the object of servers
	typed     bool   // an entry has the member "type": "stdio"
	comments  bool   // the client reads comments and trailing commas
}

var _ format = jsonFormat{}

var (
	errNotObject = errors.New("it is not a JSON object")
	errJSONDepth = errors.New("it is nested too deeply")
)

const (
	byteOrderMark = "\ufeff"
	maxJSONDepth  = 200
	space         = " \t\r\n"
)

// document is a parsed file: every byte of it is in root, except the byte order mark.
type document struct {
	mark string
	root hujson.Value
	text []byte // as it was read, behind the mark; offsets in root are into this
	end  string // its line end
	step string // the indentation of one level
}

// read parses a file, whose value must be an object.
func (f jsonFormat) read(text []byte) (*document, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("it is not in UTF-8")
	}
	d := &document{text: bytes.TrimPrefix(text, []byte(byteOrderMark)), end: "\n", step: "  "}
	d.mark = string(text[:len(text)-len(d.text)])
	if !f.comments && !json.Valid(d.text) {
		var v any
		return nil, fmt.Errorf("it is not valid JSON: %w", json.Unmarshal(d.text, &v))
	}
	// The library does not bound the depth. Brackets in texts and comments count
	// too: real files do not have so many there without their counterparts.
	depth := 0
	for _, c := range d.text {
		switch c {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if depth > maxJSONDepth {
			return nil, errJSONDepth
		}
	}
	var err error
	if d.root, err = hujson.Parse(d.text); err != nil {
		return nil, unreadable(err)
	}
	if d.root.Value.Kind() != '{' {
		return nil, errNotObject
	}
	if name := repeated(&d.root, 0); name != "" {
		return nil, fmt.Errorf("%q is in it twice", plain.Line(name))
	}
	if bytes.Contains(d.text, []byte("\r\n")) {
		d.end = "\r\n"
	}
	// The first indented line gives the indentation.
	if m := regexp.MustCompile(`(?m)^([ \t]+)"`).FindSubmatch(d.text); m != nil {
		d.step = string(m[1])
	}
	return d, nil
}

// unreadable says where a file cannot be parsed: the library's error repeats its text.
func unreadable(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it ends too early")
	}
	line := regexp.MustCompile(`\d+`).FindString(err.Error())
	return fmt.Errorf("it cannot be read from line %s on", line)
}

// repeated returns a name that an object has twice in the upper levels, or "". Clients
// differ in which of the two they read: a change might have no effect.
func repeated(v *hujson.Value, depth int) string {
	o, ok := v.Value.(*hujson.Object)
	if !ok || depth > 3 {
		return ""
	}
	seen := make(map[string]bool)
	for i := range o.Members {
		name := nameOf(&o.Members[i])
		if seen[name] {
			return name
		}
		seen[name] = true
		if name := repeated(&o.Members[i].Value, depth+1); name != "" {
			return name
		}
	}
	return ""
}

func nameOf(m *hujson.ObjectMember) string { return m.Name.Value.(hujson.Literal).String() }

// bytes is the file as it is now.
func (d *document) bytes() []byte { return append([]byte(d.mark), d.root.Pack()...) }

// member returns the value of a member, or nil; also nil for a value that is not an object.
func member(v *hujson.Value, name string) *hujson.Value {
	if v == nil {
		return nil
	}
	if o, ok := v.Value.(*hujson.Object); ok {
		for i := range o.Members {
			if nameOf(&o.Members[i]) == name {
				return &o.Members[i].Value
			}
		}
	}
	return nil
}

// packed returns a value without the white space and comments around it.
func packed(v *hujson.Value) []byte { return hujson.Value{Value: v.Value}.Pack() }

func isObject(v *hujson.Value) bool { return v != nil && v.Value.Kind() == '{' }

// servers reads a file that is not blank and finds its object of servers and the entry
// in it; each is nil when missing.
func (f jsonFormat) servers(text []byte, name string) (d *document, servers, entry *hujson.Value, err error) {
	if d, err = f.read(text); err != nil {
		return nil, nil, nil, err
	}
	servers = member(&d.root, f.container)
	if servers != nil && !isObject(servers) {
		return nil, nil, nil, fmt.Errorf("%q in it is not an object", f.container)
	}
	return d, servers, member(servers, name), nil
}

func isBlank(text []byte) bool {
	return len(bytes.TrimSpace(bytes.TrimPrefix(text, []byte(byteOrderMark)))) == 0
}

func (f jsonFormat) paste(e *Entry, name string) string {
	return f.fresh(name, e.fields(f.typed))
}

// fresh returns a file with only the entry in it.
func (f jsonFormat) fresh(name string, value any) string {
	return writeValue([]field{{f.container, []field{{name, value}}}}, "\n", "  ") + "\n"
}

func (f jsonFormat) put(text []byte, name string, e *Entry) ([]byte, error) {
	if isBlank(text) {
		return f.insert(text, name, e.fields(f.typed))
	}
	d, _, entry, err := f.servers(text, name)
	switch {
	case err != nil:
		return nil, err
	case entry == nil:
		return f.insert(text, name, e.fields(f.typed))
	case !ourJSON(entry):
		return nil, ErrForeign
	}
	d.set(entry, e.fields(f.typed))
	return d.bytes(), nil
}

// set gives an object its fields. An equal value keeps its form, and other members
// stay, except variables that an earlier Put wrote.
func (d *document) set(object *hujson.Value, fields []field) {
	o := object.Value.(*hujson.Object)
	for i, m := range slices.Backward(o.Members) {
		name := nameOf(&m)
		if oursVariable(name) && !slices.ContainsFunc(fields, func(f field) bool { return f.name == name }) {
			cut(o, i)
		}
	}
	for _, f := range slices.Backward(fields) { // each is added in front of the others
		old := member(object, f.name)
		nested, ok := f.value.([]field)
		switch {
		case old == nil:
			d.add(object, f)
		case ok && isObject(old):
			d.set(old, nested)
		default:
			if value := writeValue(f.value, "", ""); !sameJSON(packed(old), []byte(value)) {
				old.Value = hujson.Literal(value)
			}
		}
	}
}

// sameJSON reports whether two values differ only in white space, comments, escapes
// and the order of members.
func sameJSON(a, b []byte) bool {
	var x, y any
	return decode(a, &x) == nil && decode(b, &y) == nil && reflect.DeepEqual(x, y)
}

// decode is json.Unmarshal for a value with comments and trailing commas.
func decode(value []byte, to any) error {
	text, err := hujson.Standardize(value)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}

func (f jsonFormat) remove(text []byte, name string) ([]byte, error) {
	if isBlank(text) {
		return text, nil
	}
	d, servers, entry, err := f.servers(text, name)
	switch {
	case err != nil:
		return nil, err
	case entry == nil:
		return text, nil
	case !ourJSON(entry):
		return nil, ErrForeign
	}
	o := servers.Value.(*hujson.Object)
	for i := range o.Members {
		if &o.Members[i].Value == entry {
			cut(o, i)
			break
		}
	}
	return d.bytes(), nil
}

func (f jsonFormat) entry(text []byte, name string) (string, bool) {
	if isBlank(text) {
		return "", false
	}
	_, _, entry, err := f.servers(text, name)
	if err != nil || entry == nil {
		return "", false
	}
	return string(packed(entry)), true
}

func (f jsonFormat) restores(backup, now []byte, name, raw string) bool {
	if _, had := f.entry(backup, name); had {
		return false
	}
	again, err := f.insert(backup, name, raw)
	return err == nil && bytes.Equal(again, now)
}

// insert adds a missing entry. value is a []field or JSON as text.
func (f jsonFormat) insert(text []byte, name string, value any) ([]byte, error) {
	if isBlank(text) {
		mark := ""
		if bytes.HasPrefix(text, []byte(byteOrderMark)) {
			mark = byteOrderMark
		}
		return []byte(mark + f.fresh(name, value)), nil
	}
	d, servers, _, err := f.servers(text, name)
	if err != nil {
		return nil, err
	}
	if m := (field{name, value}); servers != nil {
		d.add(servers, m)
	} else {
		d.add(&d.root, field{f.container, []field{m}})
	}
	return d.bytes(), nil
}

// indentOf returns the white space at the beginning of a position's line.
func (d *document) indentOf(pos int) string {
	line := d.text[bytes.LastIndexByte(d.text[:pos], '\n')+1:]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// add puts a member in front of the first one of an object, so that the existing text does
// not change: no comma is added to it, and no comment is separated from its subject.
func (d *document) add(object *hujson.Value, m field) {
	o := object.Value.(*hujson.Object)
	indent, step, before := d.end+d.indentOf(object.StartOffset), d.step, ""
	if len(o.Members) > 0 {
		before = string(o.Members[0].Name.BeforeExtra)
	}
	inner := indent + step
	switch line := before[strings.LastIndexByte(before, '\n')+1:]; {
	case len(o.Members) > 0 && !bytes.ContainsRune(packed(object), '\n'):
		inner, step = "", "" // an object on one line stays on one line
	case strings.Contains(before, "\n") && strings.TrimLeft(line, " \t") == "":
		inner = d.end + line
	}
	if len(o.Members) == 0 && !bytes.ContainsRune(o.AfterExtra, '\n') {
		o.AfterExtra = append(bytes.TrimRight(o.AfterExtra, space), indent...)
	}
	o.Members = slices.Insert(o.Members, 0, hujson.ObjectMember{
		Name:  hujson.Value{BeforeExtra: hujson.Extra(inner), Value: hujson.Literal(quoteJSON(m.name))},
		Value: hujson.Value{BeforeExtra: hujson.Extra(" "), Value: hujson.Literal(writeValue(m.value, inner, step))},
	})
}

// cut undoes add, wherever the member is now. A comment before it stays.
func cut(o *hujson.Object, i int) {
	m := o.Members[i]
	said := bytes.TrimRight(m.Name.BeforeExtra, space)
	o.Members = slices.Delete(o.Members, i, i+1)
	switch {
	case i < len(o.Members): // the comment belongs to the next member now
		next := &o.Members[i].Name
		next.BeforeExtra = append(bytes.Clone(said), next.BeforeExtra...)
		return
	case i > 0 && m.Value.AfterExtra == nil: // the last has no comma behind it
		last := &o.Members[i-1].Value
		said = append(bytes.Clone(last.AfterExtra), said...)
		last.AfterExtra = nil
	case i > 0 && o.Members[i-1].Value.AfterExtra == nil:
		o.Members[i-1].Value.AfterExtra = hujson.Extra{} // which means a comma
	}
	o.AfterExtra = append(bytes.Clone(said), o.AfterExtra...)
}

// ourJSON reports whether Put wrote an entry, even if it was changed since.
func ourJSON(entry *hujson.Value) bool {
	var command string
	var args, variables []string
	for name, to := range map[string]any{"command": &command, "args": &args} {
		if v := member(entry, name); v == nil || decode(packed(v), to) != nil {
			return false
		}
	}
	if env := member(entry, "env"); isObject(env) {
		o := env.Value.(*hujson.Object)
		for i := range o.Members {
			variables = append(variables, nameOf(&o.Members[i]))
		}
	}
	return ourCommand(command, args, variables)
}

// field is a member of an object to write; value is the text of one or a []field.
type field struct {
	name  string
	value any
}

// fields returns the entry's members in the JSON form.
func (e *Entry) fields(typed bool) []field {
	var fields []field
	if typed {
		fields = append(fields, field{"type", quoteJSON("stdio")})
	}
	args := make([]string, len(e.Args))
	for i, a := range e.Args {
		args[i] = quoteJSON(a)
	}
	env := make([]field, len(e.Env))
	for i, v := range e.Env {
		env[i] = field{v.Name, quoteJSON(v.Value)}
	}
	return append(fields, field{"command", quoteJSON(e.Command)}, field{"args", "[" + strings.Join(args, ", ") + "]"}, field{"env", env})
}

func quoteJSON(s string) string {
	b, _ := plain.JSON(s) // a string always has a JSON form
	return string(b)
}

// writeValue writes a value. Members stand on lines of their own, each after indent
// and step, where indent is a line end with the white space behind it; without indent,
// all is on one line.
func writeValue(value any, indent, step string) string {
	fields, ok := value.([]field)
	if !ok {
		return value.(string)
	}
	if len(fields) == 0 {
		return "{}"
	}
	parts := make([]string, len(fields))
	for i, m := range fields {
		parts[i] = quoteJSON(m.name) + ": " + writeValue(m.value, indent+step, step)
	}
	if indent == "" {
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return "{" + indent + step + strings.Join(parts, ","+indent+step) + indent + "}"
}
