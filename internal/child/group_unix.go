//go:build unix

package child

import (
	"os/exec"
	"sync"
	"syscall"
)

// isolate gives a command that is not started yet a session of its own and returns its
// wait function. So it can be killed with its children, no signal of our terminal
// reaches it, and it cannot ask on that terminal, where a person types something else.
// It is killed at once when its context ends, with no time to go on.
func isolate(cmd *exec.Cmd, leave bool) func() error {
	var mu sync.Mutex
	over := false // from now on another process may have the leader's id
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error {
		mu.Lock()
		defer mu.Unlock()
		if over || syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) != nil {
			return cmd.Process.Kill()
		}
		return nil
	}
	end := func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
		if !leave {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the group may be empty
		}
	}
	return func() error {
		if awaitExit(cmd.Process.Pid) {
			end() // it has ended and was not collected, so its id is not reused
			return cmd.Wait()
		}
		err := cmd.Wait()
		end()
		return err
	}
}
