//go:build unix

package conformance

import (
	"os/exec"
	"syscall"
)

// ownGroup has the server lead a process group, so that its children can be killed
// with it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills every process left in the group. The id of a group is not reused
// while it has a member, and without members there is nothing to kill.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
