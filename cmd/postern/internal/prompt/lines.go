package prompt

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/postern-mail/postern/cmd/postern/internal/terminal"
	"github.com/postern-mail/postern/gateway"
)

// maxLine is where a line of input is cut: more than any command string may hold,
// so what is cut is refused for its length.
const maxLine = 4*gateway.MaxCommandChars + 2

// Lines runs one command per line of input and prints one envelope per line, in
// order, until the input or ctx ends or a line says exit or quit. Blank lines are skipped. A command that fails
// does not stop the next; the status is that of the first that failed, or 0.
func Lines(ctx context.Context, o Options) (status int, err error) {
	in := bufio.NewReader(o.Stdin)
	for {
		line, err := terminal.Await(ctx, func() (string, error) { return terminal.ReadLine(in, maxLine) })
		switch {
		case errors.Is(err, io.EOF):
			return status, nil
		case err != nil:
			return status, err
		}
		switch strings.TrimSpace(line) {
		case "":
			continue
		case "exit", "quit":
			return status, nil
		}
		a := o.Progress.Do(ctx, o.Door, gateway.Request{Line: line})
		if _, err := a.WriteTo(o.Stdout); err != nil {
			return status, err
		}
		if status == 0 {
			status = a.ExitStatus()
		}
	}
}
