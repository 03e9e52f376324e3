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
// order, until the input or ctx ends. Blank lines are skipped.
func (p *process) lines(ctx context.Context, h *house, in *bufio.Reader) error {
	for ctx.Err() == nil {
		line, err := readLine(in)
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if strings.TrimSpace(line) == "" {
			continue
		}
		if _, err := fmt.Fprintf(p.stdout, "%s\n", h.gateway.Do(ctx, h.principal, line).JSON); err != nil {
			return err
		}
	}
	return ctx.Err()
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
