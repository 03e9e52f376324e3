// Package screen draws an answer for a person at a terminal. It promises that no
// stranger's text steers the terminal: it returns text in UTF-8 without control
// characters, except line feeds and, where emphasis may be used, the few escape sequences
// of its own, each ended on its line. Invisible characters and those that would change
// the order of others are written out. The text of a mail has a mark on every line, so
// that none of it can pass for a part of the answer.
//
// Look.Render draws the answer of a command, from the value that the command returned. The functions are for other
// text on a terminal: Visible and Line make text safe to show, and Wrap and Cut fit safe text into
// a window. A width is a number of columns; a wide character takes two and a combining
// mark 0.
//
// The package knows what commands return, and nothing of callers, rules or
// how a terminal is read. It runs no command and writes nothing itself, and is safe for concurrent use.
package screen

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/internal/plain"
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

// Render draws an answer, as lines that each end in a line feed. Many results have a view of their own; any other,
// and a part of one that --fields chose, is drawn member by member. A failure is drawn alike for all of them.
//
// Text is broken at the window's width; only the senders and subjects of a list are cut. Words
// that are not a stranger's, ids and text to be copied stay whole, so a line can be wider. There is no error: data that
// are not JSON are one line of visible text, and an answer without any, a fault or a sentence gives no text.
func (l Look) Render(a gateway.Answer) string {
	p := &painter{Look: l, said: Line(a.Message), next: gateway.Member[*commands.NextAction](a)}
	p.Zone, p.Width = cmp.Or(l.Zone, time.Local), max(l.Width, minWidth)
	same := func(s string) string { return s }
	if l.Quote == nil {
		p.Quote = same
	}
	if l.ID == nil {
		p.ID = same
	}
	if a.Fault != nil {
		p.failure(a.Fault)
		return p.b.String()
	}
	issues := gateway.Member[[]commands.Issue](a)
	if len(issues) > 0 {
		p.said = issuesTold.ReplaceAllString(p.said, "")
	}
	if !p.view(a.Result) {
		issues = nil // they are among the members
		p.data(a.Data)
	}
	p.after(a, issues)
	return p.b.String()
}

// painter writes one answer.
type painter struct {
	Look
	b    strings.Builder
	said string // the sentence below the view, which a view may complete

	next  *commands.NextAction // what the answer proposes; nil for nothing
	first string               // the id of the first message of a list, as the answer has it
	exact bool                 // names are shown as programs need them
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

func (p *painter) failure(f *discovery.Fault) {
	style, waits := styleRed, f.Code == discovery.ApprovalRequired
	if waits { // which is as it should be, and the hint says what to do
		style = styleBold
	}
	p.wrapped("", style, cmp.Or(Line(f.Message), text(f.Code)))
	if f.Hint != "" {
		p.wrapped("", "", p.advice(Line(f.Hint)))
	}
	if len(f.Examples) > 0 && !waits {
		p.line(p.in(styleDim, "For example:"))
		for _, x := range f.Examples {
			p.line("  ", p.typed(Line(x))) // whole, to be copied
		}
	}
}

// after writes the parts of an answer besides its data.
func (p *painter) after(a gateway.Answer, issues []commands.Issue) {
	for _, i := range issues {
		note := "Note"
		if id := p.id(i.MessageID); id != "" {
			note += " on " + id
		}
		p.wrapped("", styleRed, note+": "+Line(i.Message))
	}
	if p.said != "" {
		p.wrapped("", styleDim, stamp.ReplaceAllStringFunc(sentence(p.said), p.when))
	}
	// Below a list stands how its first message is read.
	if n := p.next; n != nil && (p.first == "" || n.Arguments.Command != "mail get "+p.Quote(p.first)) {
		p.wrapped("", styleDim, strings.Replace(Line(n.Instruction), ": ", "; ", 1)+":")
		p.line("  ", p.typed(p.short(n.Arguments.Command)))
	}
	if a.Cut {
		p.wrapped("", styleDim, "The answer was cut to fit.")
	}
	if a.Audit != "" {
		p.wrapped("", styleRed, Line(a.Audit))
	}
}

// issuesTold is the end of a sentence that counts what is told one by one.
var issuesTold = regexp.MustCompile(`(; partial|; failed|^Partial|^Failed), with \d+ issues?$`)

// stamp is a time as programs read it.
var stamp = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// sentence ends a sentence of ours.
func sentence(s string) string { return strings.TrimSuffix(s, ".") + "." }

// longID is a long message id as a word of a command.
var longID = regexp.MustCompile(`'imap:[^']+'|\bimap:[^ ']+`)

// short returns a command as a person types it: with message ids as they are typed here, and
// reading one as a word.
func (p *painter) short(command string) string {
	if id, ok := strings.CutPrefix(command, "mail get "); ok && longID.FindString(id) == id {
		command = "read " + id
	}
	return Line(longID.ReplaceAllStringFunc(command, func(word string) string {
		ids := strings.Split(strings.ReplaceAll(strings.Trim(word, "'"), `\,`, "\x00"), ",") // of several accounts
		for i, id := range ids {
			ids[i] = p.ID(strings.ReplaceAll(id, "\x00", ","))
		}
		return p.Quote(strings.Join(ids, ","))
	}))
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
