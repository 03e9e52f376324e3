//go:build unix

package mail

import (
	"os/exec"
	"syscall"
)

// isolateHelper gives a helper a session of its own: it can be killed with
// whatever it started, and one that would ask on our terminal, where a person
// types something else, fails at once.
func isolateHelper(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

func killHelper(cmd *exec.Cmd) error {
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
		return cmd.Process.Kill()
	}
	return nil
}
