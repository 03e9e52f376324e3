// Package testdir says where the temporary files of tests are.
package testdir

import (
	"flag"
	"os"
	"testing"
)

// Main runs the tests of a package and returns the exit code. With -short all temporary files
// are in memory where that can be: most of such a run would be waiting for the disk.
func Main(run func() int) int {
	flag.Parse()
	if testing.Short() {
		if dir, err := inMemory(); err == nil {
			defer func() { _ = os.RemoveAll(dir) }()
			_ = os.Setenv("TMPDIR", dir)
		}
	}
	return run()
}
