//go:build !unix

package mail

import "os/exec"

func isolateHelper(*exec.Cmd) {}

// killHelper ends the helper itself; what it started ends by itself or not.
func killHelper(cmd *exec.Cmd) error { return cmd.Process.Kill() }
