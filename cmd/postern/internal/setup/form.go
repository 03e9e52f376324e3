package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/huh/v2"
	"charm.land/lipgloss/v2"
	"github.com/mattn/go-runewidth"
	"golang.org/x/term"

	"github.com/postern-mail/postern/cmd/postern/internal/terminal"
	"github.com/postern-mail/postern/mail"
)

// formAsker asks with a form on a terminal, one question at a time. Answers
// stay on the screen as a line; secrets do not.
type formAsker struct {
	in      *os.File
	out     *os.File
	environ []string // the environment with NO_COLOR and TERM

	answered int
	rows     int // of the window that were filled while it was width columns wide
	width    int
}

func (f *formAsker) Say(text string) { f.show(text + "\n\n") }

func (f *formAsker) show(text string) {
	f.Shown()
	text = folded(f.out, text)
	for line := range strings.Lines(text) {
		f.rows += 1 + max(0, runewidth.StringWidth(strings.TrimSuffix(line, "\n"))-1)/f.width
	}
	_, _ = io.WriteString(f.out, text)
}

// Shown counts from anew in a window of another width, which may show what was there before
// in any number of rows.
func (f *formAsker) Shown() int {
	if width, _ := terminal.Size(f.out); width != f.width {
		f.rows, f.width = f.rows+1<<20, width
	}
	return f.rows
}

func (f *formAsker) TakeBack(shown int) {
	if rows := f.Shown() - shown; rows > 0 && rows < 1<<20 && runtime.GOOS != "windows" { // whose console may not know how
		fmt.Fprintf(f.out, "\x1b[%dA\x1b[J", rows)
		f.rows = shown
	}
}

func (f *formAsker) WayBack() string { return "Esc" }

func (f *formAsker) Answered() int { return f.answered }

// keys are the library's, with the way back in what is shown below each question but the first.
func (f *formAsker) keys() *huh.KeyMap {
	k, back := huh.NewDefaultKeyMap(), ""
	if f.answered > 0 {
		back = " • esc go back"
	}
	k.Select.Filter.SetEnabled(false)
	k.Input.Submit.SetHelp("enter", "go on"+back)
	k.Select.Submit.SetHelp("enter", "choose"+back)
	k.Confirm.Submit.SetHelp("enter", "go on"+back)
	return k
}

// theme has no colour that is hard to read on a light or a dark ground, and nothing that colour
// alone says.
func theme(isDark bool) *huh.Styles {
	t := huh.ThemeBase(isDark)
	plain := lipgloss.NewStyle()
	bold, faint, blue := plain.Bold(true), plain.Faint(true), lipgloss.Color("6")
	f := &t.Focused
	f.Base = f.Base.BorderForeground(blue)
	f.Title, f.SelectSelector = bold.Foreground(blue), f.SelectSelector.Inherit(bold.Foreground(blue))
	f.SelectedOption = bold
	f.ErrorIndicator, f.ErrorMessage = f.ErrorIndicator.Foreground(lipgloss.Color("1")), f.ErrorMessage.Bold(true).Foreground(lipgloss.Color("1"))
	button := plain.Padding(0, 2).MarginRight(1)
	f.FocusedButton, f.BlurredButton = button.Bold(true).Reverse(true), button
	f.TextInput.Placeholder = faint
	t.Help.ShortKey, t.Help.ShortDesc, t.Help.ShortSeparator, t.Help.Ellipsis = plain, faint, faint, faint
	return t
}

// lentInput is a terminal that is lent to a form as long as ctx lasts: when a form ends, the library
// leaves its reader running, which would take the first key meant for the next form. It has the methods
// that the library needs to set a terminal up, and none by which it would read the terminal itself.
type lentInput struct {
	file *os.File
	ctx  context.Context
}

func (r lentInput) Read(b []byte) (int, error) {
	n, err := terminal.Read(r.ctx, r.file, b)
	if r.ctx.Err() != nil {
		err = io.EOF
	}
	return n, err
}

func (r lentInput) Write(b []byte) (int, error) { return r.file.Write(b) }
func (r lentInput) Close() error                { return nil }
func (r lentInput) Fd() uintptr                 { return r.file.Fd() }

// ask shows one field until it is answered. A proposal that is in its place becomes what is typed
// there, to be corrected, with the first key that goes back in an empty line.
func (f *formAsker) ask(ctx context.Context, field huh.Field, line *string, proposed string) error {
	reading, end := context.WithCancel(context.Background())
	defer end()
	var in io.Reader = lentInput{f.in, reading}
	if runtime.GOOS == "windows" {
		in = f.in // a console is read by events, which no reader can take
	}
	back := false
	// ctx ends with a signal. The library's own handler, which would too, then waits for ever for
	// the loop that has ended.
	form := huh.NewForm(huh.NewGroup(field)).WithTheme(huh.ThemeFunc(theme)).WithKeyMap(f.keys()).
		WithProgramOptions(tea.WithoutSignalHandler(), tea.WithInput(in), tea.WithOutput(f.out), tea.WithEnvironment(f.environ), tea.WithFilter(func(_ tea.Model, msg tea.Msg) tea.Msg {
			if key, ok := msg.(tea.KeyPressMsg); ok && (key.Code == tea.KeyEscape || key.String() == "shift+tab") {
				back = true
				return tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl} // the library's way out
			}
			if key, ok := msg.(tea.KeyPressMsg); ok && line != nil && *line == "" && slices.Contains([]string{"backspace", "left"}, key.String()) {
				text := []rune(proposed)
				if proposed = ""; len(text) > 0 && key.Code == tea.KeyBackspace {
					return tea.PasteMsg{Content: string(text[:len(text)-1])}
				} else if len(text) > 0 {
					return tea.PasteMsg{Content: string(text)}
				}
			}
			if _, ok := msg.(tea.InterruptMsg); ok && back {
				return tea.QuitMsg{} // which takes the question from the screen first
			}
			return msg
		}))
	if width, height, err := term.GetSize(int(f.out.Fd())); err == nil {
		// Else the first drawing is 80 columns wide, and drawn again at once.
		if width > maxColumns {
			form.WithWidth(maxColumns)
		}
		form.Update(tea.WindowSizeMsg{Width: width, Height: height})
	}
	err := form.RunWithContext(ctx)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, huh.ErrUserAborted) && back:
		return errBack
	case errors.Is(err, huh.ErrUserAborted):
		return errStopped
	case err == nil && form.State != huh.StateCompleted:
		return errStopped // it ended without an answer, as when the input did
	}
	return err
}

func (f *formAsker) noted(title, answer string) {
	f.answered++
	if !strings.HasSuffix(title, "?") {
		title += ":"
	}
	f.show(title + " " + answer + "\n")
}

// fit folds what a form shows, of which the library breaks words where it is too wide. Before a
// choice there are a border and a mark.
func (f *formAsker) fit(text string) string {
	width, _ := terminal.Size(f.out)
	return fold(text, min(width, maxColumns)-4)
}

func (f *formAsker) Text(ctx context.Context, q textQuestion) (string, error) {
	var line string
	input := huh.NewInput().Title(f.fit(q.Title)).Description(f.fit(q.Help)).Placeholder(q.Proposed).Value(&line).
		Validate(func(s string) error {
			_, err := q.judge(s)
			if err != nil {
				err = errors.New(f.fit(err.Error()))
			}
			return err
		})
	if err := f.ask(ctx, input, &line, q.Proposed); err != nil {
		return "", err
	}
	answer, err := q.judge(line)
	if err != nil {
		return "", errStopped // only the end of input leaves a refused answer
	}
	f.noted(q.Title, cmp.Or(answer, q.Empty))
	return answer, nil
}

func (f *formAsker) Secret(ctx context.Context, title, help string) (mail.Secret, error) {
	var typed string
	input := huh.NewInput().Title(f.fit(title)).Description(f.fit(help)).EchoMode(huh.EchoModePassword).Value(&typed).
		Validate(func(s string) error {
			if s == "" {
				return errEmptySecret
			}
			return nil
		})
	if err := f.ask(ctx, input, nil, ""); err != nil {
		return mail.Secret{}, err
	}
	if typed == "" {
		return mail.Secret{}, errStopped
	}
	f.noted(title, "(not shown)")
	return mail.NewSecret([]byte(typed)), nil
}

func (f *formAsker) Choose(ctx context.Context, title, help string, choices []choice) (string, error) {
	var options []huh.Option[string]
	for _, c := range choices {
		options = append(options, huh.NewOption(f.fit(c.Label), c.Value))
	}
	chosen := choices[0].Value
	if err := f.ask(ctx, huh.NewSelect[string]().Title(f.fit(title)).Description(f.fit(help)).Options(options...).Value(&chosen), nil, ""); err != nil {
		return "", err
	}
	for _, c := range choices {
		if c.Value == chosen {
			f.noted(title, c.Label)
			return chosen, nil
		}
	}
	return "", errStopped
}

func (f *formAsker) Confirm(ctx context.Context, title string, proposed bool) (bool, error) {
	yes := proposed
	if err := f.ask(ctx, huh.NewConfirm().Title(f.fit(title)).WithButtonAlignment(lipgloss.Left).Value(&yes), nil, ""); err != nil {
		return false, err
	}
	f.noted(title, map[bool]string{true: "yes", false: "no"}[yes])
	return yes, nil
}
