//go:build !unix

package conformance

import "os/exec"

func ownGroup(*exec.Cmd) {}

// killGroup kills only the server: this system has no process groups.
func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
