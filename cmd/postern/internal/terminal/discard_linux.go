package terminal

import (
	"os"

	"golang.org/x/sys/unix"
)

// Discard forgets what was typed at a terminal and not read yet, so that it does
// not answer what was not asked then. On another file it does nothing.
func Discard(f *os.File) { _ = unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH) }
