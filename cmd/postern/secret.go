package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
)

// Bounds of what is read on the administrator's word.
const (
	maxSecret = 64 << 10 // a password's line; no password is longer
	maxFile   = 1 << 20  // a file such as a CA; the system's whole list has a quarter of that
)

// readFile reads a regular file of bounded size: a device or a pipe would never
// end, or never begin.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("not a regular file of at most %d bytes", maxFile)
	}
	return os.ReadFile(path)
}

// readSecret reads the first line of what --password-from names. A terminal is
// asked without echo. What never comes is given up when ctx ends.
func (p *process) readSecret(ctx context.Context, stdin *bufio.Reader, source string) (mail.Secret, error) {
	kind, name, _ := strings.Cut(source, ":")
	switch {
	case kind == "env":
		return firstLine(strings.NewReader(p.getenv(name)))
	case kind == "file":
		return unlessDone(ctx, func() (mail.Secret, error) {
			f, err := os.Open(name)
			if err != nil {
				return mail.Secret{}, err
			}
			defer f.Close()
			return firstLine(f)
		})
	case p.onTerminal():
		return p.askSecret(ctx)
	case stdin == nil:
		return mail.Secret{}, &discovery.Fault{Code: discovery.ValidationError, Message: "Standard input carries commands here, so a password cannot come from it.",
			Hint: "Use --password-from env:NAME or file:PATH, or run the command with 'postern exec'."}
	case term.IsTerminal(int(p.stdin.Fd())):
		return p.askSecret(ctx)
	}
	return unlessDone(ctx, func() (mail.Secret, error) { return firstLine(stdin) })
}

// askSecret asks a person at the terminal, and leaves the terminal as it was also
// when they are too slow.
func (p *process) askSecret(ctx context.Context) (mail.Secret, error) {
	return p.askHidden(ctx, "Password: ")
}

func (p *process) askHidden(ctx context.Context, prompt string) (mail.Secret, error) {
	fd := int(p.stdin.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return mail.Secret{}, err
	}
	if err := silence(fd); err != nil {
		return mail.Secret{}, err
	}
	defer func() { _ = term.Restore(fd, before) }()
	fmt.Fprint(p.stderr, prompt)
	defer fmt.Fprintln(p.stderr)
	return unlessDone(ctx, func() (mail.Secret, error) {
		typed, err := readHidden(p.stdin)
		defer clear(typed)
		return mail.NewSecret(typed), err
	})
}

func firstLine(r io.Reader) (mail.Secret, error) {
	line, err := bufio.NewReader(io.LimitReader(r, maxSecret)).ReadBytes('\n')
	defer clear(line)
	if err != nil && !errors.Is(err, io.EOF) {
		return mail.Secret{}, err
	}
	n := len(line)
	for n > 0 && (line[n-1] == '\n' || line[n-1] == '\r') {
		n--
	}
	return mail.NewSecret(line[:n]), nil
}
