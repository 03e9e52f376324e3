//go:build unix

package conformance

import (
	"os/exec"
	"syscall"
)

// ownGroup has the server lead a process group, so that what it starts can be ended
// with it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup ends every process left in the group. A group keeps its number from being
// given away as long as it has a member, and has none to kill otherwise.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
