package child

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// isolate hides a command that is not started yet and returns its wait function. Only the
// command itself is killed, unless Limits put it in a job: then its children end with it.
func isolate(cmd *exec.Cmd, trusted bool) func() error {
	if !trusted {
		cmd.SysProcAttr = &syscall.SysProcAttr{HideWindow: true, CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_NO_WINDOW}
	}
	return cmd.Wait
}
