//go:build linux || darwin

package extension

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	maxFileBytes = 1 << 30
	maxFiles     = 256
)

// launch lowers the hard limits, so that the program does not get them back, and
// becomes it.
func launch(l limits, path string) int {
	for resource, value := range map[int]uint64{
		unix.RLIMIT_CORE: 0, // a core would hold what the program worked on
		unix.RLIMIT_CPU:  uint64(l.cpu),
		// Not the address space, of which some runtimes reserve far more than they use.
		unix.RLIMIT_DATA:   uint64(l.memory),
		unix.RLIMIT_FSIZE:  maxFileBytes,
		unix.RLIMIT_NOFILE: maxFiles,
	} {
		var limit unix.Rlimit
		if err := unix.Getrlimit(resource, &limit); err != nil {
			return cannotStart
		}
		limit.Max = min(limit.Max, value)
		limit.Cur = min(limit.Cur, limit.Max)
		if err := unix.Setrlimit(resource, &limit); err != nil {
			return cannotStart
		}
	}
	_ = syscall.Exec(path, []string{path}, os.Environ())
	return cannotStart
}
