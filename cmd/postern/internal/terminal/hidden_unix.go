//go:build linux || darwin

package terminal

import (
	"bytes"
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

// readHidden reads a line from a terminal that was silenced. It changes nothing of the
// terminal, which may have been set back meanwhile because the caller waits no longer.
func readHidden(f *os.File) ([]byte, error) {
	line := make([]byte, 0, MaxHidden) // never moved, so that the caller can clear all of it
	for {
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
