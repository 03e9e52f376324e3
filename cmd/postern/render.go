package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/mattn/go-runewidth"
)

// A field is a member of a JSON object; an object keeps the order it was written
// in, which is the order a person should read it in.
type field struct {
	name  string
	value any // object, []any, string, json.Number, bool or nil
}

type object []field

func (o object) get(name string) any {
	for _, f := range o {
		if f.name == name {
			return f.value
		}
	}
	return nil
}

// decode reads one JSON value and keeps the order of members.
func decode(d *json.Decoder) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		o := object{}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			value, err := decode(d)
			if err != nil {
				return nil, err
			}
			o = append(o, field{name.(string), value})
		}
		_, err = d.Token()
		return o, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			value, err := decode(d)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		_, err = d.Token()
		return list, err
	}
	return t, nil
}

// render shows an envelope to a person on a terminal of the given width.
func render(w io.Writer, envelope []byte, width int) {
	d := json.NewDecoder(bytes.NewReader(envelope))
	d.UseNumber()
	v, err := decode(d)
	o, ok := v.(object)
	if err != nil || !ok {
		fmt.Fprintf(w, "%s\n", envelope)
		return
	}
	var b strings.Builder
	if o.get("success") == true {
		renderData(&b, o.get("data"), width)
		if m, ok := o.get("message").(string); ok {
			fmt.Fprintf(&b, "%s\n", visible(m))
		}
	} else if e, ok := o.get("error").(object); ok {
		renderError(&b, e)
	}
	_, _ = io.WriteString(w, b.String())
}

func renderError(b *strings.Builder, e object) {
	fmt.Fprintf(b, "%s: %s\n", text(e.get("code")), text(e.get("message")))
	if h := text(e.get("hint")); h != "" {
		fmt.Fprintf(b, "%s\n", h)
	}
	if list, ok := e.get("examples").([]any); ok {
		for _, x := range list {
			fmt.Fprintf(b, "  %s\n", text(x))
		}
	}
}

func renderData(b *strings.Builder, data any, width int) {
	switch v := data.(type) {
	case object:
		renderObject(b, v, "", width)
	case []any:
		renderList(b, v, "", width)
	default:
		fmt.Fprintf(b, "%s\n", text(v))
	}
}

// skipped are members that speak to programs.
func skipped(f field) bool {
	list, isList := f.value.([]any)
	return f.name == "next_action" || f.name == "status" && f.value == "ok" || isList && len(list) == 0
}

// renderObject shows scalars first, aligned, then what is nested, each under its
// name; a text of several lines comes last, each behind a mark, so that nothing in
// it can pass for a part of the answer.
func renderObject(b *strings.Builder, o object, indent string, width int) {
	longest := 0
	for _, f := range o {
		if scalar(f.value) && !skipped(f) {
			longest = max(longest, len(f.name))
		}
	}
	for _, f := range o {
		if scalar(f.value) && !skipped(f) {
			fmt.Fprintf(b, "%s%-*s  %s\n", indent, longest, f.name, text(f.value))
		}
	}
	for _, f := range o {
		if scalar(f.value) || skipped(f) {
			continue
		}
		switch v := f.value.(type) {
		case object:
			fmt.Fprintf(b, "%s%s\n", indent, f.name)
			renderObject(b, v, indent+"  ", width)
		case []any:
			fmt.Fprintf(b, "%s%s\n", indent, f.name)
			renderList(b, v, indent+"  ", width)
		case string:
			b.WriteByte('\n')
			for line := range strings.Lines(v) {
				b.WriteString(strings.TrimRight(indent+"> "+visible(strings.TrimRight(line, "\n")), " ") + "\n")
			}
			b.WriteByte('\n')
		}
	}
}

func renderList(b *strings.Builder, list []any, indent string, width int) {
	var rows []object
	for _, v := range list {
		o, ok := v.(object)
		if !ok {
			break
		}
		rows = append(rows, o)
	}
	if len(rows) == len(list) && len(rows) > 0 {
		renderTable(b, rows, indent, width)
		return
	}
	for _, v := range list {
		fmt.Fprintf(b, "%s%s\n", indent, text(v))
	}
}

// renderTable gives every column what it needs, and when that is more than there
// is, takes from the widest.
func renderTable(b *strings.Builder, rows []object, indent string, width int) {
	var names []string
	cells := map[string][]string{}
	for i, row := range rows {
		for _, f := range row {
			if cells[f.name] == nil {
				names = append(names, f.name)
				cells[f.name] = make([]string, len(rows))
			}
			cells[f.name][i] = text(f.value)
		}
	}
	widths := make([]int, len(names))
	total := len(indent)
	for i, n := range names {
		widths[i] = runewidth.StringWidth(n)
		for _, c := range cells[n] {
			widths[i] = max(widths[i], runewidth.StringWidth(c))
		}
		total += widths[i] + 2
	}
	for total > width {
		widest := 0
		for i := range widths {
			if widths[i] > widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= 12 {
			break
		}
		widths[widest]--
		total--
	}
	if total > width && len(names) > 6 || slices.Contains(widths, 0) {
		renderRecords(b, rows, indent, width)
		return
	}
	line := func(cell func(name string) string) {
		var l strings.Builder
		l.WriteString(indent)
		for i, n := range names {
			l.WriteString(runewidth.FillRight(runewidth.Truncate(cell(n), widths[i], "…"), widths[i]+2))
		}
		b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
	}
	line(func(n string) string { return n })
	for i := range rows {
		line(func(n string) string { return cells[n][i] })
	}
}

// renderRecords shows rows that do not fit a table one below the other.
func renderRecords(b *strings.Builder, rows []object, indent string, width int) {
	for i, row := range rows {
		if i > 0 {
			b.WriteByte('\n')
		}
		renderObject(b, row, indent, width)
	}
}

func scalar(v any) bool {
	switch v := v.(type) {
	case object, []any:
		return false
	case string:
		return !strings.Contains(v, "\n")
	}
	return true
}

// text is a value in one line.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return visible(strings.ReplaceAll(v, "\n", " "))
	case []any:
		parts := make([]string, len(v))
		for i, x := range v {
			parts[i] = text(x)
		}
		return strings.Join(parts, ", ")
	case object:
		parts := make([]string, len(v))
		for i, f := range v {
			parts[i] = f.name + "=" + text(f.value)
		}
		return strings.Join(parts, " ")
	}
	return fmt.Sprint(v)
}

// visible takes out what would steer the terminal, and writes out what nobody would
// see.
func visible(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case unicode.IsControl(r):
		case unicode.Is(unicode.Cf, r), unicode.In(r, unicode.Other_Default_Ignorable_Code_Point):
			fmt.Fprintf(&b, `\u{%X}`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
