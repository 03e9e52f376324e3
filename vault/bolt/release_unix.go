//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package bolt

import (
	"os"
	"syscall"
)

// release unlocks the file before it closes it: a mapping of the file, where one
// is left, would keep the lock alive.
func release(h *os.File) {
	_ = syscall.Flock(int(h.Fd()), syscall.LOCK_UN)
	_ = h.Close()
}
