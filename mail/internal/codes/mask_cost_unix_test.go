//go:build unix

package codes

import (
	"syscall"
	"testing"
	"time"
)

// cost is the time of a processor that a text takes, which does not depend on what else runs.
func cost(t *testing.T, unit string, size int) time.Duration {
	var began, ended syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &began); err != nil {
		t.Fatal(err)
	}
	read(unit, size)
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ended); err != nil {
		t.Fatal(err)
	}
	return time.Duration(ended.Utime.Nano() + ended.Stime.Nano() - began.Utime.Nano() - began.Stime.Nano())
}

// A text that is sixteen times as long costs about sixteen times as much, some more beyond the
// caches of a processor, and not 256 times.
func TestCostIsLinear(t *testing.T) {
	const short, factor, tries = 4 << 10, 16, 4
	for _, c := range hostile(t) {
		least, most := cost(t, c.Unit, short), cost(t, c.Unit, factor*short)
		for range tries {
			least = min(least, cost(t, c.Unit, short))
		}
		least = max(least, 200*time.Microsecond) // below that it says nothing
		for n := 0; n < tries && most > factor*factor/2*least; n++ {
			most = min(most, cost(t, c.Unit, factor*short))
		}
		if most > factor*factor/2*least {
			t.Errorf("%s: %v for %d bytes, %v for %d times as many", c.Name, least, short, most, factor)
		}
	}
}
