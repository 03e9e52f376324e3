package pdftext

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	childVerbs["pdftext-limits"] = func(args []string) int { return Child(fakeLimitsReader{os.Stdout}, os.Stdout, args) }
}

var watched = []int{unix.RLIMIT_CORE, unix.RLIMIT_FSIZE, unix.RLIMIT_NOFILE, unix.RLIMIT_CPU, unix.RLIMIT_DATA}

// fakeLimitsReader is a reader that prints the limits of the process and ends it.
type fakeLimitsReader struct{ out *os.File }

func (l fakeLimitsReader) Read([]byte) (int, error) {
	for _, resource := range watched {
		var r unix.Rlimit
		if err := unix.Getrlimit(resource, &r); err != nil {
			os.Exit(1)
		}
		fmt.Fprintln(l.out, r.Cur, r.Max)
	}
	os.Exit(0)
	return 0, nil
}

// Both the soft and the hard limits are lowered, so code in the child cannot raise them.
func TestChildLowersItsLimitsForGood(t *testing.T) {
	r := &Runner{Command: command(t, "pdftext-limits"), Timeout: 5 * time.Second}
	text, _, err := r.Text(t.Context(), []byte("x"), 1000)
	must(t, err)
	var got [5][2]uint64
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if _, err := fmt.Sscan(line, &got[i][0], &got[i][1]); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	}
	for i, most := range []uint64{0, 0, maxFiles, 13, 4 << 30} {
		if got[i][0] != got[i][1] || got[i][0] > most {
			t.Errorf("resource %d: %d, %d, want at most %d", watched[i], got[i][0], got[i][1], most)
		}
	}
	if got[4][0] < defaultMemory {
		t.Errorf("%d bytes of data, want at least %d", got[4][0], defaultMemory)
	}
}
