package terminal

import "golang.org/x/sys/unix"

const ioctlGet, ioctlSet, noKey = unix.TCGETS, unix.TCSETS, 0
