package main

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
)

// actAsPostern is the variable that turns the test binary into the program, for
// tests that start it themselves.
const actAsPostern = "POSTERN_TEST_ACT_AS_POSTERN"

var (
	packageDir, _ = os.Getwd()
	environment   = os.Environ() // before a test changes it
)

// children is what tests start as the program: the test binary, or where that has the race
// detector, which makes a process some ten times slower, one that is built without it.
var children = sync.OnceValues(func() (path string, err error) {
	if !racing {
		return os.Executable()
	}
	dir, err := os.MkdirTemp("", "children")
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "postern") // as the scripts call it
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	build := exec.Command("go", "test", "-c", "-race=false", "-o", path, ".")
	build.Dir, build.Env = packageDir, environment
	if out, err := build.CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("building the program of the tests without the race detector: %w\n%s", err, out), os.RemoveAll(dir))
	}
	info, err := buildinfo.ReadFile(path)
	if err == nil && slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "-race" && s.Value == "true" }) {
		err = errors.New("what was built has the race detector")
	}
	return path, err
})

// childProgram is the path of what tests start as the program.
func childProgram(t testing.TB) string {
	t.Helper()
	path, err := children()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// programFirst has a script start the program that tests start.
func programFirst(path string) (string, error) {
	if !racing {
		return path, nil // testscript.Main has put the test binary there
	}
	program, err := children()
	return filepath.Dir(program) + string(filepath.ListSeparator) + path, err
}
