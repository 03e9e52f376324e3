package extension

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

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
	s := whole(t, dir, Options{Launcher: launcher(t), Environ: []string{"PATH=/usr/bin:/bin"}})
	r := s.do(t, "x-it --timeout 10")
	var lines []string
	if err := json.Unmarshal(r.Data, &lines); err != nil {
		t.Fatalf("%s: %v", r.raw, err)
	}
	want := map[string]string{"Max core file size": "0 0", "Max data size": "1073741824 1073741824", "Max file size": "1073741824 1073741824", "Max open files": "256 256"}
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
	for _, args := range [][]string{nil, {"/bin/true"}, {"0", "/bin/true"}, {"-1", "/bin/true"}, {"x", "/bin/true"}, {"1", "true"}, {"1", "/bin/true", "more"}} {
		if _, _, ok := parseArguments(args); ok {
			t.Errorf("%q", args)
		}
	}
}
