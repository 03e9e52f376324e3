//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package bolt

import "os"

// release closes the file, which ends its locks on this system.
func release(h *os.File) { _ = h.Close() }
