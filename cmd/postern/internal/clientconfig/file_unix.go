//go:build unix

package clientconfig

import (
	"io/fs"
	"os"
	"syscall"
)

// sameOwner gives a file the owner of another, where this process may.
func sameOwner(file string, of fs.FileInfo) {
	if s, ok := of.Sys().(*syscall.Stat_t); ok {
		_ = os.Lchown(file, int(s.Uid), int(s.Gid)) // only root can give files away
	}
}
