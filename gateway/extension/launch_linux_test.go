package extension

import (
	"os"
	"strings"
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

func TestLaunchRefusesOtherArguments(t *testing.T) {
	for _, args := range [][]string{nil, {"/bin/true"}, {"0", "/bin/true"}, {"-1", "/bin/true"}, {"x", "/bin/true"}, {"1", "true"}, {"1", "/bin/true", "more"}} {
		if _, _, ok := parseArguments(args); ok {
			t.Errorf("%q", args)
		}
	}
	if l, path, ok := parseArguments([]string{"7", "/bin/true"}); !ok || path != "/bin/true" || l.CPU != 7*time.Second || l.Memory != maxMemory || l.FileBytes != maxFileBytes || l.Files != maxFiles {
		t.Errorf("%+v %s", l, path)
	}
}
