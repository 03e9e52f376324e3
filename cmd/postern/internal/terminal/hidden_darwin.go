package terminal

import "golang.org/x/sys/unix"

const ioctlGet, ioctlSet, ioctlSetFlush = unix.TIOCGETA, unix.TIOCSETA, unix.TIOCSETAF
