//go:build unix

package bolt

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/postern-mail/postern/vault/kv"
)

// PrivateMode reports whether only the owner may read or write a file of this
// mode.
func PrivateMode(m fs.FileMode) bool { return m.Perm()&0o077 == 0 }

// private refuses a directory that others can write to: they could put an older vault, or one
// of their own, in the place of this one. A sticky one, such as /tmp, passes, since there only
// the owner of a file can replace it. So does one of a group that has the number of its owner:
// it is the owner's alone where each user has a group, and there users share nothing by it.
func private(dir string) error {
	info, err := os.Stat(dir)
	if err != nil || info.Mode()&fs.ModeSticky != 0 {
		return err
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	others := fs.FileMode(0o022)
	if ok && s.Uid == s.Gid {
		others = 0o002
	}
	if info.Mode().Perm()&others != 0 {
		return fmt.Errorf("%w: they can write to the directory %s (mode %04o)",
			kv.ErrPermissions, dir, info.Mode().Perm())
	}
	return nil
}

// SameOwner gives a file the owner of another that it is to take the place of, where this
// process may: only root can give files away.
func SameOwner(file string, of fs.FileInfo) {
	if s, ok := of.Sys().(*syscall.Stat_t); ok {
		_ = os.Lchown(file, int(s.Uid), int(s.Gid))
	}
}
