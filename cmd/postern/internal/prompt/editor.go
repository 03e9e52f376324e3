package prompt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/clipperhouse/uax29/v2/graphemes"
	"github.com/mattn/go-runewidth"
	"golang.org/x/term"

	"github.com/postern-mail/postern/cmd/postern/internal/screen"
	"github.com/postern-mail/postern/cmd/postern/internal/terminal"
)

// editor reads lines from a terminal. The libraries of the forms say what a key is and what it does
// to a line; the loop around them and the drawing are here, for these reasons. A bubbletea program
// for each line loses and mixes up what is typed behind Enter, and leaves questions to the terminal
// that the next program would read the answers to. reeflective/readline cannot be given up when a
// signal ends the prompt, does not show the beginning of a line that is taller than the window, and
// obeys ~/.inputrc. x/term takes every character for one column, and chzyer/readline is not kept.
//
// Nothing is read that is not asked for, so what is typed meanwhile is for the next line, or for the
// editor or the pager that runs then. Where terminals differ in how wide they draw a character, a row
// ends where the widest would end it, and the cursor is put where it belongs by writing the row up to
// there: so no terminal breaks a row where the editor does not know.
type editor struct {
	in      *os.File
	out     io.Writer
	plain   bool        // nothing is drawn: the terminal shows what is typed
	before  *term.State // of the terminal, before the prompt; nil where it stays as it is
	propose proposer    // what Tab proposes; nil for nothing
	history []string
	ahead   []byte // read, and not yet taken
	killed  string // by the key that removed something last

	// The line that is edited, and what was drawn of it.
	line   textinput.Model
	rows   []string
	row    int    // with the cursor
	column string // of the row, up to the cursor
	stale  bool   // the terminal may show something else
}

// proposer proposes what the word that a line ends with may become, and what stands before it.
type proposer func(line string) (head string, list []string)

// errInterrupted ends a line with Ctrl-C.
var errInterrupted = errors.New("the line was interrupted")

// errChanged says that the terminal is to be drawn anew.
var errChanged = errors.New("the terminal has changed")

// newEditor takes a terminal for an editor until it ends.
func newEditor(in *os.File, out io.Writer, getenv func(string) string) *editor {
	e := &editor{in: in, out: out, plain: !terminal.Is(in) || !terminal.Is(out) || !terminal.Draws(getenv)}
	if !e.plain {
		e.before, _ = term.GetState(int(in.Fd()))
		terminal.Rest(in)
	}
	return e
}

// Aside gives the terminal back, as it was before the prompt, until the editor is to go on.
func (e *editor) Aside() (again func()) {
	if e.before == nil {
		return func() {}
	}
	_ = term.Restore(int(e.in.Fd()), e.before)
	return func() { terminal.Rest(e.in) }
}

// Discard drops what was typed and not yet read.
func (e *editor) Discard() {
	terminal.Discard(e.in)
	e.ahead = nil
}

// Completes has Tab propose something else until back.
func (e *editor) Completes(p proposer) (back func()) {
	before := e.propose
	e.propose = p
	return func() { e.propose = before }
}

// AppendHistory adds a line to the history.
func (e *editor) AppendHistory(line string) { e.history = append(e.history, line) }

// Prompt reads a line: io.EOF for Ctrl-D in an empty one, errInterrupted for Ctrl-C. It gives up when
// ctx ends.
func (e *editor) Prompt(ctx context.Context, text string) (string, error) {
	changed, stop := terminal.Changed()
	defer stop()
	if e.plain {
		fmt.Fprint(e.out, text)
		for !bytes.Contains(e.ahead, []byte("\n")) {
			if err := e.fill(ctx, nil); err != nil {
				return "", err
			}
		}
		line, rest, _ := bytes.Cut(e.ahead, []byte("\n"))
		e.ahead = rest
		return strings.TrimRight(string(line), "\r"), nil
	}
	resting, err := term.MakeRaw(int(e.in.Fd()))
	if err != nil {
		return "", err
	}
	defer func() { _ = term.Restore(int(e.in.Fd()), resting) }()
	e.line = textinput.New()
	e.line.KeyMap.Paste.SetEnabled(false) // it starts a program
	e.line.Focus()
	e.line.Prompt = text
	e.anew()
	past, begun := len(e.history), "" // where in the history the line is from, and what was typed of it
	for {
		pressed, err := e.key(ctx, changed)
		name := pressed.String()
		if name == "ctrl+r" && err == nil {
			pressed, err = e.search(ctx, changed)
			name = pressed.String()
		}
		step := 0
		switch {
		case errors.Is(err, errChanged):
			_, err = term.MakeRaw(int(e.in.Fd()))
		case err != nil:
		case name == "enter" || name == "ctrl+j":
			e.end("\r\n")
			return e.line.Value(), nil
		case name == "ctrl+c":
			e.end("^C\r\n")
			return "", errInterrupted
		case name == "ctrl+d" && e.line.Value() == "":
			err = io.EOF
		case name == "ctrl+z":
			again := e.Aside()
			terminal.Suspend()
			again()
			_, err = term.MakeRaw(int(e.in.Fd()))
			e.anew()
		case name == "ctrl+l":
			_, _ = io.WriteString(e.out, "\x1b[H\x1b[2J")
			e.anew()
		case name == "tab":
			e.complete()
		case name == "up" || name == "ctrl+p":
			step = -1
		case name == "down" || name == "ctrl+n":
			step = 1
		default:
			e.edit(pressed)
			past = len(e.history)
		}
		if err != nil {
			e.end("")
			return "", err
		}
		if past == len(e.history) {
			begun = e.line.Value()
		}
		for i := past + step; step != 0 && i >= 0 && i <= len(e.history); i += step {
			if line := append(e.history[:len(e.history):len(e.history)], begun)[i]; strings.HasPrefix(line, begun) {
				past = i
				e.set(line, "")
				break
			}
		}
	}
}

// end shows the whole line, and what ends it.
func (e *editor) end(mark string) {
	e.line.CursorEnd()
	if e.draw(false); e.row > 0 && e.column == "" {
		mark = strings.TrimPrefix(mark, "\r\n") // a row that is full has the cursor below it already
	}
	_, _ = io.WriteString(e.out, mark)
}

// set makes the line another one, with the cursor between what stands before and behind it.
func (e *editor) set(before, behind string) {
	e.line.SetValue(before + behind)
	e.line.SetCursor(utf8.RuneCountInString(before))
}

// around is the line before the cursor and behind it.
func (e *editor) around() (before, behind string) {
	all := []rune(e.line.Value())
	return string(all[:e.line.Position()]), string(all[e.line.Position():])
}

// edit does what a key does to the line. The library moves by code points: what is one character
// for a person is passed, or removed, as one.
func (e *editor) edit(pressed tea.KeyPressMsg) {
	before, behind := e.around()
	times, whole := 1, []rune(before+behind)
	switch pressed.String() {
	case "ctrl+y":
		e.set(before+e.killed, behind)
		return
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
	if n, at := len(whole)-utf8.RuneCountInString(e.line.Value()), e.line.Position(); n > times {
		e.killed = string(whole[at : at+n])
	}
}

// complete has the line go on with what all proposals begin with, or shows them.
func (e *editor) complete() {
	before, behind := e.around()
	if e.propose == nil {
		return
	}
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
	e.end("\r\n")
	width, _ := terminal.Size(e.out)
	for _, l := range screen.Words(strings.Join(list, " "), width) {
		_, _ = io.WriteString(e.out, l+"\r\n")
	}
	e.anew()
	e.set(before, behind)
}

// search finds the latest line of the history with what is typed in it, an earlier one with Ctrl-R,
// until another key, which it returns.
func (e *editor) search(ctx context.Context, changed <-chan os.Signal) (pressed tea.KeyPressMsg, err error) {
	prompt, before, typed, at := e.line.Prompt, e.line.Value(), "", len(e.history)
	defer func() { e.line.Prompt = prompt }()
	for {
		for i := min(at, len(e.history)-1); i >= 0 && typed != ""; i-- {
			if found := e.history[i]; strings.Contains(found, typed) {
				at = i
				e.set(found, "")
				break
			}
		}
		e.line.Prompt = "(search) " + typed + ": "
		pressed, err = e.key(ctx, changed)
		switch name := pressed.String(); {
		case errors.Is(err, errChanged):
		case err == nil && pressed.Text != "":
			typed += pressed.Text
		case err == nil && name == "backspace":
			_, n := utf8.DecodeLastRuneInString(typed)
			typed, at = typed[:len(typed)-n], len(e.history)
		case err == nil && name == "ctrl+r":
			at--
		case err == nil && (name == "ctrl+g" || name == "ctrl+c"):
			e.set(before, "")
			return tea.KeyPressMsg{}, nil
		default:
			return pressed, err
		}
	}
}

// key is the next key, before which the line is drawn unless the key was there already.
func (e *editor) key(ctx context.Context, changed <-chan os.Signal) (tea.KeyPressMsg, error) {
	for {
		n, event := new(uv.EventDecoder).Decode(e.ahead)
		_, unknown := event.(uv.UnknownEvent)
		escaped := n <= 2 && bytes.HasPrefix(e.ahead, []byte("\x1b"))
		if !utf8.FullRune(e.ahead) || n == len(e.ahead) && (unknown || escaped) { // more of it may come
			e.draw(true)
			if err := e.fill(ctx, changed); err != nil {
				return tea.KeyPressMsg{}, err
			}
			continue
		}
		e.ahead = e.ahead[max(n, 1):]
		if pressed, ok := event.(uv.KeyPressEvent); ok {
			return tea.KeyPressMsg(pressed), nil
		}
	}
}

// fill reads what is typed, at least a byte of it. It fails with errChanged where something comes
// from changed first.
func (e *editor) fill(ctx context.Context, changed <-chan os.Signal) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-changed:
			cancel(errChanged)
		case <-ctx.Done():
		}
	}()
	chunk := make([]byte, 4096)
	n, err := terminal.Read(ctx, e.in, chunk)
	e.stale = errors.Is(context.Cause(ctx), errChanged)
	if e.ahead = append(e.ahead, chunk[:n]...); n > 0 {
		return nil
	}
	return err
}

// columns is how many columns text takes on the terminal that draws it widest.
func columns(text string) (n int) {
	for g := graphemes.FromString(text); g.Next(); {
		apart := 0
		for _, r := range g.Value() {
			apart += runewidth.RuneWidth(r)
		}
		n += max(apart, runewidth.StringWidth(g.Value()))
	}
	return n
}

// draw shows the line, or as much of it around the cursor as the window has room for, in place of
// what was drawn of it before. What is only added to that is only written.
func (e *editor) draw(inWindow bool) {
	width, height := terminal.Size(e.out)
	before, behind := e.around()
	before = e.line.Prompt + before
	rows, row, column := []string{""}, 0, ""
	left, at := width, 0
	for g := graphemes.FromString(before + behind); at <= len(before) || g.Value() != ""; {
		more := g.Next()
		if n := columns(g.Value()); n > left || left == 0 && at == len(before) {
			rows, left = append(rows, ""), width
		}
		if at <= len(before) {
			row, column = len(rows)-1, rows[len(rows)-1]
		}
		if !more {
			break
		}
		rows[len(rows)-1] += g.Value()
		left -= columns(g.Value())
		at += len(g.Value())
	}
	if inWindow {
		top := max(row-height+1, 0)
		rows, row = rows[top:min(len(rows), top+height)], row-top
	}
	was, now := strings.Join(e.rows, "\r\n"), strings.Join(rows, "\r\n")
	last := func(row int, column string, rows []string) bool { return row == len(rows)-1 && column == rows[row] }
	added, isMore := strings.CutPrefix(now, was)
	if e.stale || !isMore || !last(e.row, e.column, e.rows) || !last(row, column, rows) {
		up := columns(e.column) / width // in a window that is narrower now, a row takes several
		for _, r := range e.rows[:e.row] {
			up += 1 + max(columns(r)-1, 0)/width
		}
		added = "\r" + upwards(up) + "\x1b[J" + now
		if !last(row, column, rows) {
			added += upwards(len(rows)-1-row) + "\r" + column
		}
	}
	_, _ = io.WriteString(e.out, added)
	e.rows, e.row, e.column, e.stale = rows, row, column, false
}

// anew has the line be drawn where the cursor is.
func (e *editor) anew() { e.rows, e.row, e.column = []string{""}, 0, "" }

func upwards(rows int) string {
	if rows == 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%dA", rows)
}
