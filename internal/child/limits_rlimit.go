//go:build linux || darwin

package child

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

func (l Limits) apply() error {
	for _, r := range []struct {
		name     string
		resource int
		value    int64
	}{
		{"core", unix.RLIMIT_CORE, 0},
		{"processor time", unix.RLIMIT_CPU, int64(l.CPU / time.Second)},
		{"file size", unix.RLIMIT_FSIZE, l.FileBytes},
		{"open files", unix.RLIMIT_NOFILE, l.Files},
		// Last, since this process may already use more and gets no more.
		{"data", unix.RLIMIT_DATA, l.Memory},
	} {
		var limit unix.Rlimit
		if err := unix.Getrlimit(r.resource, &limit); err != nil {
			return fmt.Errorf("limit %s: %w", r.name, err)
		}
		limit.Max = min(limit.Max, uint64(r.value))
		limit.Cur = min(limit.Cur, limit.Max)
		if err := unix.Setrlimit(r.resource, &limit); err != nil {
			return fmt.Errorf("limit %s: %w", r.name, err)
		}
	}
	return nil
}
