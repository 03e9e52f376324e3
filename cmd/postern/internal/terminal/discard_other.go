//go:build !linux && !darwin && !windows

package terminal

import "os"

// Discard would drop unread input of a terminal; this system's way to do that is
// not known here.
func Discard(*os.File) {}
