// Package pdftext reads the text of a PDF in a process of its own.
//
// The libraries that parse PDF hang on some files, panic on others and ask for
// gigabytes on a few; the sender of the mail chooses the file. So the process that holds
// the mailbox parses nothing of it. [Runner] starts a child, which is the same
// program with a hidden verb that calls [Child], hands it the file on standard
// input, takes the text from its standard output, and kills it when its time is
// over. The child limits its own time and memory before it reads the first byte.
//
// A program that uses a Runner calls Child for the hidden verb before it does
// anything else: the child has no environment, and nothing else is meant to run
// in it.
//
// The text is the visible text in reading order: lines are joined from the
// positions of the glyphs, columns of running text follow each other, an
// empty line separates pages. Text that is drawn invisibly is left out unless
// the page shows an image, as a scan with recognized text does; so is text
// outside the page. Characters that a person does not see, such as direction
// marks, are not removed here. Text that is written from right to left comes
// in the order in which it was drawn.
//
// pdfcpu opens, repairs and decrypts the file; this package interprets the content of
// its pages. ledongthuc/pdf was tried for that on the tests of this package: it shows
// text that is drawn invisibly or outside the page, does not draw forms or filled
// fields, has no widths for fonts of two-byte codes and for the standard fonts, so that
// words run together, and gives up a page at the first bad operator.
package pdftext

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/postern-mail/postern/internal/child"
	"github.com/postern-mail/postern/internal/plain"
)

// MaxBytes is the largest PDF that is read: 5 MB (001 section 5).
const MaxBytes = 5 << 20

// The reasons for which a PDF gave no text. None of them reveals its content.
var (
	ErrTooLarge  = errors.New("the PDF is larger than 5 MB")
	ErrEncrypted = errors.New("the PDF needs a password")
	ErrDamaged   = errors.New("the PDF is damaged")
	ErrTimeout   = errors.New("the PDF took too long to read")
	ErrMemory    = errors.New("the PDF took too much memory to read")
	ErrNoText    = errors.New("the PDF holds no text")
)

const (
	defaultTimeout = 10 * time.Second
	defaultMemory  = 256 << 20
)

// Runner reads PDFs in child processes, one at a time; other callers wait, at most until
// their context ends. The zero value with a Command is ready. Its fields must not change
// once it is used; it is safe for concurrent use.
type Runner struct {
	// Command is the argument vector that runs Child, such as our own
	// executable and its hidden verb. Arguments for Child follow it.
	Command []string
	// Timeout is how long one child may run; 0 means 10 seconds.
	Timeout time.Duration
	// MemoryBytes is the memory a child may use beyond its memory at the start; 0
	// means 256 MiB.
	MemoryBytes int64

	once  sync.Once
	slots chan struct{}
}

// Text returns the text of a PDF as valid UTF-8, at most maxRunes characters of
// it, and whether there was more. The error matches a variable of this package
// with the reason for no text, or ctx's error when that ended first; any other
// means that the child could not be run. When Text returns, its child is gone.
func (r *Runner) Text(ctx context.Context, pdf []byte, maxRunes int) (text string, truncated bool, err error) {
	switch {
	case len(r.Command) == 0:
		return "", false, errors.New("read PDF: no command to run")
	case maxRunes <= 0:
		return "", false, fmt.Errorf("read PDF: %d characters asked for", maxRunes)
	case len(pdf) > MaxBytes:
		return "", false, ErrTooLarge
	}
	r.once.Do(func() { r.slots = make(chan struct{}, 1) })
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return "", false, fmt.Errorf("read PDF: %w", ctx.Err())
	}
	if err := ctx.Err(); err != nil { // select picks at random when both are ready
		return "", false, fmt.Errorf("read PDF: %w", err)
	}
	timeout := r.Timeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	memory := r.MemoryBytes
	if memory <= 0 {
		memory = defaultMemory
	}
	out, err := r.run(ctx, pdf, timeout, childArguments{memory: memory, cpu: timeout, runes: maxRunes})
	if err != nil {
		return "", false, err
	}
	return cut(out, maxRunes)
}

// run returns the output of a child, at most one character more than requested.
func (r *Runner) run(ctx context.Context, pdf []byte, timeout time.Duration, args childArguments) ([]byte, error) {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	// One extra character shows that there is more.
	out, err := child.Run(limited, child.Program{Args: append(slices.Clone(r.Command), args.list()...), Stdin: pdf, MaxOutput: (args.runes + 1) * utf8.UTFMax})
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("read PDF: %w", ctx.Err())
	case limited.Err() != nil:
		return nil, ErrTimeout
	case err == nil, errors.Is(err, child.ErrOutput): // only a child under an attacker's control does this
		return out, nil
	case errors.As(err, &exit):
		return nil, verdict(exit.ProcessState)
	}
	return nil, fmt.Errorf("read PDF: %w", err)
}

// verdict returns the error for a child that ended without text. The system ends
// one with a signal when it reaches a limit.
func verdict(state *os.ProcessState) error {
	const outOfTime = syscall.Signal(24) // SIGXCPU, which package syscall lacks on Windows
	switch at := state.ExitCode() - firstStatus; {
	case at >= 0 && at < len(statuses):
		return statuses[at]
	case slices.Contains(outOfMemory, state.ExitCode()):
		return ErrMemory
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		switch status.Signal() {
		case outOfTime:
			return ErrTimeout
		case syscall.SIGKILL: // not sent by us: memory is short
			return ErrMemory
		}
	}
	return fmt.Errorf("read PDF: the child ended with status %d", state.ExitCode())
}

// cut bounds the output of a child and makes it valid UTF-8. The parent does
// that, since the child has read a stranger's file.
func cut(out []byte, maxRunes int) (text string, truncated bool, err error) {
	text, truncated = plain.Head(strings.ToValidUTF8(string(out), string(utf8.RuneError)), maxRunes)
	if text == "" {
		return "", false, ErrNoText
	}
	return text, truncated, nil
}

// childArguments are the arguments that a Runner gives its child.
type childArguments struct {
	memory int64         // bytes beyond those at the start of the process
	cpu    time.Duration // of processor time
	runes  int           // of text wanted
}

func (a childArguments) list() []string {
	return []string{
		strconv.FormatInt(a.memory, 10),
		strconv.FormatInt(int64(a.cpu/time.Second)+1, 10),
		strconv.Itoa(a.runes),
	}
}

// parseArguments reverses list. It refuses any other arguments: a child
// without limits does not start.
func parseArguments(list []string) (a childArguments, ok bool) {
	var seconds int32
	n, err := fmt.Sscanf(strings.Join(list, " "), "%d %d %d", &a.memory, &seconds, &a.runes)
	a.cpu = time.Duration(seconds) * time.Second
	return a, err == nil && n == len(list) && a.memory > 0 && seconds > 0 && a.runes > 0
}
