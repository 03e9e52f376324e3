package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"
)

// look is how answers are shown to a person.
type look struct {
	width int  // columns
	color bool // emphasis may be used
	zone  *time.Location
}

// render shows the envelope of a command, by its path where that has a view of its
// own. Nothing that is in the envelope reaches the terminal but as text.
func (l look) render(w io.Writer, envelope []byte, path string) {
	d := json.NewDecoder(bytes.NewReader(envelope))
	d.UseNumber()
	v, err := decode(d)
	o, ok := v.(object)
	if err != nil || !ok {
		fmt.Fprintf(w, "%s\n", visible(string(envelope)))
		return
	}
	p := &painter{look: l}
	if l.zone == nil {
		p.zone = time.Local
	}
	p.width = max(p.width, 20)
	if o.get("success") == true {
		data := o.get("data")
		view, shown := views[path], false
		if fields, isObject := data.(object); isObject && view != nil {
			shown = view(p, fields)
		}
		if !shown {
			p.b.Reset()
			p.data(data)
		}
		p.after(o, data, shown)
	} else if e, ok := o.get("error").(object); ok {
		p.failure(e)
	}
	_, _ = io.WriteString(w, p.b.String())
}

// painter writes one answer.
type painter struct {
	look
	b strings.Builder
}

// The styles, which end with styleOff.
const (
	styleBold = "\x1b[1m"
	styleDim  = "\x1b[2m"
	styleRed  = "\x1b[1;31m"
	styleOff  = "\x1b[0m"
)

// in is text in a style. What it is given is visible text.
func (p *painter) in(style, s string) string {
	if !p.color || style == "" || s == "" {
		return s
	}
	return style + s + styleOff
}

func (p *painter) line(parts ...string) {
	p.b.WriteString(strings.TrimRight(strings.Join(parts, ""), " ") + "\n")
}

// wrapped writes visible text, broken where the window ends, behind an indent.
func (p *painter) wrapped(indent, style, s string) {
	for _, l := range wrap(s, p.width-runewidth.StringWidth(indent)) {
		p.line(indent, p.in(style, l))
	}
}

func (p *painter) failure(e object) {
	p.wrapped("", styleRed, text(e.get("code"))+": "+text(e.get("message")))
	if h := text(e.get("hint")); h != "" {
		p.wrapped("", "", h)
	}
	if list := e.strings("examples"); len(list) > 0 {
		p.line(p.in(styleDim, "For example:"))
		for _, x := range list {
			p.line("  ", text(x)) // whole, to be copied
		}
	}
}

// after writes what an answer says besides its data.
func (p *painter) after(o object, data any, shown bool) {
	fields, _ := data.(object)
	if issues, ok := fields.objects("issues"); ok && shown {
		for _, i := range issues {
			p.wrapped("", styleRed, strings.TrimSpace("Note: "+text(i.get("message"))+" "+text(i.get("message_id"))))
		}
	}
	if m := o.str("message"); m != "" {
		p.wrapped("", styleDim, text(m))
	}
	if n, ok := fields.get("next_action").(object); ok {
		if a, ok := n.get("arguments").(object); ok && a.str("command") != "" {
			p.line(p.in(styleDim, strings.Replace(text(n.get("instruction")), ": ", "; ", 1)+":"))
			p.line("  ", text(a.get("command")))
		}
	}
	if meta, ok := o.get("_meta").(object); ok {
		if meta.get("truncated") == true {
			p.line(p.in(styleDim, "The answer was cut to fit."))
		}
		if a := meta.str("audit"); a != "" {
			p.wrapped("", styleRed, text(a))
		}
	}
}

func (p *painter) data(data any) {
	switch v := data.(type) {
	case object:
		p.object(v, "")
	case []any:
		p.list(v, "")
	default:
		p.line(text(v))
	}
}

// skipped are members that speak to programs, or are said elsewhere.
func skipped(f field) bool {
	list, isList := f.value.([]any)
	return f.name == "next_action" || f.name == "has_more" && f.value == false || f.name == "status" && f.value == "ok" || isList && len(list) == 0
}

// object shows scalars first, aligned, then what is nested, each under its name; a
// text of several lines comes last, each behind a mark, so that nothing in it can
// pass for a part of the answer.
func (p *painter) object(o object, indent string) {
	longest := 0
	for _, f := range o {
		if scalar(f.value) && !skipped(f) {
			longest = max(longest, runewidth.StringWidth(visible(f.name)))
		}
	}
	for _, f := range o {
		if !scalar(f.value) || skipped(f) {
			continue
		}
		name, rest := indent+fill(visible(f.name), longest)+"  ", strings.Repeat(" ", runewidth.StringWidth(indent)+longest+2)
		for i, l := range wrap(text(f.value), p.width-len(rest)) {
			if i > 0 {
				name = rest
			}
			p.line(p.in(styleBold, name), l)
		}
	}
	for _, f := range o {
		if scalar(f.value) || skipped(f) {
			continue
		}
		switch v := f.value.(type) {
		case object:
			p.line(indent, p.in(styleBold, visible(f.name)))
			p.object(v, indent+"  ")
		case []any:
			p.line(indent, p.in(styleBold, visible(f.name)))
			p.list(v, indent+"  ")
		case string:
			p.line("")
			p.quoted(v, indent+"> ", "")
			p.line("")
		}
	}
}

// quoted writes text of several lines, each behind a mark.
func (p *painter) quoted(s, mark, style string) {
	for l := range strings.SplitSeq(strings.TrimRight(lineEnds.Replace(s), "\n"), "\n") {
		p.wrapped(mark, style, visible(l))
	}
}

func (p *painter) list(list []any, indent string) {
	var rows []object
	for _, v := range list {
		o, ok := v.(object)
		if !ok {
			break
		}
		rows = append(rows, o)
	}
	if len(rows) == len(list) && len(rows) > 0 {
		p.table(rows, indent)
		return
	}
	for _, v := range list {
		p.wrapped(indent, "", text(v))
	}
}

// table gives every column what it needs, and when that is more than there is, takes
// from the widest. Rows that do not fit so are shown one below the other.
func (p *painter) table(rows []object, indent string) {
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
	total := runewidth.StringWidth(indent)
	for i, n := range names {
		widths[i] = runewidth.StringWidth(visible(n))
		for _, c := range cells[n] {
			widths[i] = max(widths[i], runewidth.StringWidth(c))
		}
		total += widths[i] + 2
	}
	for total -= 2; total > p.width; total-- {
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
	}
	if total > p.width || slices.Contains(widths, 0) {
		for i, row := range rows {
			if i > 0 {
				p.line("")
			}
			p.object(row, indent)
		}
		return
	}
	line := func(style string, cell func(name string) string) {
		var l strings.Builder
		for i, n := range names {
			l.WriteString(fill(cell(n), widths[i]))
			if i < len(names)-1 {
				l.WriteString("  ")
			}
		}
		p.line(indent, p.in(style, strings.TrimRight(l.String(), " ")))
	}
	line(styleBold, visible)
	for i := range rows {
		line("", func(n string) string { return cells[n][i] })
	}
}

func scalar(v any) bool {
	switch v := v.(type) {
	case object, []any:
		return false
	case string:
		return !strings.Contains(lineEnds.Replace(v), "\n")
	}
	return true
}
