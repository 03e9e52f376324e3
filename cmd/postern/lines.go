package main

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

// lines runs one command per line of input and prints one envelope per line, in
// order, until the input or ctx ends. Blank lines are skipped. A command that fails
// stops none behind it; the process then ends with the status of the first that did.
func (p *process) lines(ctx context.Context, h *house, in *bufio.Reader) error {
	status := 0
	for {
		line, err := terminal.Await(ctx, func() (string, error) { return terminal.ReadLine(in, maxLine) })
		switch {
		case errors.Is(err, io.EOF) && status != 0:
			return exitStatus(status)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case strings.TrimSpace(line) == "":
			continue
		}
		a := p.do(ctx, h, gateway.Request{Line: line})
		if _, err := a.WriteTo(p.stdout); err != nil {
			return err
		}
		if status == 0 {
			status = a.ExitStatus()
		}
	}
}
