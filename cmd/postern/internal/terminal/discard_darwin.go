package terminal

import (
	"os"

	"golang.org/x/sys/unix"
)

// Discard drops unread input of a terminal, so that it does not answer a later question. On
// another file it does nothing.
func Discard(f *os.File) { _ = unix.IoctlSetPointerInt(int(f.Fd()), unix.TIOCFLUSH, 1) } // FREAD, see tcflush(3)
