package terminal

import "golang.org/x/sys/unix"

const ioctlGet, ioctlSet, ioctlSetFlush, noKey = unix.TCGETS, unix.TCSETS, unix.TCSETSF, 0
