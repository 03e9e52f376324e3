package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

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
		line, err := unlessDone(ctx, func() (string, error) { return readLine(in) })
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
		shown := p.progress(ctx)
		a := h.gateway.Do(shown.ctx, h.principal, line)
		shown.end()
		if _, err := fmt.Fprintf(p.stdout, "%s\n", a.JSON); err != nil {
			return err
		}
		a.Delivered()
		if status == 0 {
			status = a.ExitStatus()
		}
	}
}

// unlessDone runs read, which cannot be interrupted, and does not wait for it
// longer than ctx lasts; the goroutine is then left behind. Where ctx has ended, nothing
// is run.
func unlessDone[T any](ctx context.Context, read func() (T, error)) (T, error) {
	if err := ctx.Err(); err != nil {
		var none T
		return none, err
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
		var none T
		return none, ctx.Err()
	}
}

// readLine returns the next line without its end. Of a line longer than maxLine it
// keeps that much and skips the rest, so that memory is bounded.
func readLine(in *bufio.Reader) (string, error) {
	var b strings.Builder
	for {
		chunk, err := in.ReadSlice('\n')
		if room := maxLine - b.Len(); room > 0 {
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
