package terminal

import "golang.org/x/sys/unix"

const ioctlGet, ioctlSet, ioctlSetFlush = unix.TCGETS, unix.TCSETS, unix.TCSETSF
