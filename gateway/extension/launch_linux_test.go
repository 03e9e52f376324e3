package extension

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/postern-mail/postern/discovery"
)

func launcher(t testing.TB) []string {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	return []string{self, "launch"}
}

// TestALaunchedProgramHasLimitsItCannotRaise reads them from the system.
func TestALaunchedProgramHasLimitsItCannotRaise(t *testing.T) {
	dir := directory(t)
	installScript(t, dir, "x-it", manifestOf("x-it", "run", "read"),
		"#!/bin/sh\nulimit -Hc 5 2>/dev/null; exec awk '/core|cpu|data|file size|open files/ {printf \"%s\\\"%s\\\"\", (n++ ? \",\" : \"[\"), $0} END {print \"]\"}' /proc/self/limits\n")
	s := whole(t, dir, Options{Launcher: launcher(t), Environ: []string{"PATH=/usr/bin:/bin"}, MemoryBytes: 512 << 20})
	r := s.do(t, "x-it --timeout 10")
	var lines []string
	if err := json.Unmarshal(r.Data, &lines); err != nil {
		t.Fatalf("%s: %v", r.raw, err)
	}
	want := map[string]string{"Max core file size": "0 0", "Max data size": "536870912 536870912", "Max file size": "1073741824 1073741824", "Max open files": "256 256"}
	for _, line := range lines {
		name, values := strings.TrimSpace(line[:25]), strings.Join(strings.Fields(line[25:])[:2], " ")
		if w, ok := want[name]; ok && values != w {
			t.Errorf("%s: %s", name, values)
		}
		delete(want, name)
		if name == "Max cpu time" && values != "40 40" && values != "36 36" {
			t.Errorf("%s: %s", name, values)
		}
	}
	if len(want) != 0 || len(lines) != 5 {
		t.Errorf("%q", lines)
	}
}

// TestWhatALaunchedProgramWritesIsNobodyElses has it write where everybody's umask is
// lax.
func TestWhatALaunchedProgramWritesIsNobodyElses(t *testing.T) {
	dir := directory(t)
	at := installScript(t, dir, "x-it", manifestOf("x-it", "run", "read"), "#!/bin/sh\n: > state\necho true\n")
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	s := whole(t, dir, Options{Launcher: launcher(t)})
	if r := s.do(t, "x-it"); !r.Success {
		t.Fatalf("%s", r.raw)
	}
	if info, err := os.Stat(filepath.Join(at, "state")); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	whole(t, dir, Options{})
}

// TestALaunchedProgramThatTakesAllMemoryFails asks for more than there is allowed,
// and only for that.
func TestALaunchedProgramThatTakesAllMemoryFails(t *testing.T) {
	dir := directory(t)
	installScript(t, dir, "x-it", manifestOf("x-it", "run", "read"), "#!/bin/sh\nexec dd if=/dev/zero of=/dev/null bs=1536M count=1\n")
	s := whole(t, dir, Options{Launcher: launcher(t), Environ: []string{"PATH=/usr/bin:/bin"}, MemoryBytes: 64 << 20})
	if r := s.do(t, "x-it"); r.Success || r.Error.Code != discovery.ExecutionError || !strings.Contains(r.Error.Message, "(status 1)") {
		t.Errorf("%s", r.raw)
	}
}

func TestALaunchedProgramThatCannotStart(t *testing.T) {
	dir := directory(t)
	installScript(t, dir, "x-it", manifestOf("x-it", "run", "read"), "#!/no/such/interpreter\n")
	installScript(t, dir, "x-env", manifestOf("x-env", "run", "read"), "#!/usr/bin/env no-such-interpreter\n")
	installScript(t, dir, "x-odd", manifestOf("x-odd", "run", "read"), "no program at all")
	for _, launch := range [][]string{nil, launcher(t)} {
		s := whole(t, dir, Options{Launcher: launch})
		for _, line := range []string{"x-it", "x-env", "x-odd"} {
			if r := s.do(t, line); r.Error.Code != discovery.ExecutionError || !strings.Contains(r.Error.Message, "cannot be started") {
				t.Errorf("%s", r.raw)
			}
		}
	}
}

func TestLaunchRefusesWhatIsNotOfARunner(t *testing.T) {
	for _, args := range [][]string{nil, {"1", "1"}, {"0", "1", "/bin/true"}, {"1", "-1", "/bin/true"}, {"x", "1", "/bin/true"}, {"1", "1", "true"}, {"1", "1", "/bin/true", "more"}} {
		if _, _, ok := parseArguments(args); ok {
			t.Errorf("%q", args)
		}
	}
	if l, path, ok := parseArguments(append(arguments(5, 6), "/bin/true")); !ok || l.Memory != 5 || l.CPU != 6*time.Second || path != "/bin/true" {
		t.Errorf("%+v %s", l, path)
	}
}
