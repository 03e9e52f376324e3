package servertest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A test binary whose time is over, or that crashed, cleans up nothing; its
// servers end all the same.
func TestPostfixEndsWithItsTest(t *testing.T) {
	const pids = "POSTERN_TEST_PIDS"
	if file := os.Getenv(pids); file != "" {
		d := Dovecot(t, Config{Submission: true})
		p := Postfix(t, PostfixConfig{Dovecot: d})
		ids := fmt.Sprint(server(t).cmd.Process.Pid, " ", d.cmd.Process.Pid, " ", p.cmd.Process.Pid)
		must(t, os.WriteFile(file, []byte(ids), 0o600))
		os.Exit(3)
	}
	_, err := findPostfix()
	Check(t, err)
	// Not t.TempDir, whose name is too long for sockets.
	dir, err := os.MkdirTemp("", "killed-")
	must(t, err)
	defer func() { _ = os.RemoveAll(dir) }()
	must(t, os.Chmod(dir, 0o755))
	file := filepath.Join(dir, "pids")
	cmd := exec.Command(os.Args[0], "-test.run=^TestPostfixEndsWithItsTest$")
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, pids+"="+file)
	var exit *exec.ExitError
	if out, err := cmd.CombinedOutput(); !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Fatalf("got %v: %s", err, out)
	}
	ids, err := os.ReadFile(file)
	must(t, err)
	fields := strings.Fields(string(ids))
	if len(fields) != 3 {
		t.Fatalf("got %q", ids)
	}
	deadline := time.Now().Add(startTimeout)
	for _, field := range fields {
		id, err := strconv.Atoi(field)
		must(t, err)
		for {
			running, err := session(id)
			must(t, err)
			if len(running) == 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Errorf("still running: %q", running)
				break
			}
			time.Sleep(pollInterval)
		}
	}
}
