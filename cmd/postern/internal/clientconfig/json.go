package clientconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// jsonFormat is a JSON file with an object of servers in it. It is changed where the
// entry is, and nowhere else: what a person or another program wrote keeps its bytes,
// with comments where the client allows them.
type jsonFormat struct {
	container string // the name of the object of servers
	typed     bool   // an entry says that it is started and spoken to over stdio
	comments  bool   // the client reads comments and trailing commas
}

var _ format = jsonFormat{}

var errNotObject = errors.New("it is no JSON object")

const byteOrderMark = "\ufeff"

func (f jsonFormat) paste(e *Entry, name string) string {
	return f.fresh(name, e.object(f.typed))
}

// fresh is a file with the entry alone.
func (f jsonFormat) fresh(name string, value any) string {
	return writeObject([]member{{f.container, []member{{name, value}}}}, "", "  ", "\n") + "\n"
}

func (f jsonFormat) put(text []byte, name string, e *Entry) ([]byte, error) {
	there, err := f.servers(text)
	if err != nil {
		return nil, err
	}
	entry := there.find(name)
	if entry == nil {
		return f.insert(text, name, e.object(f.typed))
	}
	if !ourJSON(text, &entry.value) {
		return nil, ErrForeign
	}
	path := []string{f.container, name}
	for _, m := range e.object(f.typed) {
		env, isObject := m.value.([]member)
		if old := entry.value.find(m.name); !isObject || old == nil || old.value.kind != '{' {
			if text, err = f.set(text, path, m); err != nil {
				return nil, err
			}
			continue
		}
		if text, err = f.setVariables(text, append(path, m.name), env, e); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// setVariables leaves variables alone that a person added.
func (f jsonFormat) setVariables(text []byte, path []string, env []member, e *Entry) ([]byte, error) {
	old, err := f.at(text, path)
	if err != nil {
		return nil, err
	}
	for _, v := range old.members {
		if oursVariable(v.key) && e.lacks(v.key) {
			if text, err = f.cut(text, path, v.key); err != nil {
				return nil, err
			}
		}
	}
	for _, v := range env {
		if text, err = f.set(text, path, v); err != nil {
			return nil, err
		}
	}
	return text, nil
}

func (f jsonFormat) remove(text []byte, name string) ([]byte, error) {
	there, err := f.servers(text)
	if err != nil {
		return nil, err
	}
	entry := there.find(name)
	switch {
	case entry == nil:
		return text, nil
	case !ourJSON(text, &entry.value):
		return nil, ErrForeign
	}
	return f.cut(text, []string{f.container}, name)
}

func (f jsonFormat) entry(text []byte, name string) (string, bool) {
	there, err := f.servers(text)
	if err != nil {
		return "", false
	}
	entry := there.find(name)
	if entry == nil {
		return "", false
	}
	return string(text[entry.value.start:entry.value.end]), true
}

func (f jsonFormat) restores(backup, now []byte, name, raw string) bool {
	if _, had := f.entry(backup, name); had {
		return false
	}
	again, err := f.insert(backup, name, raw)
	return err == nil && bytes.Equal(again, now)
}

// servers is the object of servers; nil when there is none.
func (f jsonFormat) servers(text []byte) (*jsonNode, error) {
	if isBlank(text) {
		return nil, nil
	}
	root, err := f.parse(text)
	if err != nil {
		return nil, err
	}
	m := root.find(f.container)
	switch {
	case m == nil:
		return nil, nil
	case m.value.kind != '{':
		return nil, fmt.Errorf("%q in it is no object", f.container)
	}
	return &m.value, nil
}

func isBlank(text []byte) bool {
	return len(bytes.TrimSpace(bytes.TrimPrefix(text, []byte(byteOrderMark)))) == 0
}

// insert adds an entry that is not there yet. value is a []member or JSON as text.
func (f jsonFormat) insert(text []byte, name string, value any) ([]byte, error) {
	if isBlank(text) {
		mark := ""
		if bytes.HasPrefix(text, []byte(byteOrderMark)) {
			mark = byteOrderMark
		}
		return []byte(mark + f.fresh(name, value)), nil
	}
	there, err := f.servers(text)
	if err != nil {
		return nil, err
	}
	m := member{name, value}
	if there == nil {
		if there, err = f.parse(text); err != nil {
			return nil, err
		}
		m = member{f.container, []member{m}}
	}
	return f.add(text, there, m), nil
}

// set gives a member of the object at path a value.
func (f jsonFormat) set(text []byte, path []string, m member) ([]byte, error) {
	object, err := f.at(text, path)
	if err != nil {
		return nil, err
	}
	old := object.find(m.name)
	if old == nil {
		return f.add(text, object, m), nil
	}
	s := styleOf(text)
	value := writeValue(m.value, s.indentOf(text, old.start), s.step, s.end)
	var was, is any
	if json.Unmarshal(text[old.value.start:old.value.end], &was) == nil && json.Unmarshal([]byte(value), &is) == nil && reflect.DeepEqual(was, is) {
		return text, nil
	}
	return splice(text, old.value.start, old.value.end, value), nil
}

// cut takes a member out of the object at path.
func (f jsonFormat) cut(text []byte, path []string, name string) ([]byte, error) {
	object, err := f.at(text, path)
	if err != nil {
		return nil, err
	}
	for i := range object.members {
		if m := &object.members[i]; m.key == name {
			return cutMember(text, object, i), nil
		}
	}
	return text, nil
}

func (f jsonFormat) at(text []byte, path []string) (*jsonNode, error) {
	node, err := f.parse(text)
	if err != nil {
		return nil, err
	}
	for _, name := range path {
		m := node.find(name)
		if m == nil || m.value.kind != '{' {
			return nil, errNotObject
		}
		node = &m.value
	}
	return node, nil
}

func splice(text []byte, start, end int, with string) []byte {
	out := make([]byte, 0, len(text)+len(with))
	return append(append(append(out, text[:start]...), with...), text[end:]...)
}

// style is how a file is laid out.
type style struct{ end, step string }

func styleOf(text []byte) style {
	s := style{end: "\n", step: "  "}
	if bytes.Contains(text, []byte("\r\n")) {
		s.end = "\r\n"
	}
	// The first line that is indented tells by how much.
	for line := range bytes.Lines(text) {
		rest := bytes.TrimLeft(line, " \t")
		if n := len(line) - len(rest); n > 0 && len(bytes.TrimSpace(rest)) > 0 && rest[0] == '"' {
			s.step = string(line[:n])
			break
		}
	}
	return s
}

// indentOf is the white space that the line of a position begins with.
func (s style) indentOf(text []byte, pos int) string {
	line := text[bytes.LastIndexByte(text[:pos], '\n')+1:]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// add puts a member behind the last one of an object.
func (f jsonFormat) add(text []byte, object *jsonNode, m member) []byte {
	s := styleOf(text)
	closing := object.end - 1
	inside := text[object.start+1 : closing]
	indent := s.indentOf(text, object.start)
	if len(object.members) == 0 {
		kept := strings.TrimRight(string(inside), " \t\r\n") // comments, if anything
		return splice(text, object.start+1, closing, kept+s.end+indent+s.step+memberText(m, indent+s.step, s)+s.end+indent)
	}
	last := &object.members[len(object.members)-1]
	if !bytes.ContainsRune(inside, '\n') {
		// All on one line, it stays so.
		return splice(text, last.value.end, last.value.end, ", "+quoteJSON(m.name)+": "+oneLine(m.value))
	}
	inner := indent + s.step
	if first := object.members[0].start; strings.TrimSpace(string(text[bytes.LastIndexByte(text[:first], '\n')+1:first])) == "" {
		inner = s.indentOf(text, first)
	}
	piece := s.end + inner + memberText(m, inner, s)
	// Behind what is said about the last member, in front of the bracket.
	pos := object.start + 1 + len(strings.TrimRight(string(inside), " \t\r\n"))
	if last.comma >= 0 {
		return splice(text, pos, pos, piece+",")
	}
	text = splice(text, pos, pos, piece)
	return splice(text, last.value.end, last.value.end, ",")
}

func memberText(m member, indent string, s style) string {
	return quoteJSON(m.name) + ": " + writeValue(m.value, indent, s.step, s.end)
}

func oneLine(value any) string {
	members, ok := value.([]member)
	if !ok {
		return value.(string)
	}
	parts := make([]string, len(members))
	for i, m := range members {
		parts[i] = quoteJSON(m.name) + ": " + oneLine(m.value)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// cutMember undoes add.
func cutMember(text []byte, object *jsonNode, i int) []byte {
	m := &object.members[i]
	start := len(bytes.TrimRight(text[:m.start], " \t\r\n"))
	end := m.value.end
	if m.comma >= 0 {
		end = m.comma + 1
	}
	out := splice(text, start, end, "")
	if m.comma < 0 && i > 0 {
		comma := object.members[i-1].comma
		out = splice(out, comma, comma+1, "")
	}
	if len(object.members) == 1 {
		inside := out[object.start+1 : object.end-1-(end-start)]
		if len(bytes.TrimSpace(inside)) == 0 {
			return splice(out, object.start+1, object.start+1+len(inside), "")
		}
	}
	return out
}

// ourJSON reports whether an entry is one that Put wrote, whatever was changed in
// it since.
func ourJSON(text []byte, entry *jsonNode) bool {
	if entry.kind != '{' {
		return false
	}
	var command string
	var args []string
	if m := entry.find("command"); m == nil || json.Unmarshal(text[m.value.start:m.value.end], &command) != nil {
		return false
	}
	if m := entry.find("args"); m == nil || json.Unmarshal(text[m.value.start:m.value.end], &args) != nil {
		return false
	}
	var names []string
	if m := entry.find("env"); m != nil {
		for _, v := range m.value.members {
			names = append(names, v.key)
		}
	}
	return ourCommand(command, args, names)
}
