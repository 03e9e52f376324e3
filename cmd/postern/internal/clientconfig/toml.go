package clientconfig

import (
	"bytes"
	"errors"
	"slices"
	"strings"
)

// tomlFormat is a TOML file with a table for each server. A new table goes to the end
// of the file, where it is nobody else's; the rest keeps its bytes.
type tomlFormat struct{}

var _ format = tomlFormat{}

const tomlContainer = "mcp_servers"

var errOtherForm = errors.New("it has its servers in a form that is not changed here: write [mcp_servers.NAME] tables")

func (f tomlFormat) paste(e *Entry, name string) string { return f.block(e, name, "\n") }

func (tomlFormat) block(e *Entry, name, end string) string {
	var b strings.Builder
	b.WriteString("[" + tomlContainer + "." + name + "]" + end)
	for _, k := range e.tomlKeys(nil) {
		b.WriteString(k.name + " = " + k.value.(string) + end)
	}
	return b.String()
}

// tomlKeys are the keys of the entry's table; others are variables to keep, as they
// are written.
func (e *Entry) tomlKeys(others []string) []field {
	args := make([]string, len(e.Args))
	for i, a := range e.Args {
		args[i] = quoteTOML(a)
	}
	env := slices.Clone(others)
	for _, v := range e.Env {
		env = append(env, v.Name+" = "+quoteTOML(v.Value))
	}
	return []field{{"command", quoteTOML(e.Command)}, {"args", "[" + strings.Join(args, ", ") + "]"}, {"env", "{ " + strings.Join(env, ", ") + " }"}}
}

// quoteTOML writes a basic string. What JSON escapes TOML reads alike; DEL it wants
// escaped, too.
func quoteTOML(s string) string { return strings.ReplaceAll(quoteJSON(s), "\x7f", `\u007F`) }

// tomlEntry is a server's table with what stands below it.
type tomlEntry struct {
	header statement
	keys   []statement // of the table itself
	below  []statement // headers and keys of tables below it
}

// find returns the server's table, nil when there is none.
func (tomlFormat) find(text []byte, name string) (*tomlEntry, error) {
	list, err := statements(text)
	if err != nil {
		return nil, err
	}
	path := []string{tomlContainer, name}
	var found *tomlEntry
	for _, s := range list {
		switch inside := under(s.path, path); {
		case s.kind == 't' && slices.Equal(s.path, path):
			found = &tomlEntry{header: s}
		case s.kind != 't' && slices.Equal(s.path, path[:1]), s.kind == 'a' && slices.Equal(s.path, path),
			inside && found == nil, s.kind == 'k' && slices.Equal(s.path, path),
			inside && s.kind == 'k' && !slices.Equal(s.table, path) && !under(s.table, path):
			return nil, errOtherForm
		case inside && s.kind == 'k' && slices.Equal(s.table, path):
			found.keys = append(found.keys, s)
		case inside:
			found.below = append(found.below, s)
		}
	}
	return found, nil
}

// under reports whether a path leads to something below another.
func under(path, above []string) bool {
	return len(path) > len(above) && slices.Equal(path[:len(above)], above)
}

func (f tomlFormat) put(text []byte, name string, e *Entry) ([]byte, error) {
	there, err := f.find(text, name)
	if err != nil {
		return nil, err
	}
	end := lineEndOf(text)
	if there == nil {
		return f.append(text, f.block(e, name, end)), nil
	}
	if !there.ours() {
		return nil, ErrForeign
	}
	var others []string
	for _, s := range there.keys {
		switch {
		case slices.Equal(s.path[2:], []string{"env"}) && s.value[0] == '{':
			for _, pair := range elements(s.value) {
				if !oursVariable(pairName(pair)) {
					others = append(others, pair)
				}
			}
		case s.path[2] == "env":
			return nil, errOtherForm
		}
	}
	type edit struct {
		start, end int
		with       string
	}
	var edits []edit
	// A table of its own for the variables becomes part of this one.
	for _, s := range there.below {
		if s.path[2] != "env" {
			continue
		}
		if s.kind == 'k' && !oursVariable(s.path[3]) {
			if len(s.path) != 4 {
				return nil, errOtherForm
			}
			others = append(others, quoteTOML(s.path[3])+" = "+s.value)
		}
		edits = append(edits, edit{s.start, s.end, ""})
	}
	for _, k := range e.tomlKeys(others) {
		at := slices.IndexFunc(there.keys, func(s statement) bool { return len(s.path) == 3 && s.path[2] == k.name })
		if at >= 0 {
			old := there.keys[at]
			edits = append(edits, edit{old.at, old.at + len(old.value), k.value.(string)})
			continue
		}
		line := k.name + " = " + k.value.(string) + end
		if text[there.header.end-1] != '\n' {
			line = end + line
		}
		edits = append(edits, edit{there.header.end, there.header.end, line})
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return b.start - a.start })
	for _, d := range edits {
		text = splice(text, d.start, d.end, d.with)
	}
	if _, err := statements(text); err != nil {
		return nil, errOtherForm
	}
	return text, nil
}

func (tomlFormat) append(text []byte, block string) []byte {
	if len(text) == 0 {
		return []byte(block)
	}
	end := lineEndOf(text)
	gap := end
	if text[len(text)-1] != '\n' {
		gap += end
	}
	return append(append(slices.Clone(text), gap...), block...)
}

func lineEndOf(text []byte) string {
	if bytes.Contains(text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// ours reports whether Put wrote the table.
func (t *tomlEntry) ours() bool {
	var command string
	var args, variables []string
	for _, s := range t.keys {
		switch {
		case len(s.path) != 3:
		case s.path[2] == "command":
			command, _ = tomlString(s.value)
		case s.path[2] == "args":
			if s.value[0] == '[' {
				for _, item := range elements(s.value) {
					arg, _ := tomlString(item)
					args = append(args, arg)
				}
			}
		case s.path[2] == "env":
			if s.value[0] == '{' {
				for _, pair := range elements(s.value) {
					variables = append(variables, pairName(pair))
				}
			}
		}
	}
	for _, s := range t.below {
		if s.kind == 'k' && s.path[2] == "env" {
			variables = append(variables, s.path[3])
		}
	}
	return ourCommand(command, args, variables)
}

func (f tomlFormat) remove(text []byte, name string) ([]byte, error) {
	there, err := f.find(text, name)
	switch {
	case err != nil:
		return nil, err
	case there == nil:
		return text, nil
	case !there.ours():
		return nil, ErrForeign
	}
	parts := there.parts()
	for i := len(parts) - 1; i >= 0; i-- {
		start, end := parts[i][0], parts[i][1]
		if end == len(text) || i == 0 {
			// The empty line that append put before it.
			before := text[:start]
			for _, blank := range []string{"\r\n\r\n", "\n\n"} {
				if bytes.HasSuffix(before, []byte(blank)) {
					start -= len(blank) / 2
					break
				}
			}
		}
		text = splice(text, start, end, "")
	}
	return text, nil
}

// parts are the stretches of the text that belong to the entry, in order. Comments in
// between go with it, comments behind it stay.
func (t *tomlEntry) parts() (parts [][2]int) {
	parts = append(parts, [2]int{t.header.start, t.header.end})
	for _, s := range t.keys {
		parts[0][1] = max(parts[0][1], s.end)
	}
	for _, s := range t.below {
		if s.kind == 'k' {
			parts[len(parts)-1][1] = max(parts[len(parts)-1][1], s.end)
			continue
		}
		parts = append(parts, [2]int{s.start, s.end})
	}
	return parts
}

func (f tomlFormat) entry(text []byte, name string) (string, bool) {
	there, err := f.find(text, name)
	if err != nil || there == nil {
		return "", false
	}
	var raw strings.Builder
	for _, p := range there.parts() {
		raw.Write(text[p[0]:p[1]])
	}
	return raw.String(), true
}

func (f tomlFormat) restores(backup, now []byte, name, raw string) bool {
	_, had := f.entry(backup, name)
	return !had && bytes.Equal(f.append(backup, raw), now)
}

func splice(text []byte, start, end int, with string) []byte {
	out := make([]byte, 0, len(text)+len(with))
	return append(append(append(out, text[:start]...), with...), text[end:]...)
}
