//go:build unix

package pdftext

import (
	"os"
	"os/exec"
	"syscall"
)

// environment is what a child gets: nothing.
func environment() []string { return []string{} }

// isolate gives a child a process group of its own, so that it can be killed
// with whatever it started.
func isolate(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func kill(cmd *exec.Cmd) error {
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
		return cmd.Process.Kill()
	}
	return nil
}

// signalled says what a signal that we did not send means: the system sends
// these when a limit is reached, the last one when memory is short.
func signalled(state *os.ProcessState) error {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return nil
	}
	switch status.Signal() {
	case syscall.SIGXCPU:
		return ErrTimeout
	case syscall.SIGKILL:
		return ErrMemory
	}
	return nil
}
