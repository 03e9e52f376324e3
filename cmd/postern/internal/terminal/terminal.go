// Package terminal is what the program asks of the terminal that it runs on: whether
// there is one, how wide it is and whether it takes colours, a line, and a line that
// is not shown. It knows nothing of what is asked or answered.
package terminal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"golang.org/x/term"
)

// MaxHidden bounds a line that is not shown, in bytes. No password is longer.
const MaxHidden = 64 << 10

// Is reports whether a stream of the process, such as its standard output, is a
// terminal.
func Is(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Size is how many columns and lines a terminal has: 80 and 24 where that is not
// known.
func Size(stream any) (width, height int) {
	if f, ok := stream.(*os.File); ok {
		if w, h, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w, max(h, 5)
		}
	}
	return 80, 24
}

// Draws reports whether the terminal of an environment moves the cursor as it is told.
func Draws(getenv func(string) string) bool {
	name := getenv("TERM")
	return name != "dumb" && (name != "" || runtime.GOOS == "windows")
}

// Color reports whether a terminal may be sent emphasis (no-color.org). A Windows
// console may be one that would print it.
func Color(getenv func(string) string) bool {
	dumb := getenv("TERM") == "dumb" || runtime.GOOS == "windows" && getenv("WT_SESSION") == "" && getenv("TERM") == ""
	return getenv("NO_COLOR") == "" && !dumb
}

// ReadHidden prompts for a line that is not shown. The terminal is left as it was also
// when ctx ends first. io.EOF means that the input ended without a line. The caller
// clears what it gets.
func ReadHidden(ctx context.Context, in *os.File, out io.Writer, prompt string) ([]byte, error) {
	fd := int(in.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return nil, err
	}
	if err := silence(fd); err != nil {
		return nil, err
	}
	defer func() { _ = term.Restore(fd, before) }()
	fmt.Fprint(out, prompt)
	defer fmt.Fprintln(out)
	return Await(ctx, func() ([]byte, error) { return readHidden(ctx, in) })
}

// ReadLine returns the next line without its end. Of a line longer than limit bytes it
// keeps that much and skips the rest, so that memory is bounded.
func ReadLine(in *bufio.Reader, limit int) (string, error) {
	var b strings.Builder
	for {
		chunk, err := in.ReadSlice('\n')
		if room := limit - b.Len(); room > 0 {
			b.Write(chunk[:min(room, len(chunk))])
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err == nil, errors.Is(err, io.EOF) && b.Len() > 0:
			return strings.TrimRight(b.String(), "\r\n"), nil
		}
		return "", err
	}
}

// Await runs read, which cannot be interrupted, and waits for it no longer than ctx
// lasts; the goroutine is then left behind. Where ctx has ended already, read is not
// run.
func Await[T any](ctx context.Context, read func() (T, error)) (T, error) {
	var zero T
	if err := ctx.Err(); err != nil {
		return zero, err
	}
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		v, err := read()
		done <- outcome{v, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		return zero, ctx.Err()
	}
}
