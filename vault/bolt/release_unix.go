//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package bolt

import (
	"os"
	"syscall"
)

// release unlocks the file before it closes it: a remaining mapping of the file
// would keep the lock.
func release(h *os.File) {
	_ = syscall.Flock(int(h.Fd()), syscall.LOCK_UN)
	_ = h.Close()
}
