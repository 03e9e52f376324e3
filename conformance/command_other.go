//go:build !unix

package conformance

import "os/exec"

func ownGroup(*exec.Cmd) {}

// killGroup ends the server alone: there are no process groups here.
func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
