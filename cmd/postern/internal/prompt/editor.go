package prompt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"unicode/utf8"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/clipperhouse/uax29/v2/graphemes"
	"github.com/mattn/go-runewidth"
	"golang.org/x/term"

	"github.com/postern-mail/postern/cmd/postern/internal/screen"
	"github.com/postern-mail/postern/cmd/postern/internal/terminal"
)

// editor reads lines from a terminal. The libraries of the forms say what a key is and what it does
// to a line; the loop around them and the drawing are here. A bubbletea program for each line loses
// and mixes up what is typed behind Enter, and leaves questions to the terminal whose answers others
// would read. reeflective/readline cannot be given up when a signal ends the prompt, does not show the
// beginning of a line that is taller than the window, and obeys ~/.inputrc. x/term takes every
// character for one column, and chzyer/readline is not kept.
//
// Nothing is read before it is asked for, so what is typed meanwhile is for the next line, or for the
// editor or pager that runs then. Terminals differ in how wide they draw a character. A row ends where
// the widest would end it, and the cursor is moved by writing what stands before it: the editor never
// relies on a width.
type editor struct {
	in      *os.File
	out     io.Writer
	before  *term.State // of the terminal before the prompt; nil where it stays so, and nothing is drawn
	resting *term.State // of it while no line is read
	ahead   []byte      // read and not taken
	killed  string      // what a key removed last, for Ctrl-Y

	aids
	line   textinput.Model
	rows   []string // that show it
	row    int      // with the cursor
	column string   // of that row, before the cursor
	inside bool     // the cursor is not at the end
	stale  bool     // the terminal may show something else
}

// aids are what a person has who types a line.
type aids struct {
	history []string
	// propose is for Tab: what the word that a line ends with may become, and what stands before
	// it. Nil proposes nothing.
	propose func(line string) (head string, list []string)
}

// errInterrupted is a line that Ctrl-C gave up.
var errInterrupted = errors.New("the line was interrupted")

// newEditor takes a terminal for an editor, until Aside.
func newEditor(in *os.File, out io.Writer, getenv func(string) string) *editor {
	e := &editor{in: in, out: out}
	if screen, ok := out.(*os.File); ok && terminal.Is(in) && terminal.Is(out) && terminal.Draws(getenv) {
		lipgloss.EnableLegacyWindowsANSI(screen)
		e.before, _ = term.GetState(int(in.Fd()))
		terminal.Rest(in)
		e.resting, _ = term.GetState(int(in.Fd()))
	}
	return e
}

// Aside gives the terminal back as it was, until the editor is to go on.
func (e *editor) Aside() (again func()) {
	if e.before == nil {
		return func() {}
	}
	_ = term.Restore(int(e.in.Fd()), e.before)
	return func() { _ = term.Restore(int(e.in.Fd()), e.resting) }
}

// Discard drops what was typed and is not read yet.
func (e *editor) Discard() {
	terminal.Discard(e.in)
	e.ahead = nil
}

// Prompt reads a line until Enter, errInterrupted for Ctrl-C, io.EOF for Ctrl-D in an empty one, or
// the end of ctx.
func (e *editor) Prompt(ctx context.Context, text string, with aids) (line string, err error) {
	typing, stop := signal.NotifyContext(ctx, os.Interrupt) // from elsewhere, or of a terminal that is not drawn on
	defer stop()
	defer func() {
		if err != nil && typing.Err() != nil && ctx.Err() == nil {
			err = errInterrupted
			_, _ = io.WriteString(e.out, "\n")
		}
	}()
	if e.before == nil {
		return e.plainLine(typing, text)
	}
	if _, err = term.MakeRaw(int(e.in.Fd())); err != nil {
		return "", err
	}
	defer func() { _ = term.Restore(int(e.in.Fd()), e.resting) }()
	e.aids, e.line = with, textinput.New()
	e.line.KeyMap.Paste.SetEnabled(false)             // it starts a program
	e.line.KeyMap.DeleteWordForward.SetEnabled(false) // it panics before spaces: see press
	e.line.Focus()
	e.line.Prompt = text
	e.anew()
	if err = e.edit(typing); errors.Is(err, io.EOF) || typing.Err() != nil {
		e.end("")
	}
	return e.line.Value(), err
}

// plainLine reads a line of a terminal that cannot be drawn on, or of another file.
func (e *editor) plainLine(ctx context.Context, text string) (string, error) {
	fmt.Fprint(e.out, text)
	for {
		if line, rest, ok := bytes.Cut(e.ahead, []byte("\n")); ok {
			e.ahead = rest
			return strings.TrimRight(string(line), "\r"), nil
		}
		if err := e.fill(ctx); err != nil {
			return "", err
		}
	}
}

// edit does what keys say until one ends the line.
func (e *editor) edit(ctx context.Context) error {
	begun, at := "", len(e.history) // what was typed, and the line of the history that is there
	for {
		pressed, name, err := e.key(ctx)
		if name == "ctrl+r" {
			pressed, name, err = e.search(ctx)
		}
		switch {
		case err != nil:
			return err
		case name == "enter", name == "ctrl+j":
			e.end("\r\n")
			return nil
		case name == "ctrl+c":
			e.end("^C\r\n")
			return errInterrupted
		case name == "ctrl+d" && e.line.Value() == "":
			return io.EOF
		case name == "ctrl+z":
			e.below(func() {
				e.Aside()
				terminal.Suspend()
				_, _ = term.MakeRaw(int(e.in.Fd()))
			})
		case name == "ctrl+l":
			_, _ = io.WriteString(e.out, "\x1b[H\x1b[2J")
			e.anew()
		case name == "tab":
			e.complete()
		case name == "up", name == "ctrl+p":
			if at == len(e.history) {
				begun = e.line.Value()
			}
			at = e.recall(at, -1, begun)
		case name == "down", name == "ctrl+n":
			at = e.recall(at, 1, begun)
		default:
			e.press(pressed, name)
			at = len(e.history)
		}
	}
}

// recall goes up or down from a line of the history to the next that begins as what was typed, which
// itself is the last. It returns the number of the line that is there now.
func (e *editor) recall(at, step int, begun string) int {
	for i := at + step; i >= 0 && i <= len(e.history); i += step {
		if line := append(e.history[:len(e.history):len(e.history)], begun)[i]; strings.HasPrefix(line, begun) {
			e.set(line, "")
			return i
		}
	}
	return at
}

// search finds the latest line of the history with what is typed in it, an earlier one with each
// Ctrl-R, until another key, which it returns.
func (e *editor) search(ctx context.Context) (pressed tea.KeyPressMsg, name string, err error) {
	prompt, typed, at := e.line.Prompt, "", len(e.history)
	defer func() { e.line.Prompt = prompt }()
	for {
		for i := min(at, len(e.history)-1); i >= 0 && typed != ""; i-- {
			if strings.Contains(e.history[i], typed) {
				at = i
				e.set(e.history[at], "")
				break
			}
		}
		e.line.Prompt = "(search) " + typed + ": "
		switch pressed, name, err = e.key(ctx); {
		case pressed.Text != "":
			typed += pressed.Text
		case name == "backspace" && typed != "":
			_, n := utf8.DecodeLastRuneInString(typed)
			typed, at = typed[:len(typed)-n], len(e.history)
		case name == "ctrl+r":
			at--
		default:
			return pressed, name, err
		}
	}
}

// complete has the line go on with what all proposals begin with, or shows them.
func (e *editor) complete() {
	if e.propose == nil {
		return
	}
	before, behind := e.around()
	head, list := e.propose(before)
	if len(list) == 0 {
		return
	}
	begun := list[0]
	for _, p := range list {
		for !strings.HasPrefix(p, begun) {
			_, n := utf8.DecodeLastRuneInString(begun)
			begun = begun[:len(begun)-n]
		}
	}
	if len(list) == 1 || len(begun) > len(before)-len(head) {
		e.set(head+begun, behind)
		return
	}
	e.below(func() {
		width, _ := terminal.Size(e.out)
		_, _ = io.WriteString(e.out, strings.Join(screen.Words(strings.Join(list, " "), width), "\r\n")+"\r\n")
	})
}

// press does what a key does to the line. The library moves by code points: what is one character for
// a person is passed, or removed, as one.
func (e *editor) press(pressed tea.KeyPressMsg, name string) {
	if pressed.Text != "" {
		e.line, _ = e.line.Update(pressed)
		return
	}
	before, behind := e.around()
	times, all := 1, []rune(before+behind)
	switch name {
	case "ctrl+y":
		e.set(before+e.killed, behind)
	case "alt+d":
		_, rest, _ := strings.Cut(strings.TrimLeft(behind, " "), " ")
		e.set(before, rest)
	case "left", "ctrl+b", "backspace", "ctrl+h":
		for g := graphemes.FromString(before); g.Next(); {
			times = utf8.RuneCountInString(g.Value())
		}
	case "right", "ctrl+f", "delete", "ctrl+d":
		if g := graphemes.FromString(behind); g.Next() {
			times = utf8.RuneCountInString(g.Value())
		}
	}
	for range times {
		e.line, _ = e.line.Update(pressed)
	}
	if n, at := len(all)-utf8.RuneCountInString(e.line.Value()), e.line.Position(); n > times {
		e.killed = string(all[at : at+n])
	}
}

// around is the line before the cursor and behind it; set makes it another one.
func (e *editor) around() (before, behind string) {
	all := []rune(e.line.Value())
	return string(all[:e.line.Position()]), string(all[e.line.Position():])
}

func (e *editor) set(before, behind string) {
	e.line.SetValue(before + behind)
	e.line.SetCursor(utf8.RuneCountInString(before))
}

// key is the next key, and its name. Unless it was there already, the line is drawn first.
func (e *editor) key(ctx context.Context) (pressed tea.KeyPressMsg, name string, err error) {
	for {
		n, event := new(uv.EventDecoder).Decode(e.ahead)
		_, unknown := event.(uv.UnknownEvent)
		escaped := n <= 2 && bytes.HasPrefix(e.ahead, []byte("\x1b"))
		if !utf8.FullRune(e.ahead) || n == len(e.ahead) && (unknown || escaped) { // more of it may come
			e.draw(true)
			unchanged, stop := terminal.Unchanged(ctx)
			err = e.fill(unchanged)
			if stop(); err != nil && unchanged.Err() != nil && ctx.Err() == nil {
				_, err = term.MakeRaw(int(e.in.Fd()))
				e.stale = true
			}
			if err != nil {
				return pressed, "", err
			}
			continue
		}
		e.ahead = e.ahead[max(n, 1):]
		if k, ok := event.(uv.KeyPressEvent); ok {
			return tea.KeyPressMsg(k), tea.KeyPressMsg(k).String(), nil
		}
	}
}

// fill reads at least a byte.
func (e *editor) fill(ctx context.Context) error {
	chunk := make([]byte, 4096)
	n, err := terminal.Read(ctx, e.in, chunk)
	if e.ahead = append(e.ahead, chunk[:n]...); n > 0 {
		return nil
	}
	return err
}

// anew has the line be drawn where the cursor is.
func (e *editor) anew() { e.rows, e.row, e.column = []string{""}, 0, "" }

// end shows the whole line, and what ends it.
func (e *editor) end(mark string) {
	e.line.CursorEnd()
	if e.draw(false); e.row > 0 && e.column == "" {
		mark = strings.TrimPrefix(mark, "\r\n") // the cursor is below a row that is full
	}
	_, _ = io.WriteString(e.out, mark)
}

// below does something below the line, and has it be drawn anew.
func (e *editor) below(do func()) {
	before, behind := e.around()
	e.end("\r\n")
	do()
	e.anew()
	e.set(before, behind)
}

// draw shows the line in place of what was shown of it: all of it, or as much around the cursor as the
// window has room for. What is only added is only written.
func (e *editor) draw(inWindow bool) {
	width, height := terminal.Size(e.out)
	before, behind := e.around()
	rows := wrap([]string{""}, e.line.Prompt+before, width)
	if columns(rows[len(rows)-1]) == width {
		rows = append(rows, "")
	}
	row, column := len(rows)-1, rows[len(rows)-1]
	rows = wrap(rows, behind, width)
	if top := max(row-height+1, 0); inWindow {
		rows, row = rows[top:min(len(rows), top+height)], row-top
	}
	now := strings.Join(rows, "\r\n")
	shown, isMore := strings.CutPrefix(now, strings.Join(e.rows, "\r\n"))
	if !isMore || e.stale || e.inside || behind != "" {
		up := columns(e.column) / width // in a window that is narrower now a row takes several
		for _, r := range e.rows[:e.row] {
			up += 1 + max(columns(r)-1, 0)/width
		}
		shown = strings.Repeat("\x1b[A", up) + "\r\x1b[J" + now
		if behind != "" {
			shown += strings.Repeat("\x1b[A", len(rows)-1-row) + "\r" + column
		}
	}
	_, _ = io.WriteString(e.out, shown)
	e.rows, e.row, e.column, e.inside, e.stale = rows, row, column, behind != "", false
}

// wrap adds text to the last of rows, and more rows where it is full.
func wrap(rows []string, text string, width int) []string {
	left := width - columns(rows[len(rows)-1])
	for g := graphemes.FromString(text); g.Next(); {
		if left -= columns(g.Value()); left < 0 {
			rows, left = append(rows, ""), width-columns(g.Value())
		}
		rows[len(rows)-1] += g.Value()
	}
	return rows
}

// columns is how many columns text takes on the terminal that draws it widest: one that joins nothing.
func columns(text string) (n int) {
	for _, r := range text {
		if n += runewidth.RuneWidth(r); r == '\ufe0f' {
			n++ // has what stands before it be a picture
		}
	}
	return n
}
