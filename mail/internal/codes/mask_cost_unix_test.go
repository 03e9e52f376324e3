//go:build unix

package codes

import (
	"syscall"
	"testing"
	"time"
)

// cost is the time of a processor that texts of a size take, which does not depend on what else
// runs.
func cost(t *testing.T, unit string, texts, size int) time.Duration {
	var began, ended syscall.Rusage
	must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &began))
	for range texts {
		read(unit, size)
	}
	must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &ended))
	return time.Duration(ended.Utime.Nano() + ended.Stime.Nano() - began.Utime.Nano() - began.Stime.Nano())
}

// A text that is sixteen times as long costs about as much as sixteen short ones, some more
// beyond the caches of a processor, and not sixteen times that.
func TestCostIsLinear(t *testing.T) {
	const short, factor, tries = 4 << 10, 16, 4
	for _, c := range hostile(t) {
		least := max(cost(t, c.Unit, factor, short), time.Millisecond) // below that it says nothing
		most := cost(t, c.Unit, 1, factor*short)
		for n := 0; n < tries && most > factor/2*least; n++ {
			most = min(most, cost(t, c.Unit, 1, factor*short))
		}
		if most > factor/2*least {
			t.Errorf("%s: %v for %d texts of %d bytes, %v for one that is as long as they", c.Name, least, factor, short, most)
		}
	}
}
