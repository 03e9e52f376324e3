//go:build unix

package agentmail

import (
	"syscall"
	"time"
)

// cpuTime is what this process has spent so far, for itself and in the system.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
