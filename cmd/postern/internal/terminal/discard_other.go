//go:build !linux

package terminal

import "os"

// Discard would forget what was typed at a terminal and not read yet; this
// system's way to do that is not known here.
func Discard(*os.File) {}
