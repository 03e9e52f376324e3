//go:build !unix

package pdftext

import (
	"os"
	"os/exec"
)

// environment is what a child gets. A Windows program does not start without
// these.
func environment() []string {
	var env []string
	for _, name := range []string{"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return append([]string{}, env...)
}

func isolate(*exec.Cmd) {}

func kill(cmd *exec.Cmd) error { return cmd.Process.Kill() }

func signalled(*os.ProcessState) error { return nil }
