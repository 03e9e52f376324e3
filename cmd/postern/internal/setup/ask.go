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

// asker puts questions to a person. Every method returns an error that matches
// context.Canceled when the person stops, by Ctrl-C or by ending the input, errBack
// when the person wants the question before, and never an answer that the person did
// not give.
type asker interface {
	// Say shows a paragraph.
	Say(text string)
	// WayBack says how the person gets to the question before.
	WayBack() string
	// Answered is how many questions were answered so far.
	Answered() int
	// Shown is how much was shown so far. TakeBack takes what was shown since from the
	// screen, where that can be done.
	Shown() int
	TakeBack(shown int)
	Text(ctx context.Context, q textQuestion) (string, error)
	// Secret asks without showing the input. It is never empty.
	Secret(ctx context.Context, title, help string) (mail.Secret, error)
	// Choose returns the value of one of the choices; the first is proposed.
	Choose(ctx context.Context, title, help string, choices []choice) (string, error)
	Confirm(ctx context.Context, title string, proposed bool) (bool, error)
}

// textQuestion asks for a line.
type textQuestion struct {
	Title, Help string
	Proposed    string             // the value of an empty answer
	Empty       string             // what an empty answer means, where nothing is proposed; without it there is none
	Check       func(string) error // of a non-empty line; nil accepts any
}

// judge returns the answer in a line, or the reason to refuse it.
func (q *textQuestion) judge(line string) (string, error) {
	line = strings.TrimSpace(line)
	if line == "" {
		line = q.Proposed
	}
	switch {
	case line == "" && q.Empty == "":
		return "", errors.New("an answer is needed; Ctrl-C ends without changing anything")
	case line == "" || q.Check == nil:
		return line, nil
	}
	return line, q.Check(line)
}

type choice struct{ Value, Label string }

var errEmptySecret = errors.New("it is empty; Ctrl-C ends without changing anything")

// errStopped says that the person stopped.
var errStopped = fmt.Errorf("stopped by the person: %w", context.Canceled)

// errBack says that the person wants the question before.
var errBack = errors.New("back to the question before")

// wordBack is what a person types to a lineAsker for the question before.
const wordBack = "back"

// newAsker picks forms for a terminal that can show them, and plain lines for other
// terminals and for screen readers.
func newAsker(s *System, plain bool) asker {
	out, isFile := s.Stdout.(*os.File)
	if plain || !terminal.Draws(s.Getenv) || s.Getenv("ACCESSIBLE") != "" || !isFile {
		return &lineAsker{stdin: s.Stdin, in: bufio.NewReader(s.Stdin), out: s.Stdout}
	}
	return &formAsker{in: s.Stdin, out: out, environ: s.Environ}
}

// lineAsker asks line by line. Nothing moves or is drawn over. The accessible mode
// of the forms' library is not used: it takes the end of the input for an answer.
type lineAsker struct {
	stdin *os.File // in, for input that is not shown
	in    *bufio.Reader
	out   io.Writer

	answered int
}

func (l *lineAsker) Say(text string) { _ = Show(l.out, text+"\n\n") }

func (l *lineAsker) WayBack() string { return "The word " + wordBack }

func (l *lineAsker) Answered() int { return l.answered }

func (l *lineAsker) Shown() int { return 0 }

func (l *lineAsker) TakeBack(int) {} // nothing is drawn over

func (l *lineAsker) line(ctx context.Context) (string, error) {
	line, err := terminal.Await(ctx, func() (string, error) { return terminal.ReadLine(l.in, terminal.MaxHidden) })
	switch {
	case errors.Is(err, io.EOF):
		fmt.Fprintln(l.out)
		return "", errStopped
	case err != nil && ctx.Err() != nil:
		fmt.Fprintln(l.out)
	}
	return line, err
}

// until asks until take accepts a line, and shows why it refused one.
func (l *lineAsker) until(ctx context.Context, question string, take func(line string) error) error {
	for {
		fmt.Fprint(l.out, question)
		line, err := l.line(ctx)
		if err != nil {
			return err
		}
		if line = strings.TrimSpace(line); line == wordBack {
			fmt.Fprintln(l.out)
			return errBack
		}
		if err = take(line); err == nil {
			l.answered++
			fmt.Fprintln(l.out)
			return nil
		}
		_ = Show(l.out, sentence(err)+".\n")
	}
}

func (l *lineAsker) help(text string) {
	if text != "" {
		_ = Show(l.out, text+"\n")
	}
}

func (l *lineAsker) Text(ctx context.Context, q textQuestion) (answer string, err error) {
	l.help(q.Help)
	prompt := q.Title
	if q.Proposed != "" {
		prompt += " [" + q.Proposed + "]"
	}
	err = l.until(ctx, strings.Replace(prompt+": ", "?: ", "? ", 1), func(line string) (err error) {
		answer, err = q.judge(line)
		return err
	})
	return answer, err
}

func (l *lineAsker) Secret(ctx context.Context, title, help string) (mail.Secret, error) {
	l.help(help)
	for {
		s, err := l.hidden(ctx, title)
		switch {
		case err != nil:
			return mail.Secret{}, err
		case s.Reveal() == wordBack:
			return mail.Secret{}, errBack
		case !s.IsZero():
			l.answered++
			return s, nil
		}
		fmt.Fprintf(l.out, "%s.\n", sentence(errEmptySecret))
	}
}

func (l *lineAsker) hidden(ctx context.Context, title string) (mail.Secret, error) {
	if terminal.Is(l.stdin) {
		typed, err := terminal.ReadHidden(ctx, l.stdin, l.out, title+" (not shown): ")
		defer clear(typed)
		if errors.Is(err, io.EOF) {
			err = errStopped
		}
		return mail.NewSecret(typed), err
	}
	fmt.Fprint(l.out, title+": ")
	line, err := l.line(ctx)
	fmt.Fprintln(l.out)
	return mail.NewSecret([]byte(line)), err
}

func (l *lineAsker) Choose(ctx context.Context, title, help string, choices []choice) (value string, err error) {
	l.help(help)
	fmt.Fprintln(l.out, title)
	for i, c := range choices {
		_ = Show(l.out, fmt.Sprintf("  %d.  %s\n", i+1, c.Label))
	}
	err = l.until(ctx, fmt.Sprintf("Number, 1 to %d [1]: ", len(choices)), func(line string) error {
		n, err := strconv.Atoi(cmp.Or(line, "1"))
		if err != nil || n < 1 || n > len(choices) {
			return errors.New("that is not one of the numbers")
		}
		value = choices[n-1].Value
		return nil
	})
	return value, err
}

func (l *lineAsker) Confirm(ctx context.Context, title string, proposed bool) (yes bool, err error) {
	hint := "y/N"
	if proposed {
		hint = "Y/n"
	}
	err = l.until(ctx, title+" ["+hint+"]: ", func(line string) error {
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
