// Package testmain is what the TestMain of every package with slow tests calls, and the reader of
// cases that stand in files.
package testmain

import (
	"flag"
	"os"
	"testing"
)

// atOnce is how many tests that call t.Parallel run at once, unless the command line says
// otherwise: most of them wait for a server, a program or a time, and not for a processor.
const atOnce = "8"

// Rounds is how often a test does what it tries at random: often only where POSTERN_TEST_LONG is
// set, as at night.
func Rounds(usual, long int) int {
	if os.Getenv("POSTERN_TEST_LONG") != "" {
		return long
	}
	return usual
}

// Run runs the tests of a package and returns the exit code. Their temporary files are in
// memory where that can be: half of the time of many tests would be waiting for the disk.
func Run(run func() int) int {
	flag.Parse()
	given := flag.Lookup("test.fuzz").Value.String() != "" // where it says how many processors there are
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", atOnce)
	}
	if dir, err := inMemory(); err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		_ = os.Setenv("TMPDIR", dir)
	}
	return run()
}

// Must ends a test at an error of what it needs.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
