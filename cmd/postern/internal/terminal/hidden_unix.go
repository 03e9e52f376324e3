//go:build linux || darwin

package terminal

import (
	"bytes"
	"context"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// silence stops a terminal from showing what is typed, before anybody is asked to
// type: a fast person, or one who pastes, is not shown either. The terminal is set
// back by the caller, who keeps its state.
func silence(fd int) error {
	t, err := unix.IoctlGetTermios(fd, ioctlGet)
	if err != nil {
		return err
	}
	t.Lflag &^= unix.ECHO
	t.Lflag |= unix.ICANON | unix.ISIG
	t.Iflag |= unix.ICRNL
	return unix.IoctlSetTermios(fd, ioctlSet, t)
}

// Keys makes a terminal hand over the keys that would send a signal, such as Ctrl-C, as
// keys. On another file it does nothing.
func Keys(f *os.File) {
	if t, err := unix.IoctlGetTermios(int(f.Fd()), ioctlGet); err == nil {
		t.Cc[unix.VINTR], t.Cc[unix.VQUIT], t.Cc[unix.VSUSP] = noKey, noKey, noKey
		_ = unix.IoctlSetTermios(int(f.Fd()), ioctlSet, t)
	}
}

// typed waits until something can be read, and looks now and then whether ctx has ended. A
// terminal that cannot be waited for is read at once.
func typed(ctx context.Context, fd int) error {
	for ctx.Err() == nil {
		var ready unix.FdSet
		ready.Set(fd)
		n, err := unix.Select(fd+1, &ready, nil, nil, &unix.Timeval{Usec: 50_000})
		if n > 0 || err != nil && err != unix.EINTR {
			break
		}
	}
	return ctx.Err()
}

// readHidden reads a line from a terminal that was silenced. It changes nothing of the
// terminal, which may have been set back meanwhile because the caller waits no longer. Once
// ctx has ended it takes no more: what is typed then is for the next to ask.
func readHidden(ctx context.Context, f *os.File) ([]byte, error) {
	line := make([]byte, 0, MaxHidden) // never moved, so that the caller can clear all of it
	for {
		if err := typed(ctx, int(f.Fd())); err != nil {
			return nil, err
		}
		n, err := f.Read(line[len(line):cap(line)])
		line = line[:len(line)+n]
		end := bytes.IndexByte(line, '\n')
		switch {
		case end >= 0:
			return line[:end], nil
		case err == io.EOF && len(line) > 0 || len(line) == cap(line):
			return line, nil
		case err != nil:
			return nil, err
		}
	}
}
