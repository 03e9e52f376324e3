//go:build linux || darwin

package pdftext

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Open files of a child: its three, what the Go runtime needs to wait on them,
// and a few.
const maxFiles = 16

// memorySlack is what the Go runtime maps besides what the watchdog counts, so
// that the watchdog, which can say why, is mostly first.
const memorySlack = 64 << 20

// limitProcess takes from this process what reading a PDF does not need. The
// hard limits are lowered too, so nothing in it gets them back.
func limitProcess(a childArguments) error {
	for _, l := range []struct {
		name     string
		resource int
		value    uint64
	}{
		{"core", unix.RLIMIT_CORE, 0},
		{"file size", unix.RLIMIT_FSIZE, 0},
		{"open files", unix.RLIMIT_NOFILE, maxFiles},
		// The system kills without a word; the watchdog's clock, which runs no
		// slower than all threads together, comes first.
		{"processor time", unix.RLIMIT_CPU, uint64(threads*a.cpu/time.Second) + 1},
		// Not the address space: the Go runtime reserves far more of it than it
		// ever uses.
		{"data", unix.RLIMIT_DATA, dataInUse() + uint64(a.memory) + memorySlack},
	} {
		var limit unix.Rlimit
		if err := unix.Getrlimit(l.resource, &limit); err != nil {
			return fmt.Errorf("limit %s: %w", l.name, err)
		}
		limit.Max = min(limit.Max, l.value)
		limit.Cur = min(limit.Cur, limit.Max)
		if err := unix.Setrlimit(l.resource, &limit); err != nil {
			return fmt.Errorf("limit %s: %w", l.name, err)
		}
	}
	return nil
}

// dataInUse returns how much writable memory this process has mapped, 0 where
// the system does not tell; the slack then stands for it.
func dataInUse() uint64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == "VmData:" && fields[2] == "kB" {
			if n, err := strconv.ParseUint(fields[1], 10, 40); err == nil {
				return n << 10
			}
		}
	}
	return 0
}
