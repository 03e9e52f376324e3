// Package screen draws an answer for a person at a terminal. It promises that no
// stranger's text steers the terminal: it returns text in UTF-8 without control
// characters, except line feeds and, where emphasis may be used, the few escape sequences
// of its own, each ended on its line. Invisible characters and those that would change
// the order of others are written out. The text of a mail has a mark on every line, so
// that none of it can pass for a part of the answer.
//
// Look.Render draws the envelope of a command. The functions are for other text on a
// terminal: Visible and Line make text safe to show, and Wrap and Cut fit safe text into
// a window. A width is a number of columns; a wide character takes two and a combining
// mark 0.
//
// The package knows the form of some commands' answers, and nothing of callers, rules or
// how a terminal is read. It writes nothing itself, and is safe for concurrent use.
package screen

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/postern-mail/postern/cmd/postern/internal/orderedjson"
	"github.com/postern-mail/postern/internal/plain"
)

type (
	object = orderedjson.Object
	member = orderedjson.Member
)

// minWidth is the smallest width that is drawn for, in columns.
const minWidth = 20

// Look says how to write to a terminal. The zero value draws for the narrowest
// window, without emphasis and in local time.
type Look struct {
	Width int            // columns; fewer than 20 count as 20
	Color bool           // emphasis may be used
	Zone  *time.Location // of the dates; nil means local time

	// Quote quotes a word for a command line, in the lines that propose a next
	// command. It gets visible text, and its result is shown unchanged. Nil leaves
	// words unquoted. Only Render calls it, while it runs.
	Quote func(word string) string

	// Shell are the first words of commands that are typed in a shell, behind the program's
	// name. Nil where commands are typed at the prompt.
	Shell []string
}

// Render draws the envelope of an answer, as lines that each end in a line feed. The
// path is that of the command, such as "mail list": some have a view of their own; an
// answer that the view does not expect is drawn like that of any other path. A failure
// is drawn alike for all of them.
//
// Text is broken at the window's width; only the senders and subjects of a list are cut. Words
// that are not a stranger's, ids and text to be copied stay whole, so a line can be wider. There is no error: an envelope that is not a JSON
// object is one line of visible text, and one with neither success nor an error gives no
// text.
func (l Look) Render(envelope []byte, path string) string {
	v, err := orderedjson.Decode(envelope)
	o, ok := v.(object)
	if err != nil || !ok {
		return Visible(string(envelope)) + "\n"
	}
	return l.Draw(o, path)
}

// Draw is Render for an envelope that was decoded.
func (l Look) Draw(o orderedjson.Object, path string) string {
	p := &painter{Look: l}
	if l.Zone == nil {
		p.Zone = time.Local
	}
	p.Width = max(p.Width, minWidth)
	if o.Get("success") == true {
		data := o.Get("data")
		view, shown := views[path], false
		if fields, isObject := data.(object); isObject && view != nil {
			shown = view(p, fields)
		}
		if !shown {
			p.b.Reset()
			p.data(data)
		}
		p.after(o, data, shown)
	} else if e, ok := o.Get("error").(object); ok {
		p.failure(e)
	}
	return p.b.String()
}

// painter writes one answer.
type painter struct {
	Look
	b strings.Builder
}

// The styles, which end with styleOff.
const (
	styleBold = "\x1b[1m"
	styleDim  = "\x1b[2m"
	styleRed  = "\x1b[1;31m"
	styleOff  = "\x1b[0m"
)

// in returns text in a style. It takes visible text.
func (p *painter) in(style, s string) string {
	if !p.Color || style == "" || s == "" {
		return s
	}
	return style + s + styleOff
}

// quote returns a word quoted for a command line.
func (p *painter) quote(word string) string {
	if p.Quote == nil {
		return word
	}
	return p.Quote(word)
}

func (p *painter) line(parts ...string) {
	p.b.WriteString(strings.TrimRight(strings.Join(parts, ""), " ") + "\n")
}

// wrapped writes visible text of our own, broken between words, behind an indent.
func (p *painter) wrapped(indent, style, s string) {
	for _, l := range Words(s, p.Width-runewidth.StringWidth(indent)) {
		p.line(indent, p.in(style, l))
	}
}

// broken writes visible text of others, broken at the window's width, behind an indent.
func (p *painter) broken(indent, style, s string) {
	for _, l := range Wrap(s, p.Width-runewidth.StringWidth(indent)) {
		p.line(indent, p.in(style, l))
	}
}

// typed returns a command as it is typed here.
func (p *painter) typed(command string) string {
	if word, _, _ := strings.Cut(command, " "); slices.Contains(p.Shell, word) {
		return "postern " + command
	}
	return command
}

var namedCommand = regexp.MustCompile(`(^|[ (]|Usage: )('?)([a-z][a-z-]*)`)

// advice returns a hint of ours with its commands as they are typed here.
func (p *painter) advice(s string) string {
	return namedCommand.ReplaceAllStringFunc(s, func(a string) string {
		m := namedCommand.FindStringSubmatch(a)
		if m[1] != "Usage: " && m[2] == "" {
			return a
		}
		return m[1] + m[2] + p.typed(m[3])
	})
}

func (p *painter) failure(e object) {
	p.wrapped("", styleRed, cmp.Or(text(e.Get("message")), text(e.Get("code"))))
	if h := text(e.Get("hint")); h != "" {
		p.wrapped("", "", p.advice(h))
	}
	if list := e.Strings("examples"); len(list) > 0 {
		p.line(p.in(styleDim, "For example:"))
		for _, x := range list {
			p.line("  ", p.typed(text(x))) // whole, to be copied
		}
	}
}

// after writes the parts of an answer besides its data.
func (p *painter) after(o object, data any, shown bool) {
	fields, _ := data.(object)
	if issues, ok := fields.Objects("issues"); ok && shown {
		for _, i := range issues {
			p.wrapped("", styleRed, strings.TrimSpace("Note: "+text(i.Get("message"))+" "+text(i.Get("message_id"))))
		}
	}
	if m := o.Str("message"); m != "" {
		p.wrapped("", styleDim, text(m))
	}
	if n, ok := fields.Get("next_action").(object); ok {
		if a, ok := n.Get("arguments").(object); ok && a.Str("command") != "" {
			p.line(p.in(styleDim, strings.Replace(text(n.Get("instruction")), ": ", "; ", 1)+":"))
			p.line("  ", p.typed(shortIDs(text(a.Get("command")))))
		}
	}
	if meta, ok := o.Get("_meta").(object); ok {
		if meta.Get("truncated") == true {
			p.line(p.in(styleDim, "The answer was cut to fit."))
		}
		if a := meta.Str("audit"); a != "" {
			p.wrapped("", styleRed, text(a))
		}
	}
}

// longID is a long message id of a folder whose name needs no escapes in a short one.
var longID = regexp.MustCompile(`imap:([A-Za-z0-9_][A-Za-z0-9_-]*):([\pL\pN._/-]+):[0-9]+:([0-9]+)`)

// shortIDs writes the message ids of a command as a person types them.
func shortIDs(command string) string {
	return strings.ReplaceAll(longID.ReplaceAllString(command, "$1:$2/$3"), ":INBOX/", ":")
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

// skipped reports members that are for programs, or are shown elsewhere.
func skipped(f member) bool {
	list, isList := f.Value.([]any)
	return f.Name == "next_action" || f.Name == "has_more" && f.Value == false || f.Name == "status" && f.Value == "ok" || isList && len(list) == 0
}

// object shows scalars first, aligned, then nested values, each under its name; a
// text of several lines comes last, each behind a mark, so that no line can pass
// for a part of the answer.
func (p *painter) object(o object, indent string) {
	longest := 0
	for _, f := range o {
		if scalar(f.Value) && !skipped(f) {
			longest = max(longest, runewidth.StringWidth(Visible(f.Name)))
		}
	}
	for _, f := range o {
		if !scalar(f.Value) || skipped(f) {
			continue
		}
		name, rest := indent+fill(Visible(f.Name), longest)+"  ", strings.Repeat(" ", runewidth.StringWidth(indent)+longest+2)
		for i, l := range Words(text(f.Value), p.Width-len(rest)) {
			if i > 0 {
				name = rest
			}
			p.line(p.in(styleBold, name), l)
		}
	}
	for _, f := range o {
		if scalar(f.Value) || skipped(f) {
			continue
		}
		switch v := f.Value.(type) {
		case object:
			p.line(indent, p.in(styleBold, Visible(f.Name)))
			p.object(v, indent+"  ")
		case []any:
			p.line(indent, p.in(styleBold, Visible(f.Name)))
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
	for l := range strings.SplitSeq(strings.TrimRight(plain.LineEnds(s), "\n"), "\n") {
		p.broken(mark, style, Visible(l))
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

// table gives every column the width it needs; where that is too much, it narrows
// the widest. Rows that still do not fit are shown one below the other.
func (p *painter) table(rows []object, indent string) {
	var names []string
	cells := map[string][]string{}
	for i, row := range rows {
		for _, f := range row {
			if cells[f.Name] == nil {
				names = append(names, f.Name)
				cells[f.Name] = make([]string, len(rows))
			}
			cells[f.Name][i] = text(f.Value)
		}
	}
	widths := make([]int, len(names))
	total := runewidth.StringWidth(indent)
	for i, n := range names {
		widths[i] = runewidth.StringWidth(Visible(n))
		for _, c := range cells[n] {
			widths[i] = max(widths[i], runewidth.StringWidth(c))
		}
		total += widths[i] + 2
	}
	for total -= 2; total > p.Width; total-- {
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
	if total > p.Width || slices.Contains(widths, 0) {
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
	line(styleBold, Visible)
	for i := range rows {
		line("", func(n string) string { return cells[n][i] })
	}
}

func scalar(v any) bool {
	switch v := v.(type) {
	case object, []any:
		return false
	case string:
		return !strings.Contains(plain.LineEnds(v), "\n")
	}
	return true
}
