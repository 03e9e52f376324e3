//go:build !unix && !windows

package extension

import "os/exec"

// group is a program alone: what it started ends by itself or not.
type group struct{ cmd *exec.Cmd }

func newGroup(cmd *exec.Cmd) *group { return &group{cmd} }

func (g *group) wait() error { return g.cmd.Wait() }
