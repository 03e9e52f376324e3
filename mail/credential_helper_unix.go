//go:build unix

package mail

import (
	"os/exec"
	"syscall"
)

// Isolate gives a command of exec.CommandContext that is not started yet a session of
// its own: when its context ends it is killed with whatever it started, and one that
// would ask on our terminal, where a person types something else, fails at once. Where
// the system has no sessions, the command alone is killed.
func Isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error {
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
			return cmd.Process.Kill()
		}
		return nil
	}
}
