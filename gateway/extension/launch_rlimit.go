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
	environ := os.Environ()
	for _, r := range []struct {
		resource int
		value    uint64
	}{
		{unix.RLIMIT_CORE, 0}, // a core would hold what the program worked on
		{unix.RLIMIT_CPU, uint64(l.cpu)},
		{unix.RLIMIT_FSIZE, maxFileBytes},
		{unix.RLIMIT_NOFILE, maxFiles},
		// Not the address space, of which some runtimes reserve far more than they use.
		// Last, since this process may have more already and get no more.
		{unix.RLIMIT_DATA, uint64(l.memory)},
	} {
		var limit unix.Rlimit
		if err := unix.Getrlimit(r.resource, &limit); err != nil {
			return cannotStart
		}
		limit.Max = min(limit.Max, r.value)
		limit.Cur = min(limit.Cur, limit.Max)
		if err := unix.Setrlimit(r.resource, &limit); err != nil {
			return cannotStart
		}
	}
	restrictNewFiles()
	_ = syscall.Exec(path, []string{path}, environ)
	return cannotStart
}
