package setup

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/postern-mail/postern/cmd/postern/internal/terminal"
	"github.com/postern-mail/postern/mail"
)

// textQuestion asks for a line.
type textQuestion struct {
	Title, Help string
	Proposed    string             // the value of an empty answer
	Optional    bool               // an empty answer is allowed, where nothing is proposed
	Check       func(string) error // of a non-empty line; nil accepts any
}

// judge returns the answer in a line, or the reason to refuse it.
func (q *textQuestion) judge(line string) (string, error) {
	line = strings.TrimSpace(line)
	if line == "" {
		line = q.Proposed
	}
	switch {
	case line == "" && !q.Optional:
		return "", errors.New("an answer is needed; Ctrl-C ends without changing anything")
	case line == "" || q.Check == nil:
		return line, nil
	}
	return line, q.Check(line)
}

type choice struct{ Value, Label string }

// errStopped says that the person stopped.
var errStopped = fmt.Errorf("stopped by the person: %w", context.Canceled)

// asker puts questions to a person, line by line, on any terminal and for screen readers:
// nothing moves or is drawn over. Every method returns an error that matches
// context.Canceled when the person stops, by Ctrl-C or by ending the input, and never an
// answer that the person did not give.
type asker struct {
	stdin *os.File // in, for input that is not shown
	in    *bufio.Reader
	out   io.Writer
}

// Say shows a paragraph.
func (a *asker) Say(text string) { fmt.Fprintf(a.out, "%s\n\n", text) }

func (a *asker) line(ctx context.Context) (string, error) {
	line, err := terminal.Await(ctx, func() (string, error) { return terminal.ReadLine(a.in, terminal.MaxHidden) })
	switch {
	case errors.Is(err, io.EOF):
		fmt.Fprintln(a.out)
		return "", errStopped
	case err != nil && ctx.Err() != nil:
		fmt.Fprintln(a.out)
	}
	return line, err
}

// until asks until take accepts a line, and shows why it refused one.
func (a *asker) until(ctx context.Context, question string, take func(line string) error) error {
	for {
		fmt.Fprint(a.out, question)
		line, err := a.line(ctx)
		if err != nil {
			return err
		}
		if err = take(strings.TrimSpace(line)); err == nil {
			fmt.Fprintln(a.out)
			return nil
		}
		fmt.Fprintf(a.out, "%s.\n", sentence(err))
	}
}

func (a *asker) help(text string) {
	if text != "" {
		fmt.Fprintln(a.out, text)
	}
}

func (a *asker) Text(ctx context.Context, q textQuestion) (answer string, err error) {
	a.help(q.Help)
	prompt := q.Title
	if q.Proposed != "" {
		prompt += " [" + q.Proposed + "]"
	}
	err = a.until(ctx, prompt+": ", func(line string) (err error) {
		answer, err = q.judge(line)
		return err
	})
	return answer, err
}

// Secret asks without showing the input. It is never empty.
func (a *asker) Secret(ctx context.Context, title, help string) (mail.Secret, error) {
	a.help(help)
	for {
		s, err := a.hidden(ctx, title)
		if err != nil {
			return mail.Secret{}, err
		}
		if !s.IsZero() {
			return s, nil
		}
		fmt.Fprintln(a.out, "It is empty; Ctrl-C ends without changing anything.")
	}
}

func (a *asker) hidden(ctx context.Context, title string) (mail.Secret, error) {
	if terminal.Is(a.stdin) {
		typed, err := terminal.ReadHidden(ctx, a.stdin, a.out, title+" (not shown): ")
		defer clear(typed)
		if errors.Is(err, io.EOF) {
			err = errStopped
		}
		return mail.NewSecret(typed), err
	}
	fmt.Fprint(a.out, title+": ")
	line, err := a.line(ctx)
	fmt.Fprintln(a.out)
	return mail.NewSecret([]byte(line)), err
}

// Choose returns the value of one of the choices; the first is proposed.
func (a *asker) Choose(ctx context.Context, title, help string, choices []choice) (value string, err error) {
	a.help(help)
	fmt.Fprintln(a.out, title)
	for i, c := range choices {
		fmt.Fprintf(a.out, "  %d. %s\n", i+1, c.Label)
	}
	err = a.until(ctx, fmt.Sprintf("Number, 1 to %d [1]: ", len(choices)), func(line string) error {
		n, err := strconv.Atoi(cmp.Or(line, "1"))
		if err != nil || n < 1 || n > len(choices) {
			return errors.New("that is not one of the numbers")
		}
		value = choices[n-1].Value
		return nil
	})
	return value, err
}

func (a *asker) Confirm(ctx context.Context, title string, proposed bool) (yes bool, err error) {
	hint := "y/N"
	if proposed {
		hint = "Y/n"
	}
	err = a.until(ctx, title+" ["+hint+"]: ", func(line string) error {
		switch strings.ToLower(line) {
		case "":
			yes = proposed
		case "y", "yes":
			yes = true
		case "n", "no":
			yes = false
		default:
			return errors.New("answer y or n")
		}
		return nil
	})
	return yes, err
}

// sentence returns an error for a person to read, without the full stop.
func sentence(err error) string {
	s := err.Error()
	if s != "" && s[0] >= 'a' && s[0] <= 'z' {
		s = strings.ToUpper(s[:1]) + s[1:]
	}
	return strings.TrimSuffix(s, ".")
}
