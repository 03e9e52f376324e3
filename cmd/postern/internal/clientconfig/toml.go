package clientconfig

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// tomlFormat is a TOML file with a table for each server. Our own table is appended,
// changed and cut by whole lines. The rest is read only as far as needed to find the end
// of each line and its table: every other way to write a server of that name is refused.
type tomlFormat struct{}

var _ format = tomlFormat{}

const tomlContainer = "mcp_servers"

var errOtherForm = errors.New("it has its servers in a form that is not changed here: write [mcp_servers.NAME] tables")

func (f tomlFormat) paste(e *Entry, name string) string { return f.block(e, name, "\n") }

func (tomlFormat) block(e *Entry, name, end string) string {
	text := "[" + tomlContainer + "." + name + "]" + end
	for _, k := range e.tomlKeys(nil) {
		text += k.name + " = " + k.value.(string) + end
	}
	return text
}

// tomlKeys returns the keys of the entry's table; others are variables to keep, as
// written.
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

// quoteTOML writes a basic string. TOML reads the escapes of JSON; it wants DEL
// escaped too.
func quoteTOML(s string) string { return strings.ReplaceAll(quoteJSON(s), "\x7f", `\u007F`) }

// tomlLine is a line of a file; a value over several lines counts as one.
type tomlLine struct {
	text string // with a comment and the line's end
	code string // without those and without white space around it
	path string // of a header or a key, from the root, with dots and without quotes; else empty
	ours bool   // it belongs to the entry that find was asked for
}

func (l *tomlLine) isHeader() bool { return strings.HasPrefix(l.code, "[") }

func (l *tomlLine) isKey() bool { return l.code != "" && !l.isHeader() }

// value returns the value of a key, as written.
func (l *tomlLine) value() string { return l.code[len(keyLine.FindString(l.code)):] }

const (
	tomlString = `"(?:[^"\\\n]|\\.)*"|'[^'\n]*'`
	tomlPart   = `(?:[A-Za-z0-9_-]+|` + tomlString + `)`
	tomlKey    = `[ \t]*` + tomlPart + `(?:[ \t]*\.[ \t]*` + tomlPart + `)*[ \t]*`
)

var (
	// The tokens that decide where a line ends; a single quote mark opens an endless string.
	tomlTokens = regexp.MustCompile(`"""(?s:\\.|[^\\])*?"{3,5}|'''(?s:.)*?'{3,5}|` + tomlString + `|#[^\n]*|["'\[\]{}\n]|\z`)
	headLine   = regexp.MustCompile(`\A\[(?:` + tomlKey + `|\[` + tomlKey + `\])\]\z`)
	keyLine    = regexp.MustCompile(`\A` + tomlKey + `=[ \t]*`)
	unquoted   = strings.NewReplacer(`"`, "", `'`, "", " ", "", "\t", "", "[", "", "]", "", "=", "")
	tomlPair   = regexp.MustCompile(`(` + tomlPart + `)[ \t]*=[ \t]*(?:` + tomlString + `)`)
)

// tomlLines splits a file into its lines. It refuses text that is not TOML as far as it
// can tell without reading values.
func tomlLines(text []byte) (lines []tomlLine, err error) {
	if !utf8.Valid(text) {
		return nil, errors.New("it is not in UTF-8")
	}
	table := ""
	for start := 0; start < len(text); {
		length, code := tomlLineEnd(text[start:])
		l := tomlLine{text: string(text[start : start+length])}
		l.code = strings.Trim(strings.TrimPrefix(l.text[:code], byteOrderMark), space)
		key := keyLine.FindString(l.code)
		switch {
		case length > 0 && l.code == "":
		case headLine.MatchString(l.code):
			table = unquoted.Replace(l.code)
			l.path = table
		case key != "" && key != l.code:
			l.path = strings.TrimPrefix(table+"."+unquoted.Replace(key), ".")
		default:
			return nil, fmt.Errorf("it cannot be read from line %d on", 1+bytes.Count(text[:start], []byte("\n")))
		}
		lines = append(lines, l)
		start += length
	}
	return lines, nil
}

// tomlLineEnd returns the length of the first line of a text, with and without
// its comment; both are 0 when a part of it does not end.
func tomlLineEnd(text []byte) (length, code int) {
	depth, code := 0, -1
	for pos := 0; ; {
		m := tomlTokens.FindIndex(text[pos:])
		token := text[pos+m[0] : pos+m[1]]
		pos += m[1]
		first := byte('\n') // the end of the text ends the line
		if len(token) > 0 {
			first = token[0]
		}
		switch first {
		case '#', '\n':
			if depth == 0 && code < 0 {
				code = pos - len(token)
			}
			if first == '\n' && depth == 0 {
				return pos, code
			}
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
		if len(token) == 0 || depth < 0 || len(token) == 1 && (first == '"' || first == '\'') {
			return 0, 0
		}
	}
}

// find returns the lines of a file and whether the entry is in it, its lines marked:
// the server's table with the tables below it, each with an empty line before it. A
// comment between two keys is part of it, one behind the last is not.
func (tomlFormat) find(text []byte, name string) (lines []tomlLine, there bool, err error) {
	lines, err = tomlLines(text)
	own := tomlContainer + "." + name
	last := -1 // the last line of the entry in this table; negative in others' tables
	for i := range lines {
		l := &lines[i]
		plain := l.code == "["+l.path+"]"
		switch {
		case l.path == "":
			continue
		case l.path == tomlContainer && !plain:
			return nil, false, errOtherForm
		case l.path != own && !strings.HasPrefix(l.path, own+"."):
			if l.isHeader() {
				last = -1
			}
			continue
		case l.isHeader() && (!plain || there == (l.path == own)), l.isKey() && last < 0:
			return nil, false, errOtherForm
		case l.isHeader():
			last = i
			if i > 0 && strings.Trim(lines[i-1].text, "\r\n") == "" {
				last, lines[i-1].path = i-1, l.path
			}
		}
		for there = true; last < i; last++ {
			lines[last].ours = true
		}
		l.ours = true
	}
	return lines, there, err
}

// isOurs reports whether Put wrote the entry. others are the variables that Put did
// not write, as written; known is false when their form is not changed here.
func isOurs(lines []tomlLine, name string) (ours bool, others []string, known bool) {
	var command string
	var args, variables []string
	own, known := tomlContainer+"."+name, true
	for _, l := range lines {
		switch field := strings.TrimPrefix(l.path, own+"."); {
		case !l.ours || l.code == "":
		case l.isHeader():
			known = known && !strings.HasPrefix(field, "env.")
		case field == "command":
			command = strings.Trim(l.value(), `"'`)
		case field == "args":
			for _, token := range tomlTokens.FindAllString(l.value(), -1) {
				if arg := strings.Trim(token, `"'`); arg != token {
					args = append(args, arg)
				}
			}
		case field == "env", strings.HasPrefix(field, "env."):
			pairs := l.code
			if field == "env" {
				pairs = l.value()
			}
			for _, m := range tomlPair.FindAllStringSubmatch(pairs, -1) {
				variable := strings.Trim(m[1], `"'`)
				if variables = append(variables, variable); !oursVariable(variable) {
					others = append(others, m[0])
				}
			}
			known = known && strings.Trim(tomlPair.ReplaceAllString(pairs, ""), " \t,{}") == ""
		}
	}
	return ourCommand(command, args, variables), others, known
}

func (f tomlFormat) put(text []byte, name string, e *Entry) ([]byte, error) {
	end := lineEndOf(text)
	lines, there, err := f.find(text, name)
	if err != nil {
		return nil, err
	}
	if !there {
		return f.append(text, f.gap(text)+f.block(e, name, end)), nil
	}
	ours, others, known := isOurs(lines, name)
	switch {
	case !ours:
		return nil, ErrForeign
	case !known:
		return nil, errOtherForm
	}
	own := tomlContainer + "." + name
	for i := range lines {
		// A separate table for the variables becomes part of the server's.
		if l := &lines[i]; l.ours && (strings.HasPrefix(l.path, own+".env.") || l.path == own+".env" && (l.isHeader() || l.code == "")) {
			l.text = ""
		}
	}
	header := slices.IndexFunc(lines, func(l tomlLine) bool { return l.path == own && l.isHeader() })
	for _, k := range e.tomlKeys(others) {
		value := k.value.(string)
		if i := slices.IndexFunc(lines, func(l tomlLine) bool { return l.path == own+"."+k.name && l.isKey() }); i >= 0 {
			at := strings.Index(lines[i].text, lines[i].code) + len(lines[i].code)
			lines[i].text = lines[i].text[:at-len(lines[i].value())] + value + lines[i].text[at:]
			continue
		}
		lines[header].text = string(f.append([]byte(lines[header].text), k.name+" = "+value+end))
	}
	return joined(lines, nil), nil
}

// joined returns the text of the lines for which keep is true; nil keeps all.
func joined(lines []tomlLine, keep func(*tomlLine) bool) []byte {
	var b bytes.Buffer
	for i := range lines {
		if keep == nil || keep(&lines[i]) {
			b.WriteString(lines[i].text)
		}
	}
	return b.Bytes()
}

// append adds a text in lines of its own.
func (tomlFormat) append(text []byte, lines string) []byte {
	if len(text) > 0 && text[len(text)-1] != '\n' {
		lines = lineEndOf(text) + lines
	}
	return append(slices.Clone(text), lines...)
}

// gap returns the text between the existing text and an appended table.
func (tomlFormat) gap(text []byte) string {
	if len(text) == 0 {
		return ""
	}
	return lineEndOf(text)
}

func lineEndOf(text []byte) string {
	if bytes.Contains(text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

func (f tomlFormat) remove(text []byte, name string) ([]byte, error) {
	lines, there, err := f.find(text, name)
	if err != nil || !there {
		return text, err
	}
	if ours, _, _ := isOurs(lines, name); !ours {
		return nil, ErrForeign
	}
	return joined(lines, func(l *tomlLine) bool { return !l.ours }), nil
}

func (f tomlFormat) entry(text []byte, name string) (string, bool) {
	lines, there, err := f.find(text, name)
	return string(joined(lines, func(l *tomlLine) bool { return l.ours })), err == nil && there
}

func (f tomlFormat) restores(backup, now []byte, name, raw string) bool {
	_, had := f.entry(backup, name)
	return !had && bytes.Equal(f.append(backup, raw), now)
}
