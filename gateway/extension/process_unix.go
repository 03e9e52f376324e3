//go:build unix

package extension

import (
	"os/exec"
	"sync"
	"syscall"
)

// group is a program with whatever it started, in a session of its own: it can be
// killed as a whole, no signal of our terminal reaches it, and it cannot ask on that
// terminal, where a person types something else.
type group struct {
	cmd *exec.Cmd

	mu   sync.Mutex
	over bool // the leader's number may be somebody else's from now on
}

// newGroup prepares a command that is not started yet. It is killed at once when its
// context ends: a program that may go on a little would go on.
func newGroup(cmd *exec.Cmd) *group {
	g := &group{cmd: cmd}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.over || syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) != nil {
			return cmd.Process.Kill()
		}
		return nil
	}
	return g
}

// wait waits for the program, and kills what it left behind in its group.
func (g *group) wait() error {
	if awaitExit(g.cmd.Process.Pid) {
		// It has ended and was not collected, so its number is its own.
		g.end()
		return g.cmd.Wait()
	}
	err := g.cmd.Wait()
	g.end()
	return err
}

func (g *group) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over = true
	_ = syscall.Kill(-g.cmd.Process.Pid, syscall.SIGKILL) // there may be nobody left
}
