package screen

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/postern-mail/postern/internal/plain"
)

// object is a JSON object with its members in the order in which they were written, which is the one that a person should
// read them in. A value of a member is an object, []any of such values, string, json.Number, bool or nil.
type object []member

type member struct {
	name  string
	value any
}

// decode reads a value that is known to be JSON. It goes as deep as that does: answers are bounded where they are made.
func decode(d *json.Decoder) any {
	t, _ := d.Token()
	switch t {
	case json.Delim('{'):
		o := object{}
		for d.More() {
			name, _ := d.Token()
			o = append(o, member{name.(string), decode(d)})
		}
		_, _ = d.Token()
		return o
	case json.Delim('['):
		list := []any{}
		for d.More() {
			list = append(list, decode(d))
		}
		_, _ = d.Token()
		return list
	}
	return t
}

// valueOf is a value of ours as its JSON has it; nil for one that has none.
func valueOf(v any) any {
	text, err := plain.JSON(v)
	if err != nil {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return decode(d)
}

// data draws any JSON value; what is none is a line of text.
func (p *painter) data(data json.RawMessage) {
	switch v := valueOf(data).(type) {
	case nil:
		if len(data) > 0 {
			p.line(Line(string(data)))
		}
	case object:
		p.object(v, "")
	case []any:
		p.list(v, "")
	default:
		p.line(text(v))
	}
}

// skipped reports members that are for programs, or are shown elsewhere.
func (p *painter) skipped(f member) bool {
	list, isList := f.value.([]any)
	return f.value == nil || p.next != nil && f.name == "next_action" || f.name == "has_more" && f.value == false || f.name == "status" && f.value == "ok" || isList && len(list) == 0
}

// label is the name of a member as a person reads it.
func (p *painter) label(name string) string {
	if p.exact {
		return Visible(name)
	}
	name = strings.ReplaceAll(strings.TrimSuffix(Visible(name), "_id"), "_", " ")
	if name != "" && name[0] >= 'a' && name[0] <= 'z' {
		return string(name[0]-'a'+'A') + name[1:]
	}
	return name
}

// value is what a member says in one line. Bytes are counted, not shown.
func (p *painter) value(f member) string {
	switch v := f.value.(type) {
	case string:
		switch {
		case strings.HasSuffix(f.name, "base64"):
			return fmt.Sprintf("%d bytes", base64.StdEncoding.DecodedLen(len(v))-strings.Count(v, "="))
		case strings.HasSuffix(f.name, "message_id"):
			return p.id(v)
		}
		return p.date(v)
	case json.Number:
		if n, err := v.Int64(); err == nil && strings.HasSuffix(f.name, "size_bytes") {
			return size(n)
		}
	case []any:
		if f.name == "flags" {
			return flags(words(v))
		}
	}
	return text(f.value)
}

// words are the texts of a list.
func words(list []any) []string {
	all := make([]string, len(list))
	for i, x := range list {
		all[i] = text(x)
	}
	return all
}

// object shows scalars first, aligned, then nested values, each under its name; a
// text of several lines comes last, each behind a mark, so that no line can pass
// for a part of the answer.
func (p *painter) object(o object, indent string) {
	var rows [][2]string
	o = slices.DeleteFunc(o, p.skipped)
	for _, f := range o {
		if list, isList := f.value.([]any); scalar(f.value) || isList && (f.name == "flags" || len(list) == 1 && scalar(list[0])) {
			rows = append(rows, [2]string{p.label(f.name), p.value(f)})
		}
	}
	p.record(rows, indent)
	for _, f := range o {
		switch v := f.value.(type) {
		case object:
			p.line(indent, p.in(styleBold, p.label(f.name)))
			p.object(v, indent+"  ")
		case []any:
			if f.name != "flags" && (len(v) > 1 || !scalar(v[0])) {
				p.line(indent, p.in(styleBold, p.label(f.name)))
				p.list(v, indent+"  ")
			}
		case string:
			if !scalar(v) {
				p.line("")
				p.quoted(v, indent+"> ", "", p.Width)
				p.line("")
			}
		}
	}
}

func (p *painter) list(list []any, indent string) {
	var columns []column
	at, deep := map[string]int{}, false
	for i, v := range list {
		o, ok := v.(object)
		if !ok {
			columns = nil
			break
		}
		for _, f := range o {
			c, known := at[f.name]
			if !known {
				c, at[f.name] = len(columns), len(columns)
				columns = append(columns, column{name: p.label(f.name), cells: make([]string, len(list))})
			}
			columns[c].cells[i] = p.value(f)
			if inner, isList := f.value.([]any); !scalar(f.value) && (!isList || len(inner) > 0 && !scalar(inner[0])) {
				deep = true
			}
		}
	}
	if len(columns) == 0 {
		for _, v := range list {
			p.wrapped(indent, "", text(v))
		}
		return
	}
	if deep || !p.table(columns, indent) {
		for i, v := range list {
			if i > 0 {
				p.line("")
			}
			p.object(v.(object), indent)
		}
	}
}

// scalar reports whether a value is shown in one line.
func scalar(v any) bool {
	switch v := v.(type) {
	case object, []any:
		return false
	case string:
		return !strings.Contains(plain.LineEnds(v), "\n")
	}
	return true
}
