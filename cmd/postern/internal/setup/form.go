package setup

import (
	"cmp"
	"context"
	"errors"
	"os"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/huh/v2"
	"golang.org/x/term"

	"github.com/postern-mail/postern/mail"
)

// formAsker asks with a form on a terminal, one question at a time. Answers
// stay on the screen as a line; secrets do not.
type formAsker struct {
	in      *formInput
	out     *os.File
	environ []string // the environment with NO_COLOR and TERM

	answered int
}

func (f *formAsker) Say(text string) { _ = Show(f.out, text+"\n\n") }

func (f *formAsker) WayBack() string { return "Esc" }

func (f *formAsker) Answered() int { return f.answered }

// keys are the library's, with the way back in what is shown below each question.
func keys() *huh.KeyMap {
	k := huh.NewDefaultKeyMap()
	k.Select.Filter.SetEnabled(false)
	k.Input.Submit.SetHelp("enter", "go on • esc go back")
	k.Select.Submit.SetHelp("enter", "choose • esc go back")
	k.Confirm.Submit.SetHelp("enter", "go on • esc go back")
	return k
}

// ask shows one field until it is answered.
func (f *formAsker) ask(ctx context.Context, field huh.Field) error {
	in, end := f.in.lend()
	defer end()
	back := false
	form := huh.NewForm(huh.NewGroup(field)).WithTheme(huh.ThemeFunc(huh.ThemeBase16)).WithKeyMap(keys()).
		WithProgramOptions(tea.WithInput(in), tea.WithOutput(f.out), tea.WithEnvironment(f.environ), tea.WithFilter(func(_ tea.Model, msg tea.Msg) tea.Msg {
			if key, ok := msg.(tea.KeyPressMsg); ok && (key.Code == tea.KeyEscape || key.String() == "shift+tab") {
				back = true
				return tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl} // the library's way out
			}
			return msg
		}))
	if width, height, err := term.GetSize(int(f.out.Fd())); err == nil {
		// Else the first drawing is 80 columns wide, and drawn again at once.
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
	_ = Show(f.out, title+" "+cmp.Or(answer, "(empty)")+"\n")
}

func (f *formAsker) Text(ctx context.Context, q textQuestion) (string, error) {
	var line string
	input := huh.NewInput().Title(q.Title).Description(q.Help).Placeholder(q.Proposed).Value(&line).
		Validate(func(s string) error {
			_, err := q.judge(s)
			return err
		})
	if err := f.ask(ctx, input); err != nil {
		return "", err
	}
	answer, err := q.judge(line)
	if err != nil {
		return "", errStopped // only the end of input leaves a refused answer
	}
	f.noted(q.Title, answer)
	return answer, nil
}

func (f *formAsker) Secret(ctx context.Context, title, help string) (mail.Secret, error) {
	var typed string
	input := huh.NewInput().Title(title).Description(help).EchoMode(huh.EchoModePassword).Value(&typed).
		Validate(func(s string) error {
			if s == "" {
				return errEmptySecret
			}
			return nil
		})
	if err := f.ask(ctx, input); err != nil {
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
		options = append(options, huh.NewOption(c.Label, c.Value))
	}
	chosen := choices[0].Value
	if err := f.ask(ctx, huh.NewSelect[string]().Title(title).Description(help).Options(options...).Value(&chosen)); err != nil {
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
	if err := f.ask(ctx, huh.NewConfirm().Title(title).Value(&yes)); err != nil {
		return false, err
	}
	f.noted(title, map[bool]string{true: "yes", false: "no"}[yes])
	return yes, nil
}
