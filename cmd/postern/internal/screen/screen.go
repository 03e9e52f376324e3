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
	"encoding/base64"
	"fmt"
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

	// ID returns a message's id as it is typed here, of the one that an answer has. Nil
	// leaves ids as they are. Only Render calls it, while it runs.
	ID func(long string) string

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
	p := &painter{Look: l, said: text(o.Get("message")), exact: path == "schema"}
	if l.Zone == nil {
		p.Zone = time.Local
	}
	p.Width = max(p.Width, minWidth)
	if o.Get("success") == true {
		data := o.Get("data")
		view, shown := views[path], false
		fields, isObject := data.(object)
		if fields.Get("issues") != nil {
			p.said = issues.ReplaceAllString(p.said, "")
		}
		if isObject && view != nil {
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
	b    strings.Builder
	said string // the sentence below the view, which a view may complete

	exact bool // names are shown as programs need them
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

// Strong returns visible text as what stands out from the lines around it.
func (l Look) Strong(s string) string { return (&painter{Look: l}).in(styleBold, s) }

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
	if p.Shell == nil {
		s = strings.ReplaceAll(s, "'postern approve'", "'approve'")
	}
	return namedCommand.ReplaceAllStringFunc(s, func(a string) string {
		m := namedCommand.FindStringSubmatch(a)
		if m[1] != "Usage: " && m[2] == "" {
			return a
		}
		return m[1] + m[2] + p.typed(m[3])
	})
}

func (p *painter) failure(e object) {
	style, waits := styleRed, text(e.Get("code")) == "APPROVAL_REQUIRED"
	if waits { // which is as it should be, and the hint says what to do
		style = styleBold
	}
	p.wrapped("", style, cmp.Or(text(e.Get("message")), text(e.Get("code"))))
	if h := text(e.Get("hint")); h != "" {
		p.wrapped("", "", p.advice(h))
	}
	if list := e.Strings("examples"); len(list) > 0 && !waits {
		p.line(p.in(styleDim, "For example:"))
		for _, x := range list {
			p.line("  ", p.typed(text(x))) // whole, to be copied
		}
	}
}

// after writes the parts of an answer besides its data.
func (p *painter) after(o object, data any, shown bool) {
	fields, _ := data.(object)
	if list, ok := fields.Objects("issues"); ok && shown {
		for _, i := range list {
			note := "Note"
			if id := p.id(i.Get("message_id")); id != "" {
				note += " on " + id
			}
			p.wrapped("", styleRed, note+": "+text(i.Get("message")))
		}
	}
	if p.said != "" {
		p.wrapped("", styleDim, stamp.ReplaceAllStringFunc(sentence(p.said), p.when))
	}
	n, _ := fields.Get("next_action").(object)
	a, _ := n.Get("arguments").(object)
	if command := a.Str("command"); command != "" && !p.reads(command, fields) {
		p.wrapped("", styleDim, strings.Replace(text(n.Get("instruction")), ": ", "; ", 1)+":")
		p.line("  ", p.typed(p.short(command)))
	}
	if meta, ok := o.Get("_meta").(object); ok {
		if meta.Get("truncated") == true {
			p.wrapped("", styleDim, "The answer was cut to fit.")
		}
		if a := meta.Str("audit"); a != "" {
			p.wrapped("", styleRed, text(a))
		}
	}
}

// issues is the end of a sentence that counts what is told one by one.
var issues = regexp.MustCompile(`(; partial|; failed|^Partial|^Failed), with \d+ issues?$`)

// stamp is a time as programs read it.
var stamp = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// reads reports whether a command reads the first message of a list, below which stands how
// that is done.
func (p *painter) reads(command string, list object) bool {
	messages, ok := list.Objects("messages")
	return ok && len(messages) > 0 && command == "mail get "+p.quote(messages[0].Str("message_id"))
}

// sentence ends a sentence of ours.
func sentence(s string) string {
	if strings.HasSuffix(s, ".") {
		return s
	}
	return s + "."
}

// longID is a long message id as a word of a command.
var longID = regexp.MustCompile(`'imap:[^']+'|\bimap:[^ ']+`)

// short returns a command as a person types it: with message ids as they are typed here, and
// reading one as a word.
func (p *painter) short(command string) string {
	if id, ok := strings.CutPrefix(command, "mail get "); ok && longID.FindString(id) == id {
		command = "read " + id
	}
	if p.ID != nil {
		command = longID.ReplaceAllStringFunc(command, func(word string) string {
			ids := strings.Split(strings.ReplaceAll(strings.Trim(word, "'"), `\,`, "\x00"), ",") // of several accounts
			for i, id := range ids {
				ids[i] = p.ID(strings.ReplaceAll(id, "\x00", ","))
			}
			return p.quote(strings.Join(ids, ","))
		})
	}
	return Line(command)
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
	return f.Value == nil || f.Name == "next_action" || f.Name == "has_more" && f.Value == false || f.Name == "status" && f.Value == "ok" || isList && len(list) == 0
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
	s, isText := f.Value.(string)
	switch {
	case isText && strings.HasSuffix(f.Name, "base64"):
		return fmt.Sprintf("%d bytes", base64.StdEncoding.DecodedLen(len(s))-strings.Count(s, "="))
	case strings.HasSuffix(f.Name, "message_id"):
		return p.id(f.Value)
	case strings.HasSuffix(f.Name, "size_bytes"):
		return size(f.Value)
	case isText && p.when(s) != "":
		return p.when(s)
	}
	if list, ok := f.Value.([]any); ok && f.Name == "flags" {
		return flags(list)
	}
	return text(f.Value)
}

// record writes what has a name each, the values aligned.
func (p *painter) record(rows [][2]string, indent string) {
	longest := 0
	for _, r := range rows {
		longest = max(longest, runewidth.StringWidth(r[0]))
	}
	longest = min(longest, p.Width/2)
	rest := indent + strings.Repeat(" ", longest+2)
	for _, r := range rows {
		name, rest := indent+runewidth.FillRight(r[0], longest)+"  ", rest
		wide := func(word string) bool { return runewidth.StringWidth(word) > p.Width-len(rest) }
		if slices.ContainsFunc(strings.Fields(r[1]), wide) { // such as an id or an address
			p.line(p.in(styleBold, name))
			name, rest = indent+"  ", indent+"  "
		}
		for part := range strings.SplitSeq(r[1], "\n") {
			for _, l := range Words(part, p.Width-len(rest)) {
				p.line(p.in(styleBold, name), l)
				name = rest
			}
		}
	}
}

// object shows scalars first, aligned, then nested values, each under its name; a
// text of several lines comes last, each behind a mark, so that no line can pass
// for a part of the answer.
func (p *painter) object(o object, indent string) {
	var rows [][2]string
	for _, f := range o {
		if list, isList := f.Value.([]any); !skipped(f) && (scalar(f.Value) || isList && (f.Name == "flags" || len(list) == 1 && scalar(list[0]))) {
			rows = append(rows, [2]string{p.label(f.Name), p.value(f)})
		}
	}
	if !p.exact {
		rows = withContent(rows)
	}
	p.record(rows, indent)
	for _, f := range o {
		if skipped(f) {
			continue
		}
		switch v := f.Value.(type) {
		case object:
			p.line(indent, p.in(styleBold, p.label(f.Name)))
			p.object(v, indent+"  ")
		case []any:
			if f.Name != "flags" && (len(v) > 1 || !scalar(v[0])) {
				p.line(indent, p.in(styleBold, p.label(f.Name)))
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

// quoted writes text of several lines in a window of so many columns, each behind a mark. What
// is quoted in it has the mark's style, and where a line is broken each part has its own marks,
// so that nothing looks less quoted than it is.
func (p *painter) quoted(s, mark, style string, width int) {
	columns := width - runewidth.StringWidth(mark)
	for l := range strings.SplitSeq(strings.TrimRight(plain.LineEnds(s), "\n"), "\n") {
		l = Visible(l)
		own, look := l[:len(l)-len(strings.TrimLeft(l, "> "))], style
		if !strings.Contains(own, ">") || runewidth.StringWidth(own) > columns/2 {
			own, look = "", ""
		}
		for _, part := range Wrap(l[len(own):], columns-runewidth.StringWidth(own)) {
			p.line(p.in(style, strings.TrimRight(mark, " ")), " ", p.in(look, strings.TrimRight(own+part, " ")))
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
			c, known := at[f.Name]
			if !known {
				c, at[f.Name] = len(columns), len(columns)
				columns = append(columns, column{name: p.label(f.Name), cells: make([]string, len(list))})
			}
			columns[c].cells[i] = p.value(f)
			if inner, isList := f.Value.([]any); !scalar(f.Value) && (!isList || len(inner) > 0 && !scalar(inner[0])) {
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

// column is one of a table.
type column struct {
	name  string
	cells []string // visible
	cut   bool     // what others wrote, of which a part tells enough
	usual bool     // left out of a narrow window where no two cells say different things
}

const narrowest = 10 // columns of what is cut

// table gives every column the width it needs. Where that is too much, it cuts what may be cut,
// the widest first, else breaks the last column between words; and where even that does not
// fit, it writes nothing and is false. A column without any content is left out.
func (p *painter) table(columns []column, indent string) bool {
	columns = slices.DeleteFunc(slices.Clone(columns), func(c column) bool { return strings.Join(c.cells, "") == "" })
	if len(columns) == 0 {
		return true
	}
	widths := make([]int, len(columns))
	room := p.Width - runewidth.StringWidth(indent) + 2
	for i, c := range columns {
		widths[i] = runewidth.StringWidth(c.name)
		for _, cell := range c.cells {
			for part := range strings.SplitSeq(cell, "\n") {
				widths[i] = max(widths[i], runewidth.StringWidth(part))
			}
		}
		room -= widths[i] + 2
	}
	for ; room < 0; room++ {
		widest := -1
		for i, c := range columns {
			if c.cut && widths[i] > narrowest && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	last := len(columns) - 1
	if widths[last] += min(room, 0); widths[last] < min(20, p.Width/3) && room < 0 {
		return false
	}
	line := func(style string, cell func(column) string) {
		head := indent
		for i, c := range columns[:last] {
			head += fill(cell(c), widths[i]) + "  "
		}
		for part := range strings.SplitSeq(cell(columns[last]), "\n") {
			if columns[last].cut {
				part = Cut(part, widths[last])
			}
			for _, l := range Words(part, widths[last]) {
				p.line(p.in(style, strings.TrimRight(head+l, " ")))
				head = strings.Repeat(" ", runewidth.StringWidth(head))
			}
		}
	}
	line(styleBold, func(c column) string { return c.name })
	for i := range columns[0].cells {
		line("", func(c column) string { return c.cells[i] })
	}
	return true
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
