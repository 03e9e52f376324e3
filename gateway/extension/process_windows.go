package extension

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// group is a program. Where Launch started it, killing it ends its job, and with that
// everything it started.
type group struct{ cmd *exec.Cmd }

func newGroup(cmd *exec.Cmd) *group {
	cmd.SysProcAttr = &syscall.SysProcAttr{HideWindow: true, CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_NO_WINDOW}
	return &group{cmd}
}

func (g *group) wait() error { return g.cmd.Wait() }
