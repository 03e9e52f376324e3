//go:build !unix

package mail

import "os/exec"

// Isolate has a command of exec.CommandContext that is not started yet killed when its
// context ends. What it started ends by itself or not.
func Isolate(*exec.Cmd) {} // the context does so by itself
