package servertest

import (
	"os"
	"os/exec"
	"syscall"
)

// prepare ties the server to this process: it gets a process group of its own,
// and the kernel ends it when this process dies without cleaning up, as a test
// binary does when its time is over.
func prepare(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}

// reap ends every process of the server, whose first one has this id.
func reap(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

// runAs makes a command run as somebody else, which only root can.
func runAs(cmd *exec.Cmd, o owner) {
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(o.uid), Gid: uint32(o.gid)}}
	}
}
