package terminal

import "golang.org/x/sys/unix"

const ioctlGet, ioctlSet, noKey = unix.TIOCGETA, unix.TIOCSETA, 0xff
