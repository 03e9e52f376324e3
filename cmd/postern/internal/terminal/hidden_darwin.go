package terminal

import "golang.org/x/sys/unix"

const ioctlGet, ioctlSet, ioctlSetFlush, noKey = unix.TIOCGETA, unix.TIOCSETA, unix.TIOCSETAF, 0xff
